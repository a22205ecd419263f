# SPDX-License-Identifier: MIT-0
"""Plots as inline SVG that a phone can read: positions in percent, so the width stretches and the marks do not.

Colours come from the page's CSS, so dark mode needs no second plot. Every plot says in words what it shows.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

HEIGHT = 18  # pixels of one lane
CURVES = ("loss", "reward", "eval_loss")


def lane(value: float, low: float, high: float, run: int, alt: str, domain: tuple[float, float] = (0.0, 1.0)) -> Markup:
    """One interval and its point on a line of its own; `run` picks colour and shape of the mark."""
    start, end = domain

    def at(x: float) -> str:
        return f"{100 * (min(max(x, start), end) - start) / (end - start):.2f}%"

    ticks = Markup("").join(
        Markup('<line class="grid" x1="{0}" x2="{0}" y1="0" y2="{1}"/>').format(
            at(start + part * (end - start)), HEIGHT
        )
        for part in (0, 0.25, 0.5, 0.75, 1)
    )
    return Markup(
        '<svg class="lane run{run}" height="{height}" role="img" aria-label="{alt}">{ticks}'
        '<line class="span" x1="{low}" x2="{high}" y1="{middle}" y2="{middle}"/>'
        '<svg class="mark" x="{value}" y="{middle}" width="1" height="1">{mark}</svg></svg>'
    ).format(
        run=run % 4,
        height=HEIGHT,
        alt=alt,
        ticks=ticks,
        low=at(low),
        high=at(high),
        middle=HEIGHT // 2,
        value=at(value),
        mark=mark(run),
    )


def mark(run: int) -> Markup:
    """The mark of a run around (0, 0): circle, square, diamond, triangle; shape and colour both tell runs apart."""
    shapes = (
        '<circle r="5"/>',
        '<rect x="-4.5" y="-4.5" width="9" height="9"/>',
        '<path d="M0-6 6 0 0 6-6 0Z"/>',
        '<path d="M0-6 5.5 4.5H-5.5Z"/>',
    )
    return Markup(shapes[run % 4])


def curves(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One plot for each of CURVES with at least two finite points: name, words, bounds, and the line's SVG."""
    found = []
    for name in CURVES:
        points = [(row["step"], row[name]) for row in rows if _finite(row.get("step")) and _finite(row.get(name))]
        if len(points) < 2:
            continue
        steps, values = [step for step, _ in points], [value for _, value in points]
        found.append(
            {
                "name": name,
                "alt": f"{name} from {values[0]:.3g} at step {steps[0]:g} to {values[-1]:.3g} at step {steps[-1]:g},"
                f" between {min(values):.3g} and {max(values):.3g}",
                "low": f"{min(values):.3g}",
                "high": f"{max(values):.3g}",
                "first": f"{steps[0]:g}",
                "last": f"{steps[-1]:g}",
                "svg": _line(steps, values),
            }
        )
    return found


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _line(steps: Sequence[float], values: Sequence[float]) -> Markup:
    wide, tall = (max(steps) - min(steps)) or 1, (max(values) - min(values)) or 1
    path = " ".join(
        f"{100 * (step - min(steps)) / wide:.2f},{100 - 100 * (value - min(values)) / tall:.2f}"
        for step, value in zip(steps, values, strict=True)
    )
    return Markup('<polyline points="{}" vector-effect="non-scaling-stroke"/>').format(path)
