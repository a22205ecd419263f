# SPDX-License-Identifier: MIT-0
"""What a report is made of; every part but the runs is optional."""

import contextlib
import os
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lingoss import languages
from lingoss.errors import LingossError
from lingoss.evaluate.compare import Comparison
from lingoss.evaluate.hacks import Hacks
from lingoss.evaluate.rows import ScoredRun
from lingoss.evaluate.summary import POOLED, Summary
from lingoss.runs.files import TEMPORARY, make_folder, writing

Asked = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Curve:
    """A training curve: rows of a run's metrics.jsonl, each with `step`. `choice` says which checkpoint was taken."""

    run: str
    rows: Sequence[Mapping[str, Any]]
    choice: str = ""


@dataclass(frozen=True)
class ReportData:
    """`runs` side by side, in order of training (base, sft, grpo), with their `summaries` in the same order.

    `gates`: (label, content of gate.json). `acceptance`: content of accept.json. `hacks`: the tricks of GRPO.
    `training_languages`: how often each (question, reasoning, answer) language triple occurs in the training data.
    `notes`: sentences of the caller that belong beside the headline, such as what the size of the model forbids to
    conclude.
    """

    runs: Sequence[ScoredRun]
    summaries: Sequence[Summary]
    comparisons: Sequence[Comparison] = ()
    gates: Sequence[tuple[str, Mapping[str, Any]]] = ()
    acceptance: Mapping[str, Any] | None = None
    hacks: Hacks | None = None
    curves: Sequence[Curve] = ()
    training_languages: Mapping[Asked, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    title: str = "lingoss: does it think and answer in the language asked for?"

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Requested languages of all runs."""
        return tuple(dict.fromkeys(code for run in self.runs for code in run.languages))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """All languages together, then each: the rows of every table."""
        return (POOLED, *self.languages)

    @cached_property
    def prompt_languages(self) -> Mapping[Asked, int]:
        """The same triples for the prompts of the evaluation, each prompt once."""
        seen = {
            row.prompt_id: (row.question_language, row.reasoning_language, row.answer_language)
            for run in self.runs
            for row in run.rows
        }
        return Counter(seen.values())


def language_name(code: str) -> str:
    """English name for a reader; the code itself where nobody knows one."""
    if code == POOLED:
        return "All languages"
    try:
        return languages.get(code).name
    except LingossError:
        return code


def write(path: Path, text: str) -> None:
    """Write a report whole or not at all. Lone surrogates become escapes, since UTF-8 has no bytes for them.

    Raises:
        LingossError: the folder cannot be written, or the disk is full; an older report then stays.
    """
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}{TEMPORARY}")
    with writing(path):
        try:
            with temporary.open("xb") as file:
                file.write(text.encode("utf-8", "backslashreplace"))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
