# SPDX-License-Identifier: MIT-0
"""How several processes share the model: each has it whole (ddp), or each layer is shared out among them (fsdp)."""

import logging
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from lingoss.checkpoints import base_shapes
from lingoss.errors import LingossError
from lingoss.sft import memory
from lingoss.sft.setting import Setting
from lingoss.sft.share import share_out

Layout = Literal["single", "ddp", "fsdp"]
_RANKS_TOLD = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Room:
    """What a run needs of a card whose memory is `card` bytes (None: unknown), for rows of `length` tokens."""

    setting: Setting
    length: int
    card: int | None

    def choose(self, ranks: int, launched: bool) -> Layout:
        """The layout that the config asks for; with `auto` the fastest that fits.

        Raises:
            LingossError: it does not go with that many processes, or does not fit the card.
        """
        asked, fits = self.setting.config.parallelism, self._fits
        if asked == "single" and ranks > 1:
            raise LingossError(f"parallelism=single, but {ranks} processes were started: start one, or set it to auto")
        if asked == "fsdp" and not launched:
            raise LingossError("parallelism=fsdp needs a launcher: start it by torchrun, or set parallelism=auto")
        whole: Layout = "ddp" if ranks > 1 else "single"
        if asked == "auto":
            layout: Layout = "fsdp" if ranks > 1 and not fits(whole, ranks) and fits("fsdp", ranks) else whole
        else:
            layout = "fsdp" if asked == "fsdp" else whole
        if self.card is not None:
            shape = self.shape(layout, ranks)
            memory.require(self.need(shape), shape, self.card, self._alternatives(shape))
        return layout

    def shape(self, layout: str, ranks: int) -> memory.Shape:
        """What one of `ranks` cards works on at once."""
        config = self.setting.config
        each = share_out(config.global_batch, config.per_device_batch, ranks).per_device
        size = 2 if config.dtype == "bfloat16" else 4
        return memory.Shape(layout, ranks, each, self.length, size, config.gradient_checkpointing)

    def need(self, shape: memory.Shape) -> memory.Need:
        """Bytes of a card for that shape."""
        return memory.need(self._model, self.setting.size.parameters, shape)

    def table(self) -> dict[str, Any]:
        """For the plan: what a card needs with the whole model, and with one shared out among several."""
        told: dict[str, Any] = {}
        for ranks in self._numbers():
            if ranks == 1:
                told["single, ddp"] = memory.told(self.need(self.shape("single", 1)))
            else:
                told[f"fsdp on {ranks}"] = memory.told(self.need(self.shape("fsdp", ranks)))
        told["page cache of a node, while loading"] = memory.gib(self._weights)
        return told

    @cached_property
    def _model(self) -> memory.Model:
        folder = self.setting.base.model
        return memory.Model.of(folder, base_shapes(folder))

    @property
    def _weights(self) -> int:
        return self._model.parameters * self.shape("single", 1).bytes_each

    def _fits(self, layout: str, ranks: int) -> bool:
        return self.card is None or self.need(self.shape(layout, ranks)).total <= self.card

    def _numbers(self) -> list[int]:
        return [ranks for ranks in _RANKS_TOLD if self.setting.config.global_batch % ranks == 0]

    def _alternatives(self, shape: memory.Shape) -> dict[str, memory.Need]:
        """Ways to need less, those that change least first."""
        light = replace(shape, checkpointing=True)
        ways = {"gradient_checkpointing=true": light} if not shape.checkpointing else {}
        ways["gradient_checkpointing=true with per_device_batch=1"] = replace(light, sequences=1)
        for ranks in self._numbers():
            if ranks >= max(2, shape.ranks):
                name = f"parallelism=fsdp on {ranks} cards with gradient_checkpointing=true and per_device_batch=1"
                ways[name] = replace(light, layout="fsdp", ranks=ranks, sequences=1)
        return {name: self.need(way) for name, way in ways.items()}


def card_bytes(card_gib: float | None, launched: bool) -> int | None:
    """Memory of this process's card: what the config says, else what the card has; None without a card.

    Raises:
        LingossError: several cards are visible to a process that no launcher started, and that would use one.
    """
    import torch

    if torch.cuda.is_available() and not launched and (count := torch.cuda.device_count()) > 1:
        raise LingossError(
            f"{count} GPUs are visible, but one process uses one: start `python -m lingoss.torchrun --standalone "
            f"--nproc-per-node={count} -m lingoss sft …`, or set CUDA_VISIBLE_DEVICES=0"
        )
    if card_gib is not None:
        return int(card_gib * memory.GIB)
    if not torch.cuda.is_available():
        return None
    return int(torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory)


def fsdp_arguments(model: Path, recompute: bool) -> dict[str, Any]:
    """TRL's arguments for FSDP2 on a frozen base: each decoder layer is one unit, gathered when it is computed.

    With `recompute` the activations inside a unit are computed again in the backward pass. Every rank opens the base's
    files as memory maps, which share the node's page cache, and moves one unit after the other to its card, of which it
    keeps its part: so the weights are read once a node, and no process holds a copy. (accelerate's
    `cpu_ram_efficient_loading` reads once too, but fills the model with zeros in every other process.)
    """
    # TRL multiplies by the head's weights without calling the head, which torch warns of on every rank; a test compares.
    logging.getLogger("torch.distributed.fsdp").setLevel(logging.ERROR)
    from transformers import AutoConfig, AutoModelForCausalLM

    kind = AutoModelForCausalLM._model_mapping[type(AutoConfig.from_pretrained(model, local_files_only=True))]
    return {
        "fsdp": True,
        "fsdp_config": {
            "version": 2,
            "transformer_layer_cls_to_wrap": list(kind._no_split_modules),
            "reshard_after_forward": True,
            "activation_checkpointing": recompute,
            "state_dict_type": "SHARDED_STATE_DICT",
        },
    }
