# SPDX-License-Identifier: MIT-0
"""Is what lies there whole? Every kind of checkpoint, adapter and model, looked at without changing anything."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lingoss import runs
from lingoss.checkpoints.adapter import CONFIG, RECORD, WEIGHTS
from lingoss.checkpoints.lora import require_adapter
from lingoss.checkpoints.manifest import MANIFEST, verify
from lingoss.checkpoints.store import checkpoint_folders
from lingoss.checkpoints.tensors import first_non_finite, tensor_shapes
from lingoss.errors import LingossError
from lingoss.runs.digests import WEIGHT_FOLDERS
from lingoss.runs.files import folder_size, read_json

ACCELERATE, DCP_INDEX = "pytorch_model_fsdp_0", ".metadata"
"""Model weights in a checkpoint that accelerate writes with SHARDED_STATE_DICT, and the index that such a folder has."""
_INDEX = "model.safetensors.index.json"


@dataclass(frozen=True, slots=True)
class Examined:
    """One thing that was looked at. `problem` None: it is whole."""

    path: Path
    kind: str
    step: int | None
    bytes: int
    problem: str | None

    def to_dict(self) -> dict[str, Any]:
        """As a JSON row."""
        return {
            "path": str(self.path),
            "kind": self.kind,
            "step": self.step,
            "bytes": self.bytes,
            "whole": self.problem is None,
            "problem": self.problem,
        }


def examine_run(run: runs.RunInfo) -> list[Examined]:
    """The checkpoints of a run, oldest first, and the weights that it left behind if it is finished."""
    found = [_checkpoint(path, step) for step, path in checkpoint_folders(run.path / "checkpoints")]
    return found + [_result(run, run.path / name) for name in WEIGHT_FOLDERS if run.done and (run.path / name).is_dir()]


def _result(run: runs.RunInfo, path: Path) -> Examined:
    """The weights of a finished run: as DONE.json describes them, and whole in themselves."""
    changed = [one for one in runs.verify(run.path) if one.startswith(f"{path.name}/")]
    one = _checkpoint(path, run.step)
    return replace(one, problem="; ".join(changed) or one.problem)


def examine(path: Path) -> list[Examined]:
    """What lies in a folder: a checkpoint, a folder of checkpoints, an adapter or a model.

    Raises:
        LingossError: there is no such folder, or nothing in it that is known.
    """
    if not path.is_dir():
        raise LingossError(f"{path} is no folder: name one with checkpoints, an adapter or a model, or a run")
    for inside in (path, path / "checkpoints"):
        if found := checkpoint_folders(inside):
            return [_checkpoint(one, step) for step, one in found]
    name, _, number = path.name.rpartition("-")
    return [_checkpoint(path, int(number) if name == "checkpoint" and number.isdecimal() else None)]


def _checkpoint(path: Path, step: int | None) -> Examined:
    kind, check = "unknown", None
    try:
        kind, check = _look(path)
    except LingossError as error:
        if step is None:
            raise
        return Examined(path, kind, step, folder_size(path), str(error))
    return Examined(path, kind, step, folder_size(path), _problem(lambda: check(path)))


def _problem(check: Callable[[], object]) -> str | None:
    try:
        check()
    except LingossError as error:
        return str(error)
    except OSError as error:
        return f"{error.filename or 'a file'} cannot be read: {error.strerror or error}"
    return None


def _look(path: Path) -> tuple[str, Callable[[Path], object]]:
    """The kind of what lies in a folder, and what checks it."""
    if (path / MANIFEST).exists():
        manifest, _ = read_json(path / MANIFEST)
        return "sharded" if "sharded" in (manifest or {}) else "single", verify
    if (path / ACCELERATE).is_dir() or (path / DCP_INDEX).is_file():
        return "accelerate", _check_dcp
    if (path / WEIGHTS).is_file():
        return "adapter", _check_adapter
    if any(path.glob("*.safetensors")):
        return "model", _check_model
    raise LingossError(
        f"{path.name} has no {MANIFEST}, so it was never finished, and it is no other kind that is known"
    )


def _check_dcp(path: Path) -> None:
    import torch

    from lingoss.checkpoints.dcp import read_dcp

    layout, read = read_dcp(path / ACCELERATE if (path / ACCELERATE).is_dir() else path)
    for name, one in layout.items():
        for chunk in one.chunks:
            tensor = read(name, chunk)
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                raise LingossError(f"{name} is not finite")


def _check_adapter(path: Path) -> None:
    _check_record(path)
    shapes = tensor_shapes(path / WEIGHTS)
    config, problem = read_json(path / CONFIG)
    if config is None:
        raise LingossError(problem or f"{CONFIG} is missing")
    require_adapter(config, shapes)
    if bad := first_non_finite(path / WEIGHTS):
        raise LingossError(f"{WEIGHTS}: {bad} is not finite")


def _check_model(path: Path) -> None:
    _check_record(path)
    index = _weight_map(path)
    files = sorted({*index.values(), *(one.name for one in path.glob("*.safetensors"))})
    for file in files:
        if not (path / file).is_file():
            raise LingossError(f"{file} is missing")
        held = tensor_shapes(path / file)
        if lost := [name for name, place in index.items() if place == file and name not in held]:
            raise LingossError(f"{file} lacks {len(lost)} tensors, first {lost[0]}")
        if bad := first_non_finite(path / file):
            raise LingossError(f"{file}: {bad} is not finite")


def _weight_map(path: Path) -> Mapping[str, str]:
    if not (path / _INDEX).exists():
        return {}
    try:
        return {
            str(k): str(v) for k, v in json.loads((path / _INDEX).read_text(encoding="utf-8"))["weight_map"].items()
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise LingossError(f"{_INDEX} is damaged: {error}") from error


def _check_record(path: Path) -> None:
    """What was exported or merged here carries the digests of its files."""
    record, problem = read_json(path / RECORD)
    if problem:
        raise LingossError(problem)
    for name, digest in ((record or {}).get("digests") or {}).items():
        if not (path / name).is_file():
            raise LingossError(f"{name} is missing")
        if runs.file_digest(path / name) != digest:
            raise LingossError(f"{name} has changed since it was written")
