# SPDX-License-Identifier: MIT-0
"""Whatever holds trained weights, seen alike: which tensors there are, in which chunks, and how to read one. Imports torch."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from lingoss.checkpoints.adapter import CONFIG, WEIGHTS
from lingoss.checkpoints.dcp import METADATA, read_dcp
from lingoss.checkpoints.layout import Chunk, Layout, Sharded
from lingoss.checkpoints.manifest import MANIFEST, layout_of, verify
from lingoss.checkpoints.sharded import KINDS, Read, as_tensor, stored_reader
from lingoss.checkpoints.training import ADAPTER, GROUPS, OPTIMIZER, named_groups, plain_name, trained
from lingoss.errors import LingossError
from lingoss.models import shards

ACCELERATE = "pytorch_model_fsdp_0"
"""The folder of model weights in a checkpoint that accelerate writes with FSDP's SHARDED_STATE_DICT."""
_OPTIMIZER = "optimizer.pt"


@dataclass(frozen=True, slots=True)
class Source:
    """Tensors, how to read their chunks, and the JSON documents that lie beside them ({file name: content})."""

    kind: str
    layout: Layout
    read: Read
    documents: Mapping[str, Any] = field(default_factory=dict)


def training_source(folder: Path, optimizer: Any, model: torch.nn.Module) -> Source:
    """A checkpoint of this project of either kind, with the optimizer's state, named as `training` names things.

    A checkpoint of one process numbers the optimizer's weights; `optimizer` and `model` tell which number is whose.

    Raises:
        LingossError: it is not as it was written, or of another optimizer.
    """
    manifest = verify(folder, thorough=False)
    if (layout := layout_of(manifest)) is not None:
        return Source("sharded", layout, stored_reader(folder), _documents(folder, manifest))
    whole = _safetensors(folder / WEIGHTS)
    tensors = {ADAPTER + name: one for name, one in whole.items()}
    names = {id(weight): name for name, weight in trained(model).items()}
    order = [names[id(weight)] for group in optimizer.param_groups for weight in group["params"]]
    found = torch.load(folder / _OPTIMIZER, map_location="cpu", weights_only=True)
    if sum(len(group["params"]) for group in found["param_groups"]) != len(order):
        raise LingossError(f"{folder / _OPTIMIZER} is of another optimizer: it has another number of weights")
    for number, state in found["state"].items():
        for key, value in state.items():
            tensors[f"{OPTIMIZER}{key}/{order[number]}"] = value
    documents = {**_documents(folder, manifest), GROUPS: named_groups(found["param_groups"], order)}
    return Source("single", *_in_memory(tensors), documents)


def adapter_source(path: Path) -> Source:
    """The adapter in `path`, by PEFT's names, and its `adapter_config.json` if one lies there.

    `path` is a checkpoint of this project of either kind, an adapter's folder, a checkpoint of accelerate, or a folder
    of torch.distributed.checkpoint. A checkpoint of this project is verified first.

    Raises:
        LingossError: it is none of these, is not as it was written, or holds no adapter.
    """
    if (path / MANIFEST).exists():
        manifest = verify(path)
        documents = _documents(path, manifest)
        if (layout := layout_of(manifest)) is None:
            return Source("single", *_in_memory(_safetensors(path / WEIGHTS)), documents)
        read = stored_reader(path)
        adapter = {name.removeprefix(ADAPTER): one for name, one in layout.items() if name.startswith(ADAPTER)}
        return Source("sharded", adapter, lambda name, chunk: read(ADAPTER + name, chunk), documents)
    if (path / WEIGHTS).is_file():
        return Source("adapter", *_in_memory(_safetensors(path / WEIGHTS)), _config_in(path))
    folder = path / ACCELERATE if (path / ACCELERATE).is_dir() else path
    if (folder / METADATA).is_file():
        layout, read = read_dcp(folder)
        adapter, names = _peft_names(layout, folder)
        beside = {**_config_in(folder.parent), **_config_in(folder)}
        return Source("accelerate", adapter, lambda name, chunk: read(names[name], chunk), beside)
    raise LingossError(
        f"{path} holds no checkpoint and no adapter: it has neither {MANIFEST} nor {WEIGHTS} nor {METADATA}"
    )


def _peft_names(layout: Layout, folder: Path) -> tuple[Layout, dict[str, str]]:
    """The LoRA tensors by PEFT's names, and each name's own: trainers put `model.` and the adapter's name into them."""
    names: dict[str, str] = {}
    for name in layout:
        if ".lora_" not in name:
            continue
        plain = plain_name(name)
        at = plain.find("base_model.model.")
        if at < 0:
            raise LingossError(f"{name} in {folder} is no name that PEFT gives")
        if plain[at:] in names:
            raise LingossError(f"{folder} holds {plain[at:]} twice, as {names[plain[at:]]} and as {name}")
        names[plain[at:]] = name
    if not names:
        raise LingossError(f"{folder} holds {len(layout)} tensors, but none of a LoRA adapter")
    return {plain: layout[name] for plain, name in names.items()}, names


def _safetensors(path: Path) -> dict[str, torch.Tensor]:
    """Every tensor of a file. What holds one is of an adapter's size, a thousandth of the model's."""
    try:
        return {name: as_tensor(stored) for name, stored in shards.read_header(path).items()}
    except OSError as error:
        raise LingossError(f"cannot read {path}: {error.strerror or error}") from error


def _in_memory(tensors: Mapping[str, torch.Tensor]) -> tuple[Layout, Read]:
    layout = {
        name: Sharded(
            KINDS[tensor.dtype], tuple(tensor.shape), (Chunk("memory", (0,) * tensor.dim(), tuple(tensor.shape)),)
        )
        for name, tensor in tensors.items()
    }
    return layout, lambda name, chunk: tensors[name]


def _documents(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    names = [name for name in manifest["files"] if name.endswith(".json") and "/" not in name]
    return {name: _json(folder / name) for name in names}


def _config_in(folder: Path) -> dict[str, Any]:
    return {CONFIG: _json(folder / CONFIG)} if (folder / CONFIG).is_file() else {}


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise LingossError(f"{path} cannot be read: {error}") from error
