# SPDX-License-Identifier: MIT-0
"""Which checkpoint becomes the adapter: the best on the validation slice, against the SFT policy on the same prompts.

Choosing and accepting are two questions on two sets of prompts. Here the best checkpoint is taken, as long as no
language lost by it; whether it is better than the SFT adapter is shown on held-out prompts (`evaluate/accept.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from lingoss.data import Prompt
from lingoss.errors import LingossError
from lingoss.evaluate.metrics import METRICS
from lingoss.evaluate.wording import count, percent, points
from lingoss.languages import get
from lingoss.score import Verdict

LANGUAGE_MARGIN = 0.05
"""Most that a language's compliance may lose, as a share; the same as `accept.language_margin` by default."""
_LEAST = 2  # prompts that a language must lose in all: one alone is chance, however few there are
_EQUAL = 1e-9
_KEPT = ("reward", "strict", "correct", "joint")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One checkpoint. `joint` and `reward` are means over the prompts; `excluded` says why it may not be taken."""

    step: int
    joint: float
    reward: float
    excluded: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """`step` 0 is the SFT adapter itself: every checkpoint lost a language. `sentence` explains the choice."""

    step: int
    sentence: str
    candidates: tuple[Candidate, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON values, for DONE.json and the report."""
        return {**asdict(self), "candidates": [asdict(one) for one in self.candidates]}


def record(step: int, prompts: Sequence[Prompt], verdicts: Sequence[Verdict], format: str) -> dict[str, Any]:
    """What the policy of `step` did with each validation prompt (one sample each), as JSON values.

    `figures` are means for metrics.jsonl: reward, strict, correct, joint, graded (prompts with a known answer), and
    reward, strict and correct by language (`strict/fr`).

    Raises:
        ValueError: there is not one verdict for each prompt.
    """
    outcomes = {}
    for prompt, verdict in zip(prompts, verdicts, strict=True):
        row = {"format": format, "verdict": verdict.to_dict()}
        values = {name: METRICS[name].of(row) for name in _KEPT}
        outcomes[prompt.id] = {
            "language": prompt.answer_language,
            **{name: value for name, value in values.items() if value == value},  # NaN: not graded
        }
    figures = {name: fmean(found) for name in _KEPT if (found := _values(outcomes, name))}
    for code in sorted({prompt.answer_language for prompt in prompts}):
        own = {key: outcome for key, outcome in outcomes.items() if outcome["language"] == code}
        figures |= {f"{name}/{code}": fmean(found) for name in _KEPT[:3] if (found := _values(own, name))}
    figures["graded"] = float(len(_values(outcomes, "correct")))
    return {"step": step, "figures": figures, "outcomes": outcomes}


def choose(records: Sequence[Mapping[str, Any]], margin: float = LANGUAGE_MARGIN) -> Choice:
    """The checkpoint with the largest share of compliant and correct answers; the larger reward, then the earlier, wins
    a tie. One in which a language's compliance fell by more than `margin` since step 0 is never taken.

    `records` are those of `record`: step 0 (the SFT policy) and one for each checkpoint.

    Raises:
        LingossError: step 0 or every checkpoint is missing, or the records are about different prompts.
    """
    by_step = {int(one["step"]): one for one in records}
    if 0 not in by_step or len(by_step) < 2:
        raise LingossError("choosing a checkpoint needs validation figures of step 0 and of at least one checkpoint")
    start = by_step.pop(0)["outcomes"]
    for step, one in by_step.items():
        if one["outcomes"].keys() != start.keys():
            raise LingossError(f"the validation of step {step} asked other prompts than that of step 0")
    found = tuple(_candidate(step, start, by_step[step]["outcomes"], margin) for step in sorted(by_step))
    best: Candidate | None = None
    for candidate in found:
        if not candidate.excluded and (best is None or _better(candidate, best)):
            best = candidate
    before = _mean(start, "joint")
    return Choice(best.step if best else 0, _explained(best, found, before, len(start)), found)


def _candidate(step: int, start: Mapping[str, Any], now: Mapping[str, Any], margin: float) -> Candidate:
    lost = []
    for code in dict.fromkeys(outcome["language"] for outcome in start.values()):
        moves = [now[key]["strict"] - start[key]["strict"] for key in start if start[key]["language"] == code]
        if fmean(moves) < -margin and -sum(moves) >= _LEAST:
            lost.append(f"{get(code).name} lost {points(-fmean(moves)).lstrip('+')} points of compliance")
    return Candidate(step, _mean(now, "joint"), _mean(now, "reward"), ", ".join(lost))


def _better(one: Candidate, than: Candidate) -> bool:
    if abs(one.joint - than.joint) > _EQUAL:
        return one.joint > than.joint
    return one.reward > than.reward + _EQUAL


def _explained(best: Candidate | None, found: Sequence[Candidate], before: float, prompts: int) -> str:
    asked = count(prompts, "validation prompt")
    if best is None:
        told = "; ".join(f"step {one.step}: {one.excluded}" for one in found)
        return f"The SFT adapter stays, because every checkpoint lost a language on {asked} ({told})."
    against = f"{percent(best.joint)} of {asked} are answered right in the languages asked for"
    moved = f"{points(best.joint - before)} points against the SFT policy"
    others = [one for one in found if one is not best]
    excluded = "; ".join(f"step {one.step} was left out: {one.excluded}" for one in others if one.excluded)
    return f"Step {best.step} becomes the adapter: {against}, {moved}, reward {best.reward:.3f}" + (
        f" ({excluded})." if excluded else "."
    )


def _mean(outcomes: Mapping[str, Any], name: str) -> float:
    return fmean(outcome[name] for outcome in outcomes.values())


def _values(outcomes: Mapping[str, Any], name: str) -> list[float]:
    return [outcome[name] for outcome in outcomes.values() if name in outcome]
