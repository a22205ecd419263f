# SPDX-License-Identifier: MIT-0
"""Numbers written in words: text2num for the languages that it knows, the language's own word list for the rest.

Chinese, Japanese and Korean are in `numerals`. A number that is more often an article or part of another word is weak.
"""

import functools
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from lingoss.grade import numerals
from lingoss.grade.lexicon import WORD, Lexicon, lexicon
from lingoss.grade.mention import Mention
from lingoss.grade.numbers import finish

TEXT2NUM = ("en", "fr", "de", "es", "it", "pt", "nl")

_SCRIPTS = (
    ("ko", re.compile("[가-힣]")),
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
)

# text2num is quadratic in the length of a run of number words, so it sees a long text in pieces.
_PIECE = 300

_WORDS = re.compile(rf"[{WORD}]+")
_TOKEN = re.compile(rf"[{WORD}]+(?:['-][{WORD}]+)*|[^\w\s]|\s+")


def mentions(text: str, lex: Lexicon) -> list[Mention]:
    """All numbers in words of a normalised text, in order."""
    if not lex.numbers:
        return []
    if lex.code in TEXT2NUM:
        return _latin(text, lex)
    if lex.code in ("zh", "ja"):
        return list(numerals.chinese(text, lex))
    return list(numerals.korean(text, lex) if lex.code == "ko" else _spaced(text, lex))


class _Token:
    """What text2num asks of a token."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def text(self) -> str:
        return self._text

    def nt_separated(self, previous: Any) -> bool:
        return False

    def not_a_number_part(self) -> bool:
        return False


def _latin(text: str, lex: Lexicon) -> list[Mention]:
    from text_to_num import alpha2digit, find_numbers

    if len(text) < 2000 and alpha2digit(text, lex.code, 0.0) == text:
        return _fractions(text, lex)
    found: list[Mention] = []
    tokens = list(_TOKEN.finditer(text))
    for first in range(0, len(tokens), _PIECE):
        piece = tokens[first : first + _PIECE]
        for number in find_numbers([_Token(match.group().lower()) for match in piece], lex.code, 0.0):
            if not math.isfinite(number.value):
                continue
            start, end = piece[number.start].start(), piece[number.end - 1].end()
            written = text[start:end].casefold()
            mention = Mention(start, end, (Fraction(number.value).limit_denominator(10**6),), word=True)
            mention.kind = "ordinal" if number.is_ordinal else "number"
            mention.weak = written in lex.weak
            found.append(finish(text, _fraction_after(text, mention, lex), lex))
    return found or _fractions(text, lex)


def _fraction_after(text: str, mention: Mention, lex: Lexicon) -> Mention:
    """ "three and a half", "three hours and a half", "one half", "three quarters"."""
    if (half := lex.half.match(text, mention.end)) and mention.values:
        mention.values = tuple(value + Fraction(1, 2) for value in mention.values if isinstance(value, Fraction))
        mention.end, mention.weak = half.end(), False
    elif mention.values == (1,) and (part := lex.parts.match(text, mention.end + 1)):
        mention.values = (lex.numbers[part.group().casefold()],)
        mention.end, mention.weak = part.end(), False
    elif quarter := lex.quarters.match(text, mention.end):
        mention.values = tuple(value / 4 for value in mention.values if isinstance(value, Fraction))
        mention.end, mention.weak = quarter.end(), False
    return mention


def _fractions(text: str, lex: Lexicon) -> list[Mention]:
    """ "half", "la moitié": only where no other number word stands, and never before a real number."""
    return [
        Mention(match.start(), match.end(), (lex.numbers[match.group().casefold()],), word=True, weak=True)
        for match in lex.parts.finditer(text)
        if match.group().casefold() in lex.numbers
    ]


def _spaced(text: str, lex: Lexicon) -> Iterator[Mention]:
    """Languages with spaces between words and their own list: Hindi, Arabic, and any that is added."""
    group: list[tuple[int, int, Fraction, bool]] = []
    end_of_last = 0
    tokens = list(re.finditer(rf"[{WORD}]+", text))
    index = 0
    while index < len(tokens):
        value, used, joined = _spaced_value(tokens, index, lex)
        if value is None:
            yield from _grouped(text, group, lex)
            group = []
            index += 1
            continue
        start, end = tokens[index].start(), tokens[index + used - 1].end()
        if group and not (text[end_of_last:start].isspace() and _continues([g[2] for g in group], value, joined)):
            yield from _grouped(text, group, lex)
            group = []
        group.append((start, end, value, joined))
        end_of_last = end
        index += used
    yield from _grouped(text, group, lex)


def _spaced_value(tokens: list[re.Match[str]], index: int, lex: Lexicon) -> tuple[Fraction | None, int, bool]:
    """Value of the number word at `index`, how many tokens it takes, and whether an Arabic "and" is glued to it."""
    word = tokens[index].group().casefold()
    if index + 1 < len(tokens):
        pair = f"{word} {tokens[index + 1].group().casefold()}"
        for candidate in (pair, pair[1:] if pair[0] == "و" else ""):
            if candidate in lex.numbers:
                return lex.numbers[candidate], 2, candidate != pair
    if word in lex.numbers:
        return lex.numbers[word], 1, False
    if lex.code == "ar" and len(word) > 3 and word[0] in "وبلفك" and word[1:] in lex.numbers:
        return lex.numbers[word[1:]], 1, word[0] == "و"
    return None, 1, False


def _continues(values: list[Fraction], value: Fraction, joined: bool) -> bool:
    last = values[-1]
    if last < 1 or value < 1:
        return False
    if value >= 100 and value > last:
        return True
    if last >= 100:
        return value < last
    return joined and last < 10 and value >= 20


def _grouped(text: str, group: list[tuple[int, int, Fraction, bool]], lex: Lexicon) -> Iterator[Mention]:
    if not group:
        return
    total = current = Fraction(0)
    for _, _, value, _ in group:
        if value >= 1000:
            total += (current or 1) * value
            current = Fraction(0)
        elif value == 100:
            current = (current or Fraction(1)) * 100 if current < 100 else current + 100
        else:
            current += value
    value = total + current
    start, end = group[0][0], group[-1][1]
    weak = len(group) == 1 and (text[start:end].casefold() in lex.weak or value < 1)
    yield finish(text, Mention(start, end, (value,), word=True, weak=weak), lex)


@functools.cache
def _common_words() -> dict[str, list[str]]:
    """The languages in which a word is frequent."""
    index: dict[str, list[str]] = {}
    for code in TEXT2NUM:
        for word in lexicon(code).common:
            index.setdefault(word, []).append(code)
    return index


def language_of(text: str, asked: str = "en") -> str:
    """The language whose number words may stand in `text`: by script, in Latin script by its frequent words.

    `asked` is the language that it should be in: another must have two frequent words more.
    """
    for code, script in _SCRIPTS:
        if script.search(text):
            return code
    counts = dict.fromkeys(TEXT2NUM, 0)
    index = _common_words()
    for word in _WORDS.findall(text.casefold()):
        for code in index.get(word, ()):
            counts[code] += 1
    best = max(counts, key=counts.__getitem__)
    return best if asked not in counts or counts[best] >= counts[asked] + 2 else asked


def values_in(text: str) -> set[Fraction]:
    """All values of number words in a text of unknown language."""
    found = mentions(text, lexicon(language_of(text)))
    return {value for mention in found if not mention.weak for value in mention.values if isinstance(value, Fraction)}
