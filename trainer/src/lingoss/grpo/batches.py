# SPDX-License-Identifier: MIT-0
"""A step's completions cut into micro-batches that waste little: equal signal and length together, padding cut off.

TRL pads all completions of a step to the longest and deals them out at random. The gradient of a step is a sum over its
completions, so their order is free; sorting them lets each micro-batch be as short as its own longest row, and lets one
without any signal be skipped.
"""

from typing import Any

import torch

Batch = dict[str, Any]


def micro_batches(batch: Batch, count: int) -> list[Batch]:
    """Cut TRL's generation batch (tensors [rows, ...], and scalars, which stay) into `count` parts of equal size.

    Rows with a signal (an advantage, and tokens that the loss sees) come first, and longer before shorter.
    """
    rows = batch["advantages"].shape[0]
    length = (batch["prompt_mask"].sum(1) + batch["completion_mask"].sum(1)).tolist()
    signal = has_signal(batch).tolist()
    order = sorted(range(rows), key=lambda row: (not signal[row], -length[row]))
    size = rows // count
    parts = []
    for at in range(0, rows, size):
        chosen = torch.tensor(order[at : at + size], device=batch["advantages"].device)
        parts.append(_trimmed({key: _take(value, chosen) for key, value in batch.items()}))
    return parts


def has_signal(batch: Batch) -> torch.Tensor:
    """[rows]: whether a row moves the weights by its advantage."""
    return (batch["advantages"] != 0) & batch["completion_mask"].bool().any(1)


def _take(value: Any, rows: torch.Tensor) -> Any:
    return value[rows] if isinstance(value, torch.Tensor) and value.dim() else value


def _trimmed(batch: Batch) -> Batch:
    """Without the columns that are padding in every row: on the left of prompts, on the right of completions."""
    prompt = batch["prompt_mask"].bool().any(0)
    completion = batch["completion_mask"].bool().any(0)
    start = int(prompt.int().argmax())  # the first column that any row uses
    # One column stays where all rows are masked: the model must be given something to look at.
    end = max(1, int(completion.nonzero().max()) + 1 if bool(completion.any()) else 1)
    width = completion.shape[0]
    found = dict(batch)
    for key, value in batch.items():
        if not isinstance(value, torch.Tensor) or value.dim() != 2:
            continue
        if key.startswith("prompt_"):
            found[key] = value[:, start:]
        elif value.shape[1] == width:
            found[key] = value[:, :end]
    return found
