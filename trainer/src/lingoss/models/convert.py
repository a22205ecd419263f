# SPDX-License-Identifier: MIT-0
"""A folder of safetensors in another number format: MXFP4, float16, float32 or bfloat16 to bfloat16 or float32.

Works tensor by tensor and piece by piece, so that 20 billion parameters need less than a gigabyte of memory; what a
killed conversion has finished is kept. No torch: the same code runs in the smallest image.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lingoss.errors import LingossError
from lingoss.models import shards
from lingoss.models.mxfp4 import dequantise
from lingoss.models.shards import Spec, Stored

KINDS = {"bfloat16": "BF16", "float32": "F32"}
# Counts changes of the conversion itself, so that what an older one left behind is not continued.
RECIPE = 1
SHARD = 4_000_000_000
INDEX = "model.safetensors.index.json"
_PIECE = 1 << 26  # bytes read at once
_FLOATS = ("F64", "F32", "F16", "BF16")
_WHOLE = ("I64", "I32", "I16", "I8", "BOOL")
_BLOCKS, _SCALES = "_blocks", "_scales"
_PACKED = 16  # bytes of a block: 32 numbers
# What else of a model's folder is needed: configuration, tokenizer, chat template, licence. No pickles, no code.
_EXTRA = ("*.json", "*.jinja", "tokenizer.model", "merges.txt", "vocab.txt", "LICENSE*", "NOTICE*", "USAGE_POLICY*")


def is_model_file(name: str) -> bool:
    """Whether a file of this name at the top of a model's folder is needed: weights in safetensors and text files."""
    path = Path(name)
    return len(path.parts) == 1 and (path.suffix == ".safetensors" or any(path.match(pattern) for pattern in _EXTRA))


def converted(found: Mapping[str, Spec], dtype: str) -> dict[str, Spec]:
    """The tensors that a model has in number format `dtype`, in the order of its layers.

    Raises:
        LingossError: a tensor is stored in a form that cannot be converted.
    """
    made = {}
    for name, spec in found.items():
        if name.endswith(_SCALES) and _partner(name, _SCALES, _BLOCKS) in found:
            continue
        if name.endswith(_BLOCKS) and _partner(name, _BLOCKS, _SCALES) in found:
            made[name.removesuffix(_BLOCKS)] = _unpacked(name, spec, found[_partner(name, _BLOCKS, _SCALES)], dtype)
        elif spec.dtype in _FLOATS:
            made[name] = Spec(KINDS[dtype], spec.shape)
        elif spec.dtype in _WHOLE:
            made[name] = spec
        else:
            raise LingossError(
                f"{name} is stored as {spec.dtype}, which cannot be converted: take a model in bfloat16 or MXFP4"
            )
    return dict(sorted(made.items(), key=lambda item: _natural(item[0])))


def is_plain(found: Mapping[str, Spec], dtype: str) -> bool:
    """Whether the tensors have that number format already. LingossError as `converted`."""
    return converted(found, dtype) == dict(found)


def convert_folder(source: Path, target: Path, dtype: str, report: Callable[[int], None]) -> None:
    """Write the model in `source` to `target` in number format `dtype`.

    Started again it keeps the files that are whole and goes on. `report` hears of bytes as they are written; their sum
    is `shards.total_size(converted(...))`.

    Raises:
        LingossError: the source is damaged, or quantised in a way other than MXFP4.
        OSError: the target cannot be written.
    """
    tensors = shards.stored_tensors(source)
    specs = converted({name: tensor.spec for name, tensor in tensors.items()}, dtype)
    copy_surroundings(source, target, dtype)
    files = shards.in_shards(specs, SHARD)
    for file, held in files.items():
        if shards.is_complete(target / file, held):
            report(shards.total_size(held))
        else:
            shards.write(target / file, held, _pieces(tensors, held, report))
    if len(files) > 1:
        (target / INDEX).write_text(shards.index(files), encoding="utf-8")


