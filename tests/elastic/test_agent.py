# SPDX-License-Identifier: MIT-0
"""The contract of the real agent, with a trainer of thirty lines: what our trainer and our chart rely on."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from elastic.job import Job, free_port
from elastic.warm import Server
from harness.hyperpod.agents import Agent, Place
from harness.hyperpod.ranks import Policy

WORKER = str(Path(__file__).with_name("worker.py"))
POLICY = Policy(sizes=(1, 2, 3, 4), graceful_seconds=6)
Environment = dict[str, str]


def job(server: Server, folder: Path, environment: Environment, steps: int, seconds: float, nodes: int = 2) -> Job:
    return Job(server, folder / "job", [WORKER, str(folder), str(steps), str(seconds)], environment, POLICY, nodes)


def steps(folder: Path) -> list[tuple[int, int, int]]:
    """Step, world size and restart count of every step that rank 0 took."""
    log = folder / "steps.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [(int(one[0]), int(one[1]), int(one[2])) for one in map(str.split, lines)]


def test_two_agents_train_and_leave(server: Server, tmp_path: Path, environment: Environment) -> None:
    with job(server, tmp_path, environment, steps=3, seconds=0) as two:
        two.until("agents are ready", lambda: {one.state for one in two.seen.values()} == {"ready"})
        two.until("the job is completed", two.phase("completed"))
        assert steps(tmp_path) == [(1, 2, 0), (2, 2, 0), (3, 2, 0)]
        two.until("agents have ended", lambda: all(pod.status == 0 for pod in two.pods.values()))


def test_a_graceful_stop_ends_both_ranks_at_one_step_and_another_world_goes_on(
    server: Server, tmp_path: Path, environment: Environment
) -> None:
    with job(server, tmp_path, environment, steps=10, seconds=0.1) as two:
        two.until("step 3", lambda: len(steps(tmp_path)) >= 3)
        two.wanted = 1
        two.until("the job is completed", two.phase("completed"))
        ends = [re.findall(r"stopped after step (\d+)", pod.log()) for pod in two.pods.values()]
    taken = steps(tmp_path)
    stopped = int((ends[0] or ["0"])[0])
    assert ends == [[str(stopped)], [str(stopped)]]
    assert 3 <= stopped < 10
    assert taken == [(n, 2 if n <= stopped else 1, 0) for n in range(1, 11)]


@pytest.mark.parametrize("change", [{"HYPERPOD_SIGNAL_COORDINATION": ""}, {"IGNORE": "1"}])
def test_without_the_variable_or_the_handler_a_graceful_stop_saves_nothing(
    server: Server, tmp_path: Path, environment: Environment, change: Environment
) -> None:
    with job(server, tmp_path, environment | change, steps=1000, seconds=0.1) as two:
        two.until("step 2", lambda: len(steps(tmp_path)) >= 2)
        two.wanted = 1
        two.until("all are ready again", two.phase("waiting"), 30)
    assert not (tmp_path / "checkpoint").exists()


def test_a_lost_rank_is_a_fault_of_all(server: Server, tmp_path: Path, environment: Environment) -> None:
    with job(server, tmp_path, environment, steps=8, seconds=0.1) as two:
        two.until("step 2", lambda: len(steps(tmp_path)) >= 2)
        (rank,) = two.member(1).ranks()
        rank.kill()
        two.until("the job is completed", two.phase("completed"))
        assert two.operator.memory.faults == 1
        assert "WorkerCrash" in "".join(two.operator.memory.told)
    assert steps(tmp_path)[-8:] == [(n, 2, 1) for n in range(1, 9)]  # it saved nothing, so it began again


def test_a_lost_agent_is_replaced(server: Server, tmp_path: Path, environment: Environment) -> None:
    with job(server, tmp_path, environment, steps=8, seconds=0.1) as two:
        two.until("step 2", lambda: len(steps(tmp_path)) >= 2)
        two.pods["pod-0"].kill()
        two.until("the others are stopped", two.phase("waiting"))
        two.start_pod(0)
        two.until("the job is completed", two.phase("completed"))
        assert two.operator.memory.faults == 1


def test_sigterm_to_an_agent_reaches_its_rank(server: Server, tmp_path: Path, environment: Environment) -> None:
    with job(server, tmp_path, environment, steps=1000, seconds=0.1, nodes=1) as one:
        one.until("step 2", lambda: len(steps(tmp_path)) >= 2)
        (rank,) = one.member(0).ranks()
        one.member(0).signal(signal.SIGTERM)
        one.until("the agent has ended", lambda: one.pods["pod-0"].status is not None)
        assert one.pods["pod-0"].status == 1
        assert not rank.is_running()


def test_log_rules_read_standard_output_of_local_rank_0_from_the_start_of_the_line(
    server: Server, tmp_path: Path, environment: Environment
) -> None:
    seen = {"name": "seen", "logPattern": "step \\d+ of rank", "expectedStartCutOffInSeconds": 600}
    inside = {"name": "inside", "logPattern": "\\d+ of rank", "expectedStartCutOffInSeconds": 2}
    for rules, reason in (([seen], ""), ([seen, inside], "LogHang_inside")):
        policy = Policy(sizes=(1,), graceful_seconds=6, log_rules=rules, retries=0)
        folder = tmp_path / reason
        folder.mkdir(exist_ok=True)
        command = [WORKER, str(folder), "40", "0.1"]
        with Job(server, folder / "job", command, environment, policy, 1) as one:
            one.until("an end", one.phase("failed" if reason else "completed"))
            assert reason in one.operator.memory.told[-1]


def test_a_start_of_running_ranks_and_an_update_move_no_process(
    server: Server, tmp_path: Path, environment: Environment
) -> None:
    with job(server, tmp_path, environment, steps=1000, seconds=0.1, nodes=1) as one:
        one.until("step 1", lambda: len(steps(tmp_path)) >= 1)
        agent = one.agents["pod-0"]
        (rank,) = one.member(0).ranks()
        assert agent.start(Place(0, 1, 0, f"127.0.0.1:{free_port()}"))
        assert agent.status().state == "running"
        assert agent.update(Place(0, 1, 3, f"127.0.0.1:{free_port()}"), ["10.0.0.7"])
        assert [process.pid for process in one.member(0).ranks()] == [rank.pid]
        told = json.loads((one.pods["pod-0"].folder / "config" / "pod_resourceconfig.json").read_text())
        assert (told["ips"], told["current_pod_ip"], told["ips_timestamp"]) == (["10.0.0.7"], "10.0.0.7", "3-1")


@pytest.mark.parametrize(
    ("arguments", "environment_change", "complaint"),
    [
        (["--nnodes=1"], {"NNODES": None}, "KeyError: 'NNODES'"),
        (["--nnodes=1:4"], {}, "Elastic cluster size is currently not supported"),
    ],
)
def test_what_hyperpodrun_refuses(
    tmp_path: Path,
    environment: Environment,
    arguments: list[str],
    environment_change: dict[str, str | None],
    complaint: str,
) -> None:
    """By the real program, not a fork: the flags and the variable that the chart must set."""
    given = {**environment, "NNODES": "1", **environment_change}
    ended = subprocess.run(
        [str(Path(sys.executable).with_name("hyperpodrun")), *arguments, f"--server-port={free_port()}", WORKER],
        env={name: value for name, value in given.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode != 0
    assert complaint in ended.stderr


def test_nobody_there_is_gone() -> None:
    agent = Agent(f"127.0.0.1:{free_port()}")
    assert agent.status().state == "gone"
    assert not agent.stop(graceful=True)
