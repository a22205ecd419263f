# SPDX-License-Identifier: MIT-0
"""The prompts of all steps in one list, and what both frameworks are told about a step."""

from collections.abc import Mapping
from typing import Any

from lingoss.data import Prompt
from lingoss.grpo.prompts import Plan


def all_steps(plan: Plan, steps: int) -> list[Prompt]:
    """The prompts of steps 1 to `steps`, one step after the other: `steps` times `plan.prompts_per_step` of them."""
    return [plan.rows[index] for number in range(1, steps + 1) for index in plan.step(number)]


def figures(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, float]:
    """A step's row in our names: {theirs: ours} for what is finite or not, but a number.

    `numbers` of `lingoss.rewards` are means over all completions; the share of right answers is one of those with a
    known answer.
    """
    row = {ours: float(values[theirs]) for theirs, ours in names.items() if _is_number(values.get(theirs))}
    graded = row.pop("graded", None)
    if graded is not None and graded <= 0:
        row.pop("correct", None)
        row.pop("unparsed", None)
    elif graded is not None:
        row |= {name: row[name] / graded for name in ("correct", "unparsed") if name in row}
    return row


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
