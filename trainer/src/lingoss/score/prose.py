# SPDX-License-Identifier: MIT-0
"""Is a trace made of sentences? Lists of words and strings of function words are in a language, and say nothing.

All bounds lie far outside what honest text reaches. Measured on the traces of all problem families in five languages,
of all test cases and on the detector's documents: function words make 0.14 to 0.68 of the words, at most 5 stand in a
row, and of 50 words in a row at least 0.6 are different ones.
"""

from lingoss.detect.words import function_words, has_list
from lingoss.score.ngrams import Units
from lingoss.score.relevance import number_words

_LEAST = 12  # words; of fewer nothing can be said
_FEW, _SOME = 0.02, 0.08  # share of function words: a list of words at or below the first, fine from the second on
_MOST, _ALL = 0.80, 0.95
_ROW, _LONG_ROW = 7, 12  # function words in a row
_NUMBERS, _MANY_NUMBERS = 16, 40  # numbers in a row: a sequence or a long sum is fine, a list of all numbers is not
_WINDOW = 50
_VARIED, _UNVARIED = 0.45, 0.2  # share of different words in a window: fine from the first on, nothing at the second


def prose(found: Units, language: str) -> float:
    """1 for a text of sentences, 0 for a list or a string of words, something in between where it is not clear.

    `found`: the units of a text; `language`: the code that it should be in. Languages without a list of frequent words
    (those of other scripts than Latin) are judged by numbers and variety alone.
    """
    spelled = number_words(language)
    words = [unit for unit in found if unit.isalpha() and unit not in spelled]
    credit = 1.0
    if len(found) - len(words) > _NUMBERS:
        longest = _longest(["+" if unit[0].isdigit() or unit in spelled else " " for unit in found])
        credit = 1.0 - _ramp(longest, _NUMBERS, _MANY_NUMBERS)
    if len(words) < _LEAST:
        return credit
    windows = [words[start : start + _WINDOW] for start in range(0, max(1, len(words) - _WINDOW // 2), _WINDOW)]
    if len(words[0]) > 1 or words[0] < "\u0e00":  # characters of unspaced scripts recur more than words do
        varied = sum(len(set(window)) / len(window) for window in windows) / len(windows)
        credit *= _ramp(varied, _UNVARIED, _VARIED)
    if has_list(language):
        frequent = function_words((language,))
        marks = ["+" if word in frequent else " " for word in words]
        share = marks.count("+") / len(words)
        credit *= _ramp(share, _FEW, _SOME) * (1.0 - _ramp(share, _MOST, _ALL))
        credit *= 1.0 - _ramp(_longest(marks), _ROW, _LONG_ROW)
    return credit


def _longest(marks: list[str]) -> int:
    """Length of the longest run of "+"."""
    return max(map(len, "".join(marks).split(" ")))


def _ramp(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low)))
