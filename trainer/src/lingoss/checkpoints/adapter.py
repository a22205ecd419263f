# SPDX-License-Identifier: MIT-0
"""A LoRA adapter on disk: which shapes it must have on a given base, and how it is written."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lingoss.checkpoints.manifest import check_tensors
from lingoss.checkpoints.tensors import Shapes, tensor_shapes
from lingoss.errors import LingossError

WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"
RECORD = "lingoss.json"
"""Beside weights that were exported or merged: what they were made of, and the digests of all files."""
EXPERTS = ("mlp.experts.gate_up_proj", "mlp.experts.down_proj")
"""Expert weights of gpt-oss: parameters, no modules, so PEFT takes them by `target_parameters`."""

PREFIX = "base_model.model."
"""Before each name of the model, in the names that PEFT gives to tensors."""


def base_shapes(model: Path) -> Shapes:
    """Shapes of the base model's weights, from the headers of its files."""
    return tensor_shapes(model)


def lora_shapes(base: Shapes, rank: int, modules: Sequence[str], experts: bool = False) -> Shapes:
    """The tensors that PEFT saves for a LoRA adapter on a base with these weights.

    A linear layer [out, in] gets A [rank, in] and B [out, rank]. A stack of experts [count, in, out] gets one pair of
    matrices with rank * count rows and columns (peft 0.21, `target_parameters`); the two stacks of one module nest, the
    first in the second's `base_layer`.

    Raises:
        LingossError: the base has no such layer, or no experts.
    """
    shapes: Shapes = {}
    for module in modules:
        names = [name for name in base if name.endswith(f".{module}.weight") and len(base[name]) == 2]
        if not names:
            raise LingossError(
                f"lora.target_modules names {module}, which the model does not have; it has {', '.join(_linear(base))}"
            )
        for name in names:
            stem = PREFIX + name.removesuffix(".weight")
            out, width = base[name]
            shapes[f"{stem}.lora_A.weight"] = (rank, width)
            shapes[f"{stem}.lora_B.weight"] = (out, rank)
    if experts:
        stacks = [name for name in base if name.endswith(EXPERTS)]
        if not stacks:
            raise LingossError("lora.experts is on, but the model has no experts: set lora.experts=false")
        for name in stacks:
            count, width, out = base[name]
            stem = PREFIX + name.rpartition(".")[0]
            nested = f"{stem}.base_layer" if name.endswith(EXPERTS[0]) else stem
            shapes[f"{nested}.lora_A.weight"] = (rank * count, width)
            shapes[f"{nested}.lora_B.weight"] = (out, rank * count)
    return shapes


def save_adapter(target: Path, weights: Mapping[str, Any], config: Mapping[str, Any], expected: Shapes) -> None:
    """Write an adapter folder that appears whole: weights and configuration, checked against `expected` shapes.

    `weights` are tensors by PEFT's names; `config` is PEFT's, and sets in it are sorted, so that equal adapters are
    equal files.

    Raises:
        LingossError: the tensors have other names or shapes, or are not finite.
    """
    from safetensors.torch import save_file

    with new_folder(target) as partial:
        save_file({name: tensor.contiguous() for name, tensor in weights.items()}, partial / WEIGHTS, {"format": "pt"})
        write_config(partial, config)
        check_tensors(partial / WEIGHTS, expected)
        if target.exists():  # of an attempt that did not end in DONE
            shutil.rmtree(target)


def write_config(folder: Path, config: Mapping[str, Any]) -> None:
    """Write PEFT's configuration of an adapter into its folder."""
    (folder / CONFIG).write_text(_canonical(config), encoding="utf-8")


def require_new(target: Path) -> None:
    """Refuse with LingossError a folder that is there already: nothing is overwritten."""
    if target.exists():
        raise LingossError(f"{target} exists, and nothing is overwritten: name a new folder")


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """An empty folder beside `target` that takes its name when the block ends well, and is removed when it does not."""
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        for path in partial.iterdir():
            path.chmod(0o644)
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _canonical(config: Mapping[str, Any]) -> str:
    plain = {key: sorted(value) if isinstance(value, set) else value for key, value in config.items()}
    return json.dumps(plain, indent=2, sort_keys=True, default=str) + "\n"


def _linear(base: Shapes) -> list[str]:
    """Names of the linear layers that repeat in every block."""
    ends = {name.split(".")[-2] for name, shape in base.items() if len(shape) == 2 and ".layers." in name}
    return sorted(ends)
