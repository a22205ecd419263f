# SPDX-License-Identifier: MIT-0
"""The life of a run folder: started, told about, ended in every way there is, resumed, finished."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import test_runs_children as children
from hypothesis import given, settings
from hypothesis import strategies as st
from test_runs_children import Config
from test_runs_lock import SPAWN, start_child

from lingoss.errors import LingossError
from lingoss.runs import LockLostError, file_digest, open_run, read_metrics, run_id, verify
from lingoss.runs.folder import RunFolder
from lingoss.runs.lock import Lock


def status(run: RunFolder) -> dict[str, Any]:
    found = json.loads((run.path / "status.json").read_bytes())
    assert isinstance(found, dict)
    return found


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.002)


def add_weights(run: RunFolder, content: bytes = b"weights") -> None:
    run.adapter.mkdir(exist_ok=True)
    (run.adapter / "adapter_model.safetensors").write_bytes(content)
    (run.adapter / "adapter_config.json").write_text("{}")


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
        assert {key: found[key] for key in ("stage", "id", "state", "step", "total", "pid", "parents", "data_digest")} == {
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
    try:
        with open_run(tmp_path, "sft", Config()) as run:
            if error is not None:
                raise error
    except BaseException as caught:
        assert caught is error
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
    child = SPAWN.Process(target=children.enter_and_return, args=(tmp_path,))
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


def test_finish_writes_digests_and_lineage(tmp_path: Path) -> None:
    base = {"hub_id": "owner/name", "revision": "abc", "digest": "d"}
    with open_run(tmp_path, "prepare", Config(), data_digest="source") as prepare:
        prepare.status("running", 0, 1)
        prepare.finish(1, lineage={"base": base}, prepared={"model": "x"})
    with open_run(tmp_path, "sft", Config(), [prepare.name], "rows") as sft:
        sft.status("running", 5, 5)
        add_weights(sft)
        assert not sft.done
        sft.finish(5, {"adapter/adapter_config.json": file_digest(sft.adapter / "adapter_config.json")}, rows=12)
        assert sft.done
    done = json.loads((sft.path / "DONE.json").read_bytes())
    assert sorted(done["digests"]) == ["adapter/adapter_config.json", "adapter/adapter_model.safetensors"]
    assert done["lineage"] == {
        "base": base,
        "parents": [prepare.name],
        "chain": [prepare.name],
        "parent_digests": done["lineage"]["parent_digests"],
        "data_digest": "rows",
    }
    assert list(done["lineage"]["parent_digests"]) == [prepare.name]
    assert (done["stage"], done["id"], done["final_step"], done["planned_steps"], done["rows"]) == ("sft", sft.id, 5, 5, 12)
    assert (status(sft)["state"], status(sft)["step"]) == ("done", 5)
    assert verify(sft.path) == []


def refuse_shapes(folder: Path) -> None:
    assert (folder / "adapter").is_dir()
    raise LingossError("lora_A has shape [8, 4], not [8, 16]")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"final_step": 4}, "at step 4 of 5"),
        ({"final_step": 6}, "at step 6 of 5"),
        ({"final_step": 5, "digests": {"adapter/adapter_config.json": "0" * 64}}, "has digest .*, not 000000000000"),
        ({"final_step": 5, "digests": {"samples.jsonl": "0"}}, "samples.jsonl cannot be read"),
        ({"final_step": 5, "check": refuse_shapes}, "has shape"),
    ],
)
def test_finish_refuses(tmp_path: Path, arguments: dict[str, Any], told: str) -> None:
    with open_run(tmp_path, "sft", Config()) as run:
        run.status("running", 5, 5)
        add_weights(run)
        with pytest.raises(LingossError, match=told):
            run.finish(**arguments)
        assert not run.done
        assert status(run)["state"] == "running"
    assert status(run)["state"] == "stopped"


@pytest.mark.parametrize("stage", ["sft", "grpo"])
def test_training_without_weights_is_not_done(tmp_path: Path, stage: str) -> None:
    with open_run(tmp_path, stage, Config()) as run:
        run.status("running", 5, 5)
        with pytest.raises(LingossError, match="there are no weights"):
            run.finish(5)
        run.adapter.mkdir()
        (run.adapter / "README.md").write_text("no tensors")
        with pytest.raises(LingossError, match="there are no weights"):
            run.finish(5)
        run.model.mkdir()
        (run.model / "model-00001-of-00002.safetensors").write_bytes(b"full")
        run.finish(5)
    assert run.done


def test_finish_needs_a_plan(tmp_path: Path) -> None:
    with open_run(tmp_path, "evaluate", Config()) as run, pytest.raises(LingossError, match="planned steps were never told"):
        run.finish(5)


def test_a_done_run_is_not_locked_and_not_touched(tmp_path: Path) -> None:
    made = children.finish(tmp_path, "sft")
    before = {path: path.read_bytes() for path in made.path.rglob("*") if path.is_file()}
    with open_run(tmp_path, "sft", Config(settings={})) as run, open_run(tmp_path, "sft", Config(settings={})) as other:
        assert run.done
        assert other.done
        with pytest.raises(LingossError, match="it is done"):
            run.metric({"step": 1})
    assert {path: path.read_bytes() for path in made.path.rglob("*") if path.is_file()} == before


def test_an_unreadable_done_is_a_question_for_people(tmp_path: Path) -> None:
    made = children.finish(tmp_path, "sft")
    (made.path / "DONE.json").write_text("{")
    with pytest.raises(LingossError, match="DONE.json is not valid JSON: restore it, or delete it"):
        open_run(tmp_path, "sft", Config(settings={})).__enter__()


def test_the_waiting_process_finds_done(tmp_path: Path) -> None:
    first = open_run(tmp_path, "sft", Config())
    entered, results = threading.Event(), []

    def wait() -> None:
        entered.set()
        with open_run(tmp_path, "sft", Config(), lock_wait=60) as run:
            results.append(run.done)

    with first as run:
        waiter = threading.Thread(target=wait)
        waiter.start()
        entered.wait()
        run.status("running", 1, 1)
        add_weights(run)
        run.finish(1)
    waiter.join(60)
    assert results == [True]


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    with (
        open_run(tmp_path, "sft", Config()) as run,
        pytest.raises(LingossError, match=f"run {run.name} is held by process {os.getpid()}"),
    ):
        open_run(tmp_path, "sft", Config()).__enter__()
    with pytest.raises(LingossError, match="not open in this process"):
        run.status(step=1)


def test_a_holder_that_was_taken_over_writes_no_more(tmp_path: Path) -> None:
    with pytest.raises(LockLostError), open_run(tmp_path, "sft", Config()) as run:
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
    process, pipe = start_child(children.idle, tmp_path)
    assert pipe.poll(60)
    os.kill(pipe.recv(), number)
    process.join(60)
    assert process.exitcode == code
    with open_run(tmp_path, "sft", Config(), lock_wait=0) as run:
        assert status(run)["step"] == 5


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
        process, pipe = start_child(children.train, tmp_path, 0.0)
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
    process, pipe = start_child(children.train, tmp_path, 0.0)
    assert pipe.poll(60)
    path = next((tmp_path / "runs").iterdir()) / "status.json"
    seen = [json.loads(path.read_bytes())["step"] for _ in range(2000)]
    process.kill()
    process.join(60)
    assert seen == sorted(seen)
    assert len(set(seen)) > 5


@settings(max_examples=25, deadline=None)
@given(
    files=st.dictionaries(
        st.text("abcé/ ", min_size=1, max_size=8).map(lambda name: name.strip("/ ") or "a"), st.binary(max_size=50), max_size=4
    ),
    data=st.data(),
)
def test_done_implies_that_all_digests_verify(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], data: st.DataObject
) -> None:
    with open_run(tmp_path_factory.mktemp("root"), "sft", Config()) as run:
        add_weights(run)
        for name, content in files.items():
            path = run.adapter / "sub" / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            except OSError:  # "a" and "a/b" cannot both be
                continue
        run.status("running", 1, 1)
        run.finish(1)
    assert verify(run.path) == []
    names = sorted(json.loads((run.path / "DONE.json").read_bytes())["digests"])
    assert names == sorted(path.relative_to(run.path).as_posix() for path in run.adapter.rglob("*") if path.is_file())
    victim = data.draw(st.sampled_from(names))
    content = (run.path / victim).read_bytes()
    (run.path / victim).write_bytes(content + b"x")
    assert verify(run.path) == [f"{victim} has changed since the run finished"]
    (run.path / victim).unlink()
    assert verify(run.path) == [f"{victim} is missing"]
    (run.path / victim).write_bytes(content)
    (run.adapter / "new").write_bytes(b"")
    assert verify(run.path) == ["adapter/new was added after the run finished"]


def test_verify_of_what_is_not_done(tmp_path: Path) -> None:
    assert verify(tmp_path) == ["DONE.json is missing"]
    (tmp_path / "DONE.json").write_text("{")
    assert verify(tmp_path) == ["DONE.json is not valid JSON"]
    (tmp_path / "DONE.json").write_text("{}")
    assert verify(tmp_path) == ["DONE.json holds no digests"]
