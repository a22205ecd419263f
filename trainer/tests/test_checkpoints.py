# SPDX-License-Identifier: MIT-0
"""The checkpoint store: whole or known to be bad, never deleted too early, and clear about a full disk."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from lingoss.checkpoints import CheckpointStore, tensor_shapes, verify
from lingoss.errors import LingossError

WEIGHTS = "adapter_model.safetensors"


def filler(value: float = 1.0, size: int = 8) -> Callable[[Path], None]:
    """Writes what a checkpoint holds: tensors and one other file."""

    def fill(folder: Path) -> None:
        save_file({"a": torch.full((size, 2), value), "b": torch.arange(3)}, folder / WEIGHTS)
        (folder / "optimizer.pt").write_bytes(b"x" * 100)

    return fill


def steps(store: CheckpointStore) -> list[int]:
    return sorted(int(path.name.rpartition("-")[2]) for path in store.folder.glob("checkpoint-*"))


def test_a_written_checkpoint_is_whole_and_readable_by_others(tmp_path: Path) -> None:
    path = CheckpointStore(tmp_path, keep=2).write(4, filler())
    assert path == tmp_path / "checkpoint-4"
    manifest = verify(path)
    assert manifest["step"] == 4
    assert manifest["tensors"] == {WEIGHTS: {"a": [8, 2], "b": [3]}}
    assert manifest["files"]["optimizer.pt"]["bytes"] == 100
    assert {oct(p.stat().st_mode & 0o777) for p in path.iterdir()} == {"0o644"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint-4"]


def test_rotation_keeps_the_newest_and_deletes_only_after_the_new_one_is_whole(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=2)
    seen = []
    for step in (2, 4, 6, 10):

        def fill(folder: Path) -> None:
            seen.append(steps(store))
            filler()(folder)

        store.write(step, fill)
    assert seen == [[], [2], [2, 4], [4, 6]]
    assert steps(store) == [6, 10]


def test_rotation_never_deletes_a_pinned_step(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=1)
    for step, pinned, kept in ((2, {2}, [2]), (4, {2}, [2, 4]), (6, {4}, [4, 6]), (8, {99}, [8])):
        store.pinned = frozenset(pinned)
        store.write(step, filler())
        assert steps(store) == kept
    store.pinned = frozenset({8})
    store.write(10, filler())
    assert steps(store) == [8, 10]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: (path / "manifest.json").unlink(), "no manifest"),
        (lambda path: (path / "manifest.json").write_text("{"), "manifest cannot be read"),
        (lambda path: (path / "manifest.json").write_text("[]"), "manifest cannot be read"),
        (lambda path: (path / "optimizer.pt").unlink(), "optimizer.pt is missing"),
        (lambda path: os.truncate(path / WEIGHTS, 50), "has 50 bytes instead of"),
        (lambda path: (path / "optimizer.pt").write_bytes(b"y" * 100), "optimizer.pt has changed"),
        (lambda path: path.joinpath("manifest.json").write_text(_with_step(path, 5)), "manifest is of step 5"),
    ],
)
def test_resume_takes_the_newest_whole_one_and_names_the_bad(
    tmp_path: Path, damage: Callable[[Path], object], reason: str
) -> None:
    store = CheckpointStore(tmp_path, keep=3)
    for step in (2, 4, 6):
        store.write(step, filler())
    damage(tmp_path / "checkpoint-6")
    newest, bad = store.newest()
    assert newest == tmp_path / "checkpoint-4"
    assert [one.path.name for one in bad] == ["checkpoint-6"]
    assert reason in bad[0].reason
    # writing that step again replaces the bad one
    store.write(6, filler(2.0))
    assert store.newest() == (tmp_path / "checkpoint-6", [])


def _with_step(path: Path, step: int) -> str:
    return json.dumps(json.loads((path / "manifest.json").read_text()) | {"step": step})


def test_values_that_are_not_finite_are_never_published(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=2)
    store.write(2, filler())
    with pytest.raises(
        LingossError, match=r"checkpoint 4 could not be written.*a is not finite; the checkpoint of step 2"
    ):
        store.write(4, filler(float("nan")))
    assert steps(store) == [2]
    assert not list(tmp_path.glob(".*"))


def test_what_a_kill_left_behind_is_not_a_checkpoint(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=2)
    store.write(2, filler())
    (tmp_path / ".partial-4").mkdir()
    filler()(tmp_path / ".partial-4")
    assert store.newest() == (tmp_path / "checkpoint-2", [])
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint-2"]


def test_a_whole_checkpoint_is_not_written_again(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=2)
    store.write(2, filler())
    store.write(2, lambda folder: pytest.fail("it was there"))


def test_an_empty_store_has_no_newest(tmp_path: Path) -> None:
    assert CheckpointStore(tmp_path / "none", keep=2).newest() == (None, [])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB, where the tests may make one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no right to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_the_last_checkpoint_whole(small_disk: Path) -> None:
    """A real file system runs full in the middle of a file."""
    store = CheckpointStore(small_disk / "checkpoints", keep=1)
    store.write(2, filler(size=100_000))  # 0.8 MB
    with pytest.raises(LingossError, match="the disk is full; the checkpoint of step 2 is whole; start again"):
        store.write(4, filler(size=200_000))
    assert steps(store) == [2]
    assert verify(small_disk / "checkpoints" / "checkpoint-2")["step"] == 2
    # the room that the failed one took is free again
    store.write(4, filler(size=100_000))
    assert steps(store) == [4]


def test_no_space_by_quota_is_told_as_a_full_disk(tmp_path: Path) -> None:
    import errno

    def fill(folder: Path) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    with pytest.raises(LingossError, match="the disk is full; there is no earlier one"):
        CheckpointStore(tmp_path, keep=1).write(2, fill)


@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 7, b"\xff" * 64, b"\x02" + b"\x00" * 7 + b"[]", b"\x02" + b"\x00" * 7 + b"{}x"]
)
def test_a_file_that_is_no_safetensors_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(LingossError):
        tensor_shapes(path)
