# SPDX-License-Identifier: MIT-0
"""Word evidence: how frequent a word is in each of the candidate languages (wordfreq's lists and our own words)."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from lingoss import languages
from lingoss.detect.script import LATIN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Base-10 logarithms of word frequencies; below one in a million the small lists end.
MISSING = -6.5
# A word with a capital that no language lists is likely a name.
_NAME = -5.5
# Above one in a thousand every word counts the same: otherwise two function words would outvote a sentence.
CEILING = -3.0
# A word of our own files is a good word of that language however rare the corpora find it.
_OURS = -4.0
# A language explains a text badly when its words are rarer than this on average: measured, sentences of the right
# language lie between -2.5 and -4.3, romanised Hindi, Arabic and Japanese and shuffled letters below -4.9.
UNKNOWN = -5.0
# For a token that cannot be a word of any language (spaced-out or reversed letters, floods of one letter).
NO_WORD = "\0"
_NEVER = -30.0

# Function words: what a sentence cannot do without, and what is not taken over from another language with its terms.
_FUNCTION = -2.6

_KEPT_WORDS = 100_000
WORDFREQ_CODES = {"no": "nb", "hr": "sh", "bs": "sh", "tl": "fil"}
_WORD = re.compile(f"[{LATIN}]+(?:['’][{LATIN}]+)*")
_ANSWERS = ("yes", "no", "true", "false", "weekdays", "months", "numbers", "units")
_LISTS = (*_ANSWERS, "answer_cues", "hedges", "negations")
_ABBREVIATION = 2

# Number words are joined from parts of at least so many letters.
_PART, _SHORTEST_JOINED, _LONGEST_JOINED = 3, 7, 60


@cache
def names() -> frozenset[str]:
    """Given names of all our files: they are valid in every language and speak for none."""
    found = {name.lower() for code in languages.builtin() for name in languages.get(code).words.get("names", ())}
    return frozenset(found)


@cache
def _listed() -> frozenset[str]:
    import wordfreq

    return frozenset(wordfreq.available_languages("small"))


def has_list(code: str) -> bool:
    """Whether words alone can speak for this language."""
    return languages.get(code).scripts == ("Latin",) and WORDFREQ_CODES.get(code, code) in _listed()


@cache
def _frequencies(code: str) -> dict[str, float]:
    """Word -> log10 of its frequency, for one Latin-script language."""
    import wordfreq

    # The small list (30,000 words, 6 ms) separates the measured short answers exactly as the large one does.
    buckets = wordfreq.get_frequency_list(WORDFREQ_CODES.get(code, code), "small")
    table = {word: -at / 100 for at, bucket in enumerate(buckets) for word in bucket if not word[0].isdigit()}
    for word in _own_words(languages.get(code).words):
        table[word] = max(table.get(word, MISSING), _OURS)
    return table


@cache
def answer_words(code: str) -> frozenset[str]:
    """What may be a whole answer in this language: yes, Monday, May, eleven, euros; no abbreviations."""
    return frozenset(word for word in _own_words(languages.get(code).words, _ANSWERS) if len(word) > _ABBREVIATION)


def is_answer(words: Iterable[str], code: str) -> bool:
    """Whether all of these are answers by themselves in this language, however common they are in another one."""
    return all(fold(word) in answer_words(code) or is_number(fold(word), code) for word in words)


def is_number(word: str, code: str) -> bool:
    """Whether a word is joined from number words of this language ("neunundzwanzig"): no list holds them all."""
    return _SHORTEST_JOINED <= len(word) <= _LONGEST_JOINED and bool(_joined(code).fullmatch(_plain(word)))


@cache
def _joined(code: str) -> re.Pattern[str]:
    parts = set()
    for word, value in languages.get(code).words.get("numbers", {}).items():
        plain = _plain(fold(word))
        if value >= 1 and len(plain) >= _PART:
            parts.add(plain)
            if 20 <= value < 100 and plain[-1] in "ai":
                parts.add(plain[:-1])  # "trent-otto"
    choice = "|".join(map(re.escape, sorted(parts))) or "(?!)"
    return re.compile(f"(?:(?:{choice})(?:und|en)?){{1,6}}(?:{choice})")


def fold(word: str) -> str:
    """As the lists write a word: small letters, and "ss" for "ß"."""
    return word.lower().replace("ß", "ss")


def _plain(word: str) -> str:
    """Without accents: "drieën" and "trentatré" have one only where words are joined."""
    return "".join(char for char in unicodedata.normalize("NFD", word) if not unicodedata.combining(char))


def _own_words(words: Mapping[str, Any], lists: Sequence[str] = _LISTS) -> Iterator[str]:
    for key in lists:
        for phrase in _flat(words.get(key, ())):
            yield from (match.group() for match in _WORD.finditer(fold(phrase)))


def _flat(value: Iterable[Any]) -> Iterator[str]:
    for item in value:
        if isinstance(item, str):
            yield item
        else:
            yield from _flat(item)


@cache
def function_words(codes: tuple[str, ...]) -> frozenset[str]:
    """The most frequent words of these languages."""
    return frozenset(
        word for code in codes for word, log in _frequencies(code).items() if log >= _FUNCTION and word.isalpha()
    )


class Evidence:
    """Rows of log10 frequencies, one column per language and a last one for "no language that we know".

    A row is looked up once and then kept; the table has a fixed bound. Safe to share between threads.
    """

    def __init__(self, codes: Sequence[str]) -> None:
        import numpy as np

        self.codes = tuple(codes)
        self._tables = [_frequencies(code) for code in self.codes]
        self._index: dict[str, int] = {}
        self._rows = np.empty((1024, len(self.codes) + 1), dtype=np.float32)
        self._lock = Lock()

    def rows(self, words: Sequence[str]) -> "NDArray[np.float32]":
        """One row per word: shape (words, languages + 1), values of MISSING and more."""
        with self._lock:
            index = self._index
            if len(index) + len(words) > _KEPT_WORDS:
                index.clear()
            at = [index[word] if word in index else self._add(word) for word in words]
            return self._rows[at]

    def knows(self, word: str) -> bool:
        """Whether any of the languages lists the word, or it is a given name."""
        plain = fold(word)
        if plain in names() or any(plain in table for table in self._tables):
            return True
        return any(is_number(plain, code) for code in self.codes)

    def _add(self, word: str) -> int:
        at = len(self._index)
        if at == len(self._rows):
            import numpy as np

            self._rows = np.concatenate((self._rows, self._rows))  # room for as many again
        row = self._rows[at]
        plain = fold(word)
        if word == NO_WORD:
            row[:-1] = _NEVER
        elif plain in names():
            row[:-1] = UNKNOWN
        else:
            row[:-1] = [table.get(plain, MISSING) for table in self._tables]
            if row[:-1].max() < _OURS:
                for column, code in enumerate(self.codes):
                    if is_number(plain, code):
                        row[column] = _OURS
            if word != word.lower() and not self.knows(plain):
                row[:-1] = _NAME
        row[-1] = UNKNOWN
        self._index[word] = at
        return at


@cache
def evidence(codes: tuple[str, ...]) -> Evidence:
    """The one table for this set of languages."""
    return Evidence(codes)
