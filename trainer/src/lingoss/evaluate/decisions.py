# SPDX-License-Identifier: MIT-0
"""The two decisions of an evaluation, from its scored samples: the gate before GRPO and the verdict after it."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lingoss import runs
from lingoss.config import EvaluateConfig
from lingoss.data import Prompt
from lingoss.data.prompt_sets import VALIDATION
from lingoss.errors import LingossError
from lingoss.evaluate.accept import AcceptSettings, accept
from lingoss.evaluate.gate import GateSettings, gate
from lingoss.evaluate.hacks import Hacks, hacks
from lingoss.evaluate.rows import ScoredRun
from lingoss.evaluate.sampling import gate_sampling
from lingoss.evaluate.setting import Setting, Subject


def decide_gate(setting: Setting, samples: ScoredRun, scored: Sequence[ScoredRun]) -> dict[str, Any]:
    """The content of gate.json: about the model that GRPO would start from. `scored`: the subjects on held-out prompts."""
    asked, judged = setting.config.gate, setting.judged
    settings = GateSettings(
        samples=asked.k,
        mask_truncated=asked.mask_truncated_completions,
        waive_prompts=asked.waive_prompts,
        prompts_per_step=asked.prompts_per_step,
        min_groups=asked.informative_groups,
        waive_groups=asked.informative_groups == 0,
        informative=asked.floor,
        target=asked.target,
        correctness_margin=asked.correctness_margin,
    )
    heldout = scored[setting.subjects.index(judged)]
    verdict = gate(samples, settings, heldout, scored[0] if judged.run else None).to_dict()
    return verdict | {"sampling": gate_sampling(setting.config, setting.gate.max_new_tokens)}


def decide_accept(setting: Setting, scored: Sequence[ScoredRun]) -> dict[str, Any] | None:
    """The content of accept.json: the newest GRPO run against the SFT run that it came of; None without a GRPO run.

    Prompts that the run was trained on or chosen by prove nothing and are left out.
    """
    candidate = _candidate(setting)
    if candidate is None:
        return None
    current = _origin(setting, candidate)
    if current is None:
        return _undecided(candidate, f"SFT run: {candidate.name} came of none that is finished here")
    seen = _seen(setting, candidate)
    sides = _sides(setting, scored, current, candidate, seen)
    if sides is None:
        return _undecided(candidate, "prompts: the run was trained on or chosen by every one of them", current)
    before, after = sides
    verdict = accept(after, before, _accept_settings(setting.config)).to_dict()
    if seen:
        verdict["metrics"]["left_out"] = len(seen)
    return verdict


def find_hacks(setting: Setting, scored: Sequence[ScoredRun]) -> Hacks | None:
    """Which tricks rose from the same SFT run to the same GRPO run, on the same prompts; None without such a pair."""
    candidate = _candidate(setting)
    current = candidate and _origin(setting, candidate)
    if candidate is None or current is None:
        return None
    sides = _sides(setting, scored, current, candidate, _seen(setting, candidate))
    return hacks(*sides) if sides else None


def _candidate(setting: Setting) -> Subject | None:
    """The newest GRPO run."""
    return next((one for one in reversed(setting.subjects) if one.stage == "grpo"), None)


def _origin(setting: Setting, candidate: Subject) -> Subject | None:
    """The SFT run that it came of."""
    return next((one for one in setting.subjects if one.stage == "sft" and one.name in candidate.parents), None)


def _sides(
    setting: Setting, scored: Sequence[ScoredRun], current: Subject, candidate: Subject, seen: set[str]
) -> tuple[ScoredRun, ScoredRun] | None:
    """(before, after) on the prompts that were not `seen`; None when there are none."""
    found = {subject.name: run for subject, run in zip(setting.subjects, scored, strict=True)}
    kept = {prompt.id for prompt in setting.prompts} - seen
    return (_only(found[current.name], kept), _only(found[candidate.name], kept)) if kept else None


def _undecided(candidate: Subject, reason: str, current: Subject | None = None) -> dict[str, Any]:
    names = [one.name for one in (candidate, current) if one]
    return {"decision": "keep", "failed": [reason], "metrics": {}, "runs": names}


def _accept_settings(config: EvaluateConfig) -> AcceptSettings:
    margins = config.accept
    return AcceptSettings(
        language_margin=margins.language_margin,
        correctness_margin=margins.correctness_margin,
        format_margin=margins.format_margin,
        truncation_margin=margins.format_margin,
        repetition_margin=margins.repetition_margin,
        length=(1 / margins.length_ratio, margins.length_ratio),
        confidence=1 - margins.alpha,
    )


def _seen(setting: Setting, candidate: Subject) -> set[str]:
    """Ids of this evaluation's prompts that the GRPO run chose a checkpoint by, or that its own files hold."""
    own = _own_prompts(setting.config.root, candidate)
    items, questions = {prompt.item for prompt in own}, {prompt.question for prompt in own}
    return {
        prompt.id
        for prompt in setting.prompts
        if prompt.split == VALIDATION or prompt.item in items or prompt.question in questions
    }


def _own_prompts(root: Path, candidate: Subject) -> list[Prompt]:
    from lingoss.data.files import load_prompts

    assert candidate.run is not None
    data: Mapping[str, Any] = runs.find_run(root, candidate.run).config.get("data") or {}
    rows: list[Prompt] = []
    for path in data.get("files") or ():
        try:
            rows += load_prompts(path).rows
        except LingossError:  # gone since; whoever removed it answers for what is asked now
            continue
    return rows


def _only(run: ScoredRun, kept: set[str]) -> ScoredRun:
    rows = tuple(row for row in run.rows if row.prompt_id in kept)
    return dataclasses.replace(run, rows=rows)
