# SPDX-License-Identifier: MIT-0
"""Stage evaluate: generate, score, report and compare every finished run on the same prompts; then the gate.

<root>/evaluations/<model>-<digest>/       one for each model, prompts and sampling; shared by later evaluations
    samples.jsonl  run.json  verdicts.jsonl
<root>/runs/evaluate-<id>/                 what was found out this time
    report.html  report.md  summary.json  compare.json  gate.json  accept.json
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lingoss import runs
from lingoss.config import EvaluateConfig
from lingoss.config.evaluate import ALL_FINISHED
from lingoss.data import Prompt
from lingoss.errors import LingossError
from lingoss.evaluate.accept import AcceptSettings, accept
from lingoss.evaluate.compare import Comparison, compare
from lingoss.evaluate.gate import GateSettings, gate
from lingoss.evaluate.report import ReportData, write_reports
from lingoss.evaluate.report.data import Curve
from lingoss.evaluate.rows import ScoredRun
from lingoss.evaluate.scoring import score_folder
from lingoss.evaluate.summary import summarise
from lingoss.prepare import Prepared, prepared

TRAINED = ("sft", "grpo")
BASE = "base"


@dataclass(frozen=True, slots=True)
class Subject:
    """A model to evaluate: the base, or the adapter of a finished run."""

    name: str
    stage: str
    adapter: Path | None
    run: str | None = None


def run(config: EvaluateConfig, notes: Sequence[str] = ()) -> runs.RunInfo:
    """Evaluate what is not yet evaluated and write the report; a finished evaluation is only found again.

    `notes` are sentences that stand beside the report's headline.

    Raises:
        LingossError: no prepared model, a run that is not finished, or prompts that cannot be read.
    """
    source = _prepared(config)
    subjects = _subjects(config)
    prompts, asked = _prompts(config, source), _gate_prompts(config)
    with _folder(config, source, subjects, prompts, asked) as folder:
        if not folder.done:
            _evaluate(config, folder, source, subjects, prompts, asked, notes)
        else:
            print(f"{folder.name} is done: {folder.path / 'report.html'}", flush=True)
        return runs.find_run(config.root, folder.name)


def plan(config: EvaluateConfig) -> dict[str, Any]:
    """What `run` would do: its run and state, models, prompts, completions, most tokens."""
    source = _prepared(config)
    subjects, prompts, asked = _subjects(config), _prompts(config, source), _gate_prompts(config)
    completions = len(subjects) * len(prompts) * config.generate.k + len(asked) * config.gate.k
    folder = _folder(config, source, subjects, prompts, asked)
    return {
        "parent": source.run,
        "run": folder.name,
        "state": "done" if folder.done else "new" if not folder.path.exists() else "begun",
        "models": [subject.name for subject in subjects],
        "prompts": len(prompts),
        "gate_prompts": len(asked),
        "completions": completions,
        "most_new_tokens": completions * config.generate.max_new_tokens,
    }


def _prepared(config: EvaluateConfig) -> Prepared:
    reference = "latest:prepare" if config.parent == "auto" else config.parent
    return prepared(config.root, runs.find_run(config.root, reference).name)


def _subjects(config: EvaluateConfig) -> list[Subject]:
    """The base model first, then the runs in the order in which they finished."""
    if config.runs == (ALL_FINISHED,):
        found = [run for run in runs.list_runs(config.root) if run.done and run.stage in TRAINED]
    else:
        found = [runs.find_run(config.root, reference) for reference in config.runs if reference != BASE]
        for run in found:
            run.done_record()  # raises for a run that is not finished
            if run.stage not in TRAINED:
                raise LingossError(f"run {run.name} holds no model: name {BASE}, or runs of {' or '.join(TRAINED)}")
    found.sort(key=lambda run: run.finished or "")
    return [Subject(BASE, BASE, None), *(Subject(run.name, run.stage, run.path / "adapter", run.name) for run in found)]


def _prompts(config: EvaluateConfig, source: Prepared) -> list[Prompt]:
    """The prepared sets restricted to the languages and the limit, then the user's files."""
    from lingoss.data.files import read_prompts

    wanted = config.prompts
    rows: list[Prompt] = []
    for name in wanted.sets:
        if name not in source.prompts:
            raise LingossError(
                f"prepare run {source.run} brought no prompt set {name}: it has {', '.join(source.prompts)}"
            )
        rows += _first(read_prompts(source.prompts[name]), wanted.languages, wanted.limit)
    for path in wanted.files:
        rows += read_prompts(path)[: wanted.limit]
    if not rows:
        raise LingossError(
            f"no prompt is left: sets {', '.join(wanted.sets)} for languages {', '.join(wanted.languages)}"
        )
    return rows


