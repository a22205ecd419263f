# SPDX-License-Identifier: MIT-0
"""sha256 of the files of a run, made when it finishes and compared whenever somebody doubts them."""

import hashlib
import os
from pathlib import Path

from lingoss.errors import LingossError
from lingoss.runs.files import read_json

WEIGHT_FOLDERS = ("adapter", "model")


def file_digest(path: Path) -> str:
    """Hexadecimal sha256 of a file's content, which is forced to disk first. LingossError when it cannot be read."""
    try:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise LingossError(f"{path} cannot be read ({error.strerror}): restore it, or start the run again") from error


def weight_digests(run: Path) -> dict[str, str]:
    """{path relative to the run folder: sha256} of every file in `adapter/` and `model/`; empty when there is none."""
    files = [path for folder in WEIGHT_FOLDERS for path in sorted((run / folder).rglob("*")) if not path.is_dir()]
    return {path.relative_to(run).as_posix(): file_digest(path) for path in files}


def verify(run: Path) -> list[str]:
    """What differs between a finished run and its DONE.json, one phrase each; an empty list: all is as written."""
    done, problem = read_json(run / "DONE.json")
    if done is None:
        return [problem or "DONE.json is missing"]
    digests = done.get("digests")
    if not isinstance(digests, dict):
        return ["DONE.json holds no digests"]
    problems = []
    for name, digest in digests.items():
        if not (run / name).is_file():
            problems.append(f"{name} is missing")
        elif file_digest(run / name) != digest:
            problems.append(f"{name} has changed since the run finished")
    for folder in WEIGHT_FOLDERS:
        for path in sorted((run / folder).rglob("*")):
            if not path.is_dir() and path.relative_to(run).as_posix() not in digests:
                problems.append(f"{path.relative_to(run).as_posix()} was added after the run finished")
    return problems
