# SPDX-License-Identifier: MIT-0
"""Which languages a text may be in, arranged the way the detector asks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from lingoss import languages
from lingoss.detect.words import Evidence, evidence, function_words, has_list

# English is always weighed: falling back to it is the fault that this detector is there to find.
_ALWAYS = "en"
_KANA = ("Hiragana", "Katakana")


@dataclass(frozen=True, slots=True)
class Candidates:
    """The language asked for, and those that it is weighed against.

    `allowed`: codes that may be named. `listed`: Latin-script ones with a word list, always with English. `unlisted`:
    requested Latin-script ones without a list, which fastText alone must recognise. `by_script`: codes by script,
    "Kana" for both Japanese syllabaries. `function_words`: of the listed ones.
    """

    target: str | None
    allowed: frozenset[str]
    listed: tuple[str, ...]
    unlisted: frozenset[str]
    by_script: dict[str, tuple[str, ...]]
    evidence: Evidence
    function_words: frozenset[str]


def choose(codes: Sequence[str] | None, target: str | None) -> Candidates:
    """The candidates: these codes (all built-in languages by default), the target, and the close relatives of each."""
    return _choose(languages.builtin() if codes is None else tuple(codes), target)


@lru_cache(maxsize=256)
def _choose(codes: tuple[str, ...], target: str | None) -> Candidates:
    requested = [languages.get(code) for code in (*codes, *([target] if target else []))]
    relatives = [languages.get(code) for language in requested for code in language.relatives]
    by_script: dict[str, list[str]] = {}
    for language in (*requested, *relatives):
        for script in {"Kana" if script in _KANA else script for script in language.scripts}:
            known = by_script.setdefault(script, [])
            if language.code not in known:
                known.append(language.code)
    latin = by_script.get("Latin", [])
    listed = sorted({_ALWAYS, *(code for code in latin if has_list(code))})
    return Candidates(
        target=languages.get(target).code if target else None,
        allowed=frozenset(language.code for language in (*requested, *relatives)),
        listed=tuple(listed),
        unlisted=frozenset(language.code for language in requested if language.code in latin) - frozenset(listed),
        by_script={script: tuple(known) for script, known in by_script.items()},
        evidence=evidence(tuple(listed)),
        function_words=function_words(tuple(listed)),
    )
