# SPDX-License-Identifier: MIT-0
"""Which groups teach: GRPO compares the samples of one prompt, so a group whose rewards are all equal teaches nothing."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

EQUAL = 1e-9
"""Rewards closer than this are the same reward."""


def is_informative(rewards: ArrayLike, compared: ArrayLike | None = None) -> NDArray[np.bool_]:
    """For (groups, samples) rewards: does the group hold two that differ? Shape (groups,).

    `compared`, of the same shape, says which samples count; GRPO leaves out those that were cut off when it masks them.
    """
    table: Any = np.asarray(rewards, dtype=float)
    counts = np.ones(table.shape, dtype=bool) if compared is None else np.asarray(compared, dtype=bool)
    highest = np.where(counts, table, -np.inf).max(axis=1)
    lowest = np.where(counts, table, np.inf).min(axis=1)
    return np.asarray(highest - lowest > EQUAL)
