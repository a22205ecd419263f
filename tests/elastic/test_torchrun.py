# SPDX-License-Identifier: MIT-0
"""The same trainer under torchrun, as the chart's Indexed Job runs it: pods go and come back with other addresses."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elastic.conftest import STEPS
from elastic.indexed import IndexedJob
from elastic.job import free_port
from elastic.training import Run, new_run
from elastic.warm import Server

Environment = dict[str, str]


@pytest.fixture
def plain(environment: Environment) -> Environment:
    """Without HyperPod's variable."""
    return {name: value for name, value in environment.items() if name != "HYPERPOD_SIGNAL_COORDINATION"}


@pytest.fixture
def run(prepared: Path, tmp_path: Path) -> Run:
    """The run that is disturbed."""
    return new_run(prepared, tmp_path, STEPS)


def test_a_lost_rank_and_each_pod_lost_in_turn(
    server: Server, run: Run, reference: Run, plain: Environment, tmp_path: Path
) -> None:
    with IndexedJob(server, tmp_path / "job", run.command, plain) as job:
        job.until("step 6", run.at(6))
        job.pods[1].ranks()[0].kill()
        job.until("step 12", run.at(12))
        assert job.restarts == 0  # torchrun alone started the ranks again
        job.pods[1].kill()
        job.until("step 18", run.at(18))
        assert job.restarts >= 1
        job.pods[0].kill()  # the store of the rendezvous is lost too
        job.until("the end", lambda: job.complete, 180)
    run.require_equal(reference)


def test_the_first_pod_comes_back_under_another_host_name(
    server: Server, run: Run, reference: Run, plain: Environment, tmp_path: Path
) -> None:
    """Nobody can tell that the holder of the lock is dead, so the new one waits until its heartbeat is old."""
    with IndexedJob(server, tmp_path / "job", run.command, plain, renamed=True) as job:
        job.until("step 12", run.at(12))
        job.pods[0].kill()
        killed = time.monotonic()
        job.until("step 18", run.at(18), 240)
        assert time.monotonic() - killed > 50
        job.until("the end", lambda: job.complete, 120)
    run.require_equal(reference)


def test_a_drained_pod_and_a_stopped_job_save_before_they_end(
    server: Server, run: Run, reference: Run, plain: Environment, tmp_path: Path
) -> None:
    with IndexedJob(server, tmp_path / "job", run.command, plain) as job:
        job.until("step 6", run.at(6))
        job.pods[1].signal(signal.SIGTERM)
        job.until("pod 1 has ended", lambda: job.pods[1].status is not None, restart=False)
        stopped = run.examples()[-1][0]
        assert run.newest() == stopped
        job.until("two steps more", run.at(stopped + 2))
        for pod in job.pods:
            pod.signal(signal.SIGTERM)
        job.until("both have ended", lambda: None not in [pod.status for pod in job.pods], restart=False)
        assert run.newest() == run.examples()[-1][0]
        job.until("the end", lambda: job.complete, 180)
    run.require_equal(reference)


@pytest.mark.parametrize(("fail", "least", "most"), [(False, 2.0, 15.0), (True, 30.0, 60.0)])
def test_ranks_have_the_time_that_the_variable_grants(
    server: Server, plain: Environment, tmp_path: Path, fail: bool, least: float, most: float
) -> None:
    """2 seconds after SIGTERM; after a fault torch's own 30."""
    stubborn = str(Path(__file__).with_name("stubborn.py"))
    variables = {**plain, "LINGOSS_STOP_SECONDS": "2", **({"LINGOSS_FAIL": "1"} if fail else {})}
    command = [sys.executable, "-m", "lingoss.torchrun", "--nproc-per-node=2", "--max-restarts=0"]
    command += [f"--master-port={free_port()}", "--no-python", sys.executable, stubborn, str(tmp_path)]
    with subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not all((tmp_path / f"started-{rank}").exists() for rank in range(2)):
            assert time.monotonic() < deadline, "the ranks did not start in 60 s"
            time.sleep(0.05)
        begun = time.monotonic()
        if not fail:
            process.terminate()
        _, errors = process.communicate(timeout=most)
        taken = time.monotonic() - begun
    assert (tmp_path / "term-0").exists()
    assert least <= taken < most
    assert process.returncode == 1, errors
