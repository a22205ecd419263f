# SPDX-License-Identifier: MIT-0
"""One step's groups: drawn, scored and, with dynamic sampling, drawn again where a group has nothing to teach."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from lingoss.data import Prompt
from lingoss.evaluate.informative import is_informative
from lingoss.grpo.groups import advantages as compare
from lingoss.grpo.prompts import Plan
from lingoss.grpo.rollout import Completion, Rollout
from lingoss.score import Verdict


class Score(Protocol):
    """Judges completions; see `scoring.Scorer`."""

    def __call__(self, completions: Sequence[Completion]) -> list[Verdict]:
        """One verdict for each, in order."""

    def took(self, seconds: float) -> None:
        """Hear how long the last step took."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A completion with its verdict. `compared`: whether it takes part in its group's comparison."""

    completion: Completion
    verdict: Verdict
    compared: bool = True


Group = list[Scored]


@dataclass
class Clock:
    """Seconds spent, by what on. Times of the step that is running; `take` hands them over and starts anew."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - start

    def take(self) -> dict[str, float]:
        """Everything since the last call."""
        taken, self.seconds = self.seconds, {}
        return taken


@dataclass(frozen=True, slots=True)
class Drawn:
    """A step's groups. `kept` are trained on; `all` also holds those that dynamic sampling drew and left out, so it is
    what the policy does on prompts as they come, and what the step's figures are about."""

    kept: list[Group]
    all: list[Group]

    @property
    def rows(self) -> list[Scored]:
        """What is trained on, group after group."""
        return [one for group in self.kept for one in group]

    @property
    def every(self) -> list[Scored]:
        """Everything that was drawn, group after group."""
        return [one for group in self.all for one in group]


@dataclass(frozen=True)
class Drawer:
    """Draws and scores. `leave_out_cut`: a completion that was cut by its length is compared with none.

    It is left out of the loss then, and were its reward of nothing still part of its group's mean, whatever ends early
    would look good beside it: the policy would learn to be short. (TRL treats completions without a reward the same.)
    """

    rollout: Rollout
    score: Score
    clock: Clock
    leave_out_cut: bool

    def step(self, plan: Plan, step: int, group: int, rounds: int) -> Drawn:
        """The groups of optimizer step `step` (from 1), a function of plan, policy and step alone, so a resumed run
        draws them again.

        In up to `rounds` further rounds (0: no dynamic sampling) an uninformative group is replaced by one of another
        prompt, in the plan's order of spares. Where all rounds leave some over, uninformative groups fill the step: its
        size is fixed, and such a group adds nothing to the gradient.
        """
        wanted = [plan.rows[index] for index in plan.step(step)]
        drawn = self.groups(wanted, step, group)
        if not rounds:
            return Drawn(drawn, drawn)
        spares = iter(plan.spares(step))
        for _ in range(rounds):
            missing = len(wanted) - sum(map(informative, drawn))
            further = [plan.rows[index] for index in islice(spares, missing)]
            if not further:
                break
            drawn += self.groups(further, step, group)
        kept = sorted(drawn, key=informative, reverse=True)  # stable: in the order of drawing otherwise
        return Drawn(kept[: len(wanted)], drawn)

    def groups(self, prompts: Sequence[Prompt], step: int, group: int, greedy: bool = False) -> list[Group]:
        """`group` scored completions of each prompt."""
        with self.clock("rollout"):
            completions = self.rollout.complete(prompts, group, step, greedy)
        with self.clock("reward"):
            verdicts = self.score(completions)
        rows = [
            Scored(one, verdict, not (self.leave_out_cut and one.finish_reason == "length"))
            for one, verdict in zip(completions, verdicts, strict=True)
        ]
        return [rows[at : at + group] for at in range(0, len(rows), group)]


def informative(group: Group) -> bool:
    """Whether the rewards of those that are compared differ."""
    return bool(is_informative([[one.verdict.reward for one in group]], [[one.compared for one in group]])[0])


def advantages(group: Group, scaled: bool) -> list[float]:
    """See `groups.advantages`; nothing for a completion that is not compared, and for a group that is uninformative,
    where rounding divided by a deviation of nothing would make something of it."""
    if not informative(group):
        return [0.0] * len(group)
    found = iter(compare([one.verdict.reward for one in group if one.compared], sum(o.compared for o in group), scaled))
    return [next(found) if one.compared else 0.0 for one in group]
