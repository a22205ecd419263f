# SPDX-License-Identifier: MIT-0
"""veRL's shards as what other stages read: a PEFT adapter, or a model in bfloat16. One tensor at a time.

Each rank's file is a pickled state dict of DTensors that are whole or cut along one dimension (FSDP2); the parts of all
ranks in order are the tensor. veRL's own merger holds all ranks' files in memory, and guesses the adapter's settings.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lingoss.checkpoints import save_adapter
from lingoss.checkpoints.tensors import Shapes
from lingoss.errors import LingossError

_FILE_BYTES = 4_000_000_000
_ADAPTER_NAME = ".default."  # PEFT's name of the adapter within a tensor's


def read_shards(paths: Sequence[Path]) -> list[Mapping[str, Any]]:
    """The state dict of each rank, whose tensors stay on the disk until they are used.

    Raises:
        LingossError: a file cannot be read.
    """
    import torch
    import torch.distributed.tensor

    try:
        # Importing torch.distributed.tensor has put DTensors among what a load of weights alone may make.
        return [torch.load(path, map_location="cpu", weights_only=True, mmap=True) for path in paths]
    except Exception as error:  # the library raises whatever its parser met
        raise LingossError(f"{paths[0].parent} cannot be read: {str(error).splitlines()[0][:200]}") from error


def tensors(shards: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Name and whole tensor of everything in the shards, one after the other.

    Raises:
        LingossError: the ranks hold different tensors, or one is cut along two dimensions.
    """
    names = list(shards[0])
    for rank, shard in enumerate(shards):
        if list(shard) != names:
            raise LingossError(f"the shards of ranks 0 and {rank} hold different tensors")
    for name in names:
        yield name, _whole(name, [shard[name] for shard in shards])


def write_adapter(target: Path, shards: Sequence[Mapping[str, Any]], like: Path, expected: Shapes) -> None:
    """The adapter folder, with the settings of the SFT adapter `like`. Raises LingossError when tensors are not right."""
    found = {name.replace(_ADAPTER_NAME, "."): tensor.float() for name, tensor in tensors(shards) if ".lora_" in name}
    config = json.loads((like / "adapter_config.json").read_text(encoding="utf-8"))
    save_adapter(target, found, config, expected)


def write_model(target: Path, shards: Sequence[Mapping[str, Any]], like: Path) -> None:
    """The model folder in bfloat16, with all files of `like` that hold no weights.

    Raises:
        LingossError: the shards cannot be put together.
    """
    import torch
    from safetensors.torch import save_file

    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in like.iterdir():
        if path.is_file() and path.suffix not in (".safetensors", ".bin") and "index" not in path.name:
            shutil.copyfile(path, target / path.name)
    files: list[dict[str, Any]] = [{}]
    held, sizes = 0, 0
    written: dict[str, str] = {}
    for name, tensor in tensors(shards):
        if held and held + 2 * tensor.numel() > _FILE_BYTES:
            written |= _save(save_file, target, files.pop(), len(set(written.values())))
            files, held = [{}], 0
        files[-1][name] = tensor.to(torch.bfloat16).contiguous().clone()
        held, sizes = held + 2 * tensor.numel(), sizes + 2 * tensor.numel()
    written |= _save(save_file, target, files.pop(), len(set(written.values())))
    index = {"metadata": {"total_size": sizes}, "weight_map": written}
    (target / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")


def _save(save_file: Any, target: Path, held: Mapping[str, Any], number: int) -> dict[str, str]:
    name = f"model-{number + 1:05d}.safetensors"
    save_file(held, target / name, {"format": "pt"})
    return dict.fromkeys(held, name)


def _whole(name: str, parts: Sequence[Any]) -> Any:
    import torch

    first = parts[0]
    if not hasattr(first, "placements"):
        return first
    placements = [placement for placement in first.placements if not placement.is_replicate()]
    if not placements:
        return first._local_tensor
    if len(placements) > 1 or not placements[0].is_shard():
        raise LingossError(f"{name} is cut as {first.placements}, which FSDP2 does not do")
    whole = torch.cat([part._local_tensor for part in parts], dim=placements[0].dim)
    if tuple(whole.shape) != tuple(first.shape):
        raise LingossError(f"the shards of {name} make {list(whole.shape)} instead of {list(first.shape)}")
    return whole
