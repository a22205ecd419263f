# SPDX-License-Identifier: MIT-0
"""A hundred saves with crashes in between, by the frameworks' own rotation: never more than the budget, never nothing."""

import os
import shutil
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

import released
from lingoss.config.common import Checkpoint
from lingoss.errors import LingossError
from lingoss.grpo.openrlhf import checkpoints as openrlhf
from lingoss.grpo.ray.disk import Guard, Room, require_room
from lingoss.grpo.verl import checkpoints as verl
from lingoss.grpo.verl.retention import Retention
from lingoss.runs import folder_size

SAVES, GPUS = 100, 2
CRASHES = st.lists(st.tuples(st.integers(0, SAVES - 1), st.integers(0, 7)), max_size=12)
"""At which save the cluster dies, and how many files of it are whole by then."""


class Died(Exception):
    """The cluster is gone."""


def shard(path: Path, size: int = 2_000) -> None:
    """A file as torch writes it: a zip file of about that size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", b"x" * size)


def torn(path: Path) -> None:
    """The same, cut off."""
    shard(path)
    path.write_bytes(path.read_bytes()[:700])


class Disk:
    """Writes the files of one save, one after the other, and dies at the one that it is told."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self.limit, self.peak = folder, limit, 0
        self.deadline: int | None = None  # files until the crash
        self.ended = False  # whether all files of the save were written

    def write(self, path: Path) -> None:
        if self.deadline == 0:
            torn(path)
            self.look()
            raise Died
        shard(path)
        self.deadline = None if self.deadline is None else self.deadline - 1
        self.look()

    def look(self) -> None:
        self.peak = max(self.peak, folder_size(self.folder))
        assert self.peak <= self.limit


