# SPDX-License-Identifier: MIT-0
"""The lock: one holder at any moment, whoever dies, stalls or lies about the time."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import test_runs_helpers as helpers
from lingoss.errors import LingossError
from lingoss.runs.lock import Lock, LockLostError, _parse, now_iso, process_start
from test_runs_helpers import SPAWN, start_child

FILE = "lock/000001.json"


def answers(pairs: list[tuple[Any, Any]]) -> list[Any]:
    found = []
    for process, pipe in pairs:
        assert pipe.poll(60), "a child gave no answer"
        found.append(pipe.recv())
        process.join(60)
        assert process.exitcode == 0
    return found


def test_racing_processes_never_hold_it_together(tmp_path: Path) -> None:
    oracle, start = SPAWN.Lock(), SPAWN.Event()
    pairs = [start_child(helpers.contend, tmp_path, 50, oracle, start) for _ in range(3)]
    start.set()
    assert answers(pairs) == [0, 0, 0]
    assert len(list((tmp_path / "lock").iterdir())) == 150


def test_racing_for_a_dead_holders_lock_has_one_winner(tmp_path: Path) -> None:
    rounds, racers = 50, 3
    dead = SPAWN.Process(target=helpers.die_holding, args=(tmp_path, rounds))
    dead.start()
    dead.join(60)
    assert dead.exitcode == -signal.SIGKILL
    barrier = SPAWN.Barrier(racers, timeout=60)
    won = answers([start_child(helpers.grab, tmp_path, rounds, barrier) for _ in range(racers)])
    assert sorted(number for wins in won for number in wins) == list(range(rounds))


def test_refusal_names_the_holder_and_the_ways_out(tmp_path: Path) -> None:
    folder = tmp_path / "sft-0123456789ab"
    Lock(folder).acquire(wait=0)
    with pytest.raises(LingossError) as caught:
        Lock(folder, poll=0.001).acquire(wait=0.01)
    told = str(caught.value)
    assert f"run sft-0123456789ab is held by process {os.getpid()} on host {socket.gethostname()}" in told
    assert "last sign of life 0 s ago" in told
    assert "wait for it or stop it, raise lock_wait, or set another `run`" in told


def test_release_lets_the_next_in_and_is_kept_as_history(tmp_path: Path) -> None:
    first = Lock(tmp_path)
    first.acquire(wait=0)
    first.release()
    Lock(tmp_path).acquire(wait=0)
    assert json.loads((tmp_path / FILE).read_bytes())["released"] == 1
    assert sorted(path.name for path in (tmp_path / "lock").iterdir()) == ["000001.json", "000002.json"]
    with pytest.raises(LockLostError):
        first.check()


def test_a_waiting_process_gets_it_when_the_holder_ends(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    process, pipe = start_child(helpers.idle, tmp_path)
    assert pipe.poll(60)
    pid = pipe.recv()
    folder = next((tmp_path / "runs").iterdir())
    lock = Lock(folder, poll=0.001)
    with pytest.raises(LingossError, match=f"held by process {pid}"):
        lock.acquire(wait=0.02)
    os.kill(pid, signal.SIGKILL)  # dies while this one waits, and is a zombie until joined
    lock.acquire(wait=60)
    lock.check()
    process.join(60)
    assert f"held by process {pid}" in caplog.text


def held(folder: Path, **changes: Any) -> Path:
    """A lock file of a holder on another host, with some fields changed."""
    Lock(folder).acquire(wait=0)
    path = folder / FILE
    holder = {**json.loads(path.read_bytes()), "host": "elsewhere", **changes}
    path.write_text(json.dumps(holder))
    return path


def seconds_ago(seconds: float) -> str:
    from datetime import UTC, datetime, timedelta

    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="microseconds")


def is_free(folder: Path, unchanged: float) -> bool:
    lock = Lock(folder)
    return lock._is_free(1, (folder / FILE).read_bytes(), unchanged)


@pytest.mark.parametrize(
    ("changes", "unchanged", "expected"),
    [
        ({}, 0, False),
        ({}, 59, False),
        ({}, 60, True),  # whatever its clock says, nothing happened for 60 s of ours
        ({"age": -9999}, 59, False),
        ({"age": -9999}, 60, True),
        ({"age": 9999}, 0, False),  # may be a live holder whose clock is late: look twice
        ({"age": 9999}, 10, True),
        ({"age": 30}, 10, False),
        ({"released": 1}, 0, True),
    ],
)
def test_when_a_holder_elsewhere_counts_as_gone(
    tmp_path: Path, changes: dict[str, Any], unchanged: float, expected: bool
) -> None:
    if "age" in changes:
        changes = {"heartbeat": seconds_ago(changes["age"])}
    held(tmp_path, **changes)
    assert is_free(tmp_path, unchanged) is expected


def test_process_ids_are_believed_only_where_they_mean_something(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    dead = int(ended.stdout)
    path = held(tmp_path, pid=dead)
    assert not is_free(tmp_path, 0)
    mine = {**json.loads(path.read_bytes()), "host": socket.gethostname()}
    for changes, expected in (
        ({}, True),  # that process has ended here
        ({"space": "another boot, or another container with the same host name"}, False),
        ({"pid": os.getpid()}, False),
        ({"pid": os.getpid(), "start": 1}, True),  # the number was given to this process later
    ):
        path.write_text(json.dumps({**mine, **changes}))
        assert is_free(tmp_path, 0) is expected, changes


@pytest.mark.parametrize("content", [b"", b'{"host": "a"', b"[]", b'{"host": 1}', b"\0" * 50, b"[" * 100_000])
def test_a_torn_lock_file_is_respected_until_it_is_old(tmp_path: Path, content: bytes) -> None:
    path = held(tmp_path)
    path.write_bytes(content)
    assert not is_free(tmp_path, 20)
    old = time.time() - 100
    os.utime(path, (old, old))
    assert not is_free(tmp_path, 0)
    assert is_free(tmp_path, 10)


def test_after_a_takeover_the_old_holder_stops(tmp_path: Path) -> None:
    stalled, next_one = Lock(tmp_path), Lock(tmp_path, stale=0, confirm=0, poll=0.001)
    stalled.acquire(wait=0)
    next_one.acquire(wait=60)
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(
        LockLostError, match=f"held by process {os.getpid()}.*stop, and start again if the other one ends"
    ):
        stalled.check()
    with pytest.raises(LockLostError):
        stalled.beat()
    stalled.release()
    assert (tmp_path / FILE).read_bytes() == before
    next_one.check()


def test_a_beat_renews_the_sign_of_life_in_place(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    lock.acquire(wait=0)
    before = (tmp_path / FILE).read_bytes()
    lock.beat()
    after = (tmp_path / FILE).read_bytes()
    assert len(after) == len(before)
    assert json.loads(after)["heartbeat"] > json.loads(before)["heartbeat"]
    assert {**json.loads(after), "heartbeat": 0} == {**json.loads(before), "heartbeat": 0}


def test_a_deleted_lock_is_a_lost_lock(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    lock.acquire(wait=0)
    (tmp_path / FILE).unlink()
    with pytest.raises(LockLostError, match="was deleted"):
        lock.check()
    lock.release()
    assert not (tmp_path / FILE).exists()


def test_foreign_files_in_the_lock_folder_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    for name in (".nfs0001", "x.json", "README", "-1.json"):
        (tmp_path / "lock" / name).write_text("?")
    Lock(tmp_path).acquire(wait=0)
    assert (tmp_path / FILE).exists()


def test_a_failed_write_leaves_no_lock_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(LingossError, match="no space left"):
        Lock(tmp_path).acquire(wait=0)
    monkeypatch.undo()
    assert not (tmp_path / FILE).exists()
    Lock(tmp_path).acquire(wait=0)


def test_ages(tmp_path: Path) -> None:
    held(tmp_path)
    holder = _parse((tmp_path / FILE).read_bytes())
    assert holder is not None
    assert replace(holder, heartbeat=seconds_ago(30)).age() == pytest.approx(30, abs=2)
    assert replace(holder, heartbeat=seconds_ago(-30)).age() == 0
    assert len(now_iso()) == 32


def test_a_process_has_a_start_until_it_ends() -> None:
    assert process_start(os.getpid()) == process_start(os.getpid()) is not None
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # ended, but not waited for: a zombie
        assert process_start(process.pid) is None


def test_a_late_beat_does_not_take_a_released_lock_back(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    lock.acquire(wait=0)
    lock.release()
    lock.beat()
    assert json.loads((tmp_path / FILE).read_bytes())["released"] == 1
