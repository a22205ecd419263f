# SPDX-License-Identifier: MIT-0
"""The meaning of a LoRA adapter, from its configuration and its tensors' names and shapes alone: what changes which weight.

Follows peft 0.21 (`tuners/lora`). An adapter on a linear layer [out, in] is A [rank, in] and B [out, rank]; on a stack
of experts [count, in, out] (gpt-oss) it is A [rank * count, in] and B [out, rank * count], expert by expert in A's rows
and rank by rank in B's columns.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lingoss.checkpoints.adapter import EXPERTS, PREFIX
from lingoss.checkpoints.tensors import Shapes
from lingoss.errors import LingossError

_A, _B = ".lora_A.weight", ".lora_B.weight"
_NESTED = ".base_layer"
# Settings of PEFT that change what an adapter computes, and the values with which it is plain LoRA.
_PLAIN: Mapping[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",),
    "use_dora": (False, None),
    "lora_bias": (False, None),
    "bias": ("none", None),
    "fan_in_fan_out": (False, None),
    "modules_to_save": (None, []),
    "layer_replication": (None, []),
    "trainable_token_indices": (None, [], {}),
    "alora_invocation_tokens": (None, []),
    "arrow_config": (None,),
    "kasa_config": (None,),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One weight of the base and the pair of matrices that changes it by `scaling` times their product.

    `experts` 0: a linear layer. Otherwise the number of experts in a stack.
    """

    weight: str
    a: str
    b: str
    rank: int
    scaling: float
    experts: int


def require_adapter(config: Mapping[str, Any], found: Shapes) -> None:
    """Check an adapter against its configuration, without its base: whole pairs, and the rank that is written there.

    Raises:
        LingossError: it is no plain LoRA, a matrix is missing, or a rank is another.
    """
    for stem, rows, columns in _pairs(config, found):
        parameter = _parameter(config, stem)
        rank = _rank(config, parameter or stem)
        # How many experts a stack has is not told by its pair, so there the rank must only divide.
        if rows != columns or rows % rank or (rows != rank and parameter is None):
            raise LingossError(
                f"{stem}: A has {rows} rows and B {columns} columns, which is not the rank of adapter_config.json ({rank})"
            )


def changes(config: Mapping[str, Any], found: Shapes, base: Shapes, model_type: str) -> list[Change]:
    """What the adapter changes in a base with these weights, in the order of the base's weights.

    Raises:
        LingossError: it is no plain LoRA, or does not fit the base.
    """
    require_adapter(config, found)
    made = {}
    for stem, rows, _ in _pairs(config, found):
        a, b = PREFIX + stem + _A, PREFIX + stem + _B
        parameter = _parameter(config, stem)
        weight = parameter or f"{stem}.weight"
        if weight not in base:
            raise LingossError(f"the adapter does not fit the base, which has no {weight}")
        if parameter is not None and model_type != "gpt_oss":
            raise LingossError(
                f"the adapter changes experts of a {model_type or 'unknown'} model: only gpt_oss is supported"
            )
        rank = _rank(config, parameter or stem)
        experts = rows // rank if parameter else 0
        shape = (experts, found[a][1], found[b][0]) if parameter else (found[b][0], found[a][1])
        if base[weight] != shape:
            raise LingossError(
                f"the adapter does not fit the base: {weight} is {list(base[weight])}, and the adapter is of {list(shape)}"
            )
        made[weight] = Change(weight, a, b, rank, _scaling(config, parameter or stem, rank), experts)
    return [made[name] for name in base if name in made]


def _pairs(config: Mapping[str, Any], found: Shapes) -> list[tuple[str, int, int]]:
    """(layer, rows of A, columns of B). Raises LingossError for anything but pairs of matrices of plain LoRA."""
    for key, plain in _PLAIN.items():
        if key in config and config[key] not in plain:
            raise LingossError(f"adapter_config.json has {key}={config[key]!r}: only plain LoRA is supported")
    stems = sorted({name.removesuffix(_A).removesuffix(_B) for name in found})
    for name in found:
        if not name.endswith((_A, _B)) or not name.startswith(PREFIX) or len(found[name]) != 2:
            raise LingossError(
                f"{name} {list(found[name])} is no matrix of a plain LoRA adapter, so it is not supported"
            )
    for stem in stems:
        if lost := [name for name in (stem + _A, stem + _B) if name not in found]:
            raise LingossError(f"the adapter lacks {lost[0]}")
    if not stems:
        raise LingossError("the adapter holds no tensors")
    return [(stem.removeprefix(PREFIX), found[stem + _A][0], found[stem + _B][1]) for stem in stems]


def _parameter(config: Mapping[str, Any], stem: str) -> str | None:
    """The stack of experts that a pair belongs to; None for one beside a linear layer.

    PEFT wraps a module once for each of its parameters, in the order in which the module defines them, so the first
    lies innermost, under one `base_layer` for each that follows.
    """
    module, depth = stem.replace(_NESTED, ""), stem.count(_NESTED)
    targets: Sequence[str] = config.get("target_parameters") or ()
    taken = [name for name in EXPERTS if any(f".{name}".endswith(f".{target}") for target in targets)]
    wrapped = [name for name in taken if f".{module}".endswith(f".{name.rpartition('.')[0]}")]
    if not wrapped:
        return None
    if depth >= len(wrapped):
        raise LingossError(f"{stem} is nested deeper than adapter_config.json has target_parameters")
    return f"{module}.{wrapped[-1 - depth].rpartition('.')[2]}"


def _rank(config: Mapping[str, Any], layer: str) -> int:
    rank = _pattern(config.get("rank_pattern"), layer, config.get("r"))
    if not isinstance(rank, int) or rank < 1:
        raise LingossError(f"adapter_config.json has r={config.get('r')!r}: it must be a whole number above zero")
    return rank


def _scaling(config: Mapping[str, Any], layer: str, rank: int) -> float:
    alpha = _pattern(config.get("alpha_pattern"), layer, config.get("lora_alpha"))
    if not isinstance(alpha, int | float):
        raise LingossError(f"adapter_config.json has lora_alpha={alpha!r}: it must be a number")
    return alpha / math.sqrt(rank) if config.get("use_rslora") else alpha / rank


def _pattern(patterns: Mapping[str, Any] | None, layer: str, default: Any) -> Any:
    """As PEFT's `get_pattern_key`: the first pattern that the end of a layer's name matches."""
    for pattern, value in (patterns or {}).items():
        if re.match(rf"(.*\.)?({pattern})$", layer):
            return value
    return default