def openrlhf_save(disk: Disk, folder: Path, keep: int) -> Callable[[int], None]:
    """`DeepspeedStrategy.save_ckpt` of the released OpenRLHF over a DeepSpeed that writes small files."""

    class Engine:
        def save_checkpoint(self, save_dir: str, tag: str, client_state: Any, save_latest: bool) -> None:
            for rank in range(GPUS):
                disk.write(Path(save_dir, tag, f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt"))
                disk.write(Path(save_dir, tag, f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"))
            if disk.deadline is not None:
                raise Died  # all files are there, but not OpenRLHF's last one
            Path(save_dir, "latest").write_text(tag)

    names = {
        "os": os,
        "shutil": shutil,
        "gc": types.SimpleNamespace(collect=lambda: None),
        "json": __import__("json"),
        "deepspeed": types.SimpleNamespace(DeepSpeedEngine=Engine),
        "torch_dist_barrier_and_cuda_sync": lambda: None,
    }
    path, owner = "openrlhf/utils/deepspeed/deepspeed.py", "DeepspeedStrategy"
    strategy = types.SimpleNamespace(is_rank_0=lambda: True, print=lambda *_: None, CKPT_METRIC_FILENAME="metric.json")
    for name in ("_get_ckpt_metric_path", "_write_ckpt_metric", "_read_ckpt_metric"):
        setattr(strategy, name, types.MethodType(released.method(path, owner, name, names), strategy))
    save = released.method(path, owner, "save_ckpt", names)
    return lambda step: save(strategy, Engine(), str(folder / openrlhf.FOLDER), f"global_step{step}", keep + 1)


def verl_save(disk: Disk, folder: Path, keep: int) -> Callable[[int], None]:
    """veRL's own rotation around small files, with our callback behind it, as its trainer does."""
    path, owner = "verl/utils/checkpoint/checkpoint_manager.py", "BaseCheckpointManager"
    names: dict[str, Any] = {"os": os, "shutil": shutil, "print": lambda *_: None}
    manager = types.SimpleNamespace(previous_saved_paths=[])  # what a process remembers
    for name in ("remove_previous_save_local_path", "ensure_checkpoint_capacity", "register_checkpoint"):
        setattr(manager, name, types.MethodType(released.method(path, owner, name, names), manager))
    config = types.SimpleNamespace(trainer=types.SimpleNamespace(max_actor_ckpt_to_keep=keep + 1))
    callback = Retention(config=config)

    def save(step: int) -> None:
        actor = folder / f"global_step_{step}" / "actor"
        manager.ensure_checkpoint_capacity(keep + 1)
        for rank in range(GPUS):
            for kind in ("model", "optim", "extra_state"):
                disk.write(actor / f"{kind}_world_size_{GPUS}_rank_{rank}.pt")
        manager.register_checkpoint(str(actor), keep + 1)
        disk.write(actor.parent / "data.pt")
        disk.ended = True
        if disk.deadline is not None:
            raise Died
        (folder / verl.TRACKER).write_text(str(step))
        callback.on_save(trainer=None, global_step=step, checkpoint_dir=str(actor.parent), async_save=False)

    return save


def repair(room: Any, folder: Path, gpus: int, planned: int, keep: int = 9) -> int:
    """What each engine does before a start. OpenRLHF makes room itself."""
    return int(room.repair(folder, gpus, planned, *([keep] if room is verl else [])))


SAVERS: dict[str, Any] = {"openrlhf": (openrlhf, openrlhf_save, 4), "verl": (verl, verl_save, 7)}


@pytest.mark.parametrize("engine", SAVERS)
@example(crashes=[(0, 0), (1, 3), (2, 7), (22, 7), (40, 1), (41, 1), (99, 2)], keep=1)
@given(crashes=CRASHES, keep=st.integers(1, 3))
@settings(
    max_examples=3,  # each is a hundred saves, 1 s
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_hundred_saves_stay_within_the_budget(
    engine: str, crashes: list[tuple[int, int]], keep: int, tmp_path: Path
) -> None:
    room, saver, files = SAVERS[engine]
    folder = tmp_path / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shard(tmp_path / "one.pt")
    one = files * (tmp_path / "one.pt").stat().st_size + 500  # and the small ones beside them
    disk = Disk(folder, (keep + 1) * one + 500)
    save, step, at = saver(disk, folder, keep), 0, dict(crashes)
    for number in range(SAVES):
        disk.deadline, disk.ended = at.get(number), False
        try:
            save(step + 1)
        except Died:
            before, step = step, repair(room, folder, GPUS, SAVES, keep)
            # Lost is the interval that was under way, or nothing where the save was whole but not yet told of.
            assert step == before + (engine == "verl" and disk.deadline == 0 and disk.ended)
            save = saver(disk, folder, keep)  # another process
        else:
            step += 1
        disk.deadline = None
        disk.look()
    whole = [found.step for found in room.saved(folder) if found.problem is None]
    assert whole[-1] == step
    assert len(whole) >= min(keep, step)


def test_an_interrupted_first_save_leaves_openrlhf_a_clean_start(tmp_path: Path) -> None:
    """An `_actor` folder without a checkpoint makes OpenRLHF fail with KeyError 'episode' at every start."""
    torn(tmp_path / openrlhf.FOLDER / "global_step20" / "zero_pp_rank_0_mp_rank_00_model_states.pt")
    assert openrlhf.repair(tmp_path, 2, 100) == 0
    assert not (tmp_path / openrlhf.FOLDER).exists()


def whole_openrlhf(folder: Path, step: int, gpus: int) -> Path:
    """A whole checkpoint."""
    path = folder / openrlhf.FOLDER / f"global_step{step}"
    for rank in range(gpus):
        shard(path / f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt")
        shard(path / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
    (path / "metric.json").write_text('{"metric_value": null}')
    return path


def whole_verl(folder: Path, step: int, gpus: int) -> Path:
    """A whole checkpoint."""
    path = folder / f"global_step_{step}"
    for rank in range(gpus):
        for kind in ("model", "optim", "extra_state"):
            shard(path / "actor" / f"{kind}_world_size_{gpus}_rank_{rank}.pt")
    shard(path / "data.pt")
    return path


def test_deepspeed_is_led_to_the_newest_whole_checkpoint(tmp_path: Path) -> None:
    whole_openrlhf(tmp_path, 20, 4)
    bad = whole_openrlhf(tmp_path, 40, 4)
    (bad / "metric.json").unlink()
    (tmp_path / openrlhf.FOLDER / "latest").write_text("global_step40")
    assert openrlhf.repair(tmp_path, 4, 100) == 20
    assert (tmp_path / openrlhf.FOLDER / "latest").read_text() == "global_step20"
    assert not bad.exists()


def test_verl_is_led_to_the_newest_whole_checkpoint(tmp_path: Path) -> None:
    whole_verl(tmp_path, 20, 2)
    bad = whole_verl(tmp_path, 40, 2)
    torn(bad / "actor" / "optim_world_size_2_rank_1.pt")
    (tmp_path / verl.TRACKER).write_text("40")
    assert verl.repair(tmp_path, 2, 100, 2) == 20
    assert (tmp_path / verl.TRACKER).read_text() == "20"
    assert not bad.exists()
    shutil.rmtree(tmp_path / "global_step_20")
    assert verl.repair(tmp_path, 2, 100, 2) == 0
    assert not (tmp_path / verl.TRACKER).exists()


@pytest.mark.parametrize(("room", "whole"), [(openrlhf, whole_openrlhf), (verl, whole_verl)])
def test_another_number_of_gpus_is_refused_and_nothing_deleted(room: Any, whole: Any, tmp_path: Path) -> None:
    path = whole(tmp_path, 20, 4)
    with pytest.raises(LingossError, match="was written by 4 GPUs, and 3 are to train"):
        repair(room, tmp_path, 3, 100)
    with pytest.raises(LingossError, match="is of step 20, but 10 are planned"):
        repair(room, tmp_path, 4, 10)
    assert path.is_dir()


def test_after_a_restart_verls_forgotten_checkpoints_go(tmp_path: Path) -> None:
    for step in (10, 20, 30, 40):
        whole_verl(tmp_path, step, 1)
    shutil.rmtree(tmp_path / "global_step_20" / "actor")  # what veRL deletes: half
    verl.rotate(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["global_step_30", "global_step_40"]


def test_the_room_is_asked_for_before_the_start(tmp_path: Path) -> None:
    gpt_oss = Room(inputs=42 * 10**9, checkpoint=251 * 10**9, kept=3, result=42 * 10**9)
    assert gpt_oss.most == 837 * 10**9
    told = r"3 checkpoints of 251\.0 GB .* need 837\.0 GB, which is more than checkpoint.disk_budget_gb=800"
    with pytest.raises(LingossError, match=told):
        require_room(tmp_path, gpt_oss, Checkpoint(disk_budget_gb=800.0))
    with pytest.raises(LingossError, match=r"\(3 checkpoints at once\) needs 3000\.0 TB"):
        require_room(tmp_path, Room(0, 10**15, 3, 0), Checkpoint())
    shard(tmp_path / "there.pt", 50_000)
    require_room(tmp_path, Room(0, 1_000, 3, 0), Checkpoint())


def test_openrlhfs_save_weighs_what_was_measured() -> None:
    assert openrlhf.checkpoint_bytes(20_914_757_184) == pytest.approx(234 * 2**30, rel=0.03)


def test_the_guard_prunes_and_says_when_it_is_too_much(tmp_path: Path) -> None:
    shard(tmp_path / "run" / "global_step20_hf" / "model.safetensors", 50_000)
    guard = Guard(tmp_path, 10_000, lambda: openrlhf.prune_exports(tmp_path / "run"))
    guard.look()
    guard.require()
    assert not (tmp_path / "run" / "global_step20_hf").exists()
    shard(tmp_path / "run" / "stranger.pt", 50_000)
    guard.look()
    with pytest.raises(LingossError, match=r"has 50\.\d kB, more than the 10\.0 kB"):
        guard.require()
