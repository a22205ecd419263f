# SPDX-License-Identifier: MIT-0
"""Disk: what goes before a save and what never does, on paper (any state) and on a real small disk; and pruning."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from lingoss.checkpoints import CheckpointStore, verify
from lingoss.checkpoints.budget import Held, to_delete_first
from lingoss.checkpoints.prune import Held as Listed
from lingoss.checkpoints.prune import plan
from lingoss.errors import LingossError

HELD = st.lists(
    st.builds(Held, st.integers(1, 30), st.integers(0, 5_000_000), st.booleans()),
    max_size=8,
    unique_by=lambda h: h.step,
)


@given(
    HELD,
    st.sets(st.integers(1, 30), max_size=3),
    st.integers(0, 5_000_000),
    st.none() | st.integers(0, 20_000_000),
    st.integers(0, 20_000_000),
)
def test_room_is_made_with_as_few_as_must_go(
    held: list[Held], pinned: set[int], size: int, budget: int | None, free: int
) -> None:
    needed = int(size * 1.02) + 200_000
    used = sum(one.bytes for one in held)
    newest = max((one.step for one in held if one.whole), default=None)
    may = [one for one in held if not one.whole or (one.step != newest and one.step not in pinned)]

    def fits(freed: int) -> bool:
        return free + freed >= needed and (budget is None or used - freed + needed <= budget)

    try:
        going = to_delete_first(held, pinned, size, budget, free)
    except LingossError:
        assert not fits(sum(one.bytes for one in may))
        return
    assert going <= {one.step for one in may}
    freed = [one.bytes for one in held if one.step in going]
    assert fits(sum(freed))
    order = sorted((one for one in may if one.step in going), key=lambda one: (one.whole, one.step))
    if order:  # without the last one it would not fit
        assert not fits(sum(freed) - order[-1].bytes)
    left = [one for one in may if one.step not in going]
    if left and order:  # bad ones before whole ones, old ones before new ones
        assert max((one.whole, one.step) for one in order) < min((one.whole, one.step) for one in left)


def filler(size: int) -> Callable[[Path], None]:
    def fill(folder: Path) -> None:
        save_file({"a": torch.ones(size)}, folder / "adapter_model.safetensors")

    return fill


def test_the_peak_is_the_budget(tmp_path: Path) -> None:
    """Three checkpoints of 400 kB fit 1.7 MB, a fourth is not written beside them: the oldest goes first."""
    store = CheckpointStore(tmp_path, keep=3, budget=1_700_000)
    seen: list[tuple[list[int], int]] = []

    def fill(folder: Path) -> None:
        filler(100_000)(folder)
        sizes = [path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()]
        seen.append((sorted(int(p.name[11:]) for p in tmp_path.glob("checkpoint-*")), sum(sizes)))

    for step in (1, 2, 3, 4, 5):
        store.write(step, fill)
    assert [steps for steps, _ in seen] == [[], [1], [1, 2], [2, 3], [3, 4]]
    assert max(size for _, size in seen) <= 1_700_000
    assert store.newest()[0] == tmp_path / "checkpoint-5"


def test_a_budget_for_less_than_two_is_refused_and_nothing_deleted(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=3, budget=900_000)
    store.write(1, filler(100_000))
    with pytest.raises(
        LingossError, match=r"it needs 608\.\d kB, and with a budget of 900\.0 kB 400\.\d kB of checkpoints must stay; "
    ):
        store.write(2, filler(100_000))
    assert store.newest() == (tmp_path / "checkpoint-1", [])
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-1"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB, where the tests may make one."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_on_a_small_disk_the_oldest_goes_before_it_is_full(small_disk: Path) -> None:
    store = CheckpointStore(small_disk / "checkpoints", keep=5)
    for step in (1, 2, 3, 4, 5, 6):
        store.write(step, filler(100_000))
    left = sorted(path.name for path in store.folder.iterdir())
    assert left == ["checkpoint-3", "checkpoint-4", "checkpoint-5", "checkpoint-6"]
    assert all(verify(path)["step"] for path in store.folder.iterdir())


def test_a_sharded_save_on_a_full_disk_leaves_the_last_one_whole(small_disk: Path) -> None:
    """The disk is filled by somebody else while the shard is being written."""

    class Model(torch.nn.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(size))

    def parts(size: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        model = Model(size)
        return model, torch.optim.AdamW(model.parameters())

    store = CheckpointStore(small_disk / "checkpoints", keep=5)
    store.save_sharded(1, *parts(100_000), {})
    real = store._begin

    def begin(step: int, size: int) -> Path:
        made = real(step, size)
        (small_disk / "of-somebody-else").write_bytes(b"x" * 1_300_000)
        return made

    store._begin = begin  # type: ignore[method-assign]
    with pytest.raises(LingossError, match="the disk is full; the checkpoint of step 1 is whole; start again when"):
        store.save_sharded(2, *parts(100_000), {})
    assert [path.name for path in store.folder.iterdir()] == ["checkpoint-1"]
    assert store.newest() == (store.path(1), [])
    (small_disk / "of-somebody-else").unlink()
    store._begin = real  # type: ignore[method-assign]
    store.save_sharded(2, *parts(100_000), {})
    assert store.newest() == (store.path(2), [])


LISTED = st.lists(
    st.builds(
        Listed,
        run=st.sampled_from(["a", "b", "c"]),
        step=st.integers(1, 9),
        path=st.just(Path("x")),
        bytes=st.integers(0, 100),
        whole=st.booleans(),
        finished=st.booleans(),
        reason=st.none() | st.just("the run is running"),
    ),
    max_size=12,
    unique_by=lambda one: (one.run, one.step),
)


@given(LISTED, st.integers(1, 3), st.none() | st.integers(0, 600))
def test_a_plan_never_touches_what_must_stay(found: list[Listed], keep: int, budget: int | None) -> None:
    planned = plan(found, keep, budget)
    ids = [(one.run, one.step) for one in (*planned.going, *planned.staying)]
    assert sorted(ids) == sorted((one.run, one.step) for one in found)
    assert planned.freed + planned.left == sum(one.bytes for one in found)
    for run in {one.run for one in found}:
        whole = sorted(one.step for one in found if one.run == run and one.whole)
        gone = {one.step for one in planned.going if one.run == run}
        assert not gone & set(whole[-keep:])
        assert whole or not gone
    assert all(one.reason is None for one in planned.going)
    free = [one for one in planned.staying if one.reason is None]
    if budget is None:
        assert not free
    else:
        assert planned.left <= budget or not free
        if planned.going:  # without the last one it was too much still
            assert planned.left + planned.going[-1].bytes > budget
        key = [(one.whole, not one.finished, one.step) for one in planned.going]
        assert key == sorted(key)
