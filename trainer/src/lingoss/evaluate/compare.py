# SPDX-License-Identifier: MIT-0
"""What changed from one run to another: paired on the same prompts, per language with Holm, pooled by whole items."""

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from lingoss.errors import LingossError
from lingoss.evaluate import power, statistics
from lingoss.evaluate.metrics import METRICS
from lingoss.evaluate.rows import Row, ScoredRun, common_samples
from lingoss.evaluate.statistics import Floats, Interval
from lingoss.evaluate.summary import POOLED, in_group

COMPARED = ("strict", "reasoning", "answer", "correct", "joint")
Pair = tuple[Row, Row]
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Change:
    """after - before for one metric and language ("all": every language).

    `gains`, `losses`: prompts whose mean rose, fell (None: unpaired). `p` is None when unpaired; `p_holm` is over the
    languages of one metric. `mcnemar` is the exact test on prompts, with one sample each. `detectable`: the smallest
    difference that so many prompts, differing as these do, would show in four of five repetitions.
    """

    metric: str
    group: str
    prompts: int
    items: int
    before: float
    after: float
    difference: float
    low: float
    high: float
    method: str
    gains: int | None = None
    losses: int | None = None
    p: float | None = None
    test: str = ""
    p_holm: float | None = None
    mcnemar: float | None = None
    detectable: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`gained`, `lost`: (prompt, sample) keys whose first metric rose, fell. `left_out`: rows without a partner."""

    before: str
    after: str
    paired: bool
    note: str
    left_out: int
    changes: tuple[Change, ...]
    gained: tuple[Key, ...]
    lost: tuple[Key, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare(
    runs: Sequence[ScoredRun],
    metrics: Sequence[str] = COMPARED,
    force: bool = False,
    draws: int = statistics.DRAWS,
    seed: int = statistics.SEED,
) -> list[Comparison]:
    """Every earlier run against every later one.

    Raises:
        LingossError: fewer than two runs; an unknown metric; other prompts, another detector or another number of
            samples, unless `force`, which then compares them as unpaired and says so.
    """
    if len(runs) < 2:
        raise LingossError("compare needs at least two runs")
    for name in metrics:
        if name not in METRICS or METRICS[name].kind != "rate":
            known = ", ".join(known for known, metric in METRICS.items() if metric.kind == "rate")
            raise LingossError(f"cannot compare {name!r}; known: {known}")
    found = []
    for before, after in itertools.combinations(runs, 2):
        try:
            check_comparable(before, after)
            found.append(_paired(before, after, metrics, draws, seed))
        except LingossError as problem:
            if not force:
                raise LingossError(f"{problem} (--force compares them as unpaired)") from None
            found.append(_unpaired(before, after, metrics, str(problem), draws, seed))
    return found


def check_comparable(before: ScoredRun, after: ScoredRun) -> None:
    """Same prompts, same detector, same k; raises LingossError that names both values."""
    digests = [run.card.get("prompt_digest") for run in (before, after)]
    if not all(digests):  # a run without a card: go by the requests in the rows
        digests = [before.rows_digest, after.rows_digest]
    for what, one, other in (
        ("prompt sets", *map(str, digests)),
        ("detectors", before.detector, after.detector),
    ):
        if one != other:
            raise LingossError(f"{before.name} and {after.name} have different {what}: {one} and {other}")
    common_samples((before, after))


def pairs(before: ScoredRun, after: ScoredRun) -> list[Pair]:
    """Rows of the same prompt and sample number, in the order of `before`."""
    partner = {row.key: row for row in after.rows}
    return [(row, partner[row.key]) for row in before.rows if row.key in partner]


def paired_change(
    matched: Sequence[Pair],
    metric: str,
    group: str = POOLED,
    confidence: float = 0.95,
    draws: int = statistics.DRAWS,
    seed: int = statistics.SEED,
) -> Change | None:
    """The change of one metric in one language; None when no pair counts for it.

    One prompt an item and one sample a prompt: Newcombe's paired interval and the exact McNemar test. Otherwise
    per-prompt means, a bootstrap over whole items (Student's interval for few) and sign flips of whole items.
    """
    used = [pair for pair in matched if in_group(pair[0], metric, group)]
    values = np.array([[row.values[metric] for row in pair] for pair in used]).reshape(-1, 2)
    counted = ~np.isnan(values).any(axis=1)
    if not counted.any():
        return None
    values = values[counted]
    rows = [pair[0] for pair, yes in zip(used, counted, strict=True) if yes]
    ids, items = [row.prompt_id for row in rows], [row.item for row in rows]
    per_prompt = statistics.item_sums(values, ids, ids)[0]
    sums, counts = statistics.item_sums(values, ids, items)
    moved = per_prompt[:, 1] - per_prompt[:, 0]
    gains, losses = int((moved > 1e-9).sum()), int((moved < -1e-9).sum())
    prompts, clusters, single = len(per_prompt), len(sums), len(values) == len(per_prompt)
    before, after = (float(value) for value in per_prompt.mean(axis=0))
    difference = sums[:, 1:] - sums[:, :1]
    if single and clusters == prompts and METRICS[metric].kind == "rate":
        interval, method = _newcombe(per_prompt, 1.0, confidence), "Newcombe, paired"
        p, test = statistics.mcnemar(gains, losses), "exact McNemar"
        smallest = power.detectable(prompts, (gains + losses) / prompts)
    else:
        interval, method, error = _clustered(sums, counts[:, :1], confidence, draws, seed)
        p, test = statistics.sign_flip(difference[:, 0], draws, seed), f"sign flips of {clusters} items"
        smallest = (
            power.detectable_mean(error)
            if error > 0
            else power.detectable(int(statistics.effective(prompts, clusters)), 0.0)
        )
    return Change(
        metric=metric,
        group=group,
        prompts=prompts,
        items=clusters,
        before=before,
        after=after,
        difference=after - before,
        low=interval.low,
        high=interval.high,
        method=method,
        gains=gains,
        losses=losses,
        p=p,
        test=test,
        mcnemar=statistics.mcnemar(gains, losses) if single else None,
        detectable=smallest,
    )


def _newcombe(rates: Floats, weight: float, confidence: float) -> Interval:
    """Newcombe's paired interval of (n, before and after) rates, each counted as `weight` draws or parts of one."""
    before, after = rates[:, 0], rates[:, 1]
    both = np.minimum(before, after)
    cells = (both, before - both, after - both, 1 - np.maximum(before, after))
    counts = [weight * float(cell.sum()) for cell in cells]
    return statistics.newcombe_paired(counts[0], counts[1], counts[2], counts[3], confidence)


def _clustered(sums: Floats, counts: Floats, confidence: float, draws: int, seed: int) -> tuple[Interval, str, float]:
    """(interval, method, standard error) of a difference over whole items. `sums`: (items, before and after)."""
    items, difference = len(sums), sums[:, 1:] - sums[:, :1]
    means = (difference / counts)[:, 0]
    if np.ptp(means) < 1e-9:  # all items agree, and resampling them would claim certainty
        worth = statistics.effective(float(counts.sum()), items)
        method = f"Newcombe, paired, on {worth:.0f} effective prompts"
        return _newcombe(sums / counts, worth / items, confidence), method, 0.0
    if items < statistics.FEW_ITEMS:
        error = float(means.std(ddof=1) / items**0.5)
        low, high = statistics.t_interval(means, confidence)
        return Interval(max(low, -1.0), min(high, 1.0)), f"t over {items} items", error
    resampled = statistics.bootstrap(difference, counts, draws, seed)[:, 0]
    return (
        statistics.percentile_interval(resampled, confidence),
        f"bootstrap over {items} items",
        float(np.nanstd(resampled)),
    )


def _paired(before: ScoredRun, after: ScoredRun, metrics: Sequence[str], draws: int, seed: int) -> Comparison:
    matched = pairs(before, after)
    if not matched:
        raise LingossError(f"{before.name} and {after.name} share no prompt")
    changes: list[Change] = []
    for metric in metrics:
        found = [paired_change(matched, metric, group, draws=draws, seed=seed) for group in (POOLED, *before.languages)]
        changes += with_holm([change for change in found if change])
    first = [(left.key, right.values[metrics[0]] - left.values[metrics[0]]) for left, right in matched]
    return Comparison(
        before=before.name,
        after=after.name,
        paired=True,
        note=f"Paired: {len(matched)} samples of the same prompts.",
        left_out=len(before.rows) + len(after.rows) - 2 * len(matched),
        changes=tuple(changes),
        gained=tuple(key for key, moved in first if moved > 0),
        lost=tuple(key for key, moved in first if moved < 0),
    )


def with_holm(changes: Sequence[Change]) -> list[Change]:
    """One metric's changes with Holm's p over its languages; the pooled one is a question of its own."""
    adjusted = iter(statistics.holm([change.p or 0.0 for change in changes if change.group != POOLED]))
    return [change if change.group == POOLED else replace(change, p_holm=next(adjusted)) for change in changes]


def _unpaired(
    before: ScoredRun, after: ScoredRun, metrics: Sequence[str], reason: str, draws: int, seed: int
) -> Comparison:
    changes = []
    for metric in metrics:
        for group in dict.fromkeys((POOLED, *before.languages, *after.languages)):
            change = _unpaired_change(before, after, metric, group, draws, seed)
            if change:
                changes.append(change)
    return Comparison(
        before=before.name,
        after=after.name,
        paired=False,
        note=f"Unpaired, and weaker for it: {reason}.",
        left_out=0,
        changes=tuple(changes),
        gained=(),
        lost=(),
    )


def _unpaired_change(
    before: ScoredRun, after: ScoredRun, metric: str, group: str, draws: int, seed: int
) -> Change | None:
    sides = []
    for run in (before, after):
        rows = [row for row in run.rows if in_group(row, metric, group) and not np.isnan(row.values[metric])]
        if not rows:
            return None
        values = [[row.values[metric]] for row in rows]
        sums, counts = statistics.item_sums(values, [row.prompt_id for row in rows], [row.item for row in rows])
        sides.append((sums, counts, len(rows)))
    rates = [float(sums.sum() / counts.sum()) for sums, counts, _ in sides]
    if all(len(sums) == n for sums, _, n in sides) or any(len(sums) < statistics.FEW_ITEMS for sums, _, _ in sides):
        n_before, n_after = (len(sums) for sums, _, _ in sides)
        interval = statistics.newcombe_unpaired(rates[0] * n_before, n_before, rates[1] * n_after, n_after)
        method = "Newcombe, unpaired"
    else:
        one, other = (
            statistics.bootstrap(sums, counts, draws, seed + i)[:, 0] for i, (sums, counts, _) in enumerate(sides)
        )
        interval, method = statistics.percentile_interval(other - one), "bootstrap over items, unpaired"
    return Change(
        metric=metric,
        group=group,
        prompts=min(int(counts.sum()) for _, counts, _ in sides),
        items=min(len(sums) for sums, _, _ in sides),
        before=rates[0],
        after=rates[1],
        difference=rates[1] - rates[0],
        low=interval.low,
        high=interval.high,
        method=method,
    )
