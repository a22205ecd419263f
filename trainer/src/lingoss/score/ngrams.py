# SPDX-License-Identifier: MIT-0
"""Repetition and prompt copying, counted on n-grams of *text*, so that every engine gives the same verdict.

Token n-grams would depend on the tokenizer, and `\\w+` sees a Chinese sentence as one word (minimind PR 832),
so the units here are words, or characters for scripts that write no spaces between words.
"""

import re
from itertools import pairwise

# Scripts without spaces between words: kana, Han, Thai, Lao, Burmese, Khmer.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
# Not `\w+`: in Python that splits Devanagari words at every vowel sign.
_BREAK = "\\s!-/:-@\\[-`{-\u00bf\u2000-\u206f\u3000-\u303f\uff01-\uff0f\uff1a-\uff20"
_UNIT = re.compile(f"[{_UNSPACED}]|[^{_BREAK}{_UNSPACED}]+")

WORDS = 4  # words that must recur for a repetition; "the number of" recurs in honest text, four words seldom do
CHARACTERS = 8  # the same for unspaced scripts, where two or three characters make a word
STUTTER = 12  # words; "no no" is a short answer, not a stutter
COPIED_WORDS = 5
COPIED_CHARACTERS = 10
WINDOW = 24  # characters; for a flood inside one endless "word", which has no word n-grams at all
_ENDLESS = re.compile(f"\\S{{{2 * WINDOW},}}")


def units(text: str) -> list[str]:
    """Case-folded words of `text`, each character of an unspaced script on its own, punctuation left out."""
    return _UNIT.findall(text.casefold())


def _size(found: list[str], words: int, characters: int) -> int:
    """n for the n-grams of these units: by characters where at least half of them are single unspaced characters."""
    unspaced = sum(1 for unit in found if len(unit) == 1 and unit >= "\u0e00")
    return characters if 2 * unspaced >= len(found) else words


def _grams(found: list[str], n: int) -> list[tuple[str, ...]]:
    return list(zip(*(found[i:] for i in range(n)), strict=False))


def repetition(text: str) -> float:
    """Share (0..1) of n-grams that already occurred in `text`; if more, of stuttered words or of character windows."""
    found = units(text)
    grams = _grams(found, _size(found, WORDS, CHARACTERS))
    by_unit = 1.0 - len(set(grams)) / len(grams) if grams else 0.0
    if len(found) >= STUTTER and len(grams) == len(found) - WORDS + 1:
        by_unit = max(by_unit, _stutter(found))
    flood = "".join(_ENDLESS.findall(text))
    windows = len(flood) - WINDOW + 1
    if windows <= 0:
        return by_unit
    by_character = 1.0 - len({flood[i : i + WINDOW] for i in range(windows)}) / windows
    return max(by_unit, by_character)


def _stutter(found: list[str]) -> float:
    """Share of words that only repeat the word before ("la la suma suma"), which makes every n-gram a new one."""
    return sum(1 for before, word in pairwise(found) if word == before and word.isalpha()) / len(found)


def copied(text: str, source: str) -> float:
    """Share (0..1) of the n-grams of `text` that stand in `source` too; 0 for a text shorter than one n-gram."""
    found = units(text)
    n = _size(found, COPIED_WORDS, COPIED_CHARACTERS)
    grams = _grams(found, n)
    if not grams:
        return 0.0
    known = set(_grams(units(source), n))
    return sum(1 for gram in grams if gram in known) / len(grams)
