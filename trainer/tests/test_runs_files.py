# SPDX-License-Identifier: MIT-0
"""Files and disks: nothing half-written is ever seen, and a full or read-only disk is named with what to do."""

import errno
import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import test_runs_helpers as helpers
from lingoss.errors import LingossError
from lingoss.runs import free_bytes, gigabytes, open_run, require_space, verify, write_json
from lingoss.runs.files import read_json, remove_temporaries


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 256 kB, where this user may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fail_with(number: int) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def test_write_replaces_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    write_json(path, {"a": [1.5, "é", "\ud800"]})
    assert json.loads(path.read_bytes()) == {"a": [1.5, "é", "\ud800"]}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("call", ["write", "fsync", "replace", "open"])
@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.ENOSPC, r"no space left \(.* free\) while writing .*a\.json: free some"),
        (errno.EDQUOT, "no space left"),
        (errno.EROFS, r"a\.json is not writable by user .*Read-only file system.*choose another root"),
        (errno.EACCES, "is not writable"),
        (errno.EIO, r"cannot write .*a\.json: Input/output error"),
    ],
)
def test_a_failed_write_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, told: str
) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    monkeypatch.setattr(os, call, fail_with(number))
    with pytest.raises(LingossError, match=told):
        write_json(path, {"a": 2})
    monkeypatch.undo()
    assert read_json(path) == ({"a": 1}, None)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"a": 1}', ({"a": 1}, None)),
        (b"", (None, "a.json is not valid JSON")),
        (b'{"a": ', (None, "a.json is not valid JSON")),
        (b"\xff\xfe\0", (None, "a.json is not valid JSON")),
        (b"[" * 100_000, (None, "a.json is not valid JSON")),
        (b"9" * 5000, (None, "a.json is not valid JSON")),
        (b"[1]", (None, "a.json is not a JSON object")),
    ],
)
def test_reading_never_raises(tmp_path: Path, content: bytes, expected: object) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    assert read_json(path) == expected


def test_reading_what_is_no_file(tmp_path: Path) -> None:
    assert read_json(tmp_path / "none.json") == (None, None)
    assert read_json(tmp_path)[0] is None
    assert "cannot be read" in str(read_json(tmp_path)[1])


def test_leftovers_of_killed_writers_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".status.json.0123.tmp").write_text("half")
    (tmp_path / "kept.tmp").write_text("mine")
    remove_temporaries(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.tmp"]


def test_space_is_asked_of_the_nearest_folder_that_exists(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "not" / "yet") == pytest.approx(free_bytes(tmp_path), rel=0.05)
    (tmp_path / "file").write_text("")
    assert free_bytes(tmp_path / "file" / "below") > 0
    require_space(tmp_path, 1, "a test")
    with pytest.raises(LingossError, match=r"SFT needs 1000000\.0 TB, but .* has .* free: free .* TB"):
        require_space(tmp_path, 10**18, "SFT")


@pytest.mark.parametrize(
    ("size", "told"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (41_800_000_000, "41.8 GB"), (2 * 10**12, "2.0 TB")],
)
def test_sizes_for_people(size: int, told: str) -> None:
    assert gigabytes(size) == told


def fill(disk: Path) -> None:
    """Write a file until the disk is full."""
    with (disk / "filler").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        file.writelines(itertools.repeat(b"x" * 4096))


def train_until_full(disk: Path) -> None:
    with open_run(disk, "sft", helpers.Config()) as run:
        run.status("running", 1, 3)
        run.metric({"step": 1})
        fill(disk)
        for step in range(2, 10_000):
            run.metric({"step": step, "text": "x" * 100})


def finish_when_full(disk: Path) -> None:
    with open_run(disk, "evaluate", helpers.Config()) as run:
        run.status("running", 0, 1)
        fill(disk)
        run.finish(1)


def test_a_really_full_disk(small_disk: Path) -> None:
    """Fill the disk in mid-run: status and metrics stay whole; with space again the run goes on and finishes."""
    with pytest.raises(LingossError, match="no space left") as caught:
        train_until_full(small_disk)
    again = open_run(small_disk, "sft", helpers.Config())
    assert str(again.path) in str(caught.value)
    status, problem = read_json(again.path / "status.json")
    assert problem is None
    assert status is not None
    assert status["step"] == 1
    assert all(json.loads(line) for line in (again.path / "metrics.jsonl").read_text().splitlines())
    (small_disk / "filler").unlink()
    with again as run:
        run.truncate_metrics(1)
        run.adapter.mkdir()
        (run.adapter / "a.safetensors").write_bytes(b"weights")
        run.status("running", 3, 3)
        run.finish(3)
    assert verify(run.path) == []


def test_no_done_on_a_full_disk(small_disk: Path) -> None:
    with pytest.raises(LingossError, match="no space left"):
        finish_when_full(small_disk)
    again = open_run(small_disk, "evaluate", helpers.Config())
    assert not again.done
    (small_disk / "filler").unlink()
    with again as run:
        run.finish(1)
    assert run.done


def test_a_really_read_only_disk(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(LingossError, match=r"is not writable by user .* choose another root"):
        open_run(small_disk, "sft", helpers.Config()).__enter__()


def test_a_root_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "root").write_text("")
    with pytest.raises(LingossError, match="choose another root"):
        open_run(tmp_path / "root", "sft", helpers.Config()).__enter__()
