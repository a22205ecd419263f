# SPDX-License-Identifier: MIT-0
"""OpenRLHF's checkpoints (DeepSpeed's, ZeRO-3): which are whole, what they weigh, and how a run goes on after a crash.

OpenRLHF 0.11.2 deletes the oldest folders before it writes the next, counting a half-written one like a whole one; its
DeepSpeed then loads what `latest` names. After a crash in the middle of a save that would delete the last whole
checkpoint, and an `_actor` folder without any makes every start fail (`KeyError: 'episode'`). So what is not whole is
removed before each start.
"""

import re
import shutil
from pathlib import Path

from lingoss.grpo.ray.checkpoints import Saved, cut_short, found, resume_from
from lingoss.runs.files import read_json, write_text

FOLDER = "_actor"
BYTES = 12.0  # a parameter in float32 with Adam's two moments; a 20.9 B model took 251 GB (234 GiB)
_MARGIN = 1.02
_TAG = re.compile(r"global_step(\d{1,9})")
_LATEST = "latest"
_LAST_FILE = "metric.json"  # OpenRLHF writes it when DeepSpeed's save has returned
_SHARDS = ("*_optim_states.pt", "*_model_states.pt")


def checkpoint_bytes(parameters: int) -> int:
    """Bytes of one checkpoint, whatever the number of GPUs."""
    return int(parameters * BYTES * _MARGIN)


def saved(folder: Path) -> list[Saved]:
    """The checkpoints in OpenRLHF's `--ckpt.path`, oldest first. Nothing is changed."""
    return found(folder / FOLDER, _TAG, _look)


def repair(folder: Path, gpus: int, planned: int) -> int:
    """Leave whole checkpoints alone and let DeepSpeed begin with the newest; its step, or 0 when there is none.

    Raises:
        LingossError: it was written by another number of GPUs, which ZeRO-3 cannot read, or is of a later step than
            the run has. Nothing is deleted then.
    """
    newest = resume_from(saved(folder), folder, gpus, planned, "ZeRO-3")
    if newest is None:
        shutil.rmtree(folder / FOLDER, ignore_errors=True)
        return 0
    write_text(folder / FOLDER / _LATEST, newest.path.name)
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
    return Saved(path, step, gpus, cut_short((*shards[0], *shards[1])))
