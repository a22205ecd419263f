# SPDX-License-Identifier: MIT-0
"""Answers from a closed list, in any language: weekdays, months, yes or no, true or false."""

import functools
import itertools
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from lingoss import languages
from lingoss.grade import words
from lingoss.grade.choices import fold
from lingoss.grade.lexicon import WORD, Lexicon, lexicon
from lingoss.grade.mention import Mention
from lingoss.grade.sentences import Sentences
from lingoss.grade.stated import Stated, stated

_UNSPACED = ("Han", "Hiragana", "Katakana", "Hangul")
_DENSE = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
_STOP = re.compile(r"\s*(?:[,.!?:;。，！、—–।،)-]|\Z)")
_START = re.compile(r"(?:\A|[.!?。！？।\n:,;，、-])[\s*\"'«“(]*\Z")


@dataclass(frozen=True, slots=True)
class Closed:
    """A value of a closed list: ("weekday", 2), ("month", 0), ("truth", 1)."""

    kind: str
    index: int


def meaning(gold: str) -> Closed | None:
    """What a gold word means, whatever built-in language it is in; None for a name or a choice."""
    return _gold_table().get(fold(gold.strip(" .!")))


@functools.cache
def _gold_table() -> dict[str, Closed]:
    table: dict[str, Closed] = {}
    for code in languages.builtin():
        entries = languages.get(code).words
        for kind in ("weekday", "month"):
            for index, forms in enumerate(entries.get(f"{kind}s", ())):
                for form in forms:
                    if len(form) > 3 or _DENSE.search(form):
                        table.setdefault(fold(form), Closed(kind, index))
                table.setdefault(fold(forms[0]), Closed(kind, index))
        # The further entries of these lists are ordinary words ("right", "correct"), which may name a choice.
        latin = languages.get(code).scripts[0] == "Latin"
        for name, truth, count in (("yes", 1, 2), ("no", 0, 1), ("true", 1, 1), ("false", 0, 1)):
            for form in entries.get(name, ())[: count if latin else None]:
                table.setdefault(fold(form), Closed("truth", truth))
    return table


def label(kind: str, index: int) -> str:
    """The English word for a value of a closed list."""
    entries = languages.get("en").words
    return ("no", "yes")[index] if kind == "truth" else str(entries[f"{kind}s"][index][0])


# --- weekdays and months


def calendar(text: str, gold: Closed, question: str, codes: Sequence[str]) -> Stated:
    """The weekday or month that an answer states, in its language, else in English, else in any other."""
    for code in dict.fromkeys((*codes, *languages.builtin())):
        if found := list(_calendar_mentions(text, gold.kind, code)):
            return stated(text, found, _calendar_values(question, gold.kind), [lexicon(code) for code in (code, "en")])
    return Stated(None, "no-answer")


def _calendar_mentions(text: str, kind: str, code: str) -> Iterator[Mention]:
    pattern, table = _calendar_pattern(kind, code)
    for match in pattern.finditer(text):
        yield Mention(match.start(), match.end(), (table[match.group(1).casefold()],), word=True)
    if len(text) < 12 and not pattern.search(text):
        short = text.strip(" .!").casefold()
        for index, forms in enumerate(languages.get(code).words.get(f"{kind}s", ())):
            if short in [form.casefold() for form in forms]:
                yield Mention(0, len(text), (index,), word=True)


@functools.cache
def _calendar_pattern(kind: str, code: str) -> tuple[re.Pattern[str], dict[str, int]]:
    table: dict[str, int] = {}
    for index, forms in enumerate(languages.get(code).words.get(f"{kind}s", ())):
        for form in forms:
            # Short forms ("di", "so", "mar") are words of their own in running text.
            if len(form) > 3 or _DENSE.search(form) or (kind == "month" and form == forms[0]):
                table[form.casefold()] = index
    if not table:
        return re.compile("(?!)"), {}
    body = "|".join(re.escape(form) for form in sorted(table, key=len, reverse=True))
    spaced = languages.get(code).scripts[0] not in _UNSPACED
    # Arabic glues "and", "in", "to" to the word.
    lead = rf"(?<![{WORD}])[وبلف]?" if code == "ar" else rf"(?<![{WORD}])" if spaced else r"(?<![0-9一-九])"
    return re.compile(rf"{lead}({body})" + (rf"(?![{WORD}])" if spaced else ""), re.IGNORECASE), table


@functools.lru_cache(maxsize=4096)
def _calendar_values(question: str, kind: str) -> frozenset[Hashable]:
    return frozenset(
        value
        for code in languages.builtin()
        for mention in _calendar_mentions(question, kind, code)
        for value in mention.values
    )


