# SPDX-License-Identifier: MIT-0
"""How many prompts a comparison needs, and what a given number can show. Rates and differences are shares in 0..1."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from lingoss.errors import LingossError

POWER = 0.8
ALPHA = 0.05
_RUNS, _DRAWS = 1_000, 500_000  # simulated experiments, fewer where they would need more draws than this
_LEAST = 0.01  # a smaller difference needs more prompts than anyone has


@dataclass(frozen=True, slots=True)
class Need:
    """One line of the table: `prompts` per language (per run, where the design is unpaired)."""

    design: str
    assumption: str
    alpha: float
    prompts: int


def mcnemar_power(n: int, gains: float, losses: float, alpha: float = ALPHA) -> float:
    """Exact power of the exact McNemar test for n pairs: shares that only the later, or only the earlier run solves."""
    from scipy.stats import binom

    if gains + losses <= 0:
        return 0.0
    discordant, critical = np.arange(n + 1), _critical(n, alpha)
    share = gains / (gains + losses)
    rejected = binom.cdf(critical, discordant, share) + binom.sf(discordant - critical - 1, discordant, share)
    return float(binom.pmf(discordant, n, gains + losses) @ np.where(critical < 0, 0.0, rejected))


@lru_cache(64)
def _critical(n: int, alpha: float) -> np.ndarray:
    """For 0 to n discordant pairs: the largest count of the rarer kind that still rejects; -1 when none does."""
    from scipy.stats import binom

    discordant = np.arange(n + 1)
    critical = binom.ppf(alpha / 2, discordant, 0.5)
    return np.asarray(np.where(2 * binom.cdf(critical, discordant, 0.5) <= alpha, critical, critical - 1))


def mcnemar_size(gains: float, losses: float, alpha: float = ALPHA, power: float = POWER) -> int:
    """Smallest n that reaches `power` (power saws: a slightly larger n may fall just below again)."""
    high = 8
    while mcnemar_power(high, gains, losses, alpha) < power:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if mcnemar_power(middle, gains, losses, alpha) >= power else (middle, high)
    teeth = range(max(1, high - 40), high + 1)  # the bisection may have landed behind a tooth of the saw
    return next(n for n in teeth if mcnemar_power(n, gains, losses, alpha) >= power)


def unpaired_size(before: float, after: float, alpha: float = ALPHA, power: float = POWER) -> int:
    """Prompts per run when the two runs saw different prompts (arcsine approximation of statsmodels)."""
    from statsmodels.stats.power import NormalIndPower
    from statsmodels.stats.proportion import proportion_effectsize

    effect = proportion_effectsize(after, before)
    return math.ceil(float(NormalIndPower().solve_power(effect, alpha=alpha, power=power)))


def noninferiority_size(margin: float, discordance: float, alpha: float = ALPHA, power: float = POWER) -> int:
    """Pairs to show "not worse by `margin`", one-sided, when nothing changed and `discordance` of the pairs differ."""
    return math.ceil((_z(1 - alpha) + _z(power)) ** 2 * discordance / margin**2)


def sampled_power(
    n: int, k: int, before: float, after: float, alpha: float = ALPHA, concentration: float = 2.0, seed: int = 0
) -> float:
    """Simulated power of the paired t test on per-prompt means of k samples.

    Prompts differ strongly: each prompt's rate is drawn from a Beta with mean `before` and this concentration, and
    all are moved by one step on the logit scale so that the new mean is `after`.
    """
    from scipy import stats

    logits, step = _population(before, after, concentration)
    rng = np.random.default_rng(seed)
    runs = max(200, min(_RUNS, _DRAWS // n))
    drawn = rng.choice(logits, (runs, n))
    difference = (rng.binomial(k, _expit(drawn + step)) - rng.binomial(k, _expit(drawn))) / k
    spread = difference.std(axis=1, ddof=1) / n**0.5
    t = np.divide(difference.mean(axis=1), spread, out=np.zeros(runs), where=spread > 0)
    return float(np.mean(np.abs(t) > stats.t.ppf(1 - alpha / 2, n - 1)))


def sampled_size(k: int, before: float, after: float, alpha: float = ALPHA, power: float = POWER) -> int:
    """Smallest multiple of 10 prompts at which k samples of each reach `power` in simulation."""
    high = 1
    while sampled_power(10 * high, k, before, after, alpha) < power:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if sampled_power(10 * middle, k, before, after, alpha) >= power else (middle, high)
    return 10 * high


@cache
def _population(before: float, after: float, concentration: float) -> tuple[np.ndarray, float]:
    """Logits of 4,000 equally likely prompts, and the step that takes their mean rate from `before` to `after`."""
    from scipy import optimize, stats

    quantiles = (np.arange(4_000) + 0.5) / 4_000
    rates = stats.beta.ppf(quantiles, before * concentration, (1 - before) * concentration)
    rates = np.clip(rates, 1e-9, 1 - 1e-9)
    logits = np.log(rates / (1 - rates))
    return logits, float(optimize.brentq(lambda step: _expit(logits + step).mean() - after, -30, 30))


def _expit(logits: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-logits)))


def _z(share: float) -> float:
    from scipy.stats import norm

    return float(norm.ppf(share))


def detectable(n: int, discordance: float, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """Smallest difference that n pairs show with this power, when about `discordance` of the pairs differ.

    More pairs than that must differ when even all of them gaining would not be enough. None: n is too small for any.
    """
    if n <= 0 or mcnemar_power(n, 1.0, 0.0, alpha) < power:
        return None
    low, high = 0.0, 1.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        losses = max(discordance - middle, 0.0) / 2
        enough = mcnemar_power(n, middle + losses, losses, alpha) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def detectable_mean(error: float, alpha: float = ALPHA, power: float = POWER) -> float:
    """The same for a mean difference with this standard error."""
    return (_z(1 - alpha / 2) + _z(power)) * error


def informative_share(p: float, k: int, concentration: float | None = None) -> float:
    """Expected share of GRPO groups of k that hold both a success and a failure, at success rate p.

    1 - p^k - (1-p)^k for prompts all alike; with `concentration`, p differs from prompt to prompt (Beta).
    """
    if concentration is None:
        return 1 - p**k - (1 - p) ** k
    steps = range(k)
    all_right = math.prod((p * concentration + i) / (concentration + i) for i in steps)
    all_wrong = math.prod(((1 - p) * concentration + i) / (concentration + i) for i in steps)
    return 1 - all_right - all_wrong


def table(difference: float = 0.08, power: float = POWER, samples: Sequence[int] = (1, 2, 4, 8)) -> list[Need]:
    """Prompts per language for each design, at alpha 0.05 and, for paired designs, 0.01 (Holm's first step of five).

    Raises:
        LingossError: a difference or power outside what prompts can show.
    """
    if not _LEAST <= difference < 0.5 or not 0.5 <= power < 1:
        raise LingossError(
            f"difference {difference:g} with power {power:g}: give a difference of {_LEAST:g} to below 0.5 (8 points"
            " are 0.08) and a power of 0.5 to below 1"
        )
    needs = []
    for before in (0.5, 0.7, 0.8, 0.9):
        if before + difference <= 0.999:
            text = f"{before:.0%} -> {before + difference:.0%}, other prompts in each run"
            needs.append(Need("unpaired", text, ALPHA, unpaired_size(before, before + difference, ALPHA, power)))
    for alpha in (ALPHA, ALPHA / 5):
        for losses in (0.0, 0.02, 0.05, 0.10):
            text = f"gains {difference + losses:.0%}, losses {losses:.0%}"
            size = mcnemar_size(difference + losses, losses, alpha, power)
            needs.append(Need("paired, exact McNemar", text, alpha, size))
    for k in samples:
        text = f"75% -> {0.75 + difference:.0%}, k = {k}, prompts differ strongly (simulated)"
        needs.append(
            Need("paired means", text, ALPHA, sampled_size(k, 0.75, min(0.75 + difference, 0.99), ALPHA, power))
        )
    for margin in (0.03, 0.05, 0.08):
        for discordance in (0.06, 0.10, 0.20):
            text = f"margin {margin:.0%}, {discordance:.0%} of pairs differ"
            size = noninferiority_size(margin, discordance, ALPHA, power)
            needs.append(Need("non-inferiority, one-sided", text, ALPHA, size))
    return needs
