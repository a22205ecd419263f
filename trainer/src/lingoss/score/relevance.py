# SPDX-License-Identifier: MIT-0
"""Does a trace speak about the question? A fluent text about something else is in the right language, too.

Signs of it that need no model and no common language: numbers of the question, in digits or words, or what a first
step makes of them; given names; word beginnings that question and trace share (most of all when both are in one
language), and those that trace and answer share. Measured on honest traces, see docs/reward.md.
"""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache

from lingoss import languages
from lingoss.detect.words import function_words, has_list, names
from lingoss.grade import numbers, numerals, words
from lingoss.grade.lexicon import lexicon
from lingoss.score import sums
from lingoss.score.ngrams import Units, shared, units

_ENOUGH = 1.5  # signs, where the question has two numbers or more; one where it has only one
_STEM = 0.5  # a shared word may be chance
_CONTRADICTED = 0.5
_HALF, _MOST = 0.5, 0.8  # share of a trace that stands in the answer; 0.15 is the most in honest traces of ours
_ECHOED = 0.5
_UNGRADED = 0.5
_SAID = 0.5  # naming the result, or words of the answer, is no reasoning: the answer again is no trace
_MOST_NUMBERS = 6  # of a question, to combine; a longer table gives signs enough by itself
_DIGITS = re.compile("\\d+(?:[.,٫'’ \u00a0\u202f]\\d+)*")
_PLAIN = re.compile("[-+]?[0-9]{1,30}(?:\\.[0-9]{1,30})?")
_UNSPACED_CODES = ("zh", "ja", "ko")  # their numerals are no words between spaces


@dataclass(frozen=True, slots=True)
class Facts:
    """What a question gives to recognise it by. Numbers are rounded floats; 0 and 1 stand in any text."""

    given: frozenset[float]
    derived: frozenset[float]
    names: frozenset[str]
    stems: frozenset[str]


def relevance(
    text: str, found: Units, language: str, question: str, answer: Units, gold: str | None, stated: str | None
) -> float:
    """Share (0..1) of the signs that an honest trace shows at least. 1 where the question offers none to look for.

    `text` and its units `found` are the trace in `language`, `answer` the units of the answer, `stated` the value that
    the answer was read to state: half of the credit goes when the trace computes another one or a false sum, or is only
    the answer once more. Half is the least without a known answer: a number in an open question ("five tips") need not
    come up in the reasoning. Pure, linear.
    """
    values = _in_digits(text)
    about = _about(values, text, found, language, question, answer, gold) * (1.0 - _ECHOED * _echo(found, answer))
    if gold is None:
        return max(about, _UNGRADED)
    right = stated is not None and _number(stated) == _number(gold)
    return about * _CONTRADICTED if about and _contradicts(values, text, found, language, right, stated) else about


def _echo(found: Units, answer: Units) -> float:
    """How much of a trace is the answer once more: 0 for up to half of it, 1 from most of it on."""
    return min(1.0, max(0.0, (shared(found, answer) - _HALF) / (_MOST - _HALF)))


def _contradicts(values: set[float], text: str, found: Units, language: str, right: bool, stated: str | None) -> bool:
    """Whether the sums of a trace do not lead to the answer: the last comes to something else, which stands nowhere in
    the trace; or it is not even true, and the answer is right all the same."""
    if "=" not in text and "≈" not in text:
        return False
    if right and sums.is_false(text):
        return True
    result = _number(stated)
    if not result or result in values or not sums.contradicts(text, result):
        return False
    return result not in _in_words(text, found, language)


def _about(
    values: set[float], text: str, found: Units, language: str, question: str, answer: Units, gold: str | None
) -> float:
    facts = _facts(question)
    enough = min(_ENOUGH, float(len(facts.given))) or float(bool(facts.names))
    if not enough:
        return 1.0
    result = _number(gold)
    signs: float = _seen(facts, values, result) + len(facts.names.intersection(found))
    said = _named(facts, values, result)
    if signs + said < enough:
        stems = _stems(found)
        signs += _STEM * len(stems & facts.stems)
        said = said or (_SAID if (stems & _stems(answer)) - facts.stems else 0.0)
    if signs + said < enough and (spelled := _in_words(text, found, language)):
        signs += _seen(facts, values | spelled, result) - _seen(facts, values, result)
        said = said or _named(facts, spelled, result)
    return min(1.0, (signs + said) / enough)


def _seen(facts: Facts, values: set[float], result: float | None) -> int:
    """How many numbers of the question, or of a first step from them, are among these."""
    return len(values & facts.given) + len((values & facts.derived) - facts.given - {result})


def _named(facts: Facts, values: set[float], result: float | None) -> float:
    return _SAID if result in values and result not in facts.given else 0.0


