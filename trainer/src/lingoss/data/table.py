# SPDX-License-Identifier: MIT-0
"""The table of question, reasoning and answer languages, to be read before any training."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lingoss.data.rows import Prompt

if TYPE_CHECKING:
    from rich.table import Table

Triple = tuple[str, str, str]
_FIELDS = ("question", "reasoning", "answer", "rows")


@dataclass(frozen=True, slots=True)
class LanguageTable:
    """How many rows there are of each (question, reasoning, answer) language."""

    counts: Mapping[Triple, int]

    @property
    def total(self) -> int:
        """All rows."""
        return sum(self.counts.values())

    @property
    def crossed(self) -> int:
        """Rows whose question is not in the requested language, or that request two languages."""
        return sum(count for triple, count in self.counts.items() if len(set(triple)) > 1)

    @property
    def split_requests(self) -> int:
        """Rows that request reasoning in one language and the answer in another."""
        return sum(count for (_, reasoning, answer), count in self.counts.items() if reasoning != answer)

    def to_rows(self) -> list[dict[str, Any]]:
        """One row for each triple, by answer, reasoning and question language."""
        order = sorted(self.counts, key=lambda triple: triple[::-1])
        return [dict(zip(_FIELDS, (*triple, self.counts[triple]), strict=True)) for triple in order]

    def summary(self) -> str:
        """One line under the table."""
        if not self.total:
            return "no rows"
        crossed, split = self.crossed / self.total, self.split_requests / self.total
        return f"{self.total:,} rows, {crossed:.0%} crossed, {split:.0%} ask for two languages"

    def markdown(self) -> str:
        """The table as Markdown, its summary below: a line for each request, a column for each question language."""
        head, *body = self._cells()
        lines = [head, ["---", "---", *["---:"] * (len(head) - 2)], *body]
        return "\n".join([*(f"| {' | '.join(cells)} |" for cells in lines), "", self.summary() + "."]) + "\n"

    def rich(self) -> "Table":
        """The same table for a terminal, its summary as caption."""
        from rich.table import Table

        head, *body = self._cells()
        table = Table(title="Languages of the rows", caption=self.summary())
        for place, name in enumerate(head):
            table.add_column(name, justify="right" if place > 1 else "left")
        for cells in body:
            table.add_row(*cells)
        return table

    def _cells(self) -> list[list[str]]:
        questions = sorted({question for question, _, _ in self.counts})
        requests = sorted({(answer, reasoning) for _, reasoning, answer in self.counts})
        cells = [["reasoning", "answer", *(f"question {code}" for code in questions), "rows"]]
        for answer, reasoning in requests:
            row = [self.counts.get((question, reasoning, answer), 0) for question in questions]
            cells.append([reasoning, answer, *(f"{count:,}" if count else "" for count in row), f"{sum(row):,}"])
        return cells


def language_table(rows: Iterable[Prompt]) -> LanguageTable:
    """Count the language triples of prompts or examples."""
    return LanguageTable(Counter((row.question_language, row.reasoning_language, row.answer_language) for row in rows))
