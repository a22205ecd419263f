# SPDX-License-Identifier: MIT-0
"""The report for a terminal: the figures that decide, per language."""

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lingoss.evaluate import wording
from lingoss.evaluate.compare import Comparison
from lingoss.evaluate.hacks import Hacks
from lingoss.evaluate.metrics import METRICS
from lingoss.evaluate.report import training
from lingoss.evaluate.report.data import Curve, ReportData, language_name
from lingoss.evaluate.report.headline import accept_sentence, does_not_show, shows
from lingoss.evaluate.rows import SLICES
from lingoss.evaluate.summary import POOLED, Cell
from lingoss.evaluate.visible import visible

COLUMNS = {"strict": "strict", "reasoning": "reasoning", "answer": "answer", "correct": "correct", "joint": "both"}
CAPTION = (
    "With 95 % intervals. strict: form kept, reasoning and answer in the language asked for; both: strict and right;"
    " u: detector unsure, n: neutral answers (42), counted as compliant."
)
BESIDE = {"reasoning": ("reasoning_abstained",), "answer": ("answer_abstained", "answer_neutral")}


def build(data: ReportData) -> RenderableType:
    """Something for `rich.console.Console.print`. Names and texts of rows are printed as text, never as markup."""
    parts: list[RenderableType] = [Text(visible(data.title), style="bold"), Text()]
    parts += [_line("+ ", sentence) for sentence in shows(data)]
    parts += [_line("- ", sentence) for sentence in does_not_show(data)]
    for summary in data.summaries:
        parts += [Text(), _summary_table(summary.run, summary.cells)]
    for found in data.comparisons:
        parts += [Text(), comparison(found)]
    for curve in data.curves:
        if training.is_grpo(curve):
            parts += [Text(), _trend_table(curve)]
    for label, gate in data.gates:
        parts += [Text(), Text(visible(f"Gate for {label}: {gate['outcome']}"), style="bold")]
        parts += [_line("  ", reason) for reason in gate["reasons"]]
    if data.acceptance:
        parts += [Text(), Text(visible(accept_sentence(data.acceptance)), style="bold")]
        parts += [_line("  ", clause) for clause in data.acceptance.get("failed", ())]
    if data.hacks:
        parts += [Text(), tricks(data.hacks)]
    return Group(*parts)


def _line(mark: str, sentence: str) -> Text:
    return Text(visible(mark + sentence))


def _trend_table(curve: Curve) -> Table:
    table = Table(title=Text(visible(f"Training of {curve.run}")), title_justify="left", box=SIMPLE_HEAD)
    for column in ("means of the steps", "first quarter", "last quarter"):
        table.add_column(column, justify="left" if column.startswith("means") else "right")
    for one in training.trends(curve):
        table.add_row(Text(visible(one.title)), one.first, one.last)
    return table


def tricks(found: Hacks) -> Table:
    """The share of each trick before and after, and the rise that so many prompts could show."""
    table = Table(title=Text(visible(f"Tricks: {found.before} → {found.after}")), title_justify="left", box=SIMPLE_HEAD)
    for column in training.TRICK_COLUMNS:
        table.add_column(column, justify="left" if column == "trick" else "right")
    for row in training.trick_rows(found):
        table.add_row(*row)
    return table


def _summary_table(run: str, cells: object) -> Table:
    table = Table(title=Text(visible(run)), title_justify="left", caption=CAPTION, box=SIMPLE_HEAD)
    table.add_column("asked for")
    table.add_column("prompts")
    for title in COLUMNS.values():
        table.add_column(title, justify="right")
    assert isinstance(cells, dict)
    for group, parts in cells.items():
        for part in SLICES:
            if part in parts:
                name = language_name(group) if part == "all" else f"  {part}"
                style = "bold" if group == POOLED and part == "all" else ""
                table.add_row(Text(visible(name), style), str(parts[part].prompts), *_figures(parts[part]))
    return table


def _figures(cell: Cell) -> list[str]:
    shown = []
    for name in COLUMNS:
        text = short(cell, name)
        for other in BESIDE.get(name, ()):
            found = cell.rates.get(other)
            if found and found.k:
                text += f" {'n' if other.endswith('neutral') else 'u'} {wording.percent(found.rate)}"
        shown.append(text)
    return shown


def short(cell: Cell, name: str) -> str:
    """ "75 % (63–84)", "0 % (≤ 8)", or a dash."""
    found = cell.rates.get(name)
    if found is None:
        return "–"
    bound = wording.bounds(found.k, found.n, found.low, found.high)
    bound = bound.replace("at most", "≤").replace("at least", "≥").removesuffix(wording.PERCENT)
    return f"{wording.percent(found.rate)} ({bound})"


def comparison(found: Comparison) -> Table:
    """One comparison; each metric pooled, the first one by language too."""
    table = Table(
        title=Text(visible(f"{found.before} → {found.after}")),
        title_justify="left",
        caption=Text(visible(f"{found.note} Languages of the other metrics: see the Markdown or HTML report.")),
        box=SIMPLE_HEAD,
    )
    for column in ("metric", "asked for", "before", "after", "points (95 %)", "up/down", "p", "Holm", "detectable"):
        table.add_column(column, justify="left" if column in ("metric", "asked for") else "right")
    first = found.changes[0].metric if found.changes else ""
    for change in found.changes:
        if change.metric != first and change.group != POOLED:
            continue
        table.add_row(
            METRICS[change.metric].title if change.group == POOLED else "",
            Text(visible(language_name(change.group))),
            wording.percent(change.before),
            wording.percent(change.after),
            f"{wording.points(change.difference)} ({wording.points(change.low)} to {wording.points(change.high)})",
            "–" if change.gains is None else f"{change.gains}/{change.losses}",
            wording.p_value(change.p),
            wording.p_value(change.p_holm),
            "–" if change.detectable is None else wording.points(change.detectable),
        )
    return table
