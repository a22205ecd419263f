# SPDX-License-Identifier: MIT-0
"""The life of a run folder: started, told about, ended in every way there is, resumed."""

import contextlib
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import test_runs_helpers as helpers
from lingoss.errors import LingossError
from lingoss.runs import LockLostError, open_run, read_metrics, run_id
from lingoss.runs.folder import RunFolder
from lingoss.runs.lock import Lock
from test_runs_helpers import SPAWN, Config, start_child, status, until


def leave_by(run: RunFolder, error: BaseException | None) -> None:
    with run:
        if error is not None:
            raise error


def test_opening_touches_nothing_until_entered(tmp_path: Path) -> None:
    run = open_run(tmp_path, "sft", Config(), ["prepare-0123456789ab"], "digest")
    assert run.id == run_id("sft", {"learning_rate": 1e-4}, ["prepare-0123456789ab"], "digest", "1")
    assert run.path == tmp_path / "runs" / f"sft-{run.id}"
    assert not run.done
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_running_run(tmp_path: Path) -> None:
    with open_run(tmp_path, "sft", Config(), ["prepare-0123456789ab"], "digest") as run:
        run.status("running", 3, 10)
        found = status(run)
        assert json.loads((run.path / "config.json").read_bytes()) == Config().resolved()
        assert sorted(path.name for path in run.path.iterdir()) == ["config.json", "lock", "status.json"]
        assert {
            key: found[key] for key in ("stage", "id", "state", "step", "total", "pid", "parents", "data_digest")
        } == {
            "stage": "sft",
            "id": run.id,
            "state": "running",
            "step": 3,
            "total": 10,
            "pid": os.getpid(),
            "parents": ["prepare-0123456789ab"],
            "data_digest": "digest",
        }
        assert (run.checkpoints, run.adapter) == (run.path / "checkpoints", run.path / "adapter")
    assert (status(run)["state"], status(run)["step"], status(run)["total"]) == ("stopped", 3, 10)


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (None, "stopped", None),
        (KeyboardInterrupt(), "stopped", None),
        (SystemExit(143), "stopped", None),
        (SystemExit(0), "stopped", None),
        (SystemExit(3), "failed", "exit status 3"),
        (RuntimeError("CUDA out\nof memory"), "failed", "RuntimeError: CUDA out of memory"),
        (LingossError("loss is nan"), "failed", "loss is nan"),
        (ValueError("x" * 1000), "failed", ("ValueError: " + "x" * 1000)[:300]),
    ],
)
def test_how_a_run_ends_without_done(
    tmp_path: Path, error: BaseException | None, state: str, reason: str | None
) -> None:
    run = open_run(tmp_path, "sft", Config())
    with contextlib.nullcontext() if error is None else pytest.raises(type(error)):
        leave_by(run, error)
    assert (status(run)["state"], status(run)["reason"]) == (state, reason)
    with open_run(tmp_path, "sft", Config()) as again:  # the lock is free at once, and the reason is gone
        assert (status(again)["state"], status(again)["reason"]) == ("running", None)


def test_resuming_keeps_start_step_and_total(tmp_path: Path) -> None:
    with open_run(tmp_path, "sft", Config()) as run:
        run.status("running", 7, 10)
        started = status(run)["started"]
    (run.path / ".status.json.0123.tmp").write_text("left by a killed process")
    with open_run(tmp_path, "sft", Config()) as run:
        assert [status(run)[key] for key in ("started", "step", "total")] == [started, 7, 10]
        assert not list(run.path.glob(".*.tmp"))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"step": "x", "total": {}, "started": 5}', b"\0"])
def test_a_torn_status_does_not_stop_a_resume(tmp_path: Path, content: bytes) -> None:
    with open_run(tmp_path, "sft", Config()) as run:
        pass
    (run.path / "status.json").write_bytes(content)
    with open_run(tmp_path, "sft", Config()) as run:
        assert (status(run)["step"], status(run)["total"]) == (0, None)


def test_steps_are_throttled_and_changes_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lingoss.runs.folder.STATUS_INTERVAL", 1e9)
    with open_run(tmp_path, "sft", Config()) as run:
        run.status("running", 1, 10)
        run.status(step=2)
        assert status(run)["step"] == 1
        run.status(total=11)
        assert (status(run)["step"], status(run)["total"]) == (2, 11)
    assert status(run)["step"] == 2


def test_states_that_cannot_be_set(tmp_path: Path) -> None:
    with open_run(tmp_path, "sft", Config()) as run:
        for state in ("done", "finished"):
            with pytest.raises(LingossError, match="cannot be set"):
                run.status(state)  # type: ignore[arg-type]


def test_the_heartbeat_goes_on_by_itself_and_stops(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, "sft", Config(), (), "", beat=0.005)
    with run:
        first = status(run)["heartbeat"]
        lock = (run.path / "lock" / "000001.json").read_bytes()
        until(lambda: status(run)["heartbeat"] > first)
        until(lambda: (run.path / "lock" / "000001.json").read_bytes() != lock)
        assert any(thread.name.startswith("heartbeat") for thread in threading.enumerate())
    assert not any(thread.name.startswith("heartbeat") for thread in threading.enumerate())


