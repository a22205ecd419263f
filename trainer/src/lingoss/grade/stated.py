# SPDX-License-Identifier: MIT-0
"""Which of the values in an answer is the one that it states, and whether it states more than one.

An honest answer names numbers that are not its result: quantities of the question ("After 9 hours 37 % is left"),
operands ("5 + 3 = 8"), rejected values ("not 84 but 90"), asides and reasons. A dishonest one lists candidates or
hedges. The same rules serve numbers and weekdays; single-word choices have their own in `choices`.
"""

import itertools
import re
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lingoss.grade.lexicon import Lexicon
from lingoss.grade.mention import Mention
from lingoss.grade.sentences import Sentences

# That many values side by side, or this many beside the result and no cue or sum, explain nothing any more.
_LIST, _MANY = 4, 5
_SMALL_WORD = 12

_ASIDE = re.compile(r"\([^()]{0,200}\)")
_GAP = r"[ \t\u00a0]*"
_LINK = re.compile(
    rf"{_GAP}(?:[^\W\d][\w²³/]{{0,20}}{_GAP}|[°€$£%]{_GAP}){{0,2}}[()]*{_GAP}"
    rf"(?:(?P<op>[-+×*÷/:·⋅x–])|(?P<eq>=>|=+|≈|→|⇒)){_GAP}[(€$£]*"
)
_EQUALS = re.compile(rf"(?:=|≈|→|⇒|=>){_GAP}[(€$£]*\Z")
# A bound and a value that is ruled out; "<" and ">" count between spaces only, else they are arrows, tags or quotes.
_BOUND = re.compile(rf"(?:[≥≤≠≱≰]|!=|\\(?:geq?|leq?|neq?)|(?<=[\w)²³] )[<>]=?(?= )){_GAP}[(€$£]*\Z")
_SEPARATORS = re.compile(r"[\s,;/|&•·*()\[\]{}<>:、،~〜–—-]+|[0-9]{1,3}[.):]|(?<!\w)[A-Za-z][.):]")
_VARIABLE = re.compile(rf"(\w+){_GAP}[=≈]{_GAP}[(€$£]*\Z")
_UNSPACED = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")


@dataclass(frozen=True, slots=True)
class Stated:
    """`mention` is what the answer states, None when it states nothing. `spoiled`: something else is stated as well.

    `rule` names what decided: single, cue, equation, last, word, list, hedge, contradiction, negated,
    question-restated, unevaluated, compared, no-answer.
    """

    mention: Mention | None
    rule: str
    spoiled: bool = False


def stated(text: str, mentions: Sequence[Mention], givens: Collection[Hashable], lexicons: Sequence[Lexicon]) -> Stated:
    """Decide for a normalised text and its mentions in order; `givens` are the values that the question names."""
    live = [mention for mention in mentions if mention.kind == "number"]
    live = live or [mention for mention in mentions if mention.kind == "ordinal"]
    live = [mention for mention in live if not mention.weak] or (live if _is_short(text) else [])
    if not live:
        return Stated(None, "no-answer")
    sentences = Sentences(text)
    if sentences.ends_asking() and all(mention.key in givens for mention in live):
        return Stated(None, "question-restated")
    if asked := [mention for mention in live if sentences.is_question(mention)]:
        live = [mention for mention in live if mention not in asked]
        if not live:
            return Stated(None, "question-restated")
    _mark_operands(text, live)
    _mark_negated(text, live, lexicons)
    named = [mention for mention in live if not mention.flags & {"operand", "negated"}]
    candidates = [mention for mention in named if not _BOUND.search(text, max(0, mention.start - 12), mention.start)]
    if named and not candidates:
        return Stated(None, "compared")
    if not candidates:
        negated = any("negated" in mention.flags for mention in live)
        return Stated(None, "negated", spoiled=True) if negated else Stated(None, "unevaluated")
    if len({mention.key for mention in candidates}) == 1:
        chosen = candidates[-1]
        rule = "equation" if "result" in chosen.flags else "word" if chosen.word else "single"
        return Stated(chosen, rule)
    new = [m for m in candidates if m.key not in givens or _is_concluded(m, candidates)]
    new = [m for m in new if not _is_consumed(m, live)]
    _mark_reasons(text, new, candidates, sentences, lexicons)
    chosen, rule = _choose(text, candidates, new, sentences, lexicons)
    fault = _fault(text, chosen, rule, candidates, new, sentences, lexicons)
    return Stated(chosen, fault or rule, spoiled=bool(fault))


