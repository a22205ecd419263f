# SPDX-License-Identifier: MIT-0
"""Languages of the Latin-script words of a text: sentence voting by word evidence and fastText.

A text is a row of words, each in one language. Changing the language costs evidence, less at the end of a sentence:
so a name or a loan word changes nothing, a foreign sentence is found, and so is a longer stretch within a sentence.
The cheapest reading is found exactly (Viterbi); for the usual text in one language two vector sums show that no other
reading can win.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lingoss.detect.candidates import Candidates
from lingoss.detect.fasttext_model import probabilities
from lingoss.detect.tokens import Tokens
from lingoss.detect.words import CEILING, NO_WORD, UNKNOWN

# Costs of a change of language, in powers of ten: some four clear words within a sentence, two at its end.
_WITHIN = 3.0
_BETWEEN = 1.5

# fastText is asked about sentences of this many letters that the words alone leave open, and counts this many times.
_ASK_LETTERS = 10
_FASTTEXT_WEIGHT = 1.5
_DECISIVE = 0.6  # powers of ten a word

# A text is accepted for the language asked for when that is at least a fifth as likely as the best.
TOLERANCE = -math.log10(0.2)

# A word speaks against the language of its sentence when another one has it this many powers of ten more often.
_FOREIGN = 1.5

Rows = NDArray[np.float32]


def languages_of(tokens: Tokens, first: Sequence[int], who: Candidates, target: str | None) -> list[str]:
    """The language of each word ("unknown" included). `first`: indices of the words that begin a sentence, from 0."""
    plain = who.evidence.rows(tokens.words)
    rows = plain.copy()
    sizes = np.array(tokens.sizes)
    others = _ask_fasttext(tokens, first, rows, sizes, who)
    bonus = np.zeros(rows.shape[1], dtype=np.float32)
    if target in who.listed:
        bonus[who.listed.index(target)] = TOLERANCE
    elif target in who.unlisted:
        bonus[-1] = TOLERANCE
    states = _read(rows, first, bonus)
    codes = [*who.listed, ""]
    labels = [codes[state] for state in states]
    _loosen(labels, plain, sizes, who)
    return [label or others.get(at, "unknown") for at, label in enumerate(labels)]


def _ask_fasttext(tokens: Tokens, first: Sequence[int], rows: Rows, sizes: NDArray[np.int64], who: Candidates) -> dict[int, str]:
    """Add fastText's opinion to the rows; returns the unlisted language that it names, by word."""
    others: dict[int, str] = {}
    bounds = [*first, len(tokens.words)]
    sums = np.add.reduceat(rows, first, axis=0)
    ranked = np.sort(sums, axis=1)
    counts = np.diff(bounds)
    open_ = (ranked[:, -1] - ranked[:, -2] < np.maximum(3.0, _DECISIVE * counts)) | (ranked[:, -1] <= UNKNOWN * counts)
    letters = np.add.reduceat(sizes, first)
    for at in range(len(first)) if who.unlisted else np.flatnonzero(open_ & (letters >= _ASK_LETTERS)).tolist():
        start, end = bounds[at], bounds[at + 1]
        words = [word for word in tokens.words[start:end] if word != NO_WORD]
        found = probabilities(" ".join(words), who.unlisted) if letters[at] >= _ASK_LETTERS else {}
        if not found:
            continue
        other = max((code for code in found if code not in who.listed), key=found.__getitem__, default="")
        own = np.array([found.get(code, 0.0) for code in (*who.listed, other)], dtype=np.float32)
        opinion = _FASTTEXT_WEIGHT * np.log10(np.maximum(own, 0.01))
        unlisted = max(who.unlisted & found.keys(), key=found.__getitem__, default="")
        if unlisted:
            # Words cannot speak for a language without a list: there fastText decides alone.
            rows[start:end, -1] = sums[at, :-1].max() / (end - start)
            opinion = 3.0 * np.log10(np.maximum(own, 0.001))
            opinion[-1] = 3.0 * math.log10(max(found[unlisted], 0.001))
            other = unlisted
        rows[start:end] += opinion / (end - start)
        if other in who.allowed and found[other] >= 0.5 * max(found.values()):
            others.update(dict.fromkeys(range(start, end), other))
    return others


def _read(rows: Rows, first: Sequence[int], bonus: Rows) -> list[int]:
    """The cheapest reading: one column index per word."""
    total = rows.sum(axis=0) + bonus
    host = int(total.argmax())
    against = rows - rows[:, host : host + 1]
    gain = np.cumsum(against, axis=0)
    stretch = gain - np.minimum.accumulate(gain - against, axis=0)  # the best sum of neighbours that ends here
    if stretch.max() < 2 * _BETWEEN:
        return [host] * len(rows)
    return _viterbi(rows, first, bonus)


def _viterbi(rows: Rows, first: Sequence[int], bonus: Rows) -> list[int]:
    begins = set(first)
    table = rows.tolist()
    width = range(len(bonus))
    value = [a + b for a, b in zip(table[0], bonus.tolist(), strict=True)]
    back: list[tuple[int, list[bool]]] = []  # best state before, and which states stayed
    for at in range(1, len(table)):
        best = max(value)
        changed = best - (_BETWEEN if at in begins else _WITHIN)
        back.append((value.index(best), [v >= changed for v in value]))
        row = table[at]
        value = [(value[i] if value[i] >= changed else changed) + row[i] for i in width]
    state = value.index(max(value))
    states = [state]
    for best_before, stayed in reversed(back):
        if not stayed[state]:
            state = best_before
        states.append(state)
    states.reverse()
    return states


def _loosen(labels: list[str], plain: Rows, sizes: NDArray[np.int64], who: Candidates) -> None:
    """Take out of a language the words of another that are strewn over its sentences, changing `labels` in place.

    Terms are borrowed (nouns, verbs), function words are not: where many of those belong to another language, or half
    of the letters do, the sentence only poses as one of this language.
    """
    for code in set(labels) - {""}:
        host = who.listed.index(code)
        at = np.array([i for i, label in enumerate(labels) if label == code])
        part = plain[at]
        margin = part[:, :-1] - part[:, host : host + 1]
        best = margin.argmax(axis=1)
        foreign = margin[np.arange(len(at)), best] >= _FOREIGN
        if not foreign.any():
            continue
        functional = foreign & (part[:, :-1].max(axis=1) >= CEILING)
        share = sizes[at][foreign].sum() / sizes[at].sum()
        if (functional.sum() >= 3 and functional.sum() >= 0.15 * len(at) and share >= 0.2) or share >= 0.5:
            for i, column in zip(at[foreign].tolist(), best[foreign].tolist(), strict=True):
                labels[i] = who.listed[column]
