# SPDX-License-Identifier: MIT-0
"""Names the language of a text whose source does not say it, or says it wrongly."""

from collections.abc import Callable, Mapping
from typing import Protocol


class Found(Protocol):
    """The part of `lingoss.detect.Detection` that is needed here."""

    @property
    def label(self) -> str: ...

    @property
    def shares(self) -> Mapping[str, float]: ...


Detect = Callable[[str], Found]
NO_LANGUAGE = ("mixed", "neutral", "unknown")
SAMPLE = 5_000  # characters: more of a text does not make its main language clearer, and detection takes time


def default_detect() -> Detect:
    """The project's detector over all built-in languages."""
    from lingoss.detect import detect

    return detect


def main_language(text: str, detect: Detect) -> str | None:
    """The language of most of the letters, also of a mixed text; None when there is none to name."""
    found = detect(text[:SAMPLE])
    if found.label not in NO_LANGUAGE:
        return found.label
    known = {code: share for code, share in found.shares.items() if code not in NO_LANGUAGE}
    return max(known, key=lambda code: (known[code], code)) if known else None
