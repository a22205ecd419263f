# SPDX-License-Identifier: MIT-0
"""Languages of the parts of a text that are not in Latin letters, and of the Latin words among them."""

from collections import Counter
from dataclasses import dataclass

from lingoss.detect import script
from lingoss.detect.candidates import Candidates
from lingoss.detect.fasttext_model import probabilities
from lingoss.detect.tokens import Tokens, sentence_ends
from lingoss.detect.words import NO_WORD

# A sentence belongs to a script with this share of its (weighted) letters: the rest are terms, mostly English ones.
_HOST_SHARE = 0.3
# But words in a row like this, or function words, are no terms.
_ROW = 5
_FUNCTION_WORDS = 2
_FUNCTION_SHARE = 0.25

# Scripts with letters that look like Latin ones; a word that joins both is a disguise.
_LOOKALIKES = frozenset({"Greek", "Cyrillic", "Armenian", "Other"})
_ASK_LETTERS = 20
_LONGEST_ANSWER = 3  # so many Chinese characters are often a whole Japanese answer
_SURE = 0.8

# Chinese characters that Chinese and Japanese share, in a text that does not say which it is.
EITHER_HAN = "zh|ja"

Unit = tuple[int, int, int, str]  # start, end, letters, language


@dataclass(slots=True)
class _Run:
    start: int
    end: int
    script: str
    letters: int


def read(text: str, tokens: Tokens, who: Candidates, target: str | None) -> tuple[list[Unit], list[int]]:
    """Units of the other scripts and of absorbed Latin words, and the indices of the Latin words still to judge."""
    units: list[Unit] = []
    left: list[int] = []
    open_han: list[tuple[int, str]] = []  # units whose language the rest of the document decides, with their text
    at = start = 0
    for end in sentence_ends(text):
        last = at
        while last < len(tokens.starts) and tokens.starts[last] < end:
            last += 1
        runs = _runs(text, start, end)
        if runs:
            runs = _undisguise(text, runs, tokens, range(at, last))
        if runs:
            found = len(units)
            _sentence(text, runs, tokens, range(at, last), who, units, left)
            for index in range(found, len(units)):
                if units[index][3] == EITHER_HAN:
                    open_han.append((index, "".join(text[r.start : r.end] for r in runs if r.script == "Han")))
        else:
            left += range(at, last)
        at, start = last, end
    for index, han in open_han:
        first, stop, size, _ = units[index]
        units[index] = (first, stop, size, _decide_han(han, units, who, target))
    return units, left


def _runs(text: str, start: int, end: int) -> list[_Run]:
    runs = []
    for match in script.RUN.finditer(text, start, end):
        size = script.letters(match.group())
        if size:
            runs.append(_Run(match.start(), match.end(), match.lastgroup or "Other", size))
    return runs


def _undisguise(text: str, runs: list[_Run], tokens: Tokens, span: range) -> list[_Run]:
    """Mark Latin words that join a look-alike script as no words; drop Greek letters that are symbols."""
    kept = []
    for run in runs:
        if run.script in _LOOKALIKES:
            touching = [i for i in span if tokens.ends[i] == run.start or tokens.starts[i] == run.end]
            for i in touching:
                tokens.words[i] = NO_WORD
            if run.script == "Greek" and run.letters <= 2 and not touching:
                continue
        kept.append(run)
    return kept


def _sentence(
    text: str, runs: list[_Run], tokens: Tokens, span: range, who: Candidates, units: list[Unit], left: list[int]
) -> None:
    weight: Counter[str] = Counter()
    for run in runs:
        weight["Han" if run.script == "Kana" else run.script] += run.letters * script.WEIGHTS.get(run.script, 1.0)
    host, host_weight = weight.most_common(1)[0]
    latin = sum(tokens.sizes[i] for i in span)
    foreign = set(span)
    if host_weight >= _HOST_SHARE * (host_weight + latin):
        foreign = _not_terms(text, tokens, span, who)
    left += sorted(foreign)
    for name in weight:
        own = [run for run in runs if run.script == name or (name == "Han" and run.script == "Kana")]
        if name == "Han" and weight["Hangul"] > weight["Han"]:
            code = _only("ko", "Hangul", who)  # Chinese characters in a Korean sentence
            units += [(run.start, run.end, run.letters, code) for run in own]
        elif name == "Han":
            code = _east_asian(text, own, who, units)
        else:
            code = _by_script(text, name, own, who)
            units += [(run.start, run.end, run.letters, code) for run in own]
        if name == host:
            units += [(tokens.starts[i], tokens.ends[i], tokens.sizes[i], code) for i in span if i not in foreign]


def _not_terms(text: str, tokens: Tokens, span: range, who: Candidates) -> set[int]:
    """Indices of the Latin words of a sentence in another script that are prose, not terms taken over."""
    functional = sum(tokens.words[i] in who.function_words for i in span)
    if functional >= _FUNCTION_WORDS and functional >= _FUNCTION_SHARE * len(span):
        return set(span)
    prose = {i for i in span if tokens.words[i] == NO_WORD}
    row: list[int] = []
    for i in span:
        if row and text[tokens.ends[i - 1] : tokens.starts[i]].strip(" -'’"):
            row = []
        row.append(i)
        if len(row) >= _ROW:
            prose.update(row)
    return prose


def _only(code: str, name: str, who: Candidates) -> str:
    return code if code in who.by_script.get(name, ()) else "unknown"


def _east_asian(text: str, runs: list[_Run], who: Candidates, units: list[Unit]) -> str:
    han = "".join(text[run.start : run.end] for run in runs if run.script == "Han")
    code = script.east_asian(han, sum(run.letters for run in runs if run.script == "Kana"))
    names = {"Han": code, "Kana": "ja"}
    if code == "zh+ja":
        names["Han"] = code = "zh"
    elif code == "":
        names["Han"] = code = EITHER_HAN
    for run in runs:
        name = names[run.script]
        units.append((run.start, run.end, run.letters, name if name == EITHER_HAN else _only(name, run.script, who)))
    return code if code == EITHER_HAN else _only(code, "Han", who)


def _decide_han(han: str, units: list[Unit], who: Candidates, target: str | None) -> str:
    """Chinese characters that either language may write: by the rest of the text, the request, or our own words."""
    either = [code for code in ("zh", "ja") if code in who.by_script.get("Han", ())]
    if len(either) < 2:
        return either[0] if either else "unknown"
    rest = Counter(unit[3] for unit in units if unit[3] in either)
    if rest:
        return rest.most_common(1)[0][0]
    if target in either:
        return str(target)
    speaking = [code for code in either if any(word in han for word in script.own_words(code))]
    if len(speaking) == 1:
        return speaking[0]
    if script.likely_japanese(han):
        return "ja"
    return "zh" if len(han) > _LONGEST_ANSWER else EITHER_HAN


def _by_script(text: str, name: str, runs: list[_Run], who: Candidates) -> str:
    """One language for the runs of one script in a sentence."""
    codes = who.by_script.get(name, ())
    if not codes:
        return "unknown"
    if name in ("Hangul", "Kana") or sum(run.letters for run in runs) < _ASK_LETTERS:
        return codes[0]
    own = " ".join(text[run.start : run.end] for run in runs)
    if name == "Arabic" and "ar" in codes and not script.looks_persian(own):
        return "ar"
    found = probabilities(own, frozenset(codes))
    if not found:
        return codes[0]
    best = max(found, key=found.__getitem__)
    if best not in codes and found[best] >= _SURE:
        return "unknown"
    return max(codes, key=lambda code: found.get(code, 0.0))
