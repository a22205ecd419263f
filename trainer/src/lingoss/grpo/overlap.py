# SPDX-License-Identifier: MIT-0
"""Is a prompt one that the model is measured on, or was trained on before? By family, by item and by text."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lingoss.data import Prompt
from lingoss.data.families import families
from lingoss.score.ngrams import COPIED_WORDS, copied, units

NEAR = 0.8
"""Share of a question's word groups that stand in one known question, from which on the two count as the same."""


@dataclass(frozen=True, slots=True)
class Hit:
    """`row` is too close to `known`; `why` is family, item or text."""

    row: Prompt
    known: Prompt
    why: str

    def __str__(self) -> str:
        return f"{self.row.id} ({self.why} of {self.known.split or 'a training row'} {self.known.id})"


def overlaps(rows: Iterable[Prompt], known: Sequence[Prompt]) -> list[Hit]:
    """The rows that share a family, an item or (nearly) the text of the question with a known prompt; each once.

    The text is compared in the question's own language: a translation is found by its item. Words in another order
    or other numbers are other texts. Only packaged families count as such: a file of one's own may name them freely.
    """
    packaged = {family.name for family in families()}
    kinds = {prompt.family: prompt for prompt in reversed(known) if prompt.family in packaged}
    items = {prompt.item: prompt for prompt in reversed(known)}
    texts = _Texts(known)
    found = []
    for row in rows:
        if near := kinds.get(row.family):
            found.append(Hit(row, near, "family"))
        elif near := items.get(row.item):
            found.append(Hit(row, near, "item"))
        elif near := texts.nearest(row.question):
            found.append(Hit(row, near, "text"))
    return found


class _Texts:
    """Known questions by their word groups, so that each new one is compared with the few that share some."""

    def __init__(self, known: Sequence[Prompt]) -> None:
        self._whole: dict[tuple[str, ...], Prompt] = {}
        self._groups: dict[tuple[str, ...], list[Prompt]] = defaultdict(list)
        for prompt in {prompt.question: prompt for prompt in known}.values():
            words = units(prompt.question)
            self._whole[tuple(words)] = prompt
            for group in _groups(words):
                self._groups[group].append(prompt)

    def nearest(self, question: str) -> Prompt | None:
        """The known prompt with (nearly) this question."""
        words = units(question)
        if same := self._whole.get(tuple(words)):
            return same
        shared: Counter[Prompt] = Counter()
        for group in _groups(words):
            shared.update(self._groups.get(group, ()))
        near = (prompt for prompt, _ in shared.most_common(3) if copied(question, prompt.question) >= NEAR)
        return next(near, None)


def _groups(words: Sequence[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + COPIED_WORDS]) for at in range(len(words) - COPIED_WORDS + 1)}
