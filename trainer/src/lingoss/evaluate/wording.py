# SPDX-License-Identifier: MIT-0
"""Numbers as a reader wants them: rates with their bound, differences in points. One place, so that all pages agree."""

from lingoss.evaluate.compare import Change
from lingoss.evaluate.summary import Mean, Rate

PERCENT = "\u00a0%"  # no line break before the sign


def percent(share: float) -> str:
    """0.853 -> "85 %"; what would round to a bare 0 % or 100 % without being it keeps a digit."""
    return f"{_digits(share)}{PERCENT}"


def _digits(share: float) -> str:
    rounded = round(100 * share)
    if 0 < share < 1 and rounded in (0, 100):
        return f"{min(max(100 * share, 0.1), 99.9):.1f}"
    return str(rounded)


def bounds(k: float, n: float, low: float, high: float) -> str:
    """The interval in words; 0 of n and n of n say their bound."""
    if k <= 0:
        return f"at most {percent(high)}"
    if k >= n:
        return f"at least {percent(low)}"
    return f"{_digits(low)}–{percent(high)}"


def rate(found: Rate | None) -> str:
    """ "45 of 60, 75 % (63–84 %)"."""
    if found is None:
        return "–"
    return f"{found.k} of {found.n}, {percent(found.rate)} ({bounds(found.k, found.n, found.low, found.high)})"


def mean(found: Mean | None) -> str:
    return "–" if found is None else f"{found.mean:.2f} ({found.low:.2f}–{found.high:.2f})"


def points(difference: float) -> str:
    """+0.078 -> "+7.8"."""
    return f"{100 * difference:+.1f}".replace("-", "−").replace("+0.0", "0.0").replace("−0.0", "0.0")


def change(found: Change) -> str:
    """ "+78.0 points (+63.1 to +87.0)"."""
    return f"{points(found.difference)} points ({points(found.low)} to {points(found.high)})"


def p_value(p: float | None) -> str:
    if p is None:
        return "–"
    return f"{p:.1e}" if p < 0.001 else f"{p:.3f}"


def count(n: int, noun: str) -> str:
    """ "1 row", "2 rows"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
