# SPDX-License-Identifier: MIT-0
"""Short texts in Latin letters: which languages could this be? A few words are often valid in several."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lingoss.detect import rare
from lingoss.detect.candidates import Candidates
from lingoss.detect.fasttext_model import probabilities
from lingoss.detect.latin import TOLERANCE
from lingoss.detect.tokens import Tokens
from lingoss.detect.words import NO_WORD, UNKNOWN, fold, is_answer, names

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Up to so many words, or fewer letters, the words decide: fastText alone takes short answers for English.
WORDS = 4
LETTERS = 25

# Above this frequency (log10) words count the same. It is higher than for longer texts: of so few words an article
# ("De kleinste", "O menor") often says the most, while "no" stays one word of four languages.
_CEILING = -2.5
_CONFIDENT = 0.6  # probability below which no language is named
_LEAST = UNKNOWN - 1.0  # mean evidence a word; below it, one known word among unknown ones says nothing
_RARE = UNKNOWN - 0.5  # up to here the small lists say little about a word; this much a word of the large ones weighs
_RARE_CONTRAST = 0.7  # corpora disagree more about rare words
_LONGEST_RARE = 40


@dataclass(frozen=True, slots=True)
class Reading:
    """The language to name ("" when none stands out), all by likelihood, and those that the text may be in."""

    best: str = ""
    ranked: tuple[str, ...] = ()
    compatible: frozenset[str] = frozenset()


def read(tokens: Tokens, who: Candidates) -> Reading:
    """Weigh the words of a short text for every candidate."""
    import numpy as np

    words = tokens.words
    if NO_WORD in words:
        return Reading()
    own_words = _rare_words(words, who)
    if who.target in who.unlisted or not (own_words or any(map(who.evidence.knows, words))):
        found = probabilities(" ".join(words).lower(), who.unlisted)
        own = {code: value for code, value in found.items() if code in who.listed or code in who.unlisted}
        recognised = own and max(own.values()) >= 0.5 * max(found.values())
        return _reading(own, who) if recognised else Reading()
    rows = np.minimum(who.evidence.rows(words), _CEILING)
    for at, row in own_words.items():
        rows[at, :-1] = row
    for at in range(1, len(words)):
        if words[at - 1].lower() in names() and words[at][0].isupper():
            rows[at] = UNKNOWN  # a family name says no more than the given name before it
    sums = rows[:, :-1].sum(axis=0)
    best = sums.max()
    if best <= _LEAST * len(words):
        return Reading()
    likelihood = dict(zip(who.listed, (10 ** (sums - best)).tolist(), strict=True))
    if who.target in likelihood and is_answer(words, who.target):
        likelihood[who.target] = max(likelihood[who.target], 10**-TOLERANCE)  # "onze" is frequent Dutch, and eleven
    return _reading(likelihood, who)


def _rare_words(words: list[str], who: Candidates) -> "dict[int, NDArray[np.float32]]":
    """Evidence of the words that the small lists hardly know, by their place in the text."""
    import numpy as np

    found = {}
    for at, best in enumerate(who.evidence.rows(words)[:, :-1].max(axis=1).tolist()):
        plain = fold(words[at])
        if best > _RARE or len(plain) > _LONGEST_RARE or plain in names():
            continue
        logs = rare.frequencies(plain, who.listed)
        if logs is not None:
            row = np.array(logs, dtype=np.float32)
            found[at] = _RARE + _RARE_CONTRAST * (row - row.max())
    return found


def _reading(likelihood: dict[str, float], who: Candidates) -> Reading:
    ranked = sorted(likelihood, key=likelihood.__getitem__, reverse=True)
    best = likelihood[ranked[0]]
    named = ranked[0] in who.allowed and best >= _CONFIDENT * sum(likelihood.values())
    compatible = (code for code in ranked if likelihood[code] >= best * 10**-TOLERANCE)
    return Reading(ranked[0] if named else "", tuple(ranked), who.allowed.intersection(compatible))
