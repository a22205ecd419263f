# SPDX-License-Identifier: MIT-0
"""Is an answer right? Our own locale-aware parser first, math-verify second, and always the rule that decided.

Only the answer is judged, never the reasoning, and never its language, which is scored elsewhere: number words count
in the language that was asked for, or in another when the text is clearly in that.
"""

import functools
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lingoss import languages
from lingoss.grade import choices, closed, expressions, numbers, words
from lingoss.grade.lexicon import Lexicon, lexicon
from lingoss.grade.mention import Mention, number_text
from lingoss.grade.stated import Stated, stated

__all__ = ["Grade", "grade"]

# A longer answer is judged by its end, where results stand; more values than this are a list, whatever they say.
_MAX_LENGTH, _MAX_MENTIONS = 20_000, 300
_ROUNDED = 5  # decimal places from which a gold was rounded, perhaps from something that has no end
# So few words may be a bare number in English, which no frequent word gives away.
_SHORT = 5

_ASKS = re.compile("[?؟]")
_BOX = re.compile(r"\\boxed ?\{([^{}]*)\}")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)  # no reader sees what stands there
_GOLD_NUMBER = re.compile(r"[-+]?[0-9]{1,30}(?:,[0-9]{3})*(?:\.[0-9]{1,30})?(?:/[0-9]{1,30})?%?")


@dataclass(frozen=True, slots=True)
class Grade:
    """`grade`: "correct", "incorrect", "unparsed" (no value is stated), or None without a gold answer.

    `rule` names what decided, `value` is what was read, as plain text.
    """

    grade: str | None
    rule: str
    value: str | None


@dataclass(frozen=True, slots=True)
class _Gold:
    """A number that is right, and how many decimal places it was given with."""

    value: Fraction
    places: int


def grade(answer: str, gold: str | None, language: str, question: str = "") -> Grade:
    """Grade an answer against its gold: a number in ASCII with a decimal point, a formula, or a word.

    `language` is the language that the answer was asked for in; `question`, in any language, tells which numbers are
    given and not results. Never raises on any text.
    """
    if gold is None or not gold.strip():
        return Grade(None, "no-gold", None)
    gold = gold.strip()
    answer = _COMMENT.sub(" ", answer[-_MAX_LENGTH:])
    if not any(char.isalnum() for char in answer):
        return Grade("unparsed", "empty", None)
    codes = _codes(language)
    if boxed := expressions.boxed(answer) if "\\boxed" in answer else []:
        if len(set(boxed)) > 1:
            return Grade("incorrect", "list", boxed[-1])
        found = _grade(boxed[-1], gold, codes, question)
        if found.grade == "correct" and (other := _beside_box(answer, gold, codes, question)):
            return other
        if found.grade != "unparsed":
            return Grade(found.grade, "boxed" if found.grade == "correct" else found.rule, found.value)
    return _grade(answer, gold, codes, question)


def _beside_box(answer: str, gold: str, codes: tuple[str, ...], question: str) -> Grade | None:
    """The fault of an answer that says something else around its box: "The answer is 45. \\boxed{42}"."""
    opened = _BOX.sub(r" \1 ", answer)
    if _gold_number(gold) and not any(char.isdigit() for char in _BOX.sub(" ", answer)):
        return None
    found = _grade(opened, gold, codes, question)
    stated = found.grade == "incorrect" and found.rule in ("cue", "list", "hedge", "contradiction")
    return found if stated else None


def _codes(language: str) -> tuple[str, ...]:
    """The answer's language and English: numbers and cues are looked for in both."""
    try:
        code = languages.find(language).code
    except languages.UnknownLanguage:
        code = "en"
    return (code,) if code == "en" else (code, "en")


def _grade(answer: str, gold: str, codes: tuple[str, ...], question: str) -> Grade:
    number = _gold_number(gold)
    if number is not None:
        return _grade_number(answer, number, gold, codes, question)
    if expressions.is_expression(gold):
        return _grade_expression(answer, gold)
    text = numbers.normalise(answer)
    wanted = closed.meaning(gold)
    if wanted is None:
        decided = choices.choice(text, gold, numbers.normalise(question), codes)
        return _verdict(decided, gold, str)
    if wanted.kind == "truth":
        decided = closed.truth(text, codes)
    else:
        decided = closed.calendar(text, wanted, numbers.normalise(question), codes)
    return _verdict(decided, wanted.index, functools.partial(closed.label, wanted.kind))


def _verdict(decided: Stated, wanted: Hashable, label: Callable[[Any], str]) -> Grade:
    if decided.mention is None:
        return Grade("incorrect" if decided.spoiled else "unparsed", decided.rule, None)
    right = decided.mention.key == wanted and not decided.spoiled
    return Grade("correct" if right else "incorrect", decided.rule, label(decided.mention.key))


@functools.lru_cache(maxsize=4096)
def _gold_number(gold: str) -> _Gold | None:
    if not _GOLD_NUMBER.fullmatch(gold):
        return None
    plain = gold.replace(",", "").rstrip("%")
    whole, _, below = plain.partition("/")
    if below and not int(below):
        return None
    value = Fraction(whole) / (int(below) if below else 1)
    return _Gold(value, len(whole.partition(".")[2]) if not below else 0)


