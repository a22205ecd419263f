# SPDX-License-Identifier: MIT-0
"""Every metric of one run, per requested language and per slice (all, crossed, same-language); never only pooled."""

import statistics as stdlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lingoss.evaluate import statistics
from lingoss.evaluate.metrics import METRICS
from lingoss.evaluate.rows import ALL, SLICES, Row, ScoredRun

POOLED = "all"  # the key of all languages together, beside the language codes


@dataclass(frozen=True, slots=True)
class Rate:
    """`k` of `n` samples; `rate` is the mean of the per-prompt means (k / n unless samples are missing)."""

    k: int
    n: int
    rate: float
    low: float
    high: float
    method: str


@dataclass(frozen=True, slots=True)
class Mean:
    mean: float
    n: int
    low: float
    high: float
    method: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One language and slice. A metric without any row that counts is absent. `medians`: lengths, by their names."""

    prompts: int
    samples: int
    items: int
    rates: Mapping[str, Rate]
    means: Mapping[str, Mean]
    medians: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Summary:
    """`cells[language or "all"][slice]`; a slice without rows is absent."""

    run: str
    prompt_set: str
    prompt_digest: str
    detector: str
    samples_per_prompt: int
    errors: int
    cells: Mapping[str, Mapping[str, Cell]]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def summarise(run: ScoredRun, draws: int = statistics.DRAWS, seed: int = statistics.SEED) -> Summary:
    """All cells of a run. A rate over one row an item has Wilson's interval; several samples of a prompt, or several
    prompts of an item, a bootstrap over whole items (where those are few or all agree, Wilson on the effective number
    of prompts: however many samples, a prompt is one draw; see `statistics.effective`)."""
    cells: dict[str, dict[str, Cell]] = {}
    for group in (POOLED, *run.languages):
        for name, belongs in SLICES.items():
            cell = measured([row for row in run.rows if belongs(row)], group, list(METRICS), draws, seed)
            if cell:
                cells.setdefault(group, {})[name] = cell
    return Summary(
        run=run.name,
        prompt_set=str(run.card.get("prompt_set") or ""),
        prompt_digest=run.digest,
        detector=run.detector,
        samples_per_prompt=run.samples,
        errors=len(run.errors),
        cells=cells,
    )


def in_group(row: Row, metric: str, group: str) -> bool:
    """Is this row counted for `metric` under this language? Every row is under "all"."""
    return group in (POOLED, row.language(metric))


def measured(
    rows: Sequence[Row],
    group: str,
    names: Sequence[str],
    draws: int = statistics.DRAWS,
    seed: int = statistics.SEED,
) -> Cell | None:
    """The named metrics over the rows of one language (or "all"); None without any row."""
    rows = [row for row in rows if group in (POOLED, row.answer_language, row.reasoning_language)]
    if not rows:
        return None
    values = np.array([[row.values[name] if in_group(row, name, group) else np.nan for name in names] for row in rows])
    sums, counts = statistics.item_sums(values, [row.prompt_id for row in rows], [row.item for row in rows])
    resampled = statistics.bootstrap(sums, counts, draws, seed)
    rates: dict[str, Rate] = {}
    means: dict[str, Mean] = {}
    for column, name in enumerate(names):
        seen = values[:, column][~np.isnan(values[:, column])]
        used = counts[:, column] > 0
        if not len(seen):
            continue
        k, n, items = seen.sum(), len(seen), int(used.sum())
        mean = float(sums[:, column].sum() / counts[:, column].sum())
        interval, method = _interval(sums[used, column], counts[used, column], n, resampled[:, column], name)
        if METRICS[name].kind == "rate":
            rates[name] = Rate(int(k), n, mean, *interval, method)
        elif items:
            means[name] = Mean(mean, n, *interval, method)
    return Cell(
        prompts=len({row.prompt_id for row in rows}),
        samples=len(rows),
        items=len(sums),
        rates=rates,
        means=means,
        medians=_medians(rows),
    )


def _interval(
    sums: statistics.Floats, counts: statistics.Floats, n: int, resampled: statistics.Floats, name: str
) -> tuple[statistics.Interval, str]:
    """The interval of one metric and the name of its method, from its item sums; `n` counts samples."""
    items, prompts = len(sums), float(counts.sum())
    mean = float(sums.sum()) / prompts
    if METRICS[name].kind == "rate":
        if items == n:
            return statistics.wilson(mean * n, n), "Wilson"
        if items < statistics.FEW_ITEMS_RATE or mean in (0.0, 1.0):
            worth = statistics.effective(prompts, items)
            return statistics.wilson(mean * worth, worth), f"Wilson on {worth:.0f} effective prompts"
    elif 1 < items < statistics.FEW_ITEMS:
        low, high = statistics.t_interval(sums / counts)  # of a share or a reward, both in 0..1
        return statistics.Interval(max(low, 0.0), min(high, 1.0)), f"t over {items} items"
    return statistics.percentile_interval(resampled), f"bootstrap over {items} items"


def _medians(rows: Sequence[Row]) -> dict[str, float]:
    """Median of each length in the verdicts, and of the generated tokens."""
    found: dict[str, list[float]] = {}
    for row in rows:
        lengths = {**(row.source["verdict"].get("lengths") or {}), "new_tokens": row.source.get("new_tokens")}
        for name, value in lengths.items():
            if isinstance(value, int | float):
                found.setdefault(name, []).append(value)
    return {name: float(stdlib.median(values)) for name, values in found.items()}


def pooled(summary: Summary, metric: str, part: str = ALL) -> Rate | None:
    """One rate over all languages, for headlines and thresholds."""
    cell = summary.cells[POOLED].get(part)
    return cell.rates.get(metric) if cell else None
