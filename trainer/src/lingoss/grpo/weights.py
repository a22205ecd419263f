# SPDX-License-Identifier: MIT-0
"""What is done to the trained model for a moment: evaluation mode, the adapter merged, the base weights kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Evaluation mode: no dropout, and gradient checkpointing does not switch the key/value cache off."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


@contextmanager
def base_kept(model: Any) -> Iterator[None]:
    """Put the base weights of adapted layers back bit for bit afterwards.

    TRL syncs an adapter to vLLM by merging it, sending all weights and unmerging it, and adding and subtracting rounds:
    in bf16 the base drifts, the reference with it, and a resumed run, which reads the base from disk, differs from one
    that was not stopped (trl#6688). Attention weights are copied (1.6 GB of gpt-oss-20b's 42); stacks of experts, which
    are most of the model, are not, so there the drift stays.
    """
    from peft.tuners.lora import Linear

    layers = [module.get_base_layer() for module in model.modules() if isinstance(module, Linear)]
    before = [layer.weight.detach().clone() for layer in layers]
    try:
        yield
    finally:
        for layer, weight in zip(layers, before, strict=True):
            layer.weight.data.copy_(weight)


@contextmanager
def merged(model: Any) -> Iterator[None]:
    """Merge the adapter while completions are drawn, so that a token costs what it costs in the base model.

    SmolLM2 with an adapter on every linear layer draws half as many tokens again per second (two cores, 16 sequences).
    A model without an adapter stays as it is, and so does one with experts' stacks, which could not be put back exactly.
    """
    from peft.tuners.lora import Linear
    from peft.tuners.tuners_utils import BaseTunerLayer

    layers = [module for module in model.modules() if isinstance(module, BaseTunerLayer)]
    if not layers or not all(isinstance(layer, Linear) for layer in layers):
        yield
        return
    with base_kept(model):
        model.merge_adapter()
        try:
            yield
        finally:
            model.unmerge_adapter()
