# SPDX-License-Identifier: MIT-0
"""Answers that are words: yes or no, true or false, weekdays and months in any language, and names or choices."""

import functools
import itertools
import re
import unicodedata
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from lingoss import languages
from lingoss.grade.lexicon import WORD, Lexicon, lexicon
from lingoss.grade.mention import Mention
from lingoss.grade.stated import Sentences, Stated, stated

_CJK = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_LEAD = re.compile(rf"[^{WORD}]*")
_STOP = re.compile(r"[\s]*(?:[,.!?:;。，！、—–।،)-]|\Z)")
_LETTER_GOLD = re.compile(r"\(?([A-Ha-h])[).]?")
_START = re.compile(r"(?:\A|[.!?。！？।\n:,;，、-])[\s*\"'«“(]*\Z")


@dataclass(frozen=True, slots=True)
class Closed:
    """A value of a closed list: ("weekday", 2), ("month", 0), ("truth", 1)."""

    kind: str
    index: int


def closed(gold: str) -> Closed | None:
    """What a gold word means, whatever built-in language it is in; None for a name or a choice."""
    return _gold_table().get(_fold(gold.strip(" .!")))


@functools.cache
def _gold_table() -> dict[str, Closed]:
    table: dict[str, Closed] = {}
    for code in languages.builtin():
        words = languages.get(code).words
        for kind in ("weekday", "month"):
            for index, forms in enumerate(words.get(f"{kind}s", ())):
                for form in forms:
                    if len(form) > 3 or _CJK.search(form):
                        table.setdefault(_fold(form), Closed(kind, index))
                table.setdefault(_fold(forms[0]), Closed(kind, index))
        # The further entries of these lists are ordinary words ("right", "correct"), which may name a choice.
        latin = languages.get(code).scripts[0] == "Latin"
        for name, truth, count in (("yes", 1, 2), ("no", 0, 1), ("true", 1, 1), ("false", 0, 1)):
            for form in words.get(name, ())[: count if latin else None]:
                table.setdefault(_fold(form), Closed("truth", truth))
    return table


def _fold(text: str) -> str:
    """Without case and accents, to compare what people type carelessly."""
    plain = unicodedata.normalize("NFD", text.casefold())
    return "".join(char for char in plain if unicodedata.category(char) != "Mn" or not "\u0300" <= char <= "\u036f")


# --- weekdays and months


def calendar(text: str, gold: Closed, question: str, codes: Sequence[str]) -> Stated:
    """The weekday or month that an answer states, in its language, else in English, else in any."""
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
            if len(form) > 3 or _CJK.search(form) or _HANGUL.search(form) or (kind == "month" and form == forms[0]):
                table[form.casefold()] = index
    if not table:
        return re.compile("(?!)"), {}
    body = "|".join(re.escape(form) for form in sorted(table, key=len, reverse=True))
    spaced = languages.get(code).scripts[0] not in ("Han", "Hiragana", "Katakana", "Hangul")
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
    """Whether an answer says yes (1) or no (0): by how a sentence begins, else by a true or false anywhere."""
    for code in dict.fromkeys((*codes, *languages.builtin())):
        decided = _truth(text, lexicon(code))
        if decided.mention or decided.spoiled:
            return decided
    return Stated(None, "no-answer")


def _truth(text: str, lex: Lexicon) -> Stated:
    sentences = Sentences(text)
    found = list(_truth_mentions(text, lex))
    if found and (sentences.ends_asking() or all(map(sentences.is_question, found))):
        return Stated(None, "question-restated")
    found = [mention for mention in found if not sentences.is_question(mention)]
    for left, right in itertools.pairwise(found):
        between = text[left.end : right.start]
        joined = not lex.conjunction.sub("", between).strip(" ,/|-")
        if left.key != right.key and len(between) < 24 and joined:
            left.flags.add("joined")
            right.flags.add("joined")
    free = [mention for mention in found if "joined" not in mention.flags]
    if not free:
        return Stated(None, "hedge", spoiled=True) if found else Stated(None, "no-answer")
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
        if mention.flags:
            yield mention