def test_the_heartbeat_does_not_keep_a_process_alive(tmp_path: Path) -> None:
    child = SPAWN.Process(target=helpers.enter_and_return, args=(tmp_path,))
    child.start()
    child.join(60)
    assert child.exitcode == 0


def test_the_heartbeat_survives_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    run = RunFolder(tmp_path, "sft", Config(), (), "", beat=0.005)
    with run:
        full = threading.Event()
        real = os.fsync

        def fsync(descriptor: int) -> None:
            if threading.current_thread() is not threading.main_thread() and not full.is_set():
                raise OSError(28, "No space left on device")
            real(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)
        until(lambda: "no heartbeat of run" in caplog.text)
        full.set()
        before = status(run)["heartbeat"]
        until(lambda: status(run)["heartbeat"] > before)
    assert caplog.text.count("no heartbeat") == 1


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    with (
        open_run(tmp_path, "sft", Config()) as run,
        pytest.raises(LingossError, match=f"run {run.name} is held by process {os.getpid()}"),
    ):
        open_run(tmp_path, "sft", Config()).__enter__()
    with pytest.raises(LingossError, match="not open in this process"):
        run.status(step=1)


def write_on_after_a_takeover(run: RunFolder) -> None:
    with run:
        run.status("running", 1, 5)
        Lock(run.path, stale=0, confirm=0, poll=0.001).acquire(wait=60)
        (run.path / "status.json").write_text('{"state": "of the new holder"}')
        for write in (
            lambda: run.metric({"step": 2}),
            lambda: run.truncate_metrics(1),
            lambda: run.status(step=2),
            lambda: run.status("running", 3, 6),
            lambda: run.finish(5),
        ):
            with pytest.raises(LockLostError):
                write()
        run.check()


def test_a_holder_that_was_taken_over_writes_no_more(tmp_path: Path) -> None:
    run = open_run(tmp_path, "sft", Config())
    with pytest.raises(LockLostError):
        write_on_after_a_takeover(run)
    assert status(run) == {"state": "of the new holder"}
    assert not (run.path / "metrics.jsonl").exists()
    assert json.loads((run.path / "lock" / "000002.json").read_bytes())["released"] == 0


def test_a_forked_child_does_not_end_the_run(tmp_path: Path) -> None:
    with open_run(tmp_path, "sft", Config()) as run:
        child = os.fork()
        if not child:
            try:
                run.__exit__(None, None, None)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        run.status("running", 1, 2)
        assert status(run)["state"] == "running"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 1)])
def test_signals_stop_a_run(tmp_path: Path, number: int, code: int) -> None:
    process, pipe = start_child(helpers.idle, tmp_path)
    assert pipe.poll(60)
    os.kill(pipe.recv(), number)
    process.join(60)
    assert process.exitcode == code
    again = open_run(tmp_path, "sft", Config(), lock_wait=0)
    assert (status(again)["state"], status(again)["step"]) == ("stopped", 5)
    with again:
        again.check()


def test_sigterm_is_left_to_a_program_that_handles_it(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        handler = signal.signal(signal.SIGTERM, lambda *_: None)
        mine = signal.getsignal(signal.SIGTERM)
        with open_run(tmp_path, "sft", Config()):
            assert signal.getsignal(signal.SIGTERM) is mine
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with open_run(tmp_path, "sft", Config()):
            assert signal.getsignal(signal.SIGTERM) not in (mine, signal.SIG_DFL)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert handler == before
    finally:
        signal.signal(signal.SIGTERM, before)


def test_kill_9_in_the_middle_of_writing(tmp_path: Path) -> None:
    """After each kill all files are whole, the lock is free at once, and the run resumes."""
    for _ in range(3):
        process, pipe = start_child(helpers.train, tmp_path, 0.0)
        assert pipe.poll(60)
        pipe.recv()
        process.kill()
        process.join(60)
        with open_run(tmp_path, "sft", Config(), lock_wait=0) as run:
            assert status(run)["step"] >= 19
            steps = [row["step"] for row in read_metrics(run.path / "metrics.jsonl")]
            assert steps == list(range(1, len(steps) + 1))
            assert len(steps) >= 19
            run.truncate_metrics(0)
            assert list(read_metrics(run.path / "metrics.jsonl")) == []


def test_status_is_never_torn_for_a_reader(tmp_path: Path) -> None:
    process, pipe = start_child(helpers.train, tmp_path, 0.0)
    assert pipe.poll(60)
    path = next((tmp_path / "runs").iterdir()) / "status.json"
    seen: list[int] = []
    until(lambda: bool(seen.append(json.loads(path.read_bytes())["step"])) or seen[-1] > 100, pause=0)
    process.kill()
    process.join(60)
    assert seen == sorted(seen)