def _gate_prompts(config: EvaluateConfig) -> list[Prompt]:
    """`gate.n` prompts for each language, of the kind that GRPO would train on."""
    from lingoss.data import grpo_prompts

    return grpo_prompts(config.gate.n, config.seed, config.prompts.languages)


def _first(rows: Sequence[Prompt], languages: Sequence[str], limit: int | None) -> list[Prompt]:
    taken = dict.fromkeys(languages, 0)
    kept = []
    for row in rows:
        if row.answer_language in taken and (limit is None or taken[row.answer_language] < limit):
            taken[row.answer_language] += 1
            kept.append(row)
    return kept


def _folder(
    config: EvaluateConfig,
    source: Prepared,
    subjects: Sequence[Subject],
    prompts: Sequence[Prompt],
    asked: Sequence[Prompt],
) -> runs.RunFolder:
    """The run's folder, not opened yet: named by settings, evaluated runs, prompts and detector."""
    from lingoss import detect
    from lingoss.data import digest, prompt_digest

    parents = (source.run, *(subject.run for subject in subjects if subject.run))
    data_digest = digest([prompt_digest(prompts), prompt_digest(asked), detect.version()])
    return runs.open_run(config.root, "evaluate", config, parents, data_digest)


def _evaluate(
    config: EvaluateConfig,
    folder: runs.RunFolder,
    source: Prepared,
    subjects: Sequence[Subject],
    prompts: Sequence[Prompt],
    asked: Sequence[Prompt],
    notes: Sequence[str],
) -> None:
    steps = len(subjects) + 2
    folder.status("running", 0, steps)
    scored: list[ScoredRun] = []
    drawn = config.generate
    for number, subject in enumerate(subjects, 1):
        print(f"evaluating {subject.name}: {len(prompts)} prompts, {drawn.k} sample(s) each", flush=True)
        scored.append(_scored(config, source, subject, prompts, drawn.k, drawn.temperature))
        folder.status(step=number)

    judged = [subject for subject in subjects if subject.stage != "grpo"][-1]  # what GRPO would start from
    print(f"gate for {judged.name}: {len(asked)} prompts, {config.gate.k} samples each", flush=True)
    samples = _scored(config, source, judged, asked, config.gate.k, config.gate.temperature)
    heldout = scored[subjects.index(judged)]
    verdict = gate(samples, _gate_settings(config), heldout, scored[0] if judged.run else None).to_dict()
    folder.status(step=steps - 1)

    comparisons = compare(scored, draws=config.bootstrap_draws) if len(scored) > 1 else []
    accepted = _accepted(config, subjects, scored)
    report = _report(config, folder, subjects, scored, comparisons, verdict, judged, accepted, notes)
    found = {"gate.json": verdict, "compare.json": [one.to_dict() for one in comparisons]}
    found["summary.json"] = [one.to_dict() for one in report.summaries]
    if accepted:
        found["accept.json"] = accepted
    for name, value in found.items():
        runs.write_json(folder.path / name, value)
    names = [*found, *write_reports(report, folder.path)]
    folder.finish(
        steps,
        {name: runs.file_digest(folder.path / name) for name in names},
        gate=verdict["outcome"],
        **({"accept": accepted["decision"]} if accepted else {}),
    )
    print(f"gate: {verdict['outcome']}. {verdict['reasons'][0]}\nreport: {folder.path / 'report.html'}", flush=True)


