# SPDX-License-Identifier: MIT-0
"""Memory that a card needs in each layout, computed before anything is loaded, and compared with what it has.

The terms are counted from the model's shapes; the coefficients were fitted to measured peaks of gpt-oss-20b on an H200
(LoRA on attention, bfloat16; GiB measured and planned here): one pack of 8,192 tokens with checkpointing 49 and 47, of
32,768 tokens 62 and 61, of 8,192 without checkpointing 94 and 98. Sharing out (FSDP2) was measured lower than planned.
"""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lingoss.checkpoints.tensors import Shapes
from lingoss.errors import LingossError

GIB = 2**30
_FIXED = int(1.5 * GIB)  # context, kernels, workspaces of cuBLAS and NCCL
_FRAGMENTS = 1.06  # what the allocator keeps and cannot use
_TRAINED_BYTES = 16  # of a trained parameter: float32 weight, gradient and two moments of AdamW
_SCORES_KEPT, _SCORES_ALIVE = 2, 5  # matrices of attention scores, where they are held whole: per layer, and at a peak
_HEAD_CHUNK = 32_768  # vocabulary entries that TRL 1.16 scores at once, in float32
_GATHERED = 2  # layers that FSDP holds whole at once: the one that is computed and the next


@dataclass(frozen=True, slots=True)
class Model:
    """Numbers of a base model. Parameters are counted, widths are per token."""

    parameters: int
    layer_parameters: int
    head_parameters: int
    layers: int
    hidden: int
    heads: int
    attention: int
    mlp: int
    vocabulary: int
    whole_scores: bool

    @classmethod
    def of(cls, folder: Path, shapes: Shapes) -> "Model":
        """From its configuration and the shapes of its weights.

        Raises:
            LingossError: the configuration cannot be read or lacks a number.
        """
        try:
            fields = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            hidden, heads = int(fields["hidden_size"]), int(fields["num_attention_heads"])
            width = int(fields.get("head_dim") or hidden // heads)
            groups = int(fields.get("num_key_value_heads") or heads)
            experts = int(fields.get("num_experts_per_tok") or 1)
            layers, vocabulary = int(fields["num_hidden_layers"]), int(fields["vocab_size"])
            inner = int(fields["intermediate_size"])
            kind = str(fields["model_type"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise LingossError(f"{folder / 'config.json'} does not describe the model's size: {error}") from error
        sizes = {name: math.prod(shape) for name, shape in shapes.items()}
        in_layers = sum(size for name, size in sizes.items() if ".layers." in name)
        return cls(
            parameters=sum(sizes.values()),
            layer_parameters=in_layers // layers,
            head_parameters=vocabulary * hidden,
            layers=layers,
            hidden=hidden,
            heads=heads,
            attention=4 * heads * width + 4 * groups * width + 8 * hidden,
            mlp=experts * (6 * inner + 5 * hidden // 2),
            vocabulary=vocabulary,
            whole_scores=kind == "gpt_oss",  # its attention has sinks, so it computes the whole matrix of scores
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """What one card does at once, and how: a micro-batch of `sequences` x `length` tokens among `ranks` cards."""

    layout: str
    ranks: int
    sequences: int
    length: int
    bytes_each: int
    checkpointing: bool


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes of one card."""

    weights: int
    gathered: int
    trained: int
    activations: int
    head: int
    other: int

    @property
    def total(self) -> int:
        """All of it."""
        return sum(asdict(self).values())


def need(model: Model, adapter_parameters: int, shape: Shape) -> Need:
    """What training needs of each card."""
    shards = shape.ranks if shape.layout == "fsdp" else 1
    each, tokens = shape.bytes_each, shape.sequences * shape.length
    gathered = (_GATHERED * model.layer_parameters + model.head_parameters) * each if shards > 1 else 0
    layer = (model.attention + model.mlp) * each
    scores = model.heads * shape.length * each if model.whole_scores else 0
    if shape.checkpointing:
        per_token = model.layers * model.hidden * each + layer + _SCORES_ALIVE * scores
    else:
        per_token = model.layers * (layer + _SCORES_KEPT * scores) + (_SCORES_ALIVE - _SCORES_KEPT) * scores
    parts = {
        "weights": model.parameters * each // shards,
        "gathered": gathered,
        "trained": adapter_parameters * _TRAINED_BYTES // shards,
        "activations": tokens * per_token,
        "head": tokens * min(_HEAD_CHUNK, model.vocabulary) * 4,
    }
    fragments = int((sum(parts.values()) + _FIXED) * (_FRAGMENTS - 1))
    return Need(**parts, other=_FIXED + fragments)


def require(found: Need, shape: Shape, card: int, others: dict[str, Need]) -> None:
    """Refuse what a card of `card` bytes cannot hold; `others` are what could be done instead, best first.

    Raises:
        LingossError: it does not fit; names the parts, and the first of `others` that fits.
    """
    if found.total <= card:
        return
    parts = ", ".join(f"{name} {gib(size)}" for name, size in asdict(found).items() if size)
    fits = next((f"{how} needs {gib(one.total)}" for how, one in others.items() if one.total <= card), None)
    cure = fits or "nothing else that was tried fits either: take larger cards or more of them, or a smaller max_length"
    raise LingossError(
        f"{shape.layout} needs about {gib(found.total)} of a card ({parts}), which has {gib(card)}: {cure}"
    )


def gib(size: int) -> str:
    """Bytes as GiB, which cards are sold in."""
    return f"{size / GIB:.1f} GiB" if size >= GIB // 10 else f"{size / 2**20:.1f} MiB"


def told(found: Need) -> dict[str, Any]:
    """For the plan: each part, and the sum."""
    return {name: gib(size) for name, size in asdict(found).items()} | {"total": gib(found.total)}
