# SPDX-License-Identifier: MIT-0
"""Files to their folder on the shared volume: by hard links where possible, whole or not at all, and told in time."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from lingoss.models import is_model_file
from lingoss.runs.files import writing


def model_files(folder: Path) -> list[Path]:
    """The files of a model's folder that are needed."""
    return sorted(path for path in folder.iterdir() if path.is_file() and is_model_file(path.name))


def data_files(source: Path) -> list[Path]:
    """The files of a data set: itself, or all below a folder but hidden ones."""
    if not source.is_dir():
        return [source]
    files = (path for path in source.rglob("*") if path.is_file())
    return sorted(path for path in files if not any(part.startswith(".") for part in path.relative_to(source).parts))


def partial_of(target: Path) -> Path:
    """Where `target` is made; it appears by one rename."""
    return target.with_name(f".{target.name}.partial")


def gather(source: Path, files: Sequence[Path], folder: Path, report: Callable[[int], None]) -> None:
    """Put `files`, which lie in `source` (a folder, or the one file itself), into `folder`; a second start goes on.

    Raises:
        LingossError: no space, or no right to write.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path in files:
            _link_or_copy(path, folder / (path.relative_to(source) if source.is_dir() else path.name))
            report(path.stat().st_size)


def appear(partial: Path, target: Path) -> None:
    """Give a finished folder its name; one that is there already has the same content, which its name says."""
    with writing(target):
        if target.exists():
            shutil.rmtree(partial)
        else:
            os.rename(partial, target)


def _link_or_copy(source: Path, target: Path) -> None:
    wanted = source.stat()
    try:
        found = target.stat()
        if (found.st_size, found.st_mtime_ns) == (wanted.st_size, wanted.st_mtime_ns):
            return
        target.unlink()
    except FileNotFoundError:
        pass
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        partial = partial_of(target)
        shutil.copy2(source, partial)
        os.replace(partial, target)