def _is_short(text: str) -> bool:
    """An answer so short that its "one" or "un" is a number."""
    return len(text.split()) <= 4 and (len(text) <= 5 or not _UNSPACED.search(text))


def _mark_operands(text: str, live: list[Mention]) -> None:
    """Flag what stands in sums as "operand" and what they come to as "result"."""
    run: list[Mention] = []
    links: list[str] = []
    for mention, following in zip(live, [*live[1:], None], strict=True):
        run.append(mention)
        link = _link(text, mention, following) if following else ""
        if link:
            links.append(link)
            continue
        _mark_run(run, links)
        run, links = [], []
    for mention in live:
        if _EQUALS.search(text, max(0, mention.start - 12), mention.start) and "operand" not in mention.flags:
            mention.flags.add("result")


def _link(text: str, left: Mention, right: Mention) -> str:
    """The operator between two neighbours: "=" for any equals sign or arrow, "" for none."""
    if right.start - left.end > 60:
        return ""
    match = _LINK.fullmatch(text, left.end, right.start)
    if not match:
        # A sign that was read as part of the right number: 9-4 or 9 -4.
        return ""
    return "=" if match.group("eq") else match.group("op")


def _mark_run(run: list[Mention], links: list[str]) -> None:
    if "=" not in links:
        # Without a result a dash may be a range and a colon a ratio; with a plus or times sign it is a sum.
        if set(links) & set("+×*÷·⋅"):
            for mention in run:
                mention.flags.add("operand")
        return
    sides: list[list[Mention]] = [[run[0]]]
    for link, mention in zip(links, run[1:], strict=True):
        if link == "=":
            sides.append([mention])
        else:
            sides[-1].append(mention)
    single = [side for side in sides if len(side) == 1]
    undone = any("operand" in mention.flags for mention in run)
    if (
        not undone
        and len(single) == len(sides)
        and len({m.key for m in run}) > 1
        and len({m.unit for m in run if m.unit}) < 2
    ):
        # "80 = 60" is no sum and no conversion.
        for mention in run:
            mention.flags.add("rival")
        return
    result = sides[-1][0] if len(sides[-1]) == 1 else single[0][0] if single else None
    for mention in run:
        mention.flags.add("result" if mention is result else "operand")


def _is_concluded(mention: Mention, candidates: list[Mention]) -> bool:
    """A value of the question that is also the result: a sum comes to it, and it is said again afterwards."""
    results = [other for other in candidates if "result" in other.flags and other.key == mention.key]
    return bool(results) and any(m.key == mention.key and m.start > results[0].start for m in candidates)


def _is_consumed(mention: Mention, live: list[Mention]) -> bool:
    """The result of one sum that goes into a later one."""
    return "result" in mention.flags and any(
        "operand" in other.flags and other.key == mention.key and other.start > mention.start for other in live
    )


def _mark_negated(text: str, live: list[Mention], lexicons: Sequence[Lexicon]) -> None:
    before = 0
    for mention in live:
        start = max(before, mention.start - 48)
        for lexicon in lexicons:
            if lexicon.negated_before.search(text, start, mention.start) or lexicon.negated_after.match(
                text, mention.end, mention.end + 40
            ):
                mention.flags.add("negated")
        before = mention.end


