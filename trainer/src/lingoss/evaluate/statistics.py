# SPDX-License-Identifier: MIT-0
"""Intervals and tests, from statsmodels and scipy wherever they have them.

Rates are shares in 0..1. Counts may be fractions: a rate over clusters is judged as if each cluster were one draw.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

DRAWS = 10_000
SEED = 20_250_805  # fixed, so that a report made twice prints the same digits
FEW_ITEMS = 10  # below this many clusters a percentile bootstrap is too narrow to be shown
FEW_ITEMS_RATE = 30  # and so for a rate, which is skewed near 0 and 1: one success of 50 in 10 items got 0 to 6 %
CORRELATION = 0.3  # assumed between versions of one item
_BLOCK = 4_000_000  # cells of resampling indices held at once (32 MB)

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    low: float
    high: float


def wilson(k: float, n: float, confidence: float = 0.95) -> Interval:
    """Wilson's score interval, the one for display. (0, 1) when nothing was seen."""
    return _proportion(k, n, confidence, "wilson")


def clopper_pearson(k: float, n: float, confidence: float = 0.95) -> Interval:
    """The exact interval, for where the bound itself decides. (0, 1) when nothing was seen."""
    return _proportion(k, n, confidence, "beta")


def _proportion(k: float, n: float, confidence: float, method: str) -> Interval:
    from statsmodels.stats.proportion import proportion_confint

    if n <= 0:
        return Interval(0.0, 1.0)
    low, high = proportion_confint(min(k, n), n, alpha=1 - confidence, method=method)
    # exactly 0 and 1 at the ends, where the formulas leave rounding dust (and scipy's beta a NaN)
    return Interval(0.0 if k <= 0 else max(0.0, float(low)), 1.0 if k >= n else min(1.0, float(high)))


def mcnemar(gains: int, losses: int) -> float:
    """Two-sided p of the exact McNemar test; 1 without any discordant pair."""
    from statsmodels.stats.contingency_tables import mcnemar as test

    return float(test([[0, gains], [losses, 0]], exact=True).pvalue)


def newcombe_paired(both: float, losses: float, gains: float, neither: float, confidence: float = 0.95) -> Interval:
    """Interval of after - before for two rates on the same prompts: Newcombe (1998), method 10.

    `losses` succeeded before only, `gains` after only. Not in statsmodels.
    """
    n = both + losses + gains + neither
    if n <= 0:
        return Interval(-1.0, 1.0)
    before, after = (both + losses) / n, (both + gains) / n
    low0, high0 = wilson(both + losses, n, confidence)
    low1, high1 = wilson(both + gains, n, confidence)
    margins = (both + losses) * (gains + neither) * (both + gains) * (losses + neither)
    if margins <= 0:
        phi = 0.0
    else:
        excess = both * neither - losses * gains
        phi = (max(excess - n / 2, 0.0) if excess > 0 else excess) / margins**0.5  # his continuity correction
    down, up = after - low1, high0 - before
    low = (down**2 - 2 * phi * down * up + up**2) ** 0.5
    down, up = before - low0, high1 - after
    high = (down**2 - 2 * phi * down * up + up**2) ** 0.5
    return Interval(after - before - low, after - before + high)


