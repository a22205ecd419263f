# SPDX-License-Identifier: MIT-0
"""Helpers that several chat formats share."""

import unicodedata
from collections.abc import Callable, Iterable, Sequence

from lingoss.errors import LingossError

Decode = Callable[[Sequence[int]], str]

CHAT_STOP = ("<|im_end|>", "</s>", "<|endoftext|>", "<|eot_id|>")

# "</s>" also closes struck-out text in HTML, so inside a text it is only text; the others can be nothing but a stop.
_HARD_STOP = tuple(token for token in CHAT_STOP if token != "</s>")

# Letters and symbols by category that a reader nevertheless cannot see: fillers of Hangul and the blank of Braille.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def is_visible(text: str) -> bool:
    """True when at least one character of `text` leaves ink: a letter, digit, sign or symbol.

    Spaces, controls, zero-width characters, marks without a base, and unassigned or private code points do not.
    """
    return any(unicodedata.category(char)[0] in "LNPS" and char not in _BLANK for char in text)


def end_of_turn(text: str) -> tuple[str, bool]:
    """Cut `text` at the model's own stop token; returns the text before it and whether nothing but padding follows."""
    cut = min((at for token in _HARD_STOP if (at := text.find(token)) >= 0), default=len(text))
    kept, rest = text[:cut], text[cut:]
    for token in CHAT_STOP:
        rest = rest.replace(token, "")
    end = _without_trailing_space(kept, len(kept))
    while kept.endswith("</s>", 0, end):
        end = _without_trailing_space(kept, end - len("</s>"))
    return kept[:end], not rest.strip()


def _without_trailing_space(text: str, end: int) -> int:
    while end and text[end - 1].isspace():
        end -= 1
    return end


def decode_safely(ids: Iterable[int], decode: Decode | None, format: str) -> str:
    """Decode token ids; an id that `decode` refuses becomes U+FFFD instead of an error.

    Raises:
        LingossError: `decode` is missing.
    """
    if decode is None:
        raise LingossError(
            f"token ids of the format {format!r} need `decode`, the tokenizer's function from ids to text"
        )
    numbers = [int(number) for number in ids]
    try:
        return decode(numbers)
    except Exception:  # a tokenizer may raise anything for an id outside its vocabulary
        return "".join(_decode_one(number, decode) for number in numbers)


def _decode_one(number: int, decode: Decode) -> str:
    try:
        return decode([number])
    except Exception:
        return "\ufffd"
