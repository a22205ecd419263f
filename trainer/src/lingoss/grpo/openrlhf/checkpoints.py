# SPDX-License-Identifier: MIT-0
"""OpenRLHF's checkpoints (DeepSpeed's, ZeRO-3): which are whole, what they weigh, and how a run goes on after a crash.

OpenRLHF 0.11.2 deletes the oldest folders before it writes the next, counting a half-written one like a whole one; its
DeepSpeed then loads what `latest` names. After a crash in the middle of a save that would delete the last whole
checkpoint, and an `_actor` folder without any makes every start fail (`KeyError: 'episode'`). So what is not whole is
removed before each start.
"""

import re
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

from lingoss.errors import LingossError
from lingoss.progress import note
from lingoss.runs.files import read_json

FOLDER = "_actor"
BYTES = 12.0  # a parameter in float32 with Adam's two moments; a 20.9 B model took 251 GB (234 GiB)
_MARGIN = 1.02
_TAG = re.compile(r"global_step(\d{1,9})")
_LATEST = "latest"
_LAST_FILE = "metric.json"  # OpenRLHF writes it when DeepSpeed's save has returned
_SHARDS = ("*_optim_states.pt", "*_model_states.pt")


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint folder; `problem` says why it is not whole. `gpus`: processes that wrote it."""

    path: Path
    step: int
    gpus: int
    problem: str | None


def checkpoint_bytes(parameters: int) -> int:
    """Bytes of one checkpoint, whatever the number of GPUs."""
    return int(parameters * BYTES * _MARGIN)


def saved(folder: Path) -> list[Saved]:
    """The checkpoints in OpenRLHF's `--ckpt.path`, oldest first. Nothing is changed."""
    found = []
    for path in (folder / FOLDER).iterdir() if (folder / FOLDER).is_dir() else ():
        if path.is_dir() and (match := _TAG.fullmatch(path.name)):
            found.append(_look(path, int(match[1])))
    return sorted(found, key=lambda one: one.step)


def repair(folder: Path, gpus: int, planned: int) -> int:
    """Leave whole checkpoints alone and let DeepSpeed begin with the newest; its step, or 0 when there is none.

    Raises:
        LingossError: it was written by another number of GPUs, which ZeRO-3 cannot read, or is of a later step than
            the run has. Nothing is deleted then.
    """
    whole = [one for one in saved(folder) if one.problem is None]
    newest = whole[-1] if whole else None
    if newest and newest.gpus != gpus:
        raise LingossError(
            f"{newest.path} was written by {newest.gpus} GPUs, and {gpus} are to train: ZeRO-3 reads only what as many "
            f"wrote, so set kuberay.trainer.nodes as it was, or remove {folder} to begin again"
        )
    if newest and newest.step > planned:
        raise LingossError(f"{newest.path} is of step {newest.step}, but {planned} are planned; remove {folder}")
    for one in saved(folder):
        if one.problem is not None:
            note("bad checkpoint", {"checkpoint": one.path.name, "reason": one.problem})
            shutil.rmtree(one.path)
    if newest is None:
        shutil.rmtree(folder / FOLDER, ignore_errors=True)
        return 0
    partial = folder / FOLDER / f".{_LATEST}"
    partial.write_text(newest.path.name, encoding="utf-8")
    partial.replace(folder / FOLDER / _LATEST)
    return newest.step


def prune_exports(folder: Path) -> None:
    """Delete exports by the way (`<tag>_hf`), which OpenRLHF never does. We ask for none; a changed command might."""
    for path in folder.glob("global_step*_hf"):
        shutil.rmtree(path, ignore_errors=True)


def _look(path: Path, step: int) -> Saved:
    shards = [sorted(path.glob(pattern)) for pattern in _SHARDS]
    gpus = len(shards[0])
    if read_json(path / _LAST_FILE)[0] is None:
        return Saved(path, step, gpus, "its last file is missing: the save did not end")
    if not gpus or len(shards[1]) != gpus:
        return Saved(path, step, gpus, f"it has {gpus} files of the optimizer and {len(shards[1])} of the model")
    for shard in (*shards[0], *shards[1]):
        if not zipfile.is_zipfile(shard):  # torch writes zip files, whose directory comes last
            return Saved(path, step, gpus, f"{shard.name} is cut short")
    return Saved(path, step, gpus, None)
