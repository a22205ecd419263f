# SPDX-License-Identifier: MIT-0
"""Scored rows and their run card, as every later step of evaluation reads them. A bad row is kept, and counted."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from lingoss import languages
from lingoss.errors import LingossError
from lingoss.evaluate.metrics import METRICS, measure

ALL, SAME, CROSSED = "all", "same-language", "crossed"
SLICES: Mapping[str, Callable[["Row"], bool]] = {
    ALL: lambda row: True,
    CROSSED: lambda row: row.crossed,
    SAME: lambda row: not row.crossed,
}


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One scored sample. `values`: each metric of `metrics.METRICS`, NaN where the row does not count."""

    source: Mapping[str, Any] = field(repr=False)
    prompt_id: str
    sample: int
    item: str
    question_language: str
    reasoning_language: str
    answer_language: str
    crossed: bool
    values: Mapping[str, float] = field(repr=False)

    @property
    def key(self) -> tuple[str, int]:
        return self.prompt_id, self.sample

    def language(self, metric: str) -> str:
        """The requested language under which this row is filed for `metric`."""
        return self.reasoning_language if METRICS[metric].axis == "reasoning" else self.answer_language


@dataclass(frozen=True, eq=False)
class ScoredRun:
    """One evaluated model: its name in the report, its card (`run.json`), its good rows and its error rows."""

    name: str
    card: Mapping[str, Any]
    rows: tuple[Row, ...]
    errors: tuple[Mapping[str, Any], ...] = ()

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Every requested language, in order of first appearance."""
        return tuple(dict.fromkeys(code for row in self.rows for code in (row.answer_language, row.reasoning_language)))

    @cached_property
    def samples(self) -> int:
        """k: the number of samples a prompt has (the largest, when rows are missing)."""
        return max(Counter(row.prompt_id for row in self.rows).values(), default=0)

    @cached_property
    def digest(self) -> str:
        """The prompt set's digest from the card, else one of the requests in the rows."""
        return str(self.card.get("prompt_digest") or self.rows_digest)

    @cached_property
    def rows_digest(self) -> str:
        """sha256 of every prompt id and request that has a row: the check for rows that came without a card."""
        known = {row.prompt_id: row.source["request"] for row in self.rows}
        text = json.dumps(sorted(known.items()), sort_keys=True, ensure_ascii=True, default=str)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @property
    def detector(self) -> str:
        """Name and version of the detector, as one string; "" when the card has none."""
        found = self.card.get("detector") or ""
        return found if isinstance(found, str) else json.dumps(found, sort_keys=True, default=str)


def read_run(name: str, rows: Iterable[Mapping[str, Any]], card: Mapping[str, Any] | None = None) -> ScoredRun:
    """Scored rows (`verdicts.jsonl`) as a run; what cannot be used becomes an error row and never stops the rest.

    Rows of a user's own may lack `prompt_id`, `sample` and `item`: the request then names the prompt, samples are
    numbered in order of appearance, and each prompt is its own item.

    Raises:
        LingossError: no row has a verdict.
    """
    good: list[Row] = []
    errors: list[Mapping[str, Any]] = []
    seen: set[tuple[str, int]] = set()
    drawn: Counter[str] = Counter()
    for number, source in enumerate(rows, 1):
        try:
            if "error" in source:
                errors.append(source)
                continue
            row = _row(source, drawn)
            if row.key in seen:
                raise LingossError(f"prompt {row.prompt_id!r}, sample {row.sample} occurs twice")
        except (LingossError, LookupError, TypeError, AttributeError) as problem:
            reason = str(problem) if isinstance(problem, LingossError) else f"not a scored row ({problem!r})"
            errors.append({"line": number, "error": reason})
            continue
        seen.add(row.key)
        drawn[row.prompt_id] += 1
        good.append(row)
    if not good:
        first = f"; first problem: {errors[0].get('error')}" if errors else ""
        raise LingossError(f"run {name!r} has no scored row{first}. Run `lingoss score` on its samples first.")
    return ScoredRun(name, card or {}, tuple(good), tuple(errors))


@cache
def _code(name_or_code: str) -> str:
    try:
        return languages.find(name_or_code).code
    except LingossError:
        return name_or_code


def _row(source: Mapping[str, Any], drawn: Mapping[str, int]) -> Row:
    request, verdict = source["request"], source["verdict"]
    # the detector's targets are codes; the request may hold names ("French")
    asked = [
        _code(str(request["question_language"])),
        str(verdict["reasoning"].get("target") or _code(str(request["reasoning_language"]))),
        str(verdict["answer"].get("target") or _code(str(request["answer_language"]))),
    ]
    prompt = source.get("prompt_id") or source.get("id")
    if not prompt:
        prompt = hashlib.sha256(json.dumps(request, sort_keys=True, default=str).encode("ascii")).hexdigest()[:12]
    sample = source.get("sample")
    return Row(
        source=source,
        prompt_id=str(prompt),
        sample=drawn.get(str(prompt), 0) if sample is None else int(sample),
        item=str(source.get("item") or prompt),
        question_language=asked[0],
        reasoning_language=asked[1],
        answer_language=asked[2],
        crossed=len(set(asked)) > 1,
        values=measure(source),
    )


def common_samples(runs: Sequence[ScoredRun]) -> int:
    """k of runs that are to be compared.

    Raises:
        LingossError: they differ.
    """
    counts = {run.name: run.samples for run in runs}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name}: {k}" for name, k in counts.items())
        raise LingossError(f"runs have different numbers of samples per prompt ({listed}); generate with the same --k")
    return next(iter(counts.values()))
