# SPDX-License-Identifier: MIT-0
"""Rows of made-up GRPO runs: healthy ones with realistic noise, and one for each way in which a run goes wrong.

Noise comes from where it comes from in a run: each step draws other prompts, whose difficulty differs strongly, and a
few completions of each. Lengths, KL and ratios have rare large steps.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

STEPS, VALIDATION_EVERY = 200, 25
SIZES = ((16, 8, 325), (16, 8, 100), (8, 8, 65), (4, 4, 20))  # prompts a step, samples of each, validation prompts
Row = dict[str, float]


def _share(logits: Any) -> Any:
    return 1 / (1 + np.exp(-logits))


def healthy(seed: int, steps: int = STEPS, size: tuple[int, int, int] | None = None) -> Iterator[Row]:
    """Step 0 (validation alone), then one row a step. Skill rises or stays and swings; all else drifts a little."""
    draw = np.random.default_rng(seed)
    prompts, samples, asked = size or SIZES[seed % len(SIZES)]
    start, gain = draw.uniform(-2.5, 2), draw.choice([0.0, draw.uniform(0, 2)])
    spoken, learned = draw.uniform(-1, 3), draw.uniform(0, 2)
    length, drift = draw.uniform(60, 600), draw.uniform(-0.5, 0.5)
    cut, repeated, unsure = draw.uniform(0, 0.2), draw.uniform(0.01, 0.12), draw.uniform(0, 0.1)
    kl = draw.uniform(0.01, 0.3)
    swing, period, phase = draw.uniform(0, 0.5), draw.uniform(20, 80), draw.uniform(0, 6.3)
    for step in range(steps + 1):
        done = step / steps
        right, said = start + gain * done + swing * np.sin(step / period * 6.3 + phase), spoken + learned * done
        row: Row = {"step": float(step)}
        if step % VALIDATION_EVERY == 0:
            solved = draw.random(asked) < _share(right + draw.normal(0, 1.5, asked))
            kept = draw.random(asked) < _share(np.full(asked, said))
            earned = 0.4 * solved + 0.6 * kept * np.where(solved, 1.0, 0.3)
            row |= {"validation/correct": float(solved.mean()), "validation/reward": float(earned.mean())}
            row["validation/graded"] = float(asked)
        if step:
            hard = draw.normal(0, 1.5, (prompts, 1))
            solved = draw.random((prompts, samples)) < _share(right + hard)
            kept = draw.random((prompts, samples)) < _share(said + draw.normal(0, 1, (prompts, 1)))
            earned = 0.4 * solved + 0.6 * kept * np.where(solved, 1.0, 0.3)
            count = prompts * samples
            odd = 1 + 4 * (draw.random() < 0.02)  # now and then a step is unlike the others
            row |= {
                "reward": float(earned.mean()),
                "correct": float(solved.mean()),
                "informative": float((np.ptp(earned, axis=1) > 1e-9).mean()),
                "tokens": length * float(np.exp(drift * done + draw.normal(0, 0.3 / count**0.25) * odd)),
                "truncated": draw.binomial(count, min(1.0, cut * (1 + 0.5 * drift * done) * odd)) / count,
                "repetition": min(1.0, float(draw.gamma(4, repeated / 4)) * odd),
                "abstained": draw.binomial(count, min(1.0, unsure * odd)) / count,
                "kl": kl * done * float(draw.gamma(4, 0.25)) * odd,
                "kl_rollout": float(draw.gamma(4, 0.002)) * odd,
                "importance_ratio/mean": float(np.exp(draw.normal(0, 0.02) * odd)),
                "loss": float(draw.normal(0, 0.05)),
                "grad_norm": float(draw.gamma(3, 0.2)) * odd,
            }
        yield row


def failing(kind: str, seed: int, onset: int = 60) -> Iterator[Row]:
    """A run of the first size that is healthy before step `onset` and then fails in one way over some ten steps."""
    for row in healthy(seed, size=SIZES[0]):
        if row["step"] >= onset:
            FAILURES[kind](row, min(1.0, (row["step"] - onset + 1) / 10))
        yield row


def _hack(row: Row, much: float) -> None:
    """Right answers vanish and what is paid for instead brings more than they did."""
    for part in ("", "validation/"):
        if f"{part}correct" in row:
            row[f"{part}correct"] *= 1 - 0.8 * much
            row[f"{part}reward"] += 0.2 * much


def _scale(key: str, factor: float) -> Callable[[Row, float], None]:
    def change(row: Row, much: float) -> None:
        if key in row:
            row[key] *= factor**much

    return change


def _add(key: str, amount: float) -> Callable[[Row, float], None]:
    def change(row: Row, much: float) -> None:
        if key in row:
            row[key] += amount * much

    return change


FAILURES: dict[str, Callable[[Row, float], None]] = {
    "reward-hacking": _hack,
    "length collapse": _scale("tokens", 0.1),
    "length explosion": _scale("tokens", 8.0),
    "truncation": _add("truncated", 0.6),
    "repetition": _add("repetition", 0.5),
    "abstention": _add("abstained", 0.5),
    "no-signal": _scale("informative", 0.0),
    "kl": _add("kl", 4.0),
    "stale weights": _add("kl_rollout", 3.0),
    "odd ratios": _scale("importance_ratio/mean", 0.3),
    "non-finite": lambda row, much: row.update(loss=float("nan")),
}
