# SPDX-License-Identifier: MIT-0
"""What a report tells beside its own figures: earlier gates, training curves, and the languages that were taught."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lingoss import runs
from lingoss.evaluate.compare import Comparison
from lingoss.evaluate.hacks import Hacks
from lingoss.evaluate.report.data import Curve, ReportData
from lingoss.evaluate.rows import ScoredRun
from lingoss.evaluate.setting import Setting, fits
from lingoss.evaluate.summary import summarise
from lingoss.prepare import Prepared


def gather(
    setting: Setting,
    own: str,
    scored: Sequence[ScoredRun],
    comparisons: Sequence[Comparison],
    verdict: dict[str, Any],
    accepted: dict[str, Any] | None,
    tricks: Hacks | None,
    notes: Sequence[str],
) -> ReportData:
    """Everything that is known, in order of training; gates of earlier evaluations come first. `own`: this run."""
    root, judged = setting.config.root, setting.judged.name
    earlier = [
        (name, json.loads(path.read_text(encoding="utf-8")))
        for name, path in _earlier_gates(root, own, setting.source)
        if name != judged
    ]
    return ReportData(
        runs=scored,
        summaries=[summarise(run, draws=setting.config.bootstrap_draws) for run in scored],
        comparisons=comparisons,
        gates=[*earlier, (judged, verdict)],
        acceptance=accepted,
        hacks=tricks,
        curves=[_curve(root, subject.run) for subject in setting.subjects if subject.run],
        training_languages=_training_languages(setting),
        notes=notes,
    )


def _curve(root: Path, name: str) -> Curve:
    run = runs.find_run(root, name)
    choice = run.done_record().get("choice")
    sentence = choice.get("sentence", "") if isinstance(choice, dict) else ""
    return Curve(name, list(runs.read_metrics(run.path)), str(sentence))


def _earlier_gates(root: Path, own: str, source: Prepared) -> list[tuple[str, Path]]:
    """The last gate.json of each model on this base, from other evaluations."""
    found: dict[str, Path] = {}
    for run in runs.list_runs(root):
        path = run.path / "gate.json"
        if run.stage == "evaluate" and run.done and run.name != own and path.exists() and fits(root, run, source):
            name = json.loads(path.read_text(encoding="utf-8"))["runs"][0]
            found[name] = path
    return list(found.items())


def _training_languages(setting: Setting) -> dict[tuple[str, str, str], int]:
    """The language table that the newest SFT run stored when it built its data."""
    for subject in reversed(setting.subjects):
        if subject.stage == "sft" and subject.run:
            rows = runs.find_run(setting.config.root, subject.run).done_record().get("language_table", ())
            return {(row["question"], row["reasoning"], row["answer"]): row["rows"] for row in rows}
    return {}
