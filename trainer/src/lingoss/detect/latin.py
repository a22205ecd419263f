# SPDX-License-Identifier: MIT-0
"""Languages of the Latin-script words of a text: sentence voting by word evidence and fastText.

A text is a row of words, each in one language. Changing the language costs evidence, less at the end of a sentence:
so a name or a loan word changes nothing, a foreign sentence is found, and so is a longer stretch within a sentence.
The cheapest reading is found exactly (Viterbi); for the usual text in one language two vector sums show that no other
reading can win.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lingoss.detect.candidates import Candidates
from lingoss.detect.fasttext_model import probabilities
from lingoss.detect.tokens import Tokens
from lingoss.detect.words import CEILING, NO_WORD, UNKNOWN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]  # one row per word, one column per listed language, and a last one for "unknown"
    Sizes = NDArray[np.int64]

# Costs of a change of language, in powers of ten: some four clear words within a sentence, two at its end.
_WITHIN = 3.0
_BETWEEN = 1.5
_TO_UNKNOWN = 1.5  # more, because rare words stand together in any list of things

# fastText is asked about sentences of so many letters that the words alone leave open.
_ASK_LETTERS = 10
_DECISIVE = 0.6  # powers of ten a word between the first and the second language
_LEAST_LEAD = 3.0
_FASTTEXT_WEIGHT = 1.5
_FASTTEXT_WEIGHT_ALONE = 3.0  # for a language without a word list

# A text is accepted for the language asked for when that is at least a fifth as likely as the best.
TOLERANCE = -math.log10(0.2)

# A word speaks against the language of its sentence when another one has it this many powers of ten more often.
_FOREIGN = 1.5


def languages_of(tokens: Tokens, first: Sequence[int], who: Candidates) -> list[str]:
    """The language of each word ("unknown" included). `first`: indices of the words that begin a sentence, from 0."""
    import numpy as np

    plain = who.evidence.rows(tokens.words)
    rows = np.minimum(plain, CEILING)
    sizes = np.array(tokens.sizes)
    unlisted = _ask_fasttext(tokens, first, rows, sizes, who)
    bonus = np.zeros(rows.shape[1], dtype=np.float32)
    if who.target in who.listed:
        bonus[who.listed.index(who.target)] = TOLERANCE
    elif who.target in who.unlisted:
        bonus[-1] = TOLERANCE
    codes = [*who.listed, ""]
    labels = [codes[state] for state in _read(rows, first, bonus)]
    _loosen(labels, plain, sizes, who)
    return [label or unlisted.get(at, "unknown") for at, label in enumerate(labels)]


def _ask_fasttext(
    tokens: Tokens, first: Sequence[int], rows: "Rows", sizes: "Sizes", who: Candidates
) -> dict[int, str]:
    """Add fastText's opinion on open sentences to the rows; returns by word the unlisted language that it names."""
    import numpy as np

    unlisted: dict[int, str] = {}
    bounds = [*first, len(tokens.words)]
    counts = np.diff(bounds)
    sums = np.add.reduceat(rows, first, axis=0)
    ranked = np.sort(sums, axis=1)
    is_open = ranked[:, -1] - ranked[:, -2] < np.maximum(_LEAST_LEAD, _DECISIVE * counts)
    is_open |= ranked[:, -1] <= UNKNOWN * counts
    if who.unlisted:
        is_open[:] = True
    is_open &= np.add.reduceat(sizes, first) >= _ASK_LETTERS
    for at in np.flatnonzero(is_open).tolist():
        start, end = bounds[at], bounds[at + 1]
        words = [word for word in tokens.words[start:end] if word != NO_WORD]
        found = probabilities(" ".join(words).lower(), who.unlisted)
        if not found:
            continue
        weight = _FASTTEXT_WEIGHT
        other = max(who.unlisted & found.keys(), key=found.__getitem__, default="")
        if other:
            # Words cannot speak for a language without a list: they abstain, and fastText decides alone.
            rows[start:end, -1] = sums[at, :-1].max() / (end - start)
            weight = _FASTTEXT_WEIGHT_ALONE
        else:
            other = max((code for code in found if code not in who.listed), key=found.__getitem__, default="")
        own = np.array([found.get(code, 0.0) for code in (*who.listed, other)], dtype=np.float32)
        rows[start:end] += weight * np.log10(np.maximum(own, 0.01)) / (end - start)
        if other in who.allowed and found[other] >= 0.5 * max(found.values()):
            unlisted.update(dict.fromkeys(range(start, end), other))
    return unlisted


def _read(rows: "Rows", first: Sequence[int], bonus: "Rows") -> list[int]:
    """The cheapest reading: one column index per word."""
    import numpy as np

    host = int((rows.sum(axis=0) + bonus).argmax())
    against = rows - rows[:, host : host + 1]
    gain = np.cumsum(against, axis=0)
    stretch = gain - np.minimum.accumulate(gain - against, axis=0)  # the best sum of neighbours that ends here
    if stretch.max() < 2 * _BETWEEN:
        return [host] * len(rows)
    return _viterbi(rows, first, bonus)


def _viterbi(rows: "Rows", first: Sequence[int], bonus: "Rows") -> list[int]:
    begins = set(first)
    table = rows.tolist()
    width = range(len(bonus))
    value = [a + b for a, b in zip(table[0], bonus.tolist(), strict=True)]
    back: list[tuple[int, list[bool]]] = []  # best column before, and which columns went on
    for at in range(1, len(table)):
        best = max(value)
        changed = [best - (_BETWEEN if at in begins else _WITHIN)] * len(value)
        changed[-1] -= _TO_UNKNOWN
        stayed = [value[i] >= changed[i] for i in width]
        back.append((value.index(best), stayed))
        row = table[at]
        value = [(value[i] if stayed[i] else changed[i]) + row[i] for i in width]
    column = value.index(max(value))
    columns = [column]
    for best_before, stayed in reversed(back):
        if not stayed[column]:
            column = best_before
        columns.append(column)
    columns.reverse()
    return columns


def _loosen(labels: list[str], plain: "Rows", sizes: "Sizes", who: Candidates) -> None:
    """Take out of a language the words of another that are strewn over its sentences, changing `labels` in place.

    Terms are borrowed (nouns, verbs), function words are not: where many of those belong to another language, or half
    of the letters do, the sentence only poses as one of this language.
    """
    import numpy as np

    for code in [label for label in dict.fromkeys(labels) if label]:
        at = np.array([i for i, label in enumerate(labels) if label == code])
        part = plain[at, :-1]
        best = part.max(axis=1)
        foreign = best - part[:, who.listed.index(code)] >= _FOREIGN
        if not foreign.any():
            continue
        functional = np.count_nonzero(foreign & (best >= CEILING))
        share = sizes[at][foreign].sum() / sizes[at].sum()
        if share >= 0.5 or (share >= 0.2 and functional >= max(3, 0.15 * len(at))):
            columns = part[foreign].argmax(axis=1)
            for i, column in zip(at[foreign].tolist(), columns.tolist(), strict=True):
                labels[i] = who.listed[column]
