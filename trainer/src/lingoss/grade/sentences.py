# SPDX-License-Identifier: MIT-0
"""The sentences of an answer: which of them asks, and which say the same of different values."""

import bisect
import re

from lingoss.grade.mention import Mention

_BREAK = re.compile(r"[!?。！？؟।\n]+|\.(?=\s|\Z)|;")
_QUESTION = re.compile(r"[?？؟]")
_DIGITS = re.compile(r"[0-9]+(?:[.,][0-9]+)*")


class Sentences:
    """Sentence spans of a text, found once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends = [match.end() for match in _BREAK.finditer(text)] or [len(text)]
        if self._ends[-1] < len(text):
            self._ends.append(len(text))
        self._asks = _QUESTION.search(text) is not None

    def index(self, mention: Mention) -> int:
        return min(bisect.bisect_right(self._ends, mention.start), len(self._ends) - 1)

    def span(self, index: int) -> tuple[int, int]:
        return (self._ends[index - 1] if index else 0), self._ends[index]

    def is_question(self, mention: Mention) -> bool:
        if not self._asks:
            return False
        start, end = self.span(self.index(mention))
        return _QUESTION.search(self._text, start, end) is not None

    def frame(self, mention: Mention) -> str:
        """The sentence with the value and all digits blanked, to see whether another says the same of another value."""
        start, end = self.span(self.index(mention))
        text = (
            f"{self._text[start : mention.start]} # {self._text[mention.end : end]}"
            if mention.word
            else self._text[start:end]
        )
        return " ".join(_DIGITS.sub(" # ", text).casefold().strip(" .!。।*#-").split())

    def ends_asking(self) -> bool:
        return self._asks and _QUESTION.search(self._text.rstrip()[-1:]) is not None

    def are_rivals(self, left: Mention, right: Mention) -> bool:
        """True when both stand at the same place among the numbers of their sentences, which are two."""
        here, there = self.index(left), self.index(right)
        return here != there and self._place(left, here) == self._place(right, there)

    def _place(self, mention: Mention, index: int) -> int:
        return len(_DIGITS.findall(self._text, self.span(index)[0], mention.start))

    @staticmethod
    def breaks(text: str) -> bool:
        """Whether a sentence ends somewhere in `text`."""
        return _BREAK.search(text) is not None
