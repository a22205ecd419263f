# SPDX-License-Identifier: MIT-0
"""The rows that everything else reads: a prompt, a training example, and what a loader found."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lingoss.errors import LingossError

if TYPE_CHECKING:
    from lingoss.score import Request

Turn = tuple[str, str]  # (role, content) of a message before the question


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question and the two languages it is to be reasoned about and answered in. Languages are codes.

    `item` is the same for all translations and crossings of one drawn problem: the cluster of every bootstrap.
    `history` holds what came before the question: an optional ("system", text) first, then turns of the chat.
    """

    id: str
    item: str
    family: str
    question: str
    question_language: str
    reasoning_language: str
    answer_language: str
    gold: str | None = None
    split: str = ""
    history: tuple[Turn, ...] = field(default=(), kw_only=True)

    @property
    def crossed(self) -> bool:
        """True when the question is not in the language asked for: the only prompts that show language control."""
        return not self.question_language == self.reasoning_language == self.answer_language

    def request(self) -> "Request":
        """The part of the prompt that a verdict depends on."""
        from lingoss.score import Request  # here, so that reading rows does not load the detector

        return Request(self.question, self.question_language, self.reasoning_language, self.answer_language, self.gold)

    def to_dict(self) -> dict[str, Any]:
        """A JSON row; `history` only where there is one, so that digests of plain prompts do not depend on it."""
        row = asdict(self)
        if not row["history"]:
            del row["history"]
        return row


@dataclass(frozen=True, slots=True)
class Example(Prompt):
    """A prompt with the reasoning and the answer to learn."""

    reasoning: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row of a source that cannot be used: its number (from 1) and why."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"row {self.line}: {self.reason}"


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Loaded(Generic[T]):
    """What a loader found: usable rows, rows that are not (`bad`), and remarks on rows that were kept (`notes`)."""

    source: str
    rows: Sequence[T]
    bad: Sequence[BadRow] = ()
    notes: Sequence[BadRow] = ()

    def strict(self) -> list[T]:
        """The rows, if there is at least one and none was bad.

        Raises:
            LingossError: names the first bad rows, or says that the source is empty.
        """
        if self.bad:
            shown = "; ".join(map(str, self.bad[:5]))
            more = f"; and {len(self.bad) - 5} more" if len(self.bad) > 5 else ""
            raise LingossError(f"{self.source}: {len(self.bad)} unusable row(s): {shown}{more}")
        if not self.rows:
            raise LingossError(f"{self.source}: no rows in it")
        return list(self.rows)


def digest(value: object) -> str:
    """sha256 (hex) of canonical JSON: sorted keys, no blanks, ASCII."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


def short_digest(value: object) -> str:
    """The first 16 hex digits of `digest`: ids of prompts and items."""
    return digest(value)[:16]


def prompt_digest(prompts: Iterable[Prompt]) -> str:
    """sha256 of a set of rows, whatever their order. Runs are compared only where this is equal."""
    rows = (json.dumps(row.to_dict(), sort_keys=True, separators=(",", ":")) for row in prompts)
    return digest(sorted(rows))
