# SPDX-License-Identifier: MIT-0
"""What the rows of a training run say, for the sentences, tables and plots of a report."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from lingoss import languages
from lingoss.evaluate import wording
from lingoss.evaluate.hacks import Hacks
from lingoss.evaluate.report.data import Curve, ReportData

TRICK_COLUMNS = ("trick", "before", "after", "up / down", "p (Holm)", "detectable")
Points = Sequence[tuple[float, float]]
_TITLES = {
    "loss": "loss",
    "eval_loss": "eval_loss",
    "reward": "reward",
    "informative": "informative groups",
    "strict": "strictly compliant",
    "correct": "right answers",
    "truncated": "cut off",
    "abstained": "detector unsure",
    "unparsed": "answer not readable",
    "repetition": "repetition",
    "tokens": "tokens a completion",
    "entropy": "entropy",
    "kl": "distance from the SFT policy (nats a token)",
    "kl_rollout": "distance from the rollout's policy (nats a token)",
    "validation/joint": "validation: compliant and right",
    "validation/strict": "validation: strictly compliant",
    "validation/reward": "validation: reward",
    "without_gold/reward": "reward without a known answer",
}
_LOSSES = ("loss", "eval_loss")
_SHARES = ("informative", "strict", "correct", "truncated", "abstained", "unparsed", "repetition")
BY_LANGUAGE = {
    "reward": "Reward",
    "informative": "Informative groups",
    "strict": "Strictly compliant",
    "correct": "Right answers",
}


@dataclass(frozen=True, slots=True)
class Trend:
    """One figure: means of the run's first and last quarter of steps, as text."""

    title: str
    first: str
    last: str


def is_grpo(curve: Curve) -> bool:
    """Whether the rows are those of a GRPO run."""
    return any("informative" in row for row in curve.rows)


def title(name: str) -> str:
    """A column of metrics.jsonl in words."""
    return _TITLES.get(name) or f"term {name.removeprefix('term/').replace('_', ' ')}"


def plotted(curve: Curve) -> list[str]:
    """The columns worth a plot: of GRPO all with a title, the reward's terms behind the reward; of SFT the losses."""
    if not is_grpo(curve):
        return list(_LOSSES)
    terms = dict.fromkeys(key for row in curve.rows for key in row if key.startswith("term/") and key.count("/") == 1)
    names = list(_TITLES)
    at = names.index("reward") + 1
    return [*names[:at], *terms, *names[at:]]


def points(curve: Curve, name: str) -> Points:
    """(step, value) of every row with a finite value."""
    found: list[tuple[Any, Any]] = [(row.get("step"), row.get(name)) for row in curve.rows]
    return [(float(step), float(value)) for step, value in found if _finite(step) and _finite(value)]


def by_language(curve: Curve) -> dict[str, dict[str, Points]]:
    """The curves of each language, for the figures of BY_LANGUAGE."""
    codes = sorted({key.partition("/")[2] for row in curve.rows for key in row if key.startswith("reward/")})
    known = [code for code in codes if _is_language(code)]
    found = {name: {code: points(curve, f"{name}/{code}") for code in known} for name in BY_LANGUAGE}
    return {name: {code: line for code, line in lines.items() if len(line) > 1} for name, lines in found.items()}


def trends(curve: Curve) -> list[Trend]:
    """What a GRPO run's table shows: the reward, its terms, the shares, the rewards of each language, lengths."""
    lines = [(title(name), points(curve, name), name in _SHARES) for name in plotted(curve)]
    lines += [
        (f"{name} {code}", line, name in _SHARES)
        for name in ("reward", "informative")
        for code, line in by_language(curve)[name].items()
    ]
    return [Trend(words, *(_number(side, share) for side in _ends(line))) for words, line, share in lines if line]


def sentences(data: ReportData) -> list[str]:
    """For each GRPO run: how its reward moved, how much of it taught anything, and which checkpoint was taken."""
    said = []
    for curve in filter(is_grpo, data.curves):
        rewards, taught = points(curve, "reward"), points(curve, "informative")
        if not rewards or not taught:
            continue
        before, after = _ends(rewards)
        share = fmean(value for _, value in taught)
        said.append(
            f"{curve.run}: the training reward went from {before:.3f} to {after:.3f} (first and last quarter of "
            f"{wording.count(len(rewards), 'step')}); {wording.percent(share)} of the groups were informative. "
            f"{curve.choice}".rstrip()
        )
    return said


def tricks(data: ReportData) -> list[str]:
    """Whether GRPO learned a trick, in one sentence."""
    if data.hacks is None:
        return []
    found = data.hacks
    way = f"from {found.before} to {found.after}"
    if found.risen:
        worse = [rise for rise in found.rises if rise.risen]
        told = "; ".join(
            f"{one.meaning} ({wording.percent(one.before)} to {wording.percent(one.after)})" for one in worse
        )
        return [f"Tricks that rose {way}: {told}."]
    known = [rise.detectable for rise in found.rises if rise.detectable is not None]
    limit = f" {100 * max(known):.0f} points more of any would have shown" if known else " so few prompts can show none"
    return [f"None of {len(found.rises)} known tricks rose significantly {way};{limit}."]


def trick_rows(found: Hacks) -> list[tuple[str, ...]]:
    """The table of tricks: what it is, shares before and after, prompts that show it only after / only before, p (Holm),
    detectable rise."""
    return [
        (
            one.meaning,
            wording.percent(one.before),
            wording.percent(one.after),
            f"{one.gained} / {one.lost}",
            wording.p_value(one.p_holm),
            "–" if one.detectable is None else wording.points(one.detectable),
        )
        for one in found.rises
    ]


def _ends(line: Points) -> tuple[float, float]:
    part = max(1, len(line) // 4)
    values = [value for _, value in line]
    return fmean(values[:part]), fmean(values[-part:])


def _number(value: float, share: bool) -> str:
    return wording.percent(value) if share else f"{value:.3g}"


def _is_language(code: str) -> bool:
    try:
        languages.get(code)
    except languages.UnknownLanguage:
        return False
    return True


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
