# SPDX-License-Identifier: MIT-0
"""The report as Markdown, for a pull request or a model card."""

import re
from collections.abc import Iterable, Sequence

from lingoss.evaluate import wording
from lingoss.evaluate.compare import Comparison
from lingoss.evaluate.metrics import METRICS
from lingoss.evaluate.report import training
from lingoss.evaluate.report.data import Curve, ReportData, language_name
from lingoss.evaluate.report.headline import accept_sentence, does_not_show, shows
from lingoss.evaluate.rows import SLICES
from lingoss.evaluate.summary import POOLED, Summary
from lingoss.evaluate.visible import visible

COLUMNS = (
    "strict", "strict_worded", "reasoning", "reasoning_abstained", "answer", "answer_abstained", "answer_neutral",
    "format_ok", "truncated", "correct", "unparsed", "joint",
)  # fmt: skip
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&]")


def escaped(text: str) -> str:
    """Text that Markdown, and the HTML in it, print as it is, on one line."""
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", visible(text)).replace("\n", " ")


def build(data: ReportData) -> str:
    """The whole report; samples are in the HTML file only."""
    parts = [f"# {escaped(data.title)}", "What this shows:", _list(shows(data))]
    limits = does_not_show(data)
    if limits:
        parts += ["What it does not show:", _list(limits)]
    for summary in data.summaries:
        parts += [f"## {escaped(summary.run)}", _card(summary), _summary_table(summary)]
    for found in data.comparisons:
        parts += [f"## {escaped(f'{found.before} → {found.after}')}", escaped(found.note), _comparison_table(found)]
    for curve in data.curves:
        if training.is_grpo(curve):
            parts += [f"## Training of {escaped(curve.run)}", _trend_table(curve)]
    for label, gate in data.gates:
        parts += [f"## Gate for {escaped(label)}: {escaped(gate['outcome'])}", _list(gate["reasons"])]
    if data.acceptance:
        parts += ["## Accept or keep", escaped(accept_sentence(data.acceptance))]
        parts += [_list(data.acceptance["failed"])] if data.acceptance.get("failed") else []
    if data.hacks:
        rows = [[escaped(words), *rest] for words, *rest in training.trick_rows(data.hacks)]
        parts += [
            f"## Tricks: {escaped(f'{data.hacks.before} → {data.hacks.after}')}",
            _table(training.TRICK_COLUMNS, rows),
        ]
    return "\n\n".join(parts) + "\n"


def _list(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(sentence)}" for sentence in sentences)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _card(summary: Summary) -> str:
    return escaped(
        f"Prompt set {summary.prompt_set or '(unnamed)'}, digest {summary.prompt_digest[:12]}; detector"
        f" {summary.detector or '(not named)'};"
        f" {wording.count(summary.samples_per_prompt, 'sample')} a prompt. 95 % intervals."
    )


def _summary_table(summary: Summary) -> str:
    rows = []
    for group, parts in summary.cells.items():
        for part in SLICES:
            if part in parts:
                rates = parts[part].rates
                rows.append([language_name(group), part, *(wording.rate(rates.get(name)) for name in COLUMNS)])
    return _table(["asked for", "prompts", *(METRICS[name].title for name in COLUMNS)], rows)


def _trend_table(curve: Curve) -> str:
    header = ["means of the steps", "first quarter", "last quarter"]
    return _table(header, [[escaped(one.title), one.first, one.last] for one in training.trends(curve)])


def _comparison_table(found: Comparison) -> str:
    header = ["metric", "asked for", "before", "after", "difference (95 %)", "up / down", "p", "p (Holm)", "detectable"]
    rows = [
        [
            METRICS[change.metric].title if change.group == POOLED else "",
            language_name(change.group),
            wording.percent(change.before),
            wording.percent(change.after),
            wording.change(change),
            "–" if change.gains is None else f"{change.gains} / {change.losses}",
            wording.p_value(change.p),
            wording.p_value(change.p_holm),
            "–" if change.detectable is None else f"{wording.points(change.detectable)} points",
        ]
        for change in found.changes
    ]
    return _table(header, rows)
