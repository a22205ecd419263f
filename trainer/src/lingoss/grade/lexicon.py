# SPDX-License-Identifier: MIT-0
"""The words of one language that grading looks for, compiled once: from `lingoss.languages` and `lexicon.yaml`."""

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from typing import Any

from lingoss import languages

# Python's \w leaves out the vowel signs and marks of Devanagari and Arabic, which are part of a word all the same.
WORD = r"\w\u0300-\u036f\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963"
_CJK = ("Han", "Hiragana", "Katakana", "Hangul")
_SPACE = "[ \u00a0]"
_COPULA = re.compile(r" (?:is|est|ist|lautet|es|è|é|هي|هو|है)\Z|[是为為は은는]\Z")
_NEVER = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """All patterns ignore case and expect normalised text; what a language has no words for matches nothing."""

    code: str
    decimal: str
    groups: frozenset[str]
    is_cjk: bool
    numbers: dict[str, Fraction]
    weak: frozenset[str]
    scales: dict[str, Fraction]
    cues: re.Pattern[str]
    hedges: re.Pattern[str]
    because: re.Pattern[str]
    negated_before: re.Pattern[str]
    negated_after: re.Pattern[str]
    than_before: re.Pattern[str]
    than_after: re.Pattern[str]
    conjunction: re.Pattern[str]
    either: re.Pattern[str]
    half: re.Pattern[str]
    quarters: re.Pattern[str]
    parts: re.Pattern[str]
    articles: re.Pattern[str]
    units: tuple[str, ...]
    common: frozenset[str]
    _minus: re.Pattern[str]
    _below_zero: re.Pattern[str]
    _percent: re.Pattern[str]
    _scale: re.Pattern[str]
    words: Mapping[str, Any]

    def scale_at(self, text: str, at: int) -> tuple[Fraction | None, int]:
        """The factor of a scale word ("million", "万") that follows a number, and where it ends."""
        match = self._scale.match(text, at)
        if not match:
            return None, at
        return self.scales[match.group(1).casefold()], match.end()

    def percent_at(self, text: str, at: int) -> re.Match[str] | None:
        return self._percent.match(text, at)

    def speaks_of_percent(self, text: str) -> bool:
        return self._percent.search(text) is not None

    def minus_before(self, text: str, start: int) -> bool:
        """True for "minus 4"; not for the subtraction "9 minus 4"."""
        match = self._minus.search(text, max(0, start - 24), start)
        return match is not None and not text[max(0, match.start() - 8) : match.start()].rstrip()[-1:].isdigit()

    def below_zero_after(self, text: str, end: int) -> int:
        """End of a phrase like "degrees below zero" that follows a number; 0 when there is none."""
        match = self._below_zero.match(text, end)
        return match.end() if match else 0


@functools.cache
def lexicon(code: str) -> Lexicon:
    """The lexicon of a language.

    Raises:
        UnknownLanguage: neither a built-in language nor one that the detector knows.
    """
    language = languages.get(code)
    words, extra = language.words, _extras().get(language.code, {})
    cjk = language.scripts[0] in _CJK
    numbers = {str(word).casefold(): Fraction(str(value)) for word, value in words.get("numbers", {}).items()}
    scales = {w: v for w, v in numbers.items() if v >= 1000 and set(str(v).rstrip("0")) == {"1"}}
    halves = [word for word, value in numbers.items() if value == Fraction(1, 2)]
    strong = [cue for cue in words.get("answer_cues", ()) if _is_strong(cue, cjk, words.get("choice_cues", ()))]
    again = extra.get("that_is", ())
    hedges = [
        hedge
        for hedge in (*words.get("hedges", ()), *extra.get("instead", ()))
        if not (cjk and len(hedge) == 1) and hedge not in again
    ]
    quarters = [word[:-1] for word, value in numbers.items() if value == Fraction(1, 4) and len(word) > 3]
    minus_words = extra.get("minus", ())
    edge = "" if cjk else rf"(?<![{WORD}])"
    and_words = "|".join(map(re.escape, extra.get("and", ())))
    return Lexicon(
        code=language.code,
        decimal=language.decimal,
        groups=frozenset(language.groups),
        is_cjk=cjk,
        numbers=numbers,
        weak=frozenset(extra.get("weak", ())),
        scales=scales,
        cues=_any(strong, cjk),
        hedges=_any(hedges, cjk, but=again),
        because=_any(extra.get("because", ()), cjk),
        negated_before=_ending(extra.get("not", ()), cjk),
        negated_after=_starting(extra.get("not_after", ())),
        than_before=_than(extra, cjk),
        than_after=_starting(extra.get("than_after", ())),
        conjunction=_any([*extra.get("and", ()), *extra.get("to", ()), *words.get("hedges", ())], cjk),
        either=_any(extra.get("or", ()), cjk),
        half=re.compile(
            rf"(?:{_SPACE}[^\W\d]{{2,14}})?{_SPACE}(?:{and_words}){_SPACE}(?:[^\W\d]{{1,3}}{_SPACE})?(?:{_join(halves)})"
            rf"(?![{WORD}])",
            re.IGNORECASE,
        )
        if and_words and halves
        else _NEVER,
        # The last letter changes with the number: quarto, quarti; cuarto, cuartos.
        quarters=re.compile(rf"{_SPACE}(?:{_join(quarters)})\w{{0,3}}(?![{WORD}])", re.IGNORECASE)
        if quarters
        else _NEVER,
        parts=_any([word for word, value in numbers.items() if 0 < value < 1], cjk),
        articles=re.compile(rf"(?:{_join(extra['articles'])})(?:{_SPACE}|(?<='))", re.IGNORECASE)
        if extra.get("articles")
        else _NEVER,
        units=tuple(sorted((unit.casefold() for unit in words.get("units", ())), key=len, reverse=True)),
        common=frozenset(extra.get("common", ())),
        _minus=re.compile(
            rf"{edge}(?<!au )(?<!du )(?<!al )(?<!lo )(?<!ao )(?<!pelo )(?:{_join(minus_words)}){_SPACE}?\Z",
            re.IGNORECASE,
        )
        if minus_words
        else _NEVER,
        _below_zero=re.compile(rf"[^.,;!?\n]{{0,24}}?(?:{_join(extra['below_zero'])})(?![{WORD}])", re.IGNORECASE)
        if extra.get("below_zero")
        else _NEVER,
        _percent=re.compile(rf"{_SPACE}?(?:{_join(extra['percent'])})", re.IGNORECASE)
        if extra.get("percent")
        else _NEVER,
        _scale=re.compile(rf"{_SPACE}?({_join(scales)})" + ("" if cjk else rf"(?![{WORD}])"), re.IGNORECASE)
        if scales
        else _NEVER,
        words=words,
    )