@lru_cache(maxsize=4096)
def _facts(question: str) -> Facts:
    """All samples of a prompt share this, so it may cost more than they do."""
    found = units(question)
    code = words.language_of(question)
    plain = numbers.normalise(question)
    mentions = [*numbers.scan(plain, lexicon(code)), *(m for m in words.mentions(plain, lexicon(code)) if not m.weak)]
    values = {value for mention in mentions for value in mention.values if isinstance(value, Fraction)}
    given = {_rounded(value) for value in values} | _in_words(question, found, code)
    given = {abs(value) for value in given} - {0.0, 1.0}  # "4 degrees below zero" is spoken of as four
    frequent = function_words((code,)) if has_list(code) else frozenset()
    return Facts(
        frozenset(given),
        _derived(given),
        frozenset(unit for unit in found if unit in names()),
        _stems(unit for unit in found if unit not in frequent),
    )


def _derived(given: set[float]) -> frozenset[float]:
    """What one step makes of the numbers: sums, differences, products, quotients, parts of a hundred, doubles, halves."""
    some = sorted(given)[:_MOST_NUMBERS]
    made: set[float] = set()
    for a in some:
        made |= {2 * a, a / 2, a / 10, 100 - a, float(int(a))}
    for a, b in itertools.permutations(some, 2):
        made |= {a + b, a - b, a * b, a * b / 100}
        if b:
            made.add(a / b)
    return frozenset(round(value, 6) for value in made) - {0.0, 1.0, 2.0}


def _rounded(value: Fraction | int | float) -> float:
    try:
        return round(float(value), 6)
    except OverflowError:
        return 0.0


def _number(gold: str | None) -> float | None:
    plain = (gold or "").strip().replace(",", "")
    return round(abs(float(plain)), 6) if _PLAIN.fullmatch(plain) else None


def _in_digits(text: str) -> set[float]:
    return {value for token in set(_DIGITS.findall(text)) for value in sums.readings(token)}


def _in_words(text: str, found: Units, language: str) -> set[float]:
    """Numbers in words of one language, those of several words put together ("trente-deux", "two hundred")."""
    try:
        code = languages.get(language).code
    except languages.UnknownLanguage:
        return set()
    if code in _UNSPACED_CODES:
        return {_rounded(value) for value in numerals.values_seen(text, set(found), lexicon(code))}
    table = number_words(code)
    different = set(found)
    spelled = {unit: table[unit] for unit in different & table.keys()}
    for unit in different:
        if len(unit) > 6 and (joined := _joined(unit, code)):
            spelled[unit] = joined
    values: set[float] = set()
    total = 0.0
    for unit in found if spelled else ():
        value = spelled.get(unit, 0.0)
        if total and value in (100.0, 1000.0):
            total *= value
        elif value and total >= 100.0 and value < 100.0:
            values |= {total, value}  # perhaps "100 = 25", whose sign is no unit
            total += value
        elif value and total >= 10.0 and total % 10 == 0 and value < 20.0:
            total += value
        else:
            values.add(total)
            total = value
    return values | {total}


@cache
def number_words(code: str) -> dict[str, float]:
    """Single words for numbers above one, case-folded, and their values; empty for a language without a file."""
    lex = lexicon(code)
    table = {word: float(value) for word, value in lex.numbers.items() if value > 1 and word not in lex.weak}
    # Arabic glues "and" and "with" to a numeral.
    return {
        **table,
        **{glued + word: value for word, value in table.items() for glued in ("وب" if code == "ar" else "")},
    }


@lru_cache(maxsize=32768)
def _joined(word: str, code: str) -> float | None:
    """A number of several words in one ("zweiunddreißig")."""
    from lingoss.detect.words import is_number

    if code not in words.TEXT2NUM or not is_number(word.replace("ß", "ss"), code):
        return None
    found = [m for m in words.mentions(word, lexicon(code)) if m.start == 0 and m.end == len(word)]
    return _rounded(found[0].values[0]) if found and isinstance(found[0].values[0], Fraction) else None


def _stems(found: Iterable[str]) -> frozenset[str]:
    """Beginnings of the longer words, which endings do not change much; pairs of Chinese characters."""
    found = list(found)
    stems = {unit[:5] for unit in found if len(unit) >= 5}
    if found and max(found) >= "\u0590":
        stems = {unit for unit in stems if unit < "\u0590"}
        stems |= {unit[:2] if unit >= "\uac00" else unit[:4] for unit in found if unit >= "\u0590" and len(unit) > 1}
        single = [unit if len(unit) == 1 and unit >= "\u3400" else "" for unit in found]
        stems |= {before + unit for before, unit in itertools.pairwise(single) if before and unit}
    return frozenset(stems)
