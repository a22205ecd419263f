# SPDX-License-Identifier: MIT-0
"""Repetition and prompt copying, counted on n-grams of *text*, so that every engine gives the same verdict.

Token n-grams would depend on the tokenizer, and `\\w+` sees a Chinese sentence as one word (minimind PR 832),
so the units here are words, or characters for scripts that write no spaces between words.
"""

import operator
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from lingoss.detect.normalise import clean

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

# Words of the question in another order, or with fillers between them. Honest traces of all our families and cases
# draw at most 0.69 of their words and numbers from the question; from there the share is stretched onto that of
# copied n-grams, so that 0.9 counts as much as 0.8 of those.
_SHUFFLED_LEAST = 8  # words; of fewer all may stand in the question by chance
_SHUFFLED_FAIR, _SHUFFLED_SLOPE = 0.7, 1.5

Units = Sequence[str]


def units(text: str) -> list[str]:
    """Case-folded words of `text`, each character of an unspaced script on its own, punctuation left out.

    As people see the text: a zero-width character inside a word or a styled letter does not make it another word.
    """
    return _UNIT.findall(clean(text).text.casefold())


def _size(found: Units, words: int, characters: int) -> int:
    """n for the n-grams of these units: by characters where at least half of them are single unspaced characters."""
    if 2 * list(map(len, found)).count(1) < len(found):
        return words
    unspaced = sum(1 for unit in found if len(unit) == 1 and unit >= "\u0e00")
    return characters if 2 * unspaced >= len(found) else words


def _grams(found: Units, n: int) -> list[tuple[str, ...]]:
    return list(zip(*(found[i:] for i in range(n)), strict=False))


def repetition(text: str, found: Units | None = None) -> float:
    """Share (0..1) of n-grams that already occurred in `text`; if more, of stuttered words or of character windows.

    `found`: the units of `text`, where they are at hand.
    """
    found = units(text) if found is None else found
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


def _stutter(found: Units) -> float:
    """Share of words that only repeat the word before ("la la suma suma"), which makes every n-gram a new one."""
    if not any(map(operator.eq, found, found[1:])):
        return 0.0
    return sum(1 for before, word in pairwise(found) if word == before and word.isalpha()) / len(found)


def copied(text: str, source: str, found: Units | None = None) -> float:
    """Share (0..1) of the n-grams of `text` that stand in `source` too, forwards or backwards.

    0 for a text shorter than one n-gram. `found`: the units of `text`, where they are at hand.
    """
    found = units(text) if found is None else found
    n = _size(found, COPIED_WORDS, COPIED_CHARACTERS)
    if len(found) < n or sum(map(_words(source).__contains__, found)) < n:
        return 0.0  # most traces in another language than the question
    grams = _grams(found, n)
    known = _known(source, n)
    return sum(1 for gram in grams if gram in known) / len(grams)


def shared(found: Units, other: Units) -> float:
    """Share (0..1) of the n-grams of a text that stand in another one, and 0 where the other is too short for half of it."""
    n = _size(found, COPIED_WORDS, COPIED_CHARACTERS)
    if not n <= len(found) <= 2 * len(other):
        return 0.0
    grams, known = _grams(found, n), set(_grams(other, n))
    return sum(1 for gram in grams if gram in known) / len(grams)


def shuffled(found: Units, source: str) -> float:
    """Whether a text is little but words of `source`, in whatever order: a share to compare with that of `copied`."""
    if len(found) < _SHUFFLED_LEAST or _size(found, 0, 1):
        return 0.0  # single characters of an unspaced script recur in any text about the same things
    share = sum(map(_words(source).__contains__, found)) / len(found)
    return 0.0 if share <= _SHUFFLED_FAIR else min(1.0, 0.5 + _SHUFFLED_SLOPE * (share - _SHUFFLED_FAIR))


@lru_cache(maxsize=1024)
def _words(source: str) -> frozenset[str]:
    return frozenset(units(source))


@lru_cache(maxsize=1024)
def _known(source: str, n: int) -> frozenset[tuple[str, ...]]:
    """The n-grams of a question, forwards and backwards; the samples of one prompt ask for the same ones."""
    grams = _grams(units(source), n)
    return frozenset(grams) | frozenset(gram[::-1] for gram in grams)