def _mark_reasons(
    text: str, new: list[Mention], candidates: list[Mention], sentences: Sentences, lexicons: Sequence[Lexicon]
) -> None:
    """Flag what stands in brackets, or in its sentence behind a "because", when a result stands before it."""
    asides = [match.span() for match in _ASIDE.finditer(text)]
    for start, end in asides:
        inside = [mention for mention in candidates if start <= mention.start < end]
        if len(inside) < len(candidates):
            for mention in inside:
                mention.flags.add("aside")
    for lexicon in lexicons:
        for match in lexicon.because.finditer(text):
            behind = [m for m in new if m.start >= match.end()]
            before = [m for m in new if m.end <= match.start()]
            if not behind or not before or sentences.index(before[-1]) != sentences.index(behind[0]):
                continue
            for mention in behind:
                if sentences.index(mention) == sentences.index(before[-1]):
                    mention.flags.add("reason")


def _choose(
    text: str, candidates: list[Mention], new: list[Mention], sentences: Sentences, lexicons: Sequence[Lexicon]
) -> tuple[Mention, str]:
    digits = any(not mention.word for mention in candidates)
    plain = [m for m in new if not m.flags & {"aside", "reason"} and not (m.word and digits and _is_small(m))]
    preferred = [m for m in plain if not m.word] or plain
    if cued := _after_cue(text, preferred or candidates, sentences, lexicons):
        return cued, "cue"
    if preferred:
        chosen = preferred[-1]
    else:
        results = [m for m in candidates if "result" in m.flags]
        new = [m for m in new if not (m.word and digits)]
        outside = [m for m in candidates if "aside" not in m.flags]
        chosen = (new or results or [m for m in outside if not m.word] or outside or candidates)[-1]
    return chosen, "equation" if "result" in chosen.flags else "word" if chosen.word else "last"


def _is_small(mention: Mention) -> bool:
    """ "The two children" beside digits is a word like any other."""
    return isinstance(mention.key, Fraction) and abs(mention.key) <= _SMALL_WORD


def _after_cue(
    text: str, candidates: list[Mention], sentences: Sentences, lexicons: Sequence[Lexicon]
) -> Mention | None:
    """What the last cue like "the answer is" or "result:" introduces, in its sentence or on the line behind it."""
    ends = sorted(match.end() for lexicon in lexicons for match in lexicon.cues.finditer(text))
    for end in reversed(ends):
        behind = [mention for mention in candidates if mention.start >= end]
        if not behind:
            continue
        between = text[end : behind[0].start]
        if len(between.split()) <= 2:
            return behind[0]
        if not sentences.breaks(between):
            index = sentences.index(behind[0])
            return [mention for mention in behind if sentences.index(mention) == index][-1]
    return None


def _fault(
    text: str,
    chosen: Mention,
    rule: str,
    candidates: list[Mention],
    new: list[Mention],
    sentences: Sentences,
    lexicons: Sequence[Lexicon],
) -> str:
    """Why the answer does not state `chosen` alone; empty when it does."""
    others = [mention for mention in new if mention.key != chosen.key]
    for group, hedged in _groups(text, candidates, lexicons):
        fresh = {mention.key for mention in group if mention in others}
        if chosen in group and (fresh or hedged or not _may_join(text, chosen, group, candidates)):
            return "hedge" if hedged else "list"
        aside = all("aside" in mention.flags for mention in group)
        # Values side by side before the result may be its terms; behind it they can only be other candidates.
        if group[0].start > chosen.start and len(fresh) >= (1 if aside else _LIST):
            return "list"
    many = {mention.key for mention in others if not mention.word}
    summed = any(mention.key == chosen.key and "result" in mention.flags for mention in candidates)
    if "rival" in chosen.flags or (len(many) >= _MANY and rule != "cue" and not summed):
        return "list"
    if any(
        _is_option(text, left, right, lexicons)
        for left, right in itertools.pairwise(candidates)
        if chosen in (left, right)
    ):
        return "hedge"
    frame = sentences.frame(chosen)
    rivals = (other for other in candidates if other.key != chosen.key and sentences.are_rivals(chosen, other))
    if any(sentences.frame(other) == frame for other in rivals):
        return "contradiction"
    if not others:
        return ""
    hedges = sorted({match.start() for lexicon in lexicons for match in lexicon.hedges.finditer(text)})
    if hedges and any(_is_hedged(chosen, other, hedges, sentences) for other in others):
        return "hedge"
    variable = _variable(text, chosen)
    if variable and any(_variable(text, other) == variable for other in others):
        return "contradiction"
    return ""


