# SPDX-License-Identifier: MIT-0
"""Languages of the parts of a text that are not in Latin letters, and of the Latin words among them."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from lingoss.detect import script
from lingoss.detect.candidates import Candidates
from lingoss.detect.fasttext_model import probabilities
from lingoss.detect.tokens import Tokens
from lingoss.detect.words import NO_WORD

# A sentence belongs to a script with this share of its (weighted) letters: the rest are terms, mostly English ones.
_HOST_SHARE = 0.3
# But words in a row like this, or function words, are no terms ("Lord of the Rings" is one).
_ROW = 5
_FUNCTION_WORDS = 3
_FUNCTION_SHARE = 0.25

_GLUED = 5

_LONE = 2  # so few Latin words in the whole text

# Scripts with letters that look like Latin ones; a word that joins both is a disguise.
_LOOKALIKES = frozenset({"Greek", "Cyrillic", "Armenian", "Other"})
_ASK_LETTERS = 20
_SURE = 0.8
_LONGEST_ANSWER = 3  # so many Chinese characters are often a whole Japanese answer

# Chinese characters that Chinese and Japanese share, in a text that does not say which it is.
EITHER_HAN = "zh|ja"

Unit = tuple[int, int, int, str]  # start, end, letters, language


class _Run(NamedTuple):
    start: int
    end: int
    script: str
    letters: int
    text: str


def read(text: str, tokens: Tokens, ends: Sequence[int], who: Candidates) -> tuple[list[Unit], list[int]]:
    """Units of the other scripts and of absorbed Latin words, and the indices of the Latin words still to judge.

    `ends`: offsets behind each sentence of `text`. Latin words that are disguises become NO_WORD in `tokens`.
    """
    units: list[Unit] = []
    left: list[int] = []
    shared: list[int] = []  # indices of the units that may be Chinese or Japanese
    runs = _runs(text)
    token = run = 0
    for end in ends:
        first_token, first_run = token, run
        while token < len(tokens.starts) and tokens.starts[token] < end:
            token += 1
        while run < len(runs) and runs[run].start < end:
            run += 1
        span = range(first_token, token)
        here = _undisguise(runs[first_run:run], tokens, span) if run > first_run else []
        if not here:
            left += span
            continue
        known = len(units)
        left += _sentence(text, here, tokens, span, who, units)
        shared += (at for at in range(known, len(units)) if units[at][3] == EITHER_HAN)
    if shared:
        code = _decide_han("".join(text[units[at][0] : units[at][1]] for at in shared), units, who)
        for at in shared:
            units[at] = (*units[at][:3], code)
    return units, _absorb_lone(tokens, left, units, who)


def _absorb_lone(tokens: Tokens, left: list[int], units: list[Unit], who: Candidates) -> list[int]:
    """Take one or two Latin words that stand in sentences of their own ("OK!") for terms of the rest of the text."""
    if not 0 < len(left) <= _LONE:
        return left
    words = [tokens.words[at].lower() for at in left]
    count: Counter[str] = Counter()
    for _, _, size, code in units:
        count[code] += size
    host, letters = count.most_common(1)[0] if count else ("unknown", 0)
    dense = script.WEIGHTS["East"] if host in ("zh", "ja", "ko") else 1.0
    prose = any(word == NO_WORD or word in who.function_words for word in words)
    if prose or host not in who.allowed or sum(tokens.sizes[at] for at in left) > dense * letters:
        return left
    units += [(tokens.starts[at], tokens.ends[at], tokens.sizes[at], host) for at in left]
    return []


def _runs(text: str) -> list[_Run]:
    runs = []
    for match in script.RUN.finditer(text):
        part = match.group()
        size = sum(map(str.isalpha, part))
        if size:
            runs.append(_Run(match.start(), match.end(), match.lastgroup or "Other", size, part))
    return runs


def _undisguise(runs: list[_Run], tokens: Tokens, span: range) -> list[_Run]:
    """Mark Latin words that join a look-alike script as no words; drop Greek letters that are symbols."""
    kept = []
    for run in runs:
        if run.script in _LOOKALIKES:
            touching = [at for at in span if tokens.ends[at] == run.start or tokens.starts[at] == run.end]
            for at in touching:
                tokens.words[at] = NO_WORD
            if run.script == "Greek" and run.letters <= 2 and not touching:
                continue
        kept.append(run)
    return kept


def _sentence(
    text: str, runs: list[_Run], tokens: Tokens, span: range, who: Candidates, units: list[Unit]
) -> Sequence[int]:
    """Add the units of one sentence; returns the indices of its Latin words that are not terms of its language."""
    by_script: dict[str, list[_Run]] = {}
    for run in runs:
        by_script.setdefault(run.script, []).append(run)
    weight = {name: sum(run.letters for run in own) * script.WEIGHTS.get(name, 1.0) for name, own in by_script.items()}
    host = max(weight, key=weight.__getitem__)
    latin = sum(tokens.sizes[at] for at in span)
    foreign: Sequence[int] = span
    if latin and weight[host] >= _HOST_SHARE * (weight[host] + latin):
        foreign = _not_terms(text, tokens, span, who)
        if len(foreign) < len(span) and _is_glue(host, by_script[host], tokens, span, who):
            foreign = span
    for name, own in by_script.items():
        if name == "East" and weight.get("Hangul", 0.0) > weight[name]:
            code = _only("ko", "Hangul", who)  # Chinese characters in a Korean sentence
        elif name == "East":
            code = _east_asian(own, who, units)
        else:
            code = _by_script(name, own, who)
        if name != "East" or code == "ko":
            units += [(run.start, run.end, run.letters, code) for run in own]
        if name == host and len(foreign) < len(span):
            terms = set(span).difference(foreign)
            units += [(tokens.starts[at], tokens.ends[at], tokens.sizes[at], code) for at in sorted(terms)]
    return foreign


def _not_terms(text: str, tokens: Tokens, span: range, who: Candidates) -> Sequence[int]:
    """Indices of the Latin words of a sentence in another script that are prose, not terms taken over."""
    functional = sum(tokens.sizes[at] > 1 and tokens.words[at].lower() in who.function_words for at in span)
    if functional >= max(_FUNCTION_WORDS, _FUNCTION_SHARE * len(span)) or 2 * functional > len(span) >= 3:
        return span
    prose = {at for at in span if tokens.words[at] == NO_WORD}
    row: list[int] = []
    for at in span:
        if row and text[tokens.ends[at - 1] : tokens.starts[at]].strip(" -'’"):
            row = []
        row.append(at)
        if len(row) >= _ROW:
            prose.update(row[-_ROW:])
    return sorted(prose)


def _is_glue(host: str, runs: list[_Run], tokens: Tokens, span: range, who: Candidates) -> bool:
    """Whether a sentence is made of Latin words, and its other script only gives the particles and endings between.

    Names and abbreviations do not count: a list of them is no foreign sentence.
    """
    plain = sum(tokens.words[at].islower() for at in span)
    if plain < _GLUED:
        return False
    plain = sum(tokens.words[at].islower() and who.evidence.knows(tokens.words[at]) for at in span)
    if plain < _GLUED:
        return False
    if host == "East":
        return sum(len(script.HIRAGANA.sub("", run.text)) for run in runs) < plain
    ends = {tokens.ends[at] for at in span}
    own = sum(len(run.text.split()) - (run.start in ends) for run in runs)
    return host == "Hangul" and 2 * own <= plain


def _only(code: str, name: str, who: Candidates) -> str:
    return code if code in who.by_script.get(name, ()) else "unknown"


def _east_asian(runs: list[_Run], who: Candidates, units: list[Unit]) -> str:
    """Add the units of Chinese characters and kana in a sentence; returns the language of the sentence."""
    whole = "".join(run.text for run in runs)
    han = script.KANA.sub("", whole)
    size = sum(run.letters for run in runs)
    code = script.east_asian(han, size - sum(map(str.isalpha, han)))
    if code == "zh+ja":
        chinese, japanese = _only("zh", "Han", who), _only("ja", "Kana", who)
        for run in runs:
            done = run.start
            for kana in script.KANA.finditer(run.text):
                start, end = run.start + kana.start(), run.start + kana.end()
                units += [(done, start, start - done, chinese), (start, end, end - start, japanese)]
                done = end
            units.append((done, run.end, run.end - done, chinese))
        return chinese
    code = _only(code, "Han", who) if code else EITHER_HAN
    units += [(run.start, run.end, run.letters, code) for run in runs]
    return code


def _decide_han(han: str, units: list[Unit], who: Candidates) -> str:
    """Chinese characters that either language may write: by the rest of the text, the request, or our own words."""
    either = [code for code in ("zh", "ja") if code in who.by_script.get("Han", ())]
    if len(either) < 2:
        return either[0] if either else "unknown"
    for code in either:
        if any(word in han for word in script.weekdays(code)):
            return code
    rest = Counter(unit[3] for unit in units if unit[3] in either)
    if rest:
        return rest.most_common(1)[0][0]
    if who.target in either:
        return who.target
    speaking = [code for code in either if any(word in han for word in script.own_words(code))]
    if len(speaking) == 1:
        return speaking[0]
    if script.likely_japanese(han):
        return "ja"
    return "zh" if len(han) > _LONGEST_ANSWER else EITHER_HAN


def _by_script(name: str, runs: list[_Run], who: Candidates) -> str:
    """One language for the runs of one script in a sentence; few letters are in the one that was asked for."""
    codes = who.by_script.get(name, ())
    if not codes:
        return "unknown"
    own = " ".join(run.text for run in runs)
    if name == "Arabic":
        codes = _in_arabic_letters(own, codes, who)
    first = who.target if who.target is not None and who.target in codes else codes[0]
    if name == "Hangul" or codes == ("ar",) or sum(run.letters for run in runs) < _ASK_LETTERS:
        return first
    found = probabilities(own, frozenset(codes))
    best = max(found, key=found.__getitem__, default=first)
    if best not in codes and found[best] >= _SURE:
        return "unknown"
    return max((first, *codes), key=lambda code: found.get(code, 0.0))


def _in_arabic_letters(text: str, codes: tuple[str, ...], who: Candidates) -> tuple[str, ...]:
    """Narrow the languages: Persian and Urdu have letters of their own, which Arabic does without."""
    if script.looks_persian(text):
        return tuple(code for code in codes if code != "ar") or codes
    return ("ar",) if "ar" in codes and who.target in (None, "ar") else codes
