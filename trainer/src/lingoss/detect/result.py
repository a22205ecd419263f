# SPDX-License-Identifier: MIT-0
"""What a detection says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# A text follows the request strictly when it is accepted and at least this share of its letters is in the language:
# 0.9 separates clean from mixed documents, 0.8 already misses one English sentence in a long text.
STRICT_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Detection:
    """The languages of one text.

    `label` is a language code, "mixed", "neutral" (nothing but numbers, formulas, code, units, emoji) or "unknown".
    `accepted` says whether the text is compatible with `target`; it is None without a target and False for a neutral
    text. `target_share` and `shares` are shares of letters, 0..1; letters of no known language count in the
    denominator, so the shares may sum to less than 1. `segments` are [start, end) offsets into the original text with
    their language, in order and without overlap. `abstained`: the evidence does not suffice to name a language.
    """

    label: str
    target: str | None
    accepted: bool | None
    target_share: float | None
    shares: Mapping[str, float]
    second: str | None
    letters: int
    abstained: bool
    segments: tuple[tuple[int, int, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """The `detection` object of the row format."""
        return {
            "label": self.label,
            "target": self.target,
            "accepted": self.accepted,
            "target_share": self.target_share,
            "shares": dict(self.shares),
            "second": self.second,
            "letters": self.letters,
            "abstained": self.abstained,
            "segments": [list(segment) for segment in self.segments],
        }