# --- yes and no, true and false


def truth(text: str, codes: Sequence[str]) -> Stated:
    """Whether an answer says yes (1) or no (0): by how a sentence begins, else by a true or false anywhere.

    A right answer in the wrong language is still right, so every language is asked in the end: no word says yes in
    one of them and no in another.
    """
    for code in dict.fromkeys((*codes, words.language_of(text), *languages.builtin())):
        decided = _truth(text, lexicon(code))
        if decided.mention or decided.spoiled:
            return decided
    return Stated(None, "no-answer")


def _truth(text: str, lex: Lexicon) -> Stated:
    sentences = Sentences(text)
    mentions = list(_truth_mentions(text, lex))
    found = [mention for mention in mentions if mention.flags]
    if found and (sentences.ends_asking() or all(map(sentences.is_question, found))):
        return Stated(None, "question-restated")
    mentions = [mention for mention in mentions if not sentences.is_question(mention)]
    for left, right in itertools.pairwise(mentions):
        between = text[left.end : right.start]
        joined = not lex.conjunction.sub("", between).strip(" ,/|-")
        if not (left.flags and right.flags):  # "yes and no", but not "no true one"
            joined = joined and bool(lex.conjunction.search(between))
        if left.key != right.key and len(between) < 24 and joined:
            left.flags.add("joined")
            right.flags.add("joined")
    found = [mention for mention in mentions if mention.flags]
    free = [mention for mention in found if "joined" not in mention.flags]
    if not free:
        return Stated(None, "hedge", spoiled=True) if found else Stated(None, "no-answer")
    opened, closed = ({m.key for m in free if tier in m.flags} for tier in ("opening", "closing"))
    if opened and closed - opened:  # "Yes, if they are quick, otherwise no"
        return Stated(free[-1], "contradiction", spoiled=True)
    for tier in ("cued", "opening", "closing", "judgement"):
        if group := [mention for mention in free if tier in mention.flags]:
            if len({mention.key for mention in group}) > 1:
                return Stated(group[-1], "contradiction", spoiled=True)
            return Stated(group[-1], "word" if tier != "cued" else "cue")
    return Stated(None, "no-answer")


def _truth_mentions(text: str, lex: Lexicon) -> Iterator[Mention]:
    pattern, table = _truth_pattern(lex.code)
    for match in pattern.finditer(text):
        value, judgement = table[match.group(1).casefold()]
        mention = Mention(match.start(1), match.end(1), (value,), word=True)
        before, stopped = text[max(0, mention.start - 60) : mention.start], _STOP.match(text, mention.end)
        if any(cue.end() >= len(before.rstrip(" *\"'«")) for cue in lex.cues.finditer(before)):
            mention.flags.add("cued")
        elif _START.search(before[-12:]) and stopped:
            mention.flags.add("opening" if not before.rstrip().endswith((",", "，")) else "closing")
        elif stopped and not judgement and mention.end == len(text.rstrip(" .!*\n")):
            mention.flags.add("closing")
        if judgement:
            negated = _negation(lex).search(before)
            if negated:
                mention.values = (1 - value,)
            mention.flags.add("judgement")
        yield mention


@functools.cache
def _truth_pattern(code: str) -> tuple[re.Pattern[str], dict[str, tuple[int, bool]]]:
    entries = languages.get(code).words
    table: dict[str, tuple[int, bool]] = {}
    for name, value in (("yes", 1), ("no", 0), ("true", 1), ("false", 0)):
        for form in entries.get(name, ()):
            table.setdefault(str(form).casefold(), (value, name in ("true", "false")))
    if not table:
        return re.compile("(?!)"), {}
    body = "|".join(re.escape(form) for form in sorted(table, key=len, reverse=True))
    if languages.get(code).scripts[0] in _UNSPACED:
        return re.compile(f"({body})"), table
    return re.compile(rf"(?<![{WORD}])({body})(?![{WORD}])", re.IGNORECASE), table


@functools.cache
def _negation(lex: Lexicon) -> re.Pattern[str]:
    """A negation in front of a judgement, at most two words away: "n'est pas vrai", "ist nicht wahr"."""
    negations = [str(word) for word in lex.words.get("negations", ())]
    body = "|".join(re.escape(word) for word in sorted(negations, key=len, reverse=True)) or "(?!)"
    if lex.is_cjk:
        return re.compile(rf"(?:{body})\Z")
    return re.compile(rf"(?<![{WORD}])(?:{body})(?:[ \u00a0]+[{WORD}]+){{0,2}}[ \u00a0]*\Z", re.IGNORECASE)
