# SPDX-License-Identifier: MIT-0
"""Plots as inline SVG that a phone can read: positions in percent, so the width stretches and the marks do not.

Colours come from the page's CSS, so dark mode needs no second plot. Every plot says in words what it shows.
"""

from typing import Any

from markupsafe import Markup

from lingoss.evaluate.report import training
from lingoss.evaluate.report.data import Curve

HEIGHT = 18  # pixels of one lane


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


def curves(curve: Curve) -> list[dict[str, Any]]:
    """One plot for each column worth one with at least two finite points: name, words, bounds, and the line's SVG."""
    found = []
    for column in training.plotted(curve):
        line = training.points(curve, column)
        if len(line) < 2:
            continue
        name, values = training.title(column), [value for _, value in line]
        (first, start), (last, end) = line[0], line[-1]
        found.append(
            {
                "name": name,
                "alt": f"{name} from {start:.3g} at step {first:g} to {end:.3g} at step {last:g},"
                f" between {min(values):.3g} and {max(values):.3g}",
                "low": f"{min(values):.3g}",
                "high": f"{max(values):.3g}",
                "first": f"{first:g}",
                "last": f"{last:g}",
                "svg": _line(line),
            }
        )
    return found


def panels(curve: Curve) -> list[dict[str, Any]]:
    """A GRPO run's figures by language: a small line each, all from 0 to 1 so that they can be compared."""
    return [
        {
            "title": training.BY_LANGUAGE[name],
            "lines": [
                {
                    "code": code,
                    "svg": _line(line, (0.0, 1.0)),
                    "alt": f"from {line[0][1]:.2f} at step {line[0][0]:g} to {line[-1][1]:.2f} at step {line[-1][0]:g}",
                    "ends": f"{line[0][1]:.2f} to {line[-1][1]:.2f}",
                }
                for code, line in lines.items()
            ],
        }
        for name, lines in training.by_language(curve).items()
        if lines
    ]


def _line(line: training.Points, domain: tuple[float, float] | None = None) -> Markup:
    steps, values = [step for step, _ in line], [value for _, value in line]
    low, high = domain or (min(values), max(values))
    wide, tall = (max(steps) - min(steps)) or 1, (high - low) or 1
    path = " ".join(
        f"{100 * (step - min(steps)) / wide:.2f},{100 - 100 * (min(max(value, low), high) - low) / tall:.2f}"
        for step, value in line
    )
    return Markup('<polyline points="{}" vector-effect="non-scaling-stroke"/>').format(path)