def _variable(text: str, mention: Mention) -> str:
    """The unknown that an equation gives the value of: "x" before "= 80"."""
    match = _VARIABLE.search(text, max(0, mention.start - 24), mention.start)
    return match.group(1) if match and not match.group(1)[-1].isdigit() else ""


def _may_join(text: str, chosen: Mention, group: list[Mention], candidates: list[Mention]) -> bool:
    """Whether a result may stand beside values of the question: "Out of 150, 90 are white"; "3, 7, 15, 31, 63"."""
    if group[-1].key != chosen.key:
        return False
    bare = len(group) == len(candidates) and not re.search(r"[^\W\d_]", text)
    return len({mention.key for mention in group}) >= (4 if bare else 1)


def _groups(text: str, candidates: list[Mention], lexicons: Sequence[Lexicon]) -> list[tuple[list[Mention], bool]]:
    """Runs of values with nothing but separators between them, and whether an "or" is among these."""
    groups: list[tuple[list[Mention], bool]] = []
    group, hedged = [candidates[0]], False
    for left, right in itertools.pairwise(candidates):
        joined, by_hedge = _is_joined(text, left, right, lexicons)
        if joined:
            group.append(right)
            hedged |= by_hedge and left.key != right.key
            continue
        groups.append((group, hedged))
        group, hedged = [right], False
    groups.append((group, hedged))
    return [(group, hedged) for group, hedged in groups if len(group) > 1]


def _is_joined(text: str, left: Mention, right: Mention, lexicons: Sequence[Lexicon]) -> tuple[bool, bool]:
    unit = "" if any(lexicon.conjunction.fullmatch(left.unit) for lexicon in lexicons) else left.unit
    if right.start - left.end > 80 or (unit and right.unit and unit != right.unit):
        return False, False
    between = text[left.end : right.start]
    hedged = False
    if unit and unit != "%":
        between = re.sub(rf"\A[ \u00a0]?{re.escape(unit)}", "", between, flags=re.IGNORECASE)
    left_over = between.strip()
    for lexicon in lexicons:
        hedged = hedged or bool(lexicon.hedges.search(between) or lexicon.either.search(between))
        between = lexicon.conjunction.sub(" ", between)
    # The Japanese "or" is a syllable of many words, so it counts alone.
    return not _SEPARATORS.sub("", between), hedged or left_over == "か"


def _is_option(text: str, left: Mention, right: Mention, lexicons: Sequence[Lexicon]) -> bool:
    """Two different values with an "or" and little else between them: "80, or perhaps even 60"."""
    between = text[left.end : right.start]
    if left.key == right.key or len(between) > (10 if _UNSPACED.search(between) else 32) or len(between.split()) > 4:
        return False
    return any(lexicon.either.search(between) for lexicon in lexicons)


def _is_hedged(chosen: Mention, other: Mention, hedges: list[int], sentences: Sentences) -> bool:
    """True when a hedge makes `other` an alternative: in front of it, or between the two."""
    if "reason" in other.flags:
        return False
    here, there = sentences.index(chosen), sentences.index(other)
    if here == there:
        start, end = sentences.span(here)[0], max(chosen.start, other.start)
        return any(start <= hedge < end for hedge in hedges)
    for mention, index in ((chosen, here), (other, there)):
        start = sentences.span(index)[0]
        if any(start <= hedge < mention.start for hedge in hedges):
            return True
    return False
