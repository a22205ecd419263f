# SPDX-License-Identifier: MIT-0
"""Words that a line must hold for a regular expression to match it: one fast search for all of them passes over the rest."""

import re
import re._constants as codes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from typing import Any

_LEAST = 3
"""Shorter words are in every line and would single out none."""


def anchors(pattern: re.Pattern[str]) -> list[str]:
    """Lower-case words of which every match holds at least one (letter case apart).

    Raises ValueError for an expression that could match without any word of three characters: it would slow down all.
    """
    found = _required(parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE))
    if not found:
        raise ValueError(f"no word in {pattern.pattern!r} is sure to be in a line that it matches")
    return found


def _required(items: Any) -> list[str]:
    """The alternatives of the best part of a sequence: the one whose shortest word is longest."""
    candidates: list[list[str]] = []
    word = ""
    for code, value in items:
        if code is codes.LITERAL and value < 128:
            word += chr(value).lower()
            continue
        candidates.append([word])
        word = ""
        if code is codes.SUBPATTERN:
            candidates.append(_required(value[3]))
        elif code is codes.BRANCH:
            branches = [_required(branch) for branch in value[1]]
            candidates.append([] if not all(branches) else [one for branch in branches for one in branch])
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and value[0] >= 1:
            candidates.append(_required(value[2]))
    candidates.append([word])
    usable = [words for words in candidates if words and min(map(len, words)) >= _LEAST]
    return max(usable, key=lambda words: min(map(len, words)), default=[])