def newcombe_unpaired(
    k_before: float, n_before: float, k_after: float, n_after: float, confidence: float = 0.95
) -> Interval:
    """Interval of after - before for two rates on *different* prompts: Newcombe's hybrid score interval (1998)."""
    from statsmodels.stats.proportion import confint_proportions_2indep

    if n_before <= 0 or n_after <= 0:
        return Interval(-1.0, 1.0)
    low, high = confint_proportions_2indep(
        k_after, n_after, k_before, n_before, method="newcomb", compare="diff", alpha=1 - confidence
    )
    return Interval(float(low), float(high))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given."""
    if not p_values:
        return []
    from statsmodels.stats.multitest import multipletests

    return [float(p) for p in multipletests(list(p_values), method="holm")[1]]


def item_sums(values: ArrayLike, prompts: Sequence[Any], items: Sequence[Any]) -> tuple[Floats, Floats]:
    """Per-prompt means added up by item, and the number of prompts they come from: both (items, metrics).

    `values` is (rows, metrics), NaN where a row does not count. Samples of one prompt are averaged first, so a prompt
    with more samples weighs no more; a prompt without any counting sample is left out.
    """
    table = np.asarray(values, dtype=float)
    names = np.asarray(prompts, dtype=object).astype(str)
    _, first, prompt_of = np.unique(names, return_index=True, return_inverse=True)
    names, item_of = np.unique(np.asarray(items, dtype=object).astype(str)[first], return_inverse=True)
    counted = ~np.isnan(table)
    total, seen = np.zeros((2, len(first), table.shape[1]))
    np.add.at(total, prompt_of, np.where(counted, table, 0.0))
    np.add.at(seen, prompt_of, counted)
    means = np.divide(total, seen, out=np.zeros_like(total), where=seen > 0)
    sums, counts = np.zeros((2, len(names), table.shape[1]))
    np.add.at(sums, item_of, means)
    np.add.at(counts, item_of, seen > 0)
    return sums, counts


def bootstrap(sums: Floats, counts: Floats, draws: int = DRAWS, seed: int = SEED) -> Floats:
    """Means of `draws` resamplings of whole items: (draws, metrics), from `item_sums`. NaN where nothing was drawn.

    For a paired difference pass the item sums of the per-prompt differences.
    """
    items = len(sums)
    rng = np.random.default_rng(seed)
    out = np.empty((draws, sums.shape[1]))
    step = max(1, _BLOCK // max(items, 1))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        picked = rng.integers(0, items, (size, items)) + np.arange(size)[:, None] * items
        weights = np.bincount(picked.ravel(), minlength=size * items).reshape(size, items).astype(float)
        drawn = weights @ counts
        out[start : start + size] = np.divide(weights @ sums, drawn, out=np.full(drawn.shape, np.nan), where=drawn > 0)
    return out


def effective(prompts: float, items: float) -> float:
    """What `prompts` prompts are worth when several of them are versions (languages) of one item.

    Kish's design effect with an assumed correlation within items, for where the rows cannot tell it: few items, or
    all outcomes equal. Ten items in five languages are worth about 23 prompts.
    """
    return prompts / (1 + (prompts / items - 1) * CORRELATION) if items else 0.0


def percentile_interval(draws: Floats, confidence: float = 0.95) -> Interval:
    """The middle `confidence` of one metric's bootstrap draws."""
    tail = (1 - confidence) / 2
    low, high = np.nanquantile(draws, [tail, 1 - tail])
    return Interval(float(low), float(high))


def t_interval(item_means: Floats, confidence: float = 0.95) -> Interval:
    """Student's interval of a mean, for few items."""
    from scipy import stats

    n = len(item_means)
    half = stats.t.ppf((1 + confidence) / 2, n - 1) * np.std(item_means, ddof=1) / n**0.5
    return Interval(float(np.mean(item_means) - half), float(np.mean(item_means) + half))


def sign_flip(item_differences: ArrayLike, draws: int = DRAWS, seed: int = SEED) -> float:
    """Two-sided p that paired differences are centred on 0: the sign of each item's sum is flipped as one.

    All sign patterns for up to 12 items that differ, else `draws` random ones (then p is at least 1 / (draws + 1)).
    """
    values = np.asarray(item_differences, dtype=float)
    values = values[values != 0]
    if not len(values):
        return 1.0
    bar = abs(values.sum()) - 1e-9
    if len(values) <= 12:
        patterns = (np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1
        return float(np.mean(np.abs((1 - 2 * patterns) @ values) >= bar))
    signs = np.random.default_rng(seed).integers(0, 2, (draws, len(values))) * 2 - 1
    return float((1 + np.sum(np.abs(signs @ values) >= bar)) / (draws + 1))


def one_sided(confidence: float) -> float:
    """The two-sided confidence whose lower end is a one-sided bound at `confidence`: 0.95 -> 0.90."""
    return 2 * confidence - 1


def noninferior(low: float, margin: float) -> bool:
    """Non-inferiority is shown when the one-sided lower bound of the difference lies above -margin."""
    return low > -margin
