# SPDX-License-Identifier: MIT-0
"""veRL's checkpoints (FSDP2 shards of 0.9.1): which are whole, and how a run goes on after a crash.

`global_step_N/actor/{model,optim,extra_state}_world_size_W_rank_R.pt` and `data.pt`; the file
`latest_checkpointed_iteration.txt` names the one to resume from. A half-written folder is never deleted by veRL.
"""

import re
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

from lingoss.errors import LingossError
from lingoss.progress import note

TRACKER = "latest_checkpointed_iteration.txt"
_STEP = re.compile(r"global_step_(\d{1,9})")
_SHARD = re.compile(r"model_world_size_(\d+)_rank_(\d+)\.pt")
_KINDS = ("model", "optim", "extra_state")


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint folder; `problem` says why it is not whole. `gpus`: processes that wrote it."""

    path: Path
    step: int
    gpus: int
    problem: str | None

    @property
    def shards(self) -> list[Path]:
        """The files with the weights, by rank."""
        return [self.path / "actor" / f"model_world_size_{self.gpus}_rank_{rank}.pt" for rank in range(self.gpus)]


def saved(folder: Path) -> list[Saved]:
    """The checkpoints in veRL's `default_local_dir`, oldest first. Nothing is changed."""
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir() and (match := _STEP.fullmatch(path.name)):
            found.append(_look(path, int(match[1])))
    return sorted(found, key=lambda one: one.step)


def repair(folder: Path, gpus: int, planned: int, keep: int) -> int:
    """Keep the `keep` newest whole checkpoints and let veRL begin with the newest; its step, or 0 when there is none.

    A crash between a save and what follows it leaves one more than there may be.

    Raises:
        LingossError: it was written by another number of GPUs, or is of a later step than the run has. Nothing is
            deleted then.
    """
    whole = [one for one in saved(folder) if one.problem is None]
    newest = whole[-1] if whole else None
    if newest and newest.gpus != gpus:
        raise LingossError(
            f"{newest.path} was written by {newest.gpus} GPUs, and {gpus} are to train: veRL reads only what as many "
            f"wrote, so set kuberay.trainer.nodes as it was, or remove {folder} to begin again"
        )
    if newest and newest.step > planned:
        raise LingossError(f"{newest.path} is of step {newest.step}, but {planned} are planned; remove {folder}")
    for one in saved(folder):
        if one.problem is not None:
            note("bad checkpoint", {"checkpoint": one.path.name, "reason": one.problem})
            shutil.rmtree(one.path)
    tracker = folder / TRACKER
    if newest is None:
        tracker.unlink(missing_ok=True)
        return 0
    rotate(folder, keep)
    partial = folder / f".{TRACKER}"
    partial.write_text(str(newest.step), encoding="utf-8")
    partial.replace(tracker)
    return newest.step


def rotate(folder: Path, keep: int) -> None:
    """Delete all but the `keep` newest whole checkpoints, and what is left of folders that veRL emptied by half."""
    whole = [one for one in saved(folder) if one.problem is None]
    if not whole:
        return
    kept = {one.path for one in whole[-keep:]}
    for one in saved(folder):
        if one.path not in kept and one.step < whole[-1].step:
            shutil.rmtree(one.path, ignore_errors=True)


def _look(path: Path, step: int) -> Saved:
    actor = path / "actor"
    sizes = {int(match[1]) for file in actor.glob("model_*.pt") if (match := _SHARD.fullmatch(file.name))}
    if len(sizes) != 1:
        return Saved(path, step, 0, f"its weights are of {sorted(sizes) or 'no'} processes")
    gpus = sizes.pop()
    wanted = [actor / f"{kind}_world_size_{gpus}_rank_{rank}.pt" for kind in _KINDS for rank in range(gpus)]
    for file in (*wanted, path / "data.pt"):
        if not file.is_file():
            return Saved(path, step, gpus, f"{file.name} is missing")
        if not zipfile.is_zipfile(file):  # torch writes zip files, whose directory comes last
            return Saved(path, step, gpus, f"{file.name} is cut short")
    return Saved(path, step, gpus, None)
