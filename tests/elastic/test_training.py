# SPDX-License-Identifier: MIT-0
"""Our trainer under real agents, shrunk, grown, stopped and killed: the end is that of an undisturbed run."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from elastic.conftest import MANY_STEPS, STEPS
from elastic.job import Job
from elastic.training import SETTINGS, Run, new_run
from elastic.warm import Server
from harness.hyperpod.ranks import Policy

POLICY = Policy(sizes=(1, 2, 3, 4), graceful_seconds=60, retries=100)
INTERVAL = SETTINGS["checkpoint"]["save_steps"]
Environment = dict[str, str]


@pytest.fixture
def run(prepared: Path, tmp_path: Path) -> Run:
    """The run that is disturbed."""
    return new_run(prepared, tmp_path, STEPS)


@pytest.fixture
def long_run(prepared: Path, tmp_path: Path) -> Run:
    """One that is disturbed often."""
    return new_run(prepared, tmp_path, MANY_STEPS)


def start(server: Server, run: Run, environment: Environment, nodes: int, late: int = 0) -> Job:
    return Job(server, run.root.parent / "job", run.command, environment, POLICY, nodes, late)


def stopped_gracefully(job: Job, run: Run) -> int:
    """Await the end of a stop that was ordered; its step, of which there must be a checkpoint."""
    job.until("all are ready", job.phase("waiting"))
    assert run.newest() == run.last()
    return run.last()


def lost(job: Job, run: Run) -> int:
    """Await the end of a fault; the steps that it cost: fewer than lie between two saves, or just as many when it came
    after the last of them and before its checkpoint was whole.
    """
    job.until("those that are left have been stopped", job.phase("waiting"))
    cost = run.last() - run.newest()
    assert cost < INTERVAL or (cost == INTERVAL and run.last() % INTERVAL == 0)
    return cost


def test_four_then_two_then_three_nodes(server: Server, run: Run, reference: Run, environment: Environment) -> None:
    with start(server, run, environment, nodes=4) as job:
        job.until("step 8", run.at(8))
        job.wanted = 2
        job.until("two nodes", lambda: [row[1] for row in run.examples()][-1:] == [2])
        job.until("step 20", run.at(20))
        job.wanted = 3
        job.until("the end", job.phase("completed"), 120)
    run.require_equal(reference)
    sizes = [processes for _, processes, _ in run.examples()]
    assert sorted(set(sizes), key=sizes.index) == [4, 2, 3]
    assert job.operator.memory.faults == 0


def test_twenty_graceful_stops_at_random_steps(
    server: Server, long_run: Run, long_reference: Run, environment: Environment
) -> None:
    chance = random.Random(7)
    stops: list[int] = []
    with start(server, long_run, environment, nodes=3) as job:
        while len(stops) < 20:
            job.until("some steps more", long_run.at(long_run.last() + chance.randint(1, 4)))
            job.wanted = chance.choice([size for size in (1, 2, 3) if size != job.wanted])
            job.step()
            stops.append(stopped_gracefully(job, long_run))
            job.until("it goes on", job.phase("running"))
        job.until("the end", job.phase("completed"), 120)
    assert stops == sorted(set(stops))
    assert stops[-1] < MANY_STEPS
    assert job.operator.memory.faults == 0
    long_run.require_equal(long_reference)


def test_a_killed_rank_a_killed_agent_and_all_killed(
    server: Server, run: Run, reference: Run, environment: Environment
) -> None:
    with start(server, run, environment, nodes=3) as job:
        job.until("step 7", run.at(7))
        job.member(1).ranks()[0].kill()
        lost(job, run)
        job.until("step 14", run.at(14))
        job.pods["pod-0"].kill()
        lost(job, run)
        job.replace_lost_pods()
        job.until("step 21", run.at(21))
        for pod in job.pods.values():
            pod.kill()
        lost(job, run)
        job.replace_lost_pods()
        job.until("the end", job.phase("completed"), 120)
    run.require_equal(reference)
    assert job.operator.memory.faults == 3


def test_two_faults_in_a_row(server: Server, run: Run, reference: Run, environment: Environment) -> None:
    with start(server, run, environment, nodes=2) as job:
        job.until("step 12", run.at(12))
        job.member(0).ranks()[0].kill()
        lost(job, run)
        job.until("it begins again", lambda: job.phase("running")() and all(pod.ranks() for pod in job.pods.values()))
        job.member(1).ranks()[0].kill()
        job.until("the second fault", lambda: job.operator.memory.faults == 2)
        job.until("the end", job.phase("completed"), 120)
    run.require_equal(reference)


def test_a_new_operator_goes_on_and_one_without_memory_begins_again(
    server: Server, run: Run, reference: Run, environment: Environment
) -> None:
    with start(server, run, environment, nodes=2) as job:
        job.until("step 5", run.at(5))
        pids = [rank.pid for pod in job.pods.values() for rank in pod.ranks()]
        job.restart_operator()
        job.until("step 10", run.at(10))
        assert pids == [rank.pid for pod in job.pods.values() for rank in pod.ranks()]
        job.wanted = 1
        job.step()
        assert job.operator.memory.phase == "stopping"
        job.restart_operator()
        stopped_gracefully(job, run)
        job.wanted = 2
        job.until("step 20", run.at(20))
        job.restart_operator(remembers=False)
        job.until("the end", job.phase("completed"), 120)
    run.require_equal(reference)
    assert job.operator.memory.faults == 0


def test_stops_before_and_during_the_first_step(
    server: Server, run: Run, reference: Run, environment: Environment
) -> None:
    with start(server, run, environment, nodes=2) as job:
        job.until("ranks are started", lambda: all(pod.ranks() for pod in job.pods.values()))
        job.wanted = 1
        begun = time.monotonic()
        stopped_gracefully(job, run)
        job.until("its first step", lambda: '"task": "start"' in "".join(pod.log() for pod in job.pods.values()))
        job.wanted = 2
        stopped_gracefully(job, run)
        assert time.monotonic() - begun < 2 * POLICY.graceful_seconds  # none had to be killed
        job.until("the end", job.phase("completed"), 120)
    run.require_equal(reference)


def test_a_stop_during_a_save_and_further_signals(
    server: Server, run: Run, reference: Run, environment: Environment
) -> None:
    with start(server, run, environment, nodes=2) as job:
        job.until("a step before a checkpoint", run.at(INTERVAL - 1))
        job.spin("it is being written", lambda: run.saving)
        job.wanted = 1
        job.step()
        job.spin(
            "the stop's own checkpoint, or the end", lambda: run.saving or (job.seen and not job.member(0).ranks())
        )
        for pod in job.pods.values():
            for rank in pod.ranks():
                rank.send_signal(signal.SIGUSR1)
                rank.send_signal(signal.SIGTERM)
        stopped_gracefully(job, run)
        job.until("the end", job.phase("completed"), 120)
    run.require_equal(reference)
    assert job.operator.memory.faults == 0


def test_an_agent_that_is_started_late(server: Server, run: Run, reference: Run, environment: Environment) -> None:
    with start(server, run, environment, nodes=2, late=1) as job:
        job.until("the first is ready", lambda: [one.state for one in job.seen.values()] == ["ready"])
        assert job.operator.memory.phase == "waiting"
        job.start_pod(1)
        job.until("the end", job.phase("completed"), 120)
    run.require_equal(reference)


def test_a_frozen_rank_ends_the_others_with_their_stacks(
    server: Server, prepared: Path, tmp_path: Path, reference: Run, environment: Environment
) -> None:
    run = new_run(prepared, tmp_path, STEPS, hang_seconds=8.0)
    with start(server, run, environment, nodes=2) as job:
        job.until("step 7", run.at(7))
        job.member(1).ranks()[0].send_signal(signal.SIGTSTP)
        job.until("the fault is seen", lambda: job.operator.memory.faults == 1, 40)
        job.until("the end", job.phase("completed"), 120)
        troubles = job.pods["pod-0"].log()
    assert "most recent call first" in troubles  # of faulthandler's dump
    run.require_equal(reference)


def test_thirty_random_faults_lose_and_repeat_no_example(
    server: Server, long_run: Run, long_reference: Run, environment: Environment
) -> None:
    chance = random.Random(11)
    costs: list[int] = []
    kinds = ["rank", "agent", "all", "stop", "scale", "operator"]
    plan = [chance.choice(kinds) for _ in range(30)]
    with start(server, long_run, environment, nodes=3) as job:
        for kind in plan:
            job.until("some steps more", long_run.at(long_run.last() + chance.randint(1, 5)))
            if kind == "operator":
                job.restart_operator(remembers=chance.random() < 0.5)
                job.step()
            elif kind in ("stop", "scale"):
                others = [size for size in (1, 2, 3) if size != job.wanted]
                before, job.wanted = job.wanted, chance.choice(others)
                job.step()
                stopped_gracefully(job, long_run)
                job.wanted = before if kind == "stop" else job.wanted
            else:
                pods = list(job.pods.values()) if kind == "all" else [job.member(chance.randrange(job.wanted))]
                for pod in pods:
                    pod.ranks()[0].kill() if kind == "rank" else pod.kill()
                costs.append(lost(job, long_run))
                job.replace_lost_pods()
            job.until("it goes on", job.phase("running"))
        job.until("the end", job.phase("completed"), 120)
    assert set(plan) == set(kinds)
    assert job.operator.memory.faults == len(costs)
    long_run.require_equal(long_reference)
