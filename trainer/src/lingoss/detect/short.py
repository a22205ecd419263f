# SPDX-License-Identifier: MIT-0
"""Short texts in Latin letters: which languages could this be? A few words are often valid in several."""

from dataclasses import dataclass

from lingoss.detect.candidates import Candidates
from lingoss.detect.fasttext_model import probabilities
from lingoss.detect.latin import TOLERANCE
from lingoss.detect.tokens import Tokens
from lingoss.detect.words import MISSING, NO_WORD, UNKNOWN

# Up to so many words, or fewer letters, the words decide; fastText alone takes short answers for English.
WORDS = 4
LETTERS = 25

_CONFIDENT = 0.6  # probability below which no language is named


@dataclass(frozen=True, slots=True)
class Reading:
    """The language to name ("" when none stands out), all by likelihood, and those that the text may be in."""

    best: str = ""
    ranked: tuple[str, ...] = ()
    compatible: frozenset[str] = frozenset()


def read(tokens: Tokens, who: Candidates, target: str | None) -> Reading:
    """Weigh the words of a short text for every candidate."""
    if NO_WORD in tokens.words:
        return Reading()
    rows = who.evidence.rows(tokens.words)
    score = dict(zip(who.listed, rows[:, :-1].sum(axis=0).tolist(), strict=True))
    known = rows[:, :-1].max(axis=1) > MISSING
    sizes = tokens.sizes
    if 2 * sum(size for size, has in zip(sizes, known.tolist(), strict=True) if has) < sum(sizes) or target in who.unlisted:
        return _by_fasttext(tokens, who)
    best = max(score.values())
    if best <= (UNKNOWN - 1.0) * len(rows):
        return Reading()
    return _reading({code: 10 ** (value - best) for code, value in score.items()}, who)


def _by_fasttext(tokens: Tokens, who: Candidates) -> Reading:
    """For words that no list has, and languages that have no list."""
    found = probabilities(" ".join(tokens.words), who.unlisted)
    own = {code: value for code, value in found.items() if code in who.listed or code in who.unlisted}
    if not own or max(own.values()) < 0.5 * max(found.values()):
        return Reading()
    return _reading(own, who)


def _reading(likelihood: dict[str, float], who: Candidates) -> Reading:
    ranked = sorted(likelihood, key=likelihood.__getitem__, reverse=True)
    best = likelihood[ranked[0]]
    named = ranked[0] in who.allowed and best >= _CONFIDENT * sum(likelihood.values())
    compatible = (code for code in ranked if likelihood[code] >= best * 10**-TOLERANCE)
    return Reading(ranked[0] if named else "", tuple(ranked), who.allowed.intersection(compatible))
