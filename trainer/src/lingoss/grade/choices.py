# SPDX-License-Identifier: MIT-0
"""Answers that are a name, a word of the question, or a multiple-choice letter."""

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence

from lingoss import languages
from lingoss.grade import words
from lingoss.grade.lexicon import WORD, Lexicon, lexicon
from lingoss.grade.mention import Mention
from lingoss.grade.sentences import Sentences
from lingoss.grade.stated import Stated

_CJK = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_ARABIC = re.compile("[\u0600-\u06ff]")
_LETTER_GOLD = re.compile(r"\(?([A-Ha-h])[).]?")


def fold(text: str) -> str:
    """Without case and accents, to compare what people type carelessly."""
    plain = unicodedata.normalize("NFD", text.casefold())
    return "".join(char for char in plain if unicodedata.category(char) != "Mn" or not "\u0300" <= char <= "\u036f")


def choice(text: str, gold: str, question: str, codes: Sequence[str]) -> Stated:
    """Whether an answer states the gold text, as whole words, neither rejected nor beside a rival of the question.

    The mention's value is the gold text or the rival that is stated instead.
    """
    lexicons = [lexicon(code) for code in codes]
    if letter := _LETTER_GOLD.fullmatch(gold.strip()):
        return _letter(text, letter.group(1).upper(), lexicons)
    wanted = _phrase(gold, lexicons)
    found = list(_phrase_mentions(text, wanted, gold))
    rivals = [m for m in _rivals(text, gold, question) if not any(m.start < f.end and f.start < m.end for f in found)]
    for mention in found:
        _mark_choice(text, mention, lexicons)
    mentions = sorted([*found, *rivals], key=lambda mention: mention.start)
    for mention in rivals:
        _mark_choice(text, mention, lexicons)
    sentences = Sentences(text)
    usable = [mention for mention in mentions if not mention.flags & {"negated", "compared"}]
    if usable and (sentences.ends_asking() or all(map(sentences.is_question, usable))):
        return Stated(None, "question-restated")
    if not usable:
        return Stated(None, "negated", spoiled=True) if found else Stated(None, "no-answer")
    return _last_word(text, usable, sentences, lexicons)


def _phrase(gold: str, lexicons: Sequence[Lexicon]) -> str:
    """The gold text without a leading article."""
    text = " ".join(gold.split())
    for lex in lexicons:
        if (match := lex.articles.match(text)) and match.end() < len(text):
            return text[match.end() :]
    return text


def _phrase_mentions(text: str, phrase: str, gold: str) -> Iterator[Mention]:
    pattern = _phrase_pattern(phrase)
    matches = list(pattern.finditer(text))
    if not matches and len(text) < 20_000:
        folded = fold(text)
        if len(folded) == len(text):
            matches = list(_phrase_pattern(fold(phrase)).finditer(folded))
    for match in matches:
        yield Mention(match.start(), match.end(), (gold,), word=True)


@functools.lru_cache(maxsize=4096)
def _phrase_pattern(phrase: str) -> re.Pattern[str]:
    body = r"[\s\u00a0]+".join(re.escape(word) for word in phrase.split()) or "(?!)"
    if _CJK.search(phrase):
        return re.compile(body, re.IGNORECASE)
    if _HANGUL.search(phrase):  # particles are glued to the word
        return re.compile(rf"(?<![{WORD}]){body}", re.IGNORECASE)
    lead = rf"(?<![{WORD}])(?:[وبلفك]?(?:ال)?)?" if _ARABIC.search(phrase) else rf"(?<![{WORD}])"
    return re.compile(rf"{lead}{body}(?![{WORD}])", re.IGNORECASE)


def _rivals(text: str, gold: str, question: str) -> Iterator[Mention]:
    """Other options of the question that the answer mentions: what it joins to the gold, and names beside a name."""
    for option in _options(question, gold):
        for match in _phrase_pattern(option).finditer(text):
            yield Mention(match.start(), match.end(), (option,), word=True)


@functools.lru_cache(maxsize=4096)
def _options(question: str, gold: str) -> tuple[str, ...]:
    folded = fold(gold)
    names = [name for name in re.findall(rf"[{WORD}]+", question) if name in _names()]
    options = {name for name in names if fold(name) != folded} if gold[:1].isupper() or gold in _names() else set()
    either = lexicon(words.language_of(question)).either
    for clause in re.split(r"[.!?:;。？！\n]", question):
        parts = [part.strip(" \"'«»“”") for part in re.split("[,、，،]", either.sub(",", clause))]
        if len(parts) < 2:
            continue
        if any(folded == fold(part) or folded in fold(part).split() for part in parts):
            options.update(part for part in parts if len(part.split()) <= len(gold.split()) + 1)
    return tuple(option for option in options if option and fold(option) != folded and len(option) > 1)


