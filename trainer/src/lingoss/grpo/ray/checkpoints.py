# SPDX-License-Identifier: MIT-0
"""What both frameworks' checkpoints have in common: which one a run may go on from, and that broken ones go first."""

import re
import shutil
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from lingoss.errors import LingossError
from lingoss.progress import note


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint folder; `problem` says why it is not whole. `gpus`: processes that wrote it."""

    path: Path
    step: int
    gpus: int
    problem: str | None


def found(folder: Path, name: re.Pattern[str], look: Callable[[Path, int], Saved]) -> list[Saved]:
    """The checkpoints in a folder, oldest first, each as `look` sees it; `name` has the step as its group."""
    steps = (
        (path, int(match[1]))
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.is_dir() and (match := name.fullmatch(path.name))
    )
    return sorted((look(path, step) for path, step in steps), key=lambda one: one.step)


def cut_short(files: Iterable[Path]) -> str | None:
    """Why one of torch's files is not whole, if so: they are zip files, whose directory comes last."""
    return next((f"{file.name} is cut short" for file in files if not zipfile.is_zipfile(file)), None)


def resume_from(checkpoints: list[Saved], folder: Path, gpus: int, planned: int, reader: str) -> Saved | None:
    """The newest whole checkpoint, None without one; those that are not whole are told and deleted.

    Raises:
        LingossError: it was written by another number of GPUs, which `reader` cannot read, or is of a later step than
            the run has. Nothing is deleted then.
    """
    newest = next((one for one in reversed(checkpoints) if one.problem is None), None)
    if newest and newest.gpus != gpus:
        raise LingossError(
            f"{newest.path} was written by {newest.gpus} GPUs, and {gpus} are to train: {reader} reads only what as many "
            f"wrote, so set kuberay.trainer.nodes as it was, or remove {folder} to begin again"
        )
    if newest and newest.step > planned:
        raise LingossError(f"{newest.path} is of step {newest.step}, but {planned} are planned; remove {folder}")
    for one in checkpoints:
        if one.problem is not None:
            note("bad checkpoint", {"checkpoint": one.path.name, "reason": one.problem})
            shutil.rmtree(one.path)
    return newest
