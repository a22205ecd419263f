# SPDX-License-Identifier: MIT-0
"""Read a text as a person sees it: without invisible characters, and with disguised letters as plain ones.

Styled letters (mathematical, circled, full-width, small capitals), zero-width characters between letters and
piled-up accents are the cheapest ways to keep a detector from reading a text that people still can.
"""

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache

# Ranges in which single characters are styled forms of plain ones.
_STYLED = (
    (0x0250, 0x02B8),
    (0x02E0, 0x02E4),
    (0x1D00, 0x1DBF),
    (0x2070, 0x209C),
    (0x2100, 0x214F),
    (0x2460, 0x24FF),
    (0x2C7C, 0x2C7D),
    (0xA730, 0xA731),
    (0xFF10, 0xFF19),
    (0xFF21, 0xFF3A),
    (0xFF41, 0xFF5A),
    (0x1D400, 0x1D7FF),
    (0x1F110, 0x1F189),
)
_MARKS = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a\u202b\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
_DIRTY = re.compile("[\u202c-\u202e" + _MARKS + _INVISIBLE + "".join(f"{chr(a)}-{chr(b)}" for a, b in _STYLED) + "]")
_ODD_PIECE = re.compile(f"([^{_MARKS}{_INVISIBLE}\n])([{_MARKS}]+)|[{_INVISIBLE}{_MARKS}]+", re.DOTALL)
_REVERSED = re.compile("[\u202d\u202e][^\u202c\n]*")


@dataclass(frozen=True, slots=True)
class Clean:
    """`text` to judge; `hidden`: [start, end, letters] of stretches that people cannot read as they are stored."""

    text: str
    hidden: tuple[tuple[int, int, int], ...] = ()
    _clean_starts: tuple[int, ...] = ()
    _shifts: tuple[int, ...] = ()

    def original(self, offset: int) -> int:
        """Offset in the original text of an offset in the clean one."""
        if not self._shifts:
            return offset
        at = bisect_right(self._clean_starts, offset) - 1
        return offset + (self._shifts[at] if at >= 0 else 0)


def clean(text: str) -> Clean:
    """Drop what cannot be seen and replace styled letters by plain ones; offsets can be mapped back."""
    if text.isascii() or not _DIRTY.search(text):
        return Clean(text)
    text = text.translate(_plain())
    pieces: list[str] = []
    starts: list[int] = []
    shifts: list[int] = []
    done = length = 0
    for match in _ODD_PIECE.finditer(text):
        pieces.append(text[done : match.start()])
        length += match.start() - done
        if match.group(1):
            # Three marks at most: composing a pile of thousands would not be linear.
            pieces.append(unicodedata.normalize("NFC", match.group(1) + match.group(2)[:3])[0])
            length += 1
        done = match.end()
        starts.append(length)
        shifts.append(done - length)
    pieces.append(text[done:])
    text = "".join(pieces)
    hidden = []
    if "\u202e" in text or "\u202d" in text:
        # An override turns the order of what is shown: the stored order is not a text of any language.
        for match in _REVERSED.finditer(text):
            hidden.append((match.start(), match.end(), sum(map(str.isalpha, match.group()))))
        text = _REVERSED.sub(lambda match: " " * len(match.group()), text)
    return Clean(text, tuple(hidden), tuple(starts), tuple(shifts))


@cache
def _plain() -> dict[int, str]:
    """Code point of a styled character -> the one plain character that it stands for."""
    table = {0x0251: "a", 0x0261: "g"}
    for first, last in _STYLED:
        for point in range(first, last + 1):
            character = chr(point)
            name = unicodedata.name(character, "")
            normal = unicodedata.normalize("NFKC", character)
            small_capital = name.startswith("LATIN LETTER SMALL CAPITAL ")
            in_a_box = point >= 0x1F110 and "LATIN" in name
            if (small_capital or in_a_box) and name[-2:-1] == " " and name[-1].isalpha():
                table[point] = name[-1].lower()
            elif normal != character and len(normal) == 1:
                table[point] = normal
    return table
