# SPDX-License-Identifier: MIT-0
"""Letters of a text that the detector read in no language: those of code, formulas, addresses, codes and ciphers.

Some belong to honest text. Many of them beside a sentence of the right language are thinking that nobody judged.
"""

import re

_COMMAND = re.compile(r"\\[A-Za-z]+")  # of LaTeX; a formula is made of them, but of few different ones
# Signs that stand for letters one by one: Braille, the letters of flags, invisible tags.
_SIGN = re.compile("[\u2800-\u28ff\U0001f1e6-\U0001f1ff\U000e0020-\U000e007f]")

_FREE, _FAIR, _TOO_MANY = 24, 1.5, 3.0  # letters, and letters for each one read
_LEAST, _MOST = 12, 24  # letters of an answer that is in no language: units and unknowns need a few


def beside(text: str, read: int, weighted: float) -> float:
    """Credit (0..1) of a trace in which `read` letters were judged, as much as `weighted` Latin ones: 1 for few others.

    In the detector's cases, code and formulas included, there are at most 1.2 for each letter read.
    """
    most = _FREE + _FAIR * weighted
    if len(text) - read <= most:
        return 1.0
    over = _letters(text) - read - most
    return min(1.0, max(0.0, 1.0 - over / max(1.0, (_TOO_MANY - _FAIR) * weighted)))


def alone(text: str) -> float:
    """Credit (0..1) of an answer in no language: less when it is words in disguise ("finalPriceAfterDiscount = 68")."""
    if len(text) <= _LEAST:
        return 1.0
    return min(1.0, max(0.0, (_MOST - _letters(text)) / (_MOST - _LEAST)))


def _letters(text: str) -> int:
    shown, commands = text, set[str]()
    if "\\" in text:
        commands = set(_COMMAND.findall(text))
        shown = _COMMAND.sub(" ", text)
    letters = sum(map(str.isalpha, shown)) + sum(map(len, commands)) - len(commands)
    return letters + (0 if text.isascii() else len(_SIGN.findall(text)))