def _scored(
    config: EvaluateConfig, source: Prepared, subject: Subject, prompts: Sequence[Prompt], k: int, temperature: float
) -> ScoredRun:
    """Samples of one model, generated unless they are there already, and scored."""
    from lingoss.data import digest, prompt_digest
    from lingoss.evaluate.generate import generate

    drawn = config.generate
    sampling = [config.seed, k, temperature, drawn.max_new_tokens, config.format, config.dtype, source.model_digest]
    place = digest([prompt_digest(prompts), sampling])[:12]
    folder = Path(config.root) / "evaluations" / f"{subject.name}-{place}"
    generate(
        source.model,
        prompts,
        folder,
        adapter=subject.adapter,
        format=config.format,
        k=k,
        temperature=temperature,
        max_new_tokens=drawn.max_new_tokens,
        batch_tokens=drawn.batch_tokens,
        seed=config.seed,
        dtype=config.dtype,
        threads=config.threads,
    )
    return score_folder(folder, subject.name)


def _gate_settings(config: EvaluateConfig) -> GateSettings:
    asked = config.gate
    return GateSettings(
        samples=asked.k,
        waive_prompts=asked.waive_prompts,
        prompts_per_step=asked.prompts_per_step,
        min_groups=asked.informative_groups,
        waive_groups=asked.informative_groups == 0,
        informative=asked.floor,
        target=asked.target,
        correctness_margin=asked.correctness_margin,
    )


def _accepted(
    config: EvaluateConfig, subjects: Sequence[Subject], scored: Sequence[ScoredRun]
) -> dict[str, Any] | None:
    """The verdict on the newest GRPO run against the SFT run before it; None when there are not both."""
    latest = {subject.stage: run for subject, run in zip(subjects, scored, strict=True)}
    if not {"sft", "grpo"} <= latest.keys():
        return None
    margins = config.accept
    settings = AcceptSettings(
        language_margin=margins.language_margin,
        correctness_margin=margins.correctness_margin,
        format_margin=margins.format_margin,
        truncation_margin=margins.format_margin,
        repetition_margin=margins.repetition_margin,
        length=(1 / margins.length_ratio, margins.length_ratio),
        confidence=1 - margins.alpha,
    )
    return accept(latest["grpo"], latest["sft"], settings).to_dict()


def _report(
    config: EvaluateConfig,
    folder: runs.RunFolder,
    subjects: Sequence[Subject],
    scored: Sequence[ScoredRun],
    comparisons: Sequence[Comparison],
    verdict: dict[str, Any],
    judged: Subject,
    accepted: dict[str, Any] | None,
    notes: Sequence[str],
) -> ReportData:
    """Everything that is known, in order of training; gates of earlier evaluations come first."""
    earlier = [
        (name, json.loads(path.read_text(encoding="utf-8")))
        for name, path in _earlier_gates(config.root, folder.name, judged.name)
    ]
    curves = [
        Curve(subject.name, list(runs.read_metrics(Path(config.root) / "runs" / subject.run)))
        for subject in subjects
        if subject.run
    ]
    return ReportData(
        runs=scored,
        summaries=[summarise(run, draws=config.bootstrap_draws) for run in scored],
        comparisons=comparisons,
        gates=[*earlier, (judged.name, verdict)],
        acceptance=accepted,
        curves=curves,
        training_languages=_training_languages(config, subjects),
        notes=notes,
    )


def _earlier_gates(root: Path, own: str, judged: str) -> list[tuple[str, Path]]:
    """The last gate.json of each model other than the one that was just judged."""
    found: dict[str, Path] = {}
    for run in runs.list_runs(root):
        path = run.path / "gate.json"
        if run.stage == "evaluate" and run.done and run.name != own and path.exists():
            name = json.loads(path.read_text(encoding="utf-8"))["runs"][0]
            found[name] = path
    return [(name, path) for name, path in found.items() if name != judged]


def _training_languages(config: EvaluateConfig, subjects: Sequence[Subject]) -> dict[tuple[str, str, str], int]:
    """The language table that the newest SFT run stored when it built its data."""
    for subject in reversed(subjects):
        if subject.stage == "sft" and subject.run:
            rows = runs.find_run(config.root, subject.run).done_record().get("language_table", ())
            return {(row["question"], row["reasoning"], row["answer"]): row["rows"] for row in rows}
    return {}
