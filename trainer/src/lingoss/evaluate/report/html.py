# SPDX-License-Identifier: MIT-0
"""The report as one HTML file: styles, script, plots and samples inside, nothing loaded, everything escaped."""

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from lingoss.evaluate import wording
from lingoss.evaluate.compare import Change, Comparison
from lingoss.evaluate.metrics import METRICS
from lingoss.evaluate.report import plots, training
from lingoss.evaluate.report.data import ReportData, language_name
from lingoss.evaluate.report.headline import accept_sentence, does_not_show, shows
from lingoss.evaluate.report.samples import payload
from lingoss.evaluate.rows import ALL, SLICES
from lingoss.evaluate.summary import POOLED, Cell
from lingoss.evaluate.visible import visible

KINDS = {
    "all": "All prompts",
    "crossed": "Crossed prompts",
    "same-language": "Question already in the language asked for",
}
PLOTTED = ("strict", "reasoning", "answer", "correct", "joint")


@cache
def _file(name: str) -> str:
    return files("lingoss.evaluate.report").joinpath(name).read_text("utf-8")


def build(data: ReportData) -> str:
    """The whole page. The content security policy allows the page's own script, by its digest, and no network."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    script = _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.filters["language"] = language_name
    environment.globals.update(wording=wording, plots=plots, METRICS=METRICS, POOLED=POOLED)
    environment.globals.update(short=short, KINDS=KINDS, by_metric=_by_metric)
    return environment.from_string(_file("page.html.jinja")).render(
        data=data,
        shows=shows(data),
        does_not_show=does_not_show(data),
        accept_sentence=accept_sentence,
        figures=_figures(data),
        tables=[(group, _tables(data, group)) for group in data.groups],
        cards=[(run.name, flat({**run.card, "rows": len(run.rows), "prompt_digest": run.digest})) for run in data.runs],
        errors=[(run.name, error) for run in data.runs for error in run.errors],
        curves=[(curve, plots.curves(curve)) for curve in data.curves],
        training=training,
        style=_Raw(_file("page.css")),
        script=_Raw(script),
        script_digest=digest,
        samples=_Raw(payload(data)),
        sample_count=sum(len(run.rows) for run in data.runs),
    )


class _Raw(str):
    """Text of our own that is not to be escaped."""

    def __html__(self) -> str:
        return str(self)


def short(cell: Cell | None, name: str) -> tuple[str, str, str]:
    """(value, interval, count) of one metric for a table; dashes where nothing counts."""
    if cell and name in cell.rates:
        found = cell.rates[name]
        return (
            wording.percent(found.rate),
            wording.bounds(found.k, found.n, found.low, found.high),
            f"{found.k} of {found.n}",
        )
    if cell and name in cell.means:
        average = cell.means[name]
        return f"{average.mean:.2f}", f"{average.low:.2f}–{average.high:.2f}", f"n = {average.n}"
    return "–", "", ""


def _figures(data: ReportData) -> list[dict[str, Any]]:
    """The interval plots: a block for each language, in it a lane for each run; last, crossed beside same-language."""
    found = []
    for name in PLOTTED:
        blocks = [_block(data, name, group, ALL, language_name(group)) for group in data.groups]
        found.append({"title": METRICS[name].title, "meaning": METRICS[name].meaning, "blocks": blocks})
    kinds = [_block(data, "strict", POOLED, part, KINDS[part]) for part in SLICES]
    meaning = "Only crossed prompts, whose question is in another language, show control over the language."
    found.append({"title": "Strict compliance by kind of prompt", "meaning": meaning, "blocks": kinds})
    for figure in found:
        figure["blocks"] = [block for block in figure["blocks"] if block[1]]
    return [figure for figure in found if figure["blocks"]]


def _block(data: ReportData, name: str, group: str, part: str, label: str) -> tuple[str, list[Any]]:
    lanes = []
    for number, summary in enumerate(data.summaries):
        cell = summary.cells.get(group, {}).get(part)
        found = cell.rates.get(name) if cell else None
        if found:
            alt = f"{summary.run}, {label}: {METRICS[name].title} {wording.rate(found)}"
            svg = plots.lane(found.rate, found.low, found.high, number, visible(alt))
            lanes.append((svg, *short(cell, name)))
    return label, lanes


def _by_metric(comparison: Comparison) -> dict[str, list[Change]]:
    """The changes of each metric, in the order in which they were asked for."""
    found: dict[str, list[Change]] = {}
    for change in comparison.changes:
        found.setdefault(change.metric, []).append(change)
    return found


def _tables(data: ReportData, group: str) -> list[tuple[str, list[Cell | None], list[str]]]:
    """(slice, the cell of each run, names of medians) for one language."""
    found = []
    for part in SLICES:
        cells = [summary.cells.get(group, {}).get(part) for summary in data.summaries]
        if any(cells):
            medians = dict.fromkeys(name for cell in cells if cell for name in cell.medians)
            found.append((part, cells, list(medians)))
    return found


def flat(card: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """A nested card as (dotted name, text) pairs."""
    pairs: list[tuple[str, str]] = []
    for key, value in card.items():
        if isinstance(value, Mapping):
            pairs += flat(value, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", str(value)))
    return pairs
