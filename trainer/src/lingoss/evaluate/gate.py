# SPDX-License-Identifier: MIT-0
"""Is GRPO worth starting? Measured with GRPO's own sampling and reward, per language: k samples of each prompt.

GRPO learns nothing from a prompt whose k rewards are all equal, so what counts is f, the share of *informative* groups.

1. target-met     every language is compliant on held-out prompts (lower bound >= target), correctness not inferior
2. sft-first      upper bound of f < 0.20 and mean success < 0.5 in some language
3. saturated      upper bound of f < 0.20 and mean success >= 0.95 in every language
4. viable         lower bound of f >= 0.20, enough informative groups a step, most reward variance from the task itself
5. inconclusive   otherwise
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lingoss.errors import LingossError
from lingoss.evaluate import statistics
from lingoss.evaluate.compare import check_comparable, paired_change, pairs
from lingoss.evaluate.informative import is_informative
from lingoss.evaluate.rows import Row, ScoredRun
from lingoss.evaluate.statistics import Floats
from lingoss.evaluate.summary import POOLED, Rate, measured
from lingoss.evaluate.wording import bounds, change, count, percent

SFT_FIRST, VIABLE, SATURATED = "sft-first", "viable", "saturated"
INCONCLUSIVE, TARGET_MET = "inconclusive", "target-met"
OUTCOMES = (SFT_FIRST, VIABLE, SATURATED, INCONCLUSIVE, TARGET_MET)


@dataclass(frozen=True, slots=True)
class GateSettings:
    """`samples`: k of each prompt. `mask_truncated`: GRPO leaves out what was cut off. `informative`: least share of
    informative groups. `prompts_per_step`: prompts that one GRPO step draws, of which `min_groups` should be informative.
    The two waivers are for demonstrations (on fewer than `min_prompts` prompts a language); the reasons then say so."""

    samples: int = 8
    mask_truncated: bool = True
    min_prompts: int = 64
    waive_prompts: bool = False
    prompts_per_step: int = 16
    min_groups: int = 8
    waive_groups: bool = False
    informative: float = 0.20
    low_success: float = 0.5
    high_success: float = 0.95
    target: float = 0.95
    correctness_margin: float = 0.05
    penalty_share: float = 0.5


@dataclass(frozen=True, slots=True)
class Signal:
    """What one language (or all) offers to GRPO."""

    informative: Rate
    success: Rate
    outcome: str


@dataclass(frozen=True, slots=True)
class Gate:
    """`overall` is the signal of all languages together; `languages` of each."""

    outcome: str
    overall: Signal
    languages: dict[str, Signal]
    reasons: tuple[str, ...]
    runs: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The content of gate.json."""
        return {
            "outcome": self.outcome,
            "languages": {code: _plain(signal) for code, signal in self.languages.items()},
            "reasons": list(self.reasons),
            "runs": list(self.runs),
        }


def _plain(signal: Signal) -> dict[str, dict[str, float]]:
    kept = ("k", "n", "low", "high")
    parts = {"informative": asdict(signal.informative), "success": asdict(signal.success)}
    return {name: {key: part[key] for key in kept} for name, part in parts.items()}


def gate(
    run: ScoredRun,
    settings: GateSettings | None = None,
    heldout: ScoredRun | None = None,
    baseline: ScoredRun | None = None,
) -> Gate:
    """Decide from `run`, k samples of each prompt. `heldout` is the same model on held-out prompts and `baseline` its
    parent on those: without the first, "target met" is not examined.

    Raises:
        LingossError: no prompt has k samples with a reward.
    """
    settings = settings or GateSettings()
    groups, partial = _groups(run, settings.samples)
    languages = {
        code: _signal([group for group in groups if group[0].answer_language == code], settings)
        for code in dict.fromkeys(group[0].answer_language for group in groups)
    }
    overall = _signal(groups, settings)
    outcome, why = _decide(languages, overall, groups, settings)
    if heldout:
        met, said = _target_met(heldout, baseline, settings)
        outcome, why = (TARGET_MET, said + why) if met else (outcome, why + said)
    else:
        why.append("No held-out rows were given, so whether the target is already met was not examined.")
    if partial:
        why.append(f"Left out, for fewer than {settings.samples} usable samples: {count(partial, 'prompt')}.")
    numbers = [_sentence("All languages", overall)] + [_sentence(code, found) for code, found in languages.items()]
    runs = tuple(dict.fromkeys(part.name for part in (run, heldout, baseline) if part))
    return Gate(outcome, overall, languages, tuple(why + numbers), runs)