@functools.cache
def _truth_pattern(code: str) -> tuple[re.Pattern[str], dict[str, tuple[int, bool]]]:
    words = languages.get(code).words
    table: dict[str, tuple[int, bool]] = {}
    for name, value in (("yes", 1), ("no", 0), ("true", 1), ("false", 0)):
        for form in words.get(name, ()):
            table.setdefault(str(form).casefold(), (value, name in ("true", "false")))
    if not table:
        return re.compile("(?!)"), {}
    body = "|".join(re.escape(form) for form in sorted(table, key=len, reverse=True))
    if languages.get(code).scripts[0] in ("Han", "Hiragana", "Katakana", "Hangul"):
        return re.compile(f"({body})"), table
    return re.compile(rf"(?<![{WORD}])({body})(?![{WORD}])", re.IGNORECASE), table


@functools.cache
def _negation(lex: Lexicon) -> re.Pattern[str]:
    """A negation in front of a judgement, at most two words away: "n'est pas vrai", "ist nicht wahr"."""
    words = [str(word) for word in lex.words.get("negations", ())]
    body = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)) or "(?!)"
    if lex.is_cjk:
        return re.compile(rf"(?:{body})\Z")
    return re.compile(rf"(?<![{WORD}])(?:{body})(?:[ \u00a0]+[{WORD}]+){{0,2}}[ \u00a0]*\Z", re.IGNORECASE)


# --- names and choices


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
        folded = _fold(text)
        if len(folded) == len(text):
            matches = list(_phrase_pattern(_fold(phrase)).finditer(folded))
    for match in matches:
        yield Mention(match.start(), match.end(), (gold,), word=True)


@functools.lru_cache(maxsize=4096)
def _phrase_pattern(phrase: str) -> re.Pattern[str]:
    body = r"[\s\u00a0]+".join(re.escape(word) for word in phrase.split()) or "(?!)"
    if _CJK.search(phrase):
        return re.compile(body, re.IGNORECASE)
    if _HANGUL.search(phrase):  # particles are glued to the word
        return re.compile(rf"(?<![{WORD}]){body}", re.IGNORECASE)
    lead = rf"(?<![{WORD}])(?:[وبلفك]?(?:ال)?)?" if re.search("[\u0600-\u06ff]", phrase) else rf"(?<![{WORD}])"
    return re.compile(rf"{lead}{body}(?![{WORD}])", re.IGNORECASE)


def _rivals(text: str, gold: str, question: str) -> Iterator[Mention]:
    """Other options of the question that the answer mentions: what it joins to the gold, and names beside a name."""
    for option in _options(question, gold):
        for match in _phrase_pattern(option).finditer(text):
            yield Mention(match.start(), match.end(), (option,), word=True)


@functools.lru_cache(maxsize=4096)
def _options(question: str, gold: str) -> tuple[str, ...]:
    folded = _fold(gold)
    names = [name for name in re.findall(rf"[{WORD}]+", question) if name in _names()]
    options = {name for name in names if _fold(name) != folded} if gold[:1].isupper() or gold in _names() else set()
    joiners = "|".join(re.escape(word) for word in _either())
    for match in re.finditer(r"[^.!?:;。？！\n]+", question):
        parts = [
            part.strip(" ,\"'«»“”")
            for part in re.split(
                rf"(?:,\s*)?(?<![{WORD}])(?:{joiners})(?![{WORD}])|,|、|还是|或者|または|それとも|또는|아니면",
                match.group(),
            )
        ]
        if len(parts) < 2:
            continue
        if any(folded == _fold(part) or folded in _fold(part).split() for part in parts):
            options.update(part for part in parts if len(part.split()) <= len(gold.split()) + 1)
    return tuple(option for option in options if option and _fold(option) != folded and len(option) > 1)


@functools.cache
def _either() -> tuple[str, ...]:
    return ("or", "ou", "oder", "o", "oppure", "of", "u", "या", "أو", "أم")


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
        for match in lex.hedges.finditer(after):
            if not after[: match.start()].strip(" ,;/") and _is_joiner(match.group()):
                return True
        for match in lex.hedges.finditer(before):
            if not lex.articles.sub("", before[match.end() :].strip() + " ").strip() and _is_joiner(match.group()):
                return True
    items = [item.split() for item in re.split(r"[,;/\n、،]", text.strip(" .!"))]
    return len(items) > 2 and all(0 < len(item) <= 2 for item in items)


def _is_joiner(hedge: str) -> bool:
    """ "Or" offers an alternative; "maybe" only doubts."""
    return hedge.casefold().split()[0] in (
        *_either(),
        "ou",
        "oder",
        "ofwel",
        "或",
        "或者",
        "还是",
        "または",
        "それとも",
        "또는",
        "혹은",
    )


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
