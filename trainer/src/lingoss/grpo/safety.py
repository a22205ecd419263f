# SPDX-License-Identifier: MIT-0
"""When to warn of a run and when to stop it: pure, from the rows of metrics.jsonl, step by step.

A reward that rises proves nothing: the policy may have found a way to earn it without doing the task, may have stopped
reasoning, or may write the same sentence again and again. Every rule compares medians or means of windows, so that one
odd step decides nothing, and asks for a change that noise as large as this run's would hardly ever make.

    non-finite        loss, gradient, reward, kl or importance ratio is NaN or infinite: stops at once
    reward-hacking    the share of right answers fell from its best while the reward rose since, in training, or in
                      validation against the model that the run started from
    length            the median completion shrank or grew by a factor
    truncation        more completions are cut off than at the start
    repetition        more is repeated than at the start
    abstention        the detector names a language less often than at the start
    no-signal         for three windows hardly any group was informative
    kl                the policy is far from the SFT policy
    rollout-mismatch  trainer and rollout disagree on what was likely
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lingoss.config.grpo import Safety

Level = Literal["warn", "stop"]
_WARN = 0.5  # of the change that stops
_SURE = {"warn": 3.0, "stop": 4.5}  # standard errors that a fall of correctness must exceed
_RISEN = 0.02  # a reward that rose by less did not rise
_FINITE = ("loss", "grad_norm", "reward", "kl", "kl_rollout", "importance_ratio/mean", "importance_ratio/max")
_WATCHED = (
    "reward", "correct", "tokens", "truncated", "repetition", "abstained", "informative", "kl", "kl_rollout",
    "importance_ratio/mean",
)  # fmt: skip
_RISING = (
    ("truncation", "truncated", "completions that are cut off", "raise max_completion_length"),
    ("repetition", "repetition", "repeated word groups", "lower optimizer.learning_rate or set beta above 0"),
    ("abstention", "abstained", "completions whose language cannot be told", "look at completions.jsonl"),
)
_EVER = 3  # windows without a signal before a run stops; also the longest memory of a series


@dataclass(frozen=True, slots=True)
class Alarm:
    """What is wrong. `level` "stop": save, end the run and tell `message`, which says what to do."""

    kind: str
    level: Level
    message: str


class Watch:
    """Looks at one row after another. Its state is small and plain JSON, so that checkpoints carry it."""

    def __init__(self, settings: Safety) -> None:
        self._settings = settings
        self._first: dict[str, list[float]] = {}
        self._last: dict[str, list[float]] = {}
        self._peak: dict[str, float] = {}
        self._start: dict[str, float] = {}
        self._told: list[str] = []

    def state_dict(self) -> dict[str, Any]:
        """Everything that was seen and matters, as JSON values."""
        return {
            "first": {key: list(values) for key, values in self._first.items()},
            "last": {key: list(values) for key, values in self._last.items()},
            "peak": dict(self._peak),
            "start": dict(self._start),
            "told": list(self._told),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        self._first = {key: list(values) for key, values in state["first"].items()}
        self._last = {key: list(values) for key, values in state["last"].items()}
        self._peak, self._start, self._told = dict(state["peak"]), dict(state["start"]), list(state["told"])

    def step(self, row: Mapping[str, Any]) -> list[Alarm]:
        """What the row of one step gives rise to. A warning is given once, until what it is about has gone again.

        Keys are those of `groups.step_row` and of the trainer (`loss`, `grad_norm`, `kl`, `kl_rollout`, `importance_ratio/…`); after
        a validation also `validation/correct`, `validation/reward` and `validation/graded`. Missing keys are skipped.
        Call it with the validation of the untouched SFT policy first (step 0).
        """
        found = list(_not_finite(row))
        if not found:
            self._remember(row)
            found = [alarm for alarm in self._rules(row) if alarm is not None]
        overridden = self._settings.override
        alarms = [
            Alarm(alarm.kind, "warn", f"{alarm.message} (safety.override)") if alarm.kind in overridden else alarm
            for alarm in found
        ]
        fresh = [alarm for alarm in alarms if alarm.level == "stop" or alarm.kind not in self._told]
        self._told = [alarm.kind for alarm in alarms if alarm.level == "warn"]
        return fresh

    def _rules(self, row: Mapping[str, Any]) -> Iterator[Alarm | None]:
        yield self._hacking_in_validation(row) or self._hacking_in_training()
        yield self._length()
        for kind, key, what, remedy in _RISING:
            yield self._rise(kind, key, what, remedy)
        yield self._no_signal()
        yield self._kl()
        yield self._mismatch()

    def _remember(self, row: Mapping[str, Any]) -> None:
        window = self._settings.window
        for key in _WATCHED:
            if key in row:
                first, last = self._first.setdefault(key, []), self._last.setdefault(key, [])
                if len(first) < window:
                    first.append(float(row[key]))
                last.append(float(row[key]))
                del last[: -_EVER * window]
        if "correct" in row and "reward" in row and len(self._last["correct"]) >= window:
            now = {key: statistics.fmean(self._last[key][-window:]) for key in ("correct", "reward")}
            if now["correct"] >= self._peak.get("correct", -1.0):
                self._peak = now
        for key in ("validation/correct", "validation/reward"):
            if key in row:
                self._start.setdefault(key, float(row[key]))

    def _recent(self, key: str) -> tuple[float, float] | None:
        """Medians of the first and of the newest half window; None until they are a whole window apart."""
        half = max(2, self._settings.window // 2)
        last = self._last.get(key, [])
        if len(last) < 2 * self._settings.window:
            return None
        return statistics.median(self._first[key][:half]), statistics.median(last[-half:])

    def _hacking_in_training(self) -> Alarm | None:
        window = self._settings.window
        if not self._peak or len(self._last["correct"]) < 2 * window:
            return None
        right, reward = (statistics.fmean(self._last[key][-window:]) for key in ("correct", "reward"))
        fall, rise = self._peak["correct"] - right, reward - self._peak["reward"]
        drop = self._settings.correctness_drop
        if fall < _WARN * drop or rise < _RISEN:  # most steps: spares the estimates of noise
            return None
        if rise < 2 * _error(self._last["reward"], window):
            return None
        error = _error(self._last["correct"], window)
        level = _level(fall, drop, {key: sure * error for key, sure in _SURE.items()})
        return level and Alarm(
            "reward-hacking",
            level,
            f"over {window} steps the reward rose by {rise:.2f} while right answers fell from "
            f"{self._peak['correct']:.0%} to {right:.0%}: it is earned without doing the task. Read completions.jsonl, "
            "mend the reward's weights, or keep an earlier checkpoint",
        )

    def _hacking_in_validation(self, row: Mapping[str, Any]) -> Alarm | None:
        right, prompts = row.get("validation/correct"), row.get("validation/graded")
        before = self._start.get("validation/correct")
        if right is None or before is None or not prompts:
            return None
        rise = float(row.get("validation/reward", 0.0)) - self._start.get("validation/reward", 0.0)
        if (trained := self._recent("reward")) is not None:
            gained = trained[1] - trained[0]
            rise = max(rise, gained if gained >= 2 * _error(self._last["reward"], self._settings.window) else 0.0)
        fall = before - float(right)
        if rise < _RISEN or fall <= 0:
            return None
        pooled = (before + float(right)) / 2
        # As if the two were different prompts: never surer than the pairs would be.
        error = math.sqrt(2 * pooled * (1 - pooled) / float(prompts))
        level = _level(fall, self._settings.correctness_drop, {name: sure * error for name, sure in _SURE.items()})
        return level and Alarm(
            "reward-hacking",
            level,
            f"on {prompts:.0f} validation prompts right answers fell from {before:.0%} to {float(right):.0%} since the "
            f"start while the reward rose by {rise:.2f}: it is earned without doing the task. Read completions.jsonl, "
            "mend the reward's weights, or keep an earlier checkpoint",
        )

    def _length(self) -> Alarm | None:
        found = self._recent("tokens")
        if found is None or min(found) <= 0:
            return None
        factor = found[1] / found[0]
        level = _level(abs(math.log(factor)), math.log(self._settings.length_factor))
        way = "shrank" if factor < 1 else "grew"
        return level and Alarm(
            "length",
            level,
            f"completions {way} from {found[0]:.0f} to {found[1]:.0f} tokens (a factor of {factor:.2f}). Lower "
            "optimizer.learning_rate or set beta above 0",
        )

    def _rise(self, kind: str, key: str, what: str, remedy: str) -> Alarm | None:
        found = self._recent(key)
        level = found and _level(found[1] - found[0], self._settings.share_rise)
        if not found or not level:
            return None
        return Alarm(kind, level, f"{what} rose from {found[0]:.0%} to {found[1]:.0%}: {remedy}")

    def _no_signal(self) -> Alarm | None:
        window, floor = self._settings.window, self._settings.informative_floor
        last = self._last.get("informative", [])
        for level, steps in (("stop", _EVER * window), ("warn", window)):
            if len(last) >= steps and (mean := statistics.fmean(last[-steps:])) < floor:
                return Alarm(
                    "no-signal",
                    "stop" if level == "stop" else "warn",
                    f"over {steps} steps {mean:.1%} of the groups were informative, so there is nothing to learn from. "
                    "Run the gate again, and use other prompts or sampling.temperature",
                )
        return None

    def _kl(self) -> Alarm | None:
        now = self._newest("kl")
        level = None if now is None else _level(now, self._settings.kl)
        return level and Alarm(
            "kl",
            level,
            f"the policy is {now:.2f} nats a token away from the SFT policy: raise beta or lower optimizer.learning_rate",
        )

    def _mismatch(self) -> Alarm | None:
        """By both figures: a mean ratio is 1 for any two distributions until samples are rare where they differ."""
        divergence, ratio = self._newest("kl_rollout"), self._newest("importance_ratio/mean")
        by_divergence = None if divergence is None else _level(divergence, self._settings.rollout_kl)
        off = 0.0 if ratio is None else abs(math.log(ratio)) if ratio > 0 else math.inf
        by_ratio = _level(off, math.log(self._settings.importance_ratio))
        level = "stop" if "stop" in (by_divergence, by_ratio) else by_divergence or by_ratio
        if level is None:
            return None
        told = f"by {divergence:.2f} nats a token" if by_divergence else f"by a factor of {ratio:.2f} in the mean"
        return Alarm(
            "rollout-mismatch",
            "stop" if level == "stop" else "warn",
            f"trainer and rollout disagree {told} on what was likely: the rollout engine may hold stale or wrong weights. "
            "Start again from the last checkpoint; the parity probe says which layer of trust broke",
        )

    def _newest(self, key: str) -> float | None:
        """Median of the newest half window; None before there is one."""
        half = max(2, self._settings.window // 2)
        last = self._last.get(key, [])
        return statistics.median(last[-half:]) if len(last) >= half else None


def _not_finite(row: Mapping[str, Any]) -> Iterator[Alarm]:
    for key in _FINITE:
        value = row.get(key)
        if value is not None and not math.isfinite(float(value)):
            yield Alarm(
                "non-finite",
                "stop",
                f"{key} is {float(value)}: lower optimizer.learning_rate or optimizer.max_grad_norm",
            )
            return


def _level(change: float, stops: float, least: Mapping[str, float] | None = None) -> Level | None:
    """Stop at a change of `stops`, warn at half of it; `least` asks for more where the noise does."""
    least = least or {}
    if change >= max(stops, least.get("stop", 0.0)):
        return "stop"
    return "warn" if change >= max(_WARN * stops, least.get("warn", 0.0)) else None


def _error(values: Sequence[float], window: int) -> float:
    """Standard error of the difference of two window means, from the noise between neighbouring steps.

    Neighbours differ by noise alone, however the series drifts; the median of their differences is not moved by a few
    odd steps. Where most of them are equal it would be 0, so then the mean square is taken.
    """
    moves = [after - before for before, after in itertools.pairwise(values)]
    middle = statistics.median(moves)
    spread = 1.4826 * statistics.median([abs(move - middle) for move in moves])
    if spread == 0:
        spread = math.sqrt(statistics.fmean([move * move for move in moves]))
    return spread / math.sqrt(2) * math.sqrt(2 / window)