def _groups(run: ScoredRun, k: int) -> tuple[list[list[Row]], int]:
    """Rows of each prompt that has at least k samples (the first k), and how many prompts have fewer."""
    found: dict[str, list[Row]] = {}
    for row in run.rows:
        if not np.isnan(row.values["reward"]):
            found.setdefault(row.prompt_id, []).append(row)
    whole = [sorted(rows, key=lambda row: row.sample)[:k] for rows in found.values() if len(rows) >= k]
    if not whole:
        raise LingossError(
            f"the gate needs {k} samples of each prompt and run {run.name!r} has at most {run.samples};"
            f" generate with --k {k}, or gate with fewer samples"
        )
    return whole, len(found) - len(whole)


def _rewards(groups: Sequence[Sequence[Row]]) -> tuple[Floats, Floats]:
    """(rewards, their penalty part), each (groups, k). A penalty is a term that never adds anything in these rows."""
    terms = [[row.source["verdict"].get("terms") or {} for row in group] for group in groups]
    highest: dict[str, float] = {}
    for group in terms:
        for sample in group:
            for name, value in sample.items():
                highest[name] = max(value, highest.get(name, value))
    penalties = [name for name, value in highest.items() if value <= 0]
    rewards = np.array([[row.values["reward"] for row in group] for group in groups])
    return rewards, np.array(
        [[sum(sample.get(name, 0.0) for name in penalties) for sample in group] for group in terms]
    )


def _compared(groups: Sequence[Sequence[Row]], settings: GateSettings) -> Any:
    """(groups, k): the samples that GRPO would compare with each other."""
    cut = np.array([[row.source.get("finish_reason") == "length" for row in group] for group in groups])
    return ~(cut & settings.mask_truncated)


def _signal(groups: Sequence[Sequence[Row]], settings: GateSettings) -> Signal:
    k, n = int(is_informative(_rewards(groups)[0], _compared(groups, settings)).sum()), len(groups)
    informative = Rate(k, n, k / n, *statistics.wilson(k, n), "Wilson")
    cell = measured([row for group in groups for row in group], POOLED, ["joint"])
    assert cell is not None  # a group has rows
    success = cell.rates["joint"]
    if informative.high < settings.informative and success.rate < settings.low_success:
        outcome = SFT_FIRST
    elif informative.high < settings.informative and success.rate >= settings.high_success:
        outcome = SATURATED
    elif informative.low >= settings.informative:
        outcome = VIABLE
    else:
        outcome = INCONCLUSIVE
    return Signal(informative, success, outcome)


def _decide(
    languages: dict[str, Signal], overall: Signal, groups: Sequence[Sequence[Row]], settings: GateSettings
) -> tuple[str, list[str]]:
    """Every language is judged by itself; with the waiver, a language with too few prompts leaves it to the pool."""
    by_outcome: dict[str, list[str]] = {}
    for code, signal in languages.items():
        by_outcome.setdefault(signal.outcome, []).append(code)
    few = {code: found.informative.n for code, found in languages.items() if found.informative.n < settings.min_prompts}
    said = []
    if few:
        listed = ", ".join(f"{code} {n}" for code, n in few.items())
        said.append(
            f"Fewer than {settings.min_prompts} prompts in: {listed}."
            + (" That rule was waived, so this is a demonstration, not evidence." if settings.waive_prompts else "")
        )
        if not settings.waive_prompts:
            return INCONCLUSIVE, [f"Too few prompts to decide. {said[0]}"]
    unsure = [code for code in by_outcome.get(INCONCLUSIVE, []) if code not in few]
    votes = {*by_outcome, overall.outcome} if few else set(by_outcome)
    if SFT_FIRST in votes:
        blocking = ", ".join(by_outcome.get(SFT_FIRST, ["all languages together"]))
        return SFT_FIRST, [
            f"Supervised fine-tuning first: {blocking} gives GRPO nothing to learn from"
            f" (fewer than {percent(settings.informative)} of its groups are informative and most samples fail).",
            *said,
        ]
    if unsure or (few and overall.outcome == INCONCLUSIVE):
        blocking = ", ".join(unsure) or "all languages together"
        return INCONCLUSIVE, [
            f"Inconclusive: {blocking} cannot be told apart from the bar of {percent(settings.informative)}"
            " informative groups. Use more prompts, 16 samples a prompt, or a higher temperature.",
            *said,
        ]
    if VIABLE not in votes:
        return SATURATED, ["Saturated: nearly every sample already earns the full reward; use harder prompts.", *said]
    outcome, why = _viable(overall, groups, settings)
    done = by_outcome.get(SATURATED)
    if done:
        said.append(f"Already saturated, so GRPO will not move it: {', '.join(done)}.")
    return outcome, why + said


