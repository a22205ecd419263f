# SPDX-License-Identifier: MIT-0
"""The first lines of every report: what the numbers show, and what they do not, in plain words."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lingoss.evaluate import wording
from lingoss.evaluate.compare import Change, Comparison
from lingoss.evaluate.report.data import ReportData, language_name
from lingoss.evaluate.report.training import sentences, tricks
from lingoss.evaluate.rows import CROSSED
from lingoss.evaluate.summary import POOLED, Summary, pooled

UNSURE = 0.05  # an abstain rate above this is worth a sentence


def shows(data: ReportData) -> list[str]:
    """Sentences on what was found."""
    return [*_compliance(data), *_correctness(data), *sentences(data), *_decisions(data), *tricks(data)]


def _compliance(data: ReportData) -> Iterator[str]:
    changed = [change for found in data.comparisons for change in [_pooled(found, "strict")] if change]
    if not changed:
        for summary in data.summaries:
            yield f"{summary.run}: strict language compliance {wording.rate(pooled(summary, 'strict'))}."
        return
    names = [run.name for run in data.runs]
    steps = set(itertools.pairwise(names))  # base to sft, sft to grpo; the tables have the other pairs
    for found in data.comparisons:
        change = _pooled(found, "strict")
        if change is None or (found.before, found.after) not in steps:
            continue
        evidence = (
            "excludes no change" if change.low > 0 or change.high < 0 else "does not exclude that nothing changed"
        )
        yield (
            f"From {found.before} to {found.after}, strict language compliance went from {_side(data, found.before)}"
            f" to {_side(data, found.after)}: {wording.change(change)}. The interval {evidence}."
        )


def _pooled(found: Comparison, metric: str) -> Change | None:
    return next((change for change in found.changes if (change.metric, change.group) == (metric, POOLED)), None)


def _side(data: ReportData, run: str) -> str:
    return wording.rate(next((pooled(summary, "strict") for summary in data.summaries if summary.run == run), None))


def _correctness(data: ReportData) -> Iterator[str]:
    parts = [f"{summary.run} {wording.rate(pooled(summary, 'correct'))}" for summary in data.summaries]
    if any(pooled(summary, "correct") for summary in data.summaries):
        yield f"Right answers: {'; '.join(parts)}."


def _decisions(data: ReportData) -> Iterator[str]:
    for label, gate in data.gates:
        yield f"Gate for {label}: {gate['outcome']}."
    if data.acceptance:
        yield accept_sentence(data.acceptance)


def accept_sentence(acceptance: Mapping[str, Any]) -> str:
    """The decision of accept.json in one sentence."""
    candidate, current = (*acceptance.get("runs", ()), "the candidate", "the current run")[:2]
    if acceptance["decision"] == "accept":
        return f"{candidate} is accepted in place of {current}: every clause holds."
    failed = [clause.partition(":")[0] for clause in acceptance.get("failed", ())]
    text = f"{current} stays the answer; {candidate} failed {wording.count(len(failed), 'clause')}"
    text += f" ({_clauses(failed)})." if failed else "."
    return f"{text} No gain is shown on these prompts." if "primary" in failed else text


def _clauses(failed: Sequence[str]) -> str:
    """ "primary; language fr, de; format": the names of the clauses, each kind once with all its languages."""
    kinds: dict[str, dict[str, None]] = {}
    for name in failed:
        kind, _, code = name.partition(",")[0].partition(" ")
        kinds.setdefault(kind, {}).update({code: None} if code else {})
    return "; ".join(f"{kind} {', '.join(codes)}".rstrip() for kind, codes in kinds.items())


def does_not_show(data: ReportData) -> list[str]:
    """Sentences on what a reader might wrongly conclude; the caller's notes come first."""
    said = [*data.notes]
    for summary in data.summaries[-1:]:
        said += _limits(summary)
    missed = [change.detectable for found in data.comparisons for change in found.changes if _is_language(change)]
    known = [difference for difference in missed if difference is not None]
    if known:
        said.append(
            f"Within one language, a true change of {100 * min(known):.0f} to {100 * max(known):.0f} points is the"
            " least that so few prompts would show four times in five; smaller ones can hide here."
        )
    for found in data.comparisons:
        if not found.paired:
            said.append(f"{found.before} and {found.after} were not compared on the same footing. {found.note}")
    errors = sum(summary.errors for summary in data.summaries)
    if errors:
        said.append(
            f"{wording.count(errors, 'row')} could not be used and count in no figure; see the end of the report."
        )
    return said


def _is_language(change: Change) -> bool:
    return change.metric == "strict" and change.group != POOLED


def _limits(summary: Summary) -> Iterator[str]:
    cell = summary.cells[POOLED]["all"]
    strict, joint = cell.rates["strict"], cell.rates["joint"]
    if "correct" in cell.rates:
        yield (
            f"Compliance is not quality: {strict.k} of {strict.n} samples of {summary.run} are compliant,"
            f" {joint.k} are compliant and, where the answer is known, right."
        )
    neutral, worded = cell.rates["answer_neutral"], cell.rates.get("strict_worded")
    if neutral.k:
        yield (
            f"{neutral.k} of {neutral.n} answers of {summary.run} have no words, only numbers. They count as compliant;"
            f" without them strict compliance is {wording.rate(worded)}."
        )
    unsure = [
        f"{language_name(group)} {wording.percent(found.rate)}"
        for group, parts in summary.cells.items()
        for found in [parts["all"].rates.get("reasoning_abstained")]
        if found and group != POOLED and found.rate > UNSURE
    ]
    if unsure:
        yield f"The language detector would not decide on some reasoning: {', '.join(unsure)}."
    if CROSSED not in summary.cells[POOLED]:
        yield (
            "Every question was already in the language asked for. Such prompts hide missing control: even an"
            " untrained model mostly answers in the question's language."
        )