@functools.cache
def _extras() -> dict[str, dict[str, list[str]]]:
    import yaml

    text = files(__package__).joinpath("lexicon.yaml").read_text(encoding="utf-8")
    table: dict[str, dict[str, list[str]]] = yaml.safe_load(text)
    return table


def _is_strong(cue: str, cjk: bool, answers: Iterable[str]) -> bool:
    """A cue that a result follows at once ("the answer is", "result:"), not a mere "so" or "that makes"."""
    if ":" in cue or "：" in cue or any(word in cue for word in answers):
        return True
    return _COPULA.search(cue) is not None and (cjk or len(cue.split()) > 2 or not cue.isascii())


def _join(words: Iterable[str]) -> str:
    """Alternatives, longest first, so that the longest match wins."""
    return "|".join(map(_escape, sorted(words, key=len, reverse=True)))


def _escape(word: str) -> str:
    # French writes a space before the colon, and so do many models in other languages.
    return re.escape(word.replace(" :", ":")).replace(r"\ ", _SPACE).replace(":", f"{_SPACE}?:")


def _any(words: Iterable[str], cjk: bool, but: Iterable[str] = ()) -> re.Pattern[str]:
    """Any of the words, but not where one of `but` stands; whole words where the script puts spaces between words."""
    words = [word.replace("：", ":") for word in words]
    if not words:
        return _NEVER
    if cjk:
        return re.compile(_join(words), re.IGNORECASE)
    ends = [word for word in words if not re.search(rf"[{WORD}]\Z", word)]
    whole = [word for word in words if word not in ends]
    body = "|".join(filter(None, (_join(ends), rf"(?:{_join(whole)})(?![{WORD}])" if whole else "")))
    other = _join(but)
    return re.compile(rf"(?<![{WORD}])" + (f"(?!{other})" if other else "") + f"(?:{body})", re.IGNORECASE)


def _ending(words: Iterable[str], cjk: bool) -> re.Pattern[str]:
    """The word at the end of what stands before a mention, at most one other word between and no punctuation."""
    words = list(words)
    if not words:
        return _NEVER
    if cjk:
        return re.compile(rf"(?:{_join(words)})[^\W\d]{{0,2}}\Z")
    return re.compile(rf"(?<![{WORD}])(?:{_join(words)})(?:{_SPACE}+[{WORD}]+)?{_SPACE}+\Z", re.IGNORECASE)


def _starting(words: Iterable[str]) -> re.Pattern[str]:
    """The word right behind a mention and its unit."""
    words = list(words)
    return re.compile(rf"{_SPACE}?[^\W\d]{{0,8}}?{_SPACE}?(?:{_join(words)})") if words else _NEVER


def _than(extra: dict[str, list[str]], cjk: bool) -> re.Pattern[str]:
    if not extra.get("than"):
        return _NEVER
    than = _join(extra["than"])
    if cjk:
        return re.compile(rf"(?:{than})\Z")
    more = rf"(?<![{WORD}])(?:{_join(extra['more'])})(?![{WORD}])[^.,;:!?\n]{{0,40}}?" if extra.get("more") else ""
    return re.compile(
        rf"{more}(?<![{WORD}])(?:{than})(?:(?<=')|(?![{WORD}]))(?:{_SPACE}*[^\W\d]+'?){{0,2}}{_SPACE}*\Z", re.IGNORECASE
    )