def _viable(overall: Signal, groups: Sequence[Sequence[Row]], settings: GateSettings) -> tuple[str, list[str]]:
    """The two last conditions: most variance from the task itself, enough informative groups in one step."""
    rewards, penalties = _rewards(groups)
    compared = _compared(groups, settings)
    centred = _centred(rewards, compared)
    by_penalty = float((centred * _centred(penalties, compared)).sum()) / float((centred**2).sum())
    only = int((is_informative(rewards, compared) & ~is_informative(rewards - penalties, compared)).sum())
    source = (
        f"{percent(min(max(by_penalty, 0.0), 1.0))} of the reward's variance within groups comes from penalty terms;"
        f" {only} groups are informative through penalties alone."
    )
    if by_penalty > settings.penalty_share:
        return INCONCLUSIVE, [f"Do not start: {source} GRPO would learn to avoid penalties, not to do the task."]
    expected, needed = settings.prompts_per_step * overall.informative.rate, settings.min_groups
    step = f"{settings.prompts_per_step} prompts a step hold about {expected:.1f} informative groups"
    if settings.waive_groups:
        return VIABLE, [f"GRPO is viable: {step}. The rule on their number was waived.", source]
    if expected >= needed:
        return VIABLE, [f"GRPO is viable: {step} (at least {needed} are needed).", source]
    enough = int(np.ceil(needed / overall.informative.rate))
    return INCONCLUSIVE, [f"Not yet: {step}, fewer than {needed}. Draw {enough} prompts a step.", source]


def _centred(values: Floats, compared: Any) -> Floats:
    """Each compared value less the mean of those of its group; 0 for the others."""
    counts = compared.sum(axis=1, keepdims=True)
    means = (values * compared).sum(axis=1, keepdims=True) / np.maximum(counts, 1)
    return np.asarray((values - means) * compared)


def _target_met(heldout: ScoredRun, baseline: ScoredRun | None, settings: GateSettings) -> tuple[bool, list[str]]:
    """Clause 1, on held-out rows, in every language; a language with too few prompts cannot reach the bound."""
    missing = []
    for code in heldout.languages:
        cell = measured([row for row in heldout.rows if row.answer_language == code], POOLED, ["strict"])
        found = cell.rates.get("strict") if cell else None
        if found and found.low < settings.target:
            missing.append(f"{code} {percent(found.rate)} ({bounds(found.k, found.n, found.low, found.high)})")
    if missing:
        return False, [f"Held-out target of {percent(settings.target)} compliance not shown in: {', '.join(missing)}."]
    said = [f"Target met: held-out compliance is at least {percent(settings.target)} in every language."]
    if baseline is None:
        return True, [*said, "Correctness was not compared, because no baseline was given."]
    check_comparable(baseline, heldout)
    confidence = statistics.one_sided(0.95)
    moved = paired_change(pairs(baseline, heldout), "correct", confidence=confidence)
    if moved is None:
        return True, [*said, "Correctness was not compared, because no prompt has a known answer."]
    kept = statistics.noninferior(moved.low, settings.correctness_margin)
    text = f"correctness against {baseline.name} changed by {change(moved)}"
    if not kept:
        return False, [f"Compliance meets the target, but {text}: a loss is not excluded."]
    return True, [*said, f"Not paid for with correctness: {text}."]


def _sentence(name: str, found: Signal) -> str:
    shown, success = found.informative, found.success
    return (
        f"{name}: {shown.k} of {shown.n} groups informative, {percent(shown.rate)}"
        f" ({bounds(shown.k, shown.n, shown.low, shown.high)}); {success.k} of {success.n} samples succeed,"
        f" {percent(success.rate)} ({bounds(success.k, success.n, success.low, success.high)}): {found.outcome}."
    )