def _grade_number(answer: str, gold: _Gold, written: str, codes: tuple[str, ...], question: str) -> Grade:
    if expressions.is_expression(answer):
        # A formula with roots or powers has no number to read, or the wrong one; what simple LaTeX there is follows.
        formula = expressions.last_formula(answer)
        if expressions.is_expression(formula) and not _is_plain(formula):
            if gold.places < _ROUNDED and expressions.is_undone(formula):
                return Grade("unparsed", "unevaluated", None)
            same = expressions.equal(formula, written)
            if same is not None:
                return Grade("correct" if same else "incorrect", "math-verify", formula)
    text = numbers.normalise(answer)
    mentions = _mentions(text, lexicon(codes[0]))
    if len(mentions) > _MAX_MENTIONS and len({mention.key for mention in mentions}) > 1:
        return Grade("incorrect", "list", None)
    # A single plain number needs no look at the question, which is the dear part.
    alone = len({mention.key for mention in mentions}) <= 1 and not _ASKS.search(text)
    givens, percent = (frozenset(), False) if alone and not any(m.percent for m in mentions) else _givens(question)
    spoken = codes if alone else dict.fromkeys((*codes, words.language_of(text, codes[0])))
    decided = stated(text, mentions[:_MAX_MENTIONS], givens, [lexicon(code) for code in spoken])
    mention = decided.mention
    if mention is None:
        return Grade("incorrect" if decided.spoiled else "unparsed", decided.rule, None)
    reading = _reading(mention, gold, percent, bool(question))
    value = number_text(reading if reading is not None else mention.values[0]) if mention.values else None
    if decided.spoiled or reading is None:
        return Grade("incorrect", decided.rule, value)
    ambiguous = not mention.percent and reading != mention.values[0]
    return Grade("correct", "ambiguous" if ambiguous else decided.rule, value)


def _is_plain(formula: str) -> bool:
    """True when normalising leaves a single number with its unit ("84 m²", "\\frac{3}{4}", "37^\\circ")."""
    text = numbers.normalise(formula)
    found = list(numbers.scan(text, lexicon("en")))
    return len(found) == 1 and bool(found[0].values) and "√" not in text and "\\" not in text and "^" not in text


def _grade_expression(answer: str, gold: str) -> Grade:
    formula = expressions.last_formula(answer)
    same = expressions.equal(formula, gold)
    if same is None:
        return Grade("unparsed", "math-verify", None)
    return Grade("correct" if same else "incorrect", "math-verify", formula)


def _mentions(text: str, lex: Lexicon) -> list[Mention]:
    """Numbers in digits and words, in order.

    Words are those of the answer's language, or of another when the text is clearly in that: a right answer in the
    wrong language is still right.
    """
    digits = list(numbers.scan(text, lex))
    spelled = words.mentions(text, lex)
    if (spelled or not digits) and (other := words.language_of(text, lex.code)) != lex.code:
        spelled = words.mentions(text, lexicon(other))
    if not (spelled or digits) and len(text.split()) <= _SHORT:
        spelled = words.mentions(text, lexicon("en"))
    if not spelled:
        return digits
    spelled = [word for word in spelled if not any(d.start < word.end and word.start < d.end for d in digits)]
    return sorted([*digits, *spelled], key=lambda mention: mention.start)


@functools.lru_cache(maxsize=4096)
def _givens(question: str) -> tuple[frozenset[Hashable], bool]:
    """The numbers that a question names, in digits and words, and whether it speaks of percent."""
    text = numbers.normalise(question[:_MAX_LENGTH])
    lex = lexicon(words.language_of(text))
    values: set[Hashable] = set(words.values_in(text))
    for mention in numbers.scan(text, lex):
        values.update(mention.values)
    percent = "%" in text or any(lexicon(code).speaks_of_percent(text) for code in languages.builtin())
    return frozenset(values), percent


def _reading(mention: Mention, gold: _Gold, percent_asked: bool, asked: bool) -> Fraction | None:
    """The reading of a mention that equals the gold; None when no sensible one does."""
    for value in mention.values:
        if not isinstance(value, Fraction):
            continue
        small = 0 < abs(gold.value) < 1
        # 75 % is 0.75, but 3700 % is no answer to a question for 37 %, and 0.75 % none to a question for a share.
        as_written = not (mention.percent and asked and small and not percent_asked)
        if as_written and _same(value, gold):
            return value
        if mention.percent and (small or not percent_asked) and _same(value / 100, gold):
            return value / 100
    return None


def _same(value: Fraction, gold: _Gold) -> bool:
    """Equal; or equal when rounded, where the gold was rounded (five places or more) or a fraction has no end."""
    if value == gold.value:
        return True
    if gold.places >= _ROUNDED:
        places = next((n for n in range(2, gold.places) if (value * 10**n).denominator == 1), gold.places)
        return abs(value - gold.value) <= Fraction(1, 2 * 10**places)
    endless = number_text(value).count("/") == 1
    return endless and gold.places >= 2 and round(value, gold.places) == gold.value
