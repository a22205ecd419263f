# SPDX-License-Identifier: MIT-0
"""After GRPO: is its adapter the answer, or does the SFT adapter stay? Paired, on held-out prompts, by clauses."""

import statistics as stdlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lingoss.errors import LingossError
from lingoss.evaluate.compare import Change, Pair, check_comparable, paired_change, pairs
from lingoss.evaluate.metrics import METRICS
from lingoss.evaluate.rows import Row, ScoredRun
from lingoss.evaluate.statistics import noninferior, one_sided
from lingoss.evaluate.wording import change, points


@dataclass(frozen=True, slots=True)
class AcceptSettings:
    """Margins are shares (0.05 = five points), to be fixed before looking. `length`: bounds of the ratio of median
    lengths in each language. `confidence`: of the two-sided interval of the gain, and of each one-sided bound."""

    primary: str = "joint"
    language_margin: float = 0.05
    correctness_margin: float = 0.03
    format_margin: float = 0.02
    truncation_margin: float = 0.02
    repetition_margin: float = 0.02
    length: tuple[float, float] = (1 / 1.5, 1.5)
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class Acceptance:
    """`failed`: one sentence a failed clause, its name first. `metrics`: every number a clause looked at."""

    decision: str
    failed: tuple[str, ...]
    metrics: dict[str, Any]
    runs: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The content of accept.json."""
        return {**asdict(self), "failed": list(self.failed), "runs": list(self.runs)}


def accept(candidate: ScoredRun, current: ScoredRun, settings: AcceptSettings | None = None) -> Acceptance:
    """Accept `candidate` (GRPO) in place of `current` (SFT), or keep `current`.

    Raises:
        LingossError: the runs cannot be paired (other prompts, detector or k), or the primary metric is no rate.
    """
    settings = settings or AcceptSettings()
    if settings.primary not in METRICS or METRICS[settings.primary].kind != "rate":
        raise LingossError(f"unknown primary metric {settings.primary!r}")
    check_comparable(current, candidate)
    matched = pairs(current, candidate)
    if not matched:
        raise LingossError(f"{current.name} and {candidate.name} share no prompt")
    metrics: dict[str, Any] = {"samples": len(matched), "settings": asdict(settings)}
    failed = [
        *_better(matched, settings, metrics),
        *_no_language_worse(matched, current.languages, settings, metrics),
        *_correctness(matched, settings, metrics),
        *_form(matched, settings, metrics),
        *_length(matched, settings, metrics),
    ]
    ungraded = [pair for pair in matched if pair[0].values["ungraded"] == 1.0]
    metrics["without_known_answer"] = _numbers(paired_change(ungraded, "strict"))
    decision = "keep" if failed else "accept"
    return Acceptance(decision, tuple(failed), metrics, (candidate.name, current.name))


def _numbers(found: Change | None) -> dict[str, Any] | None:
    if found is None:
        return None
    kept = ("prompts", "before", "after", "difference", "low", "high", "method")
    return {key: getattr(found, key) for key in kept}


def _better(matched: Sequence[Pair], settings: AcceptSettings, metrics: dict[str, Any]) -> list[str]:
    moved = paired_change(matched, settings.primary, confidence=settings.confidence)
    metrics["primary"] = {"metric": settings.primary, **(_numbers(moved) or {})}
    if moved is None:
        return [f"primary: no prompt counts for {settings.primary}"]
    if moved.low > 0:
        return []
    smallest = f"; {points(moved.detectable)} points would have shown" if moved.detectable else ""
    return [f"primary: {settings.primary} changed by {change(moved)}, which does not exclude no gain{smallest}"]


def _no_language_worse(
    matched: Sequence[Pair], languages: Sequence[str], settings: AcceptSettings, metrics: dict[str, Any]
) -> list[str]:
    failed = []
    metrics["languages"] = {}
    for code in languages:
        for name in ("reasoning", "answer"):
            moved = paired_change(matched, name, code, one_sided(settings.confidence))
            metrics["languages"].setdefault(code, {})[name] = _numbers(moved)
            if moved and not noninferior(moved.low, settings.language_margin):
                failed.append(
                    f"language {code}, {name}: changed by {change(moved)} on {moved.prompts} prompts; a loss of more"
                    f" than {100 * settings.language_margin:g} points is not excluded"
                )
    return failed


def _correctness(matched: Sequence[Pair], settings: AcceptSettings, metrics: dict[str, Any]) -> list[str]:
    moved = paired_change(matched, "correct", confidence=one_sided(settings.confidence))
    metrics["correctness"] = _numbers(moved)
    if moved is None or noninferior(moved.low, settings.correctness_margin):
        return []
    margin = f"{100 * settings.correctness_margin:g} points"
    return [f"correctness: changed by {change(moved)}; a loss of more than {margin} is not excluded"]


def _form(matched: Sequence[Pair], settings: AcceptSettings, metrics: dict[str, Any]) -> list[str]:
    """Point estimates within stated margins: form kept, not cut off, not repeating."""
    failed = []
    for clause, name, sign, margin in (
        ("format", "format_ok", -1, settings.format_margin),
        ("truncation", "truncated", 1, settings.truncation_margin),
        ("repetition", "repetition", 1, settings.repetition_margin),
    ):
        moved = paired_change(matched, name)
        metrics[clause] = _numbers(moved)
        if moved and sign * moved.difference > margin:
            title = METRICS[name].title.lower()
            failed.append(
                f"{clause}: {title} changed by {change(moved)}, more than the {100 * margin:g} points allowed"
            )
    return failed


def _length(matched: Sequence[Pair], settings: AcceptSettings, metrics: dict[str, Any]) -> list[str]:
    failed = []
    metrics["length"] = {}
    low, high = settings.length
    for code in dict.fromkeys(before.answer_language for before, _ in matched):
        chosen = [pair for pair in matched if pair[0].answer_language == code]
        before, after = (stdlib.median(_size(pair[side]) for pair in chosen) for side in (0, 1))
        ratio = after / before if before else 1.0
        metrics["length"][code] = {"before": before, "after": after, "ratio": ratio}
        if not low <= ratio <= high:
            failed.append(
                f"length {code}: the median went from {before:.0f} to {after:.0f}, a factor of {ratio:.2f}"
                f" outside {low:.2f} to {high:.2f}"
            )
    return failed


def _size(row: Row) -> float:
    """Tokens written; characters of reasoning and answer where no engine counted tokens."""
    tokens = row.source.get("new_tokens")
    if isinstance(tokens, int):
        return tokens
    lengths = row.source["verdict"].get("lengths") or {}
    return float(sum(lengths.get(f"{part}_characters", 0) for part in ("reasoning", "answer")))
