# SPDX-License-Identifier: MIT-0
"""veRL's checkpoints (FSDP2 shards of 0.9.1): which are whole, and how a run goes on after a crash.

`global_step_N/actor/{model,optim,extra_state}_world_size_W_rank_R.pt` and `data.pt`; the file
`latest_checkpointed_iteration.txt` names the one to resume from. A half-written folder is never deleted by veRL.
"""

import re
import shutil
from pathlib import Path

from lingoss.grpo.ray.checkpoints import Saved, cut_short, found, resume_from
from lingoss.runs.files import write_text

TRACKER = "latest_checkpointed_iteration.txt"
_STEP = re.compile(r"global_step_(\d{1,9})")
_SHARD = re.compile(r"model_world_size_(\d+)_rank_(\d+)\.pt")
_KINDS = ("model", "optim", "extra_state")


def saved(folder: Path) -> list[Saved]:
    """The checkpoints in veRL's `default_local_dir`, oldest first. Nothing is changed."""
    return found(folder, _STEP, _look)


def weights(one: Saved) -> list[Path]:
    """The files with the weights of a checkpoint, by rank."""
    return _files(one.path, "model", one.gpus)


def repair(folder: Path, gpus: int, planned: int, keep: int) -> int:
    """Keep the `keep` newest whole checkpoints and let veRL begin with the newest; its step, or 0 when there is none.

    A crash between a save and what follows it leaves one more than there may be.

    Raises:
        LingossError: it was written by another number of GPUs, or is of a later step than the run has. Nothing is
            deleted then.
    """
    newest = resume_from(saved(folder), folder, gpus, planned, "veRL")
    if newest is None:
        (folder / TRACKER).unlink(missing_ok=True)
        return 0
    rotate(folder, keep)
    write_text(folder / TRACKER, str(newest.step))
    return newest.step


def rotate(folder: Path, keep: int) -> None:
    """Delete all but the `keep` newest whole checkpoints, and what is left of folders that veRL emptied by half."""
    checkpoints = saved(folder)
    whole = [one for one in checkpoints if one.problem is None]
    if not whole:
        return
    kept = {one.path for one in whole[-keep:]}
    for one in checkpoints:
        if one.path not in kept and one.step < whole[-1].step:
            shutil.rmtree(one.path, ignore_errors=True)


def _files(path: Path, kind: str, gpus: int) -> list[Path]:
    return [path / "actor" / f"{kind}_world_size_{gpus}_rank_{rank}.pt" for rank in range(gpus)]


def _look(path: Path, step: int) -> Saved:
    models = (path / "actor").glob("model_*.pt")
    sizes = {int(match[1]) for file in models if (match := _SHARD.fullmatch(file.name))}
    if len(sizes) != 1:
        return Saved(path, step, 0, f"its weights are of {sorted(sizes) or 'no'} processes")
    gpus = sizes.pop()
    wanted = [*(file for kind in _KINDS for file in _files(path, kind, gpus)), path / "data.pt"]
    missing = next((f"{file.name} is missing" for file in wanted if not file.is_file()), None)
    return Saved(path, step, gpus, missing or cut_short(wanted))