@functools.cache
def _names() -> frozenset[str]:
    return frozenset(str(name) for code in languages.builtin() for name in languages.get(code).words.get("names", ()))


def _mark_choice(text: str, mention: Mention, lexicons: Sequence[Lexicon]) -> None:
    start = max(0, mention.start - 80)
    for lex in lexicons:
        if lex.negated_before.search(text, start, mention.start) or lex.negated_after.match(text, mention.end):
            mention.flags.add("negated")
        if lex.than_before.search(text, start, mention.start) or lex.than_after.match(text, mention.end):
            mention.flags.add("compared")


def _last_word(text: str, mentions: list[Mention], sentences: Sentences, lexicons: Sequence[Lexicon]) -> Stated:
    """The option behind a cue, else the most frequent, then first, of the last sentence that has any.

    Options side by side are no answer: "Between A and B, it is B"; "A or B" alone is a hedge.
    """
    joined: set[int] = set()
    for left, right in itertools.pairwise(mentions):
        if left.key != right.key and _side_by_side(text[left.end : right.start], lexicons):
            joined |= {id(left), id(right)}
    free = [mention for mention in mentions if id(mention) not in joined and not sentences.is_question(mention)]
    if not free:
        return Stated(mentions[0], "hedge", spoiled=True)
    cues = [match.end() for lex in lexicons for match in lex.cues.finditer(text)]
    behind = [mention for mention in free if cues and mention.start >= max(cues)]
    last = [mention for mention in free if sentences.index(mention) == sentences.index(free[-1])]
    keys = [mention.key for mention in last]
    chosen = behind[0] if behind else max(last, key=lambda mention: keys.count(mention.key))
    if _is_listed(text, chosen, lexicons):
        return Stated(chosen, "list", spoiled=True)
    frame = sentences.frame(chosen)
    if any(m.key != chosen.key and sentences.frame(m) == frame for m in free):
        return Stated(chosen, "contradiction", spoiled=True)
    return Stated(chosen, "cue" if behind else "choice")


def _side_by_side(between: str, lexicons: Sequence[Lexicon]) -> bool:
    if len(between) > 40:
        return False
    for lex in lexicons:
        between = lex.conjunction.sub(" ", between)
        between = lex.articles.sub(" ", between.strip() + " ")
    return not between.strip(" ,;/|&()、،\n")


def _is_listed(text: str, mention: Mention, lexicons: Sequence[Lexicon]) -> bool:
    """True when the gold is one item of a bare list of words, or an "or" stands right beside it."""
    before, after = text[max(0, mention.start - 40) : mention.start], text[mention.end : mention.end + 40]
    for lex in lexicons:
        if (match := lex.either.search(after)) and not after[: match.start()].strip(" ,;/"):
            return True
        for match in lex.either.finditer(before):
            if not lex.articles.sub("", before[match.end() :].strip() + " ").strip():
                return True
    items = [item.split() for item in re.split(r"[,;/\n、،]", text.strip(" .!"))]
    return len(items) > 2 and all(0 < len(item) <= 2 for item in items)


def _letter(text: str, letter: str, lexicons: Sequence[Lexicon]) -> Stated:
    """A multiple-choice letter: marked as one ("(B)", "B)", "option B", behind a cue), else standing alone."""
    found: list[Mention] = []
    for match in re.finditer(rf"(?<![{WORD}'])([A-H])(?![{WORD}'])", text):
        mention = Mention(match.start(), match.end(), (match.group(1),), word=True)
        before = text[max(0, match.start() - 40) : match.start()]
        marked = text[match.end() : match.end() + 1] in ")." or before.endswith("(")
        for lex in lexicons:
            options = [str(word) for word in lex.words.get("choice_cues", ())]
            cued = any(cue.end() >= len(before.rstrip()) for cue in lex.cues.finditer(before))
            named = any(before.rstrip(" *(:").casefold().endswith(word.casefold()) for word in options)
            marked = marked or cued or named
        if marked or len(text.strip(" .()*")) <= 2:
            found.append(mention)
        elif letter != "A" and match.group(1) == letter:
            mention.flags.add("loose")
            found.append(mention)
    marked_ones = [mention for mention in found if "loose" not in mention.flags] or found
    if not marked_ones:
        return Stated(None, "no-answer")
    for mention in marked_ones:
        _mark_choice(text, mention, lexicons)
    usable = [mention for mention in marked_ones if "negated" not in mention.flags]
    if not usable:
        return Stated(None, "negated", spoiled=True)
    if len({mention.key for mention in usable}) > 1:
        return Stated(usable[0], "list", spoiled=True)
    return Stated(usable[0], "choice")