def copy_surroundings(source: Path, target: Path, dtype: str) -> None:
    """What lies beside a model's weights to `target`: tokenizer, template, and the configuration, of number format `dtype`.

    Raises:
        LingossError: the configuration is missing or damaged, or of a model quantised in a way other than MXFP4.
    """
    config = _plain_config(source / "config.json", dtype)
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        if is_model_file(path.name) and path.suffix != ".safetensors" and path.name not in ("config.json", INDEX):
            shutil.copyfile(path, target / path.name)
    (target / "config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _plain_config(path: Path, dtype: str) -> dict[str, Any]:
    """The model's configuration, saying that its weights are ordinary numbers."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        method = config.pop("quantization_config", {}).get("quant_method", "mxfp4")
    except (OSError, ValueError, AttributeError) as error:
        raise LingossError(f"{path} is missing or damaged ({error}): fetch the model again") from error
    if method != "mxfp4":
        raise LingossError(
            f"the model is quantised by {method}, which cannot be converted: take one in bfloat16 or MXFP4"
        )
    config.pop("torch_dtype", None)  # the older name of the same
    return {**config, "dtype": dtype}


def _pieces(
    tensors: Mapping[str, Stored], specs: Mapping[str, Spec], report: Callable[[int], None]
) -> Iterator[npt.NDArray[Any]]:
    for name, spec in specs.items():
        pieces = cast(tensors[name], spec) if name in tensors else _unpack(tensors, name, spec)
        for piece in pieces:
            yield piece
            report(piece.nbytes)


def cast(tensor: Stored, spec: Spec) -> Iterator[npt.NDArray[Any]]:
    """The numbers of a tensor, piece by piece, in the number format of `spec`."""
    for first, count in shards.spans(tensor.spec.size, _PIECE):
        raw = tensor.read(first, count)
        yield raw if tensor.spec.dtype == spec.dtype else _encode(_decode(raw, tensor.spec.dtype), spec.dtype)


def _unpack(tensors: Mapping[str, Stored], name: str, spec: Spec) -> Iterator[npt.NDArray[Any]]:
    """One expert at a time."""
    blocks, scales = tensors[name + _BLOCKS], tensors[name + _SCALES]
    experts, rows, groups, width = blocks.spec.shape
    each = rows * groups
    for expert in range(experts):
        packed = blocks.read(expert * each * width, each * width).reshape(rows, groups, width)
        exponents = scales.read(expert * each, each).reshape(rows, groups)
        bits = dequantise(packed, exponents)
        yield bits if spec.dtype == "BF16" else _encode(_decode(bits, "BF16"), spec.dtype)


def _decode(raw: npt.NDArray[Any], kind: str) -> npt.NDArray[np.float32]:
    if kind == "BF16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    types: dict[str, type[np.floating[Any]]] = {"F64": np.float64, "F32": np.float32, "F16": np.float16}
    with np.errstate(over="ignore"):
        return raw.view(types[kind]).astype(np.float32)


def _encode(numbers: npt.NDArray[np.float32], kind: str) -> npt.NDArray[Any]:
    """To the nearest bfloat16, a tie to the even one, as hardware and torch round."""
    if kind == "F32":
        return numbers
    bits = numbers.view(np.uint32)
    rounded = (bits + (0x7FFF + (bits >> 16 & 1))) >> 16
    return np.where(np.isnan(numbers), 0x7FC0, rounded).astype(np.uint16)


def _partner(name: str, own: str, other: str) -> str:
    return name.removesuffix(own) + other


def _unpacked(name: str, blocks: Spec, scales: Spec, dtype: str) -> Spec:
    if (
        blocks.dtype != "U8"
        or scales.dtype != "U8"
        or len(blocks.shape) != 4
        or blocks.shape[3] != _PACKED
        or scales.shape != blocks.shape[:3]
    ):
        raise LingossError(
            f"{name} is {blocks.dtype} {list(blocks.shape)} with scales {scales.dtype} {list(scales.shape)}, "
            "which is not the MXFP4 of gpt-oss: take another copy of the model"
        )
    experts, rows, groups, width = blocks.shape
    return Spec(KINDS[dtype], (experts, groups * width * 2, rows))


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Layer 2 before layer 10; what belongs to no layer first."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"(\d+)", name)]
