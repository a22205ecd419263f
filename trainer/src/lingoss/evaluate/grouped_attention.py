# SPDX-License-Identifier: MIT-0
"""Attention for the token loop on a CPU: the query heads that share a key head are computed together.

transformers (5.10, `integrations/sdpa_attention.py`) copies keys and values once for each query head as soon as there is
a mask. For a single new token that copy costs more than the attention itself; here three queries read one copy.
"""

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import AttentionInterface

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "lingoss_grouped"


def grouped_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """As transformers' sdpa; [batch, heads, 1, width] queries become [batch, key heads, heads per key head, width]."""
    batch, heads, length, width = query.shape
    key_heads = key.shape[1]
    if length != 1 or heads == key_heads:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)  # type: ignore[no-any-return]
    together = query.reshape(batch, key_heads, heads // key_heads, width)
    # one query attends to all that is cached, so the mask [batch, 1, 1, cached] only hides padding
    found = scaled_dot_product_attention(together, key, value, attn_mask=attention_mask, scale=kwargs.get("scaling"))
    return found.reshape(batch, 1, heads, width), None


@contextmanager
def grouped(model: Any) -> "Iterator[None]":
    """Use it in `model` where that computes with sdpa; others (gpt-oss, whose attention has sinks) stay as they are."""
    if model.config._attn_implementation != "sdpa" or next(model.parameters()).is_cuda:
        yield
        return
    AttentionInterface.register(NAME, grouped_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    model.set_attn_implementation(NAME)
    try:
        yield
    finally:
        model.set_attn_implementation("sdpa")
