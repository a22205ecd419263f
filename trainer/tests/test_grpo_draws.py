# SPDX-License-Identifier: MIT-0
"""Which completions a step trains on: groups, dynamic sampling, and how they are cut into micro-batches."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lingoss.data import Prompt, grpo_prompts
from lingoss.grpo.batches import has_signal, micro_batches
from lingoss.grpo.draws import Clock, Drawer, Drawn, Scored, advantages, informative
from lingoss.grpo.prompts import Plan
from lingoss.grpo.rollout import Completion, rollout_seed
from lingoss.score import Request, Verdict, score
from lingoss.transcript import parse

PROMPTS = grpo_prompts(6, languages=["en", "fr"])
PLAN = Plan(PROMPTS, PROMPTS[:1], prompts_per_step=4, seed=0)
NOTHING: Verdict = score(parse("", "plain"), Request("?", "en", "en", "en"))


class Counting:
    """A rollout that draws nothing: a completion's one token is its number."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def complete(self, prompts: Sequence[Prompt], samples: int, step: int, greedy: bool = False) -> list[Completion]:
        self.asked.append([prompt.id for prompt in prompts])
        return [Completion(prompt, n, [1], [n], [0.0], "stop") for prompt in prompts for n in range(samples)]


class Telling:
    """Only groups of these prompts have unequal rewards."""

    def __init__(self, informative: Sequence[str]) -> None:
        self.informative = set(informative)

    def __call__(self, completions: Sequence[Completion]) -> list[Verdict]:
        return [
            dataclasses.replace(NOTHING, reward=one.sample * 0.1 if one.prompt.id in self.informative else 0.3)
            for one in completions
        ]

    def took(self, seconds: float) -> None: ...


def drawn(informative: Sequence[str], rounds: int, step: int = 1) -> tuple[Drawn, list[list[str]]]:
    rollout = Counting()
    return Drawer(rollout, Telling(informative), Clock(), True).step(PLAN, step, 3, rounds), rollout.asked


def ids(indices: Sequence[int]) -> list[str]:
    return [PROMPTS[index].id for index in indices]


def test_without_dynamic_sampling_every_planned_group_is_trained_on() -> None:
    found, asked = drawn([], rounds=0, step=2)
    assert asked == [ids(PLAN.step(2))]
    assert [group[0].completion.prompt.id for group in found.kept] == ids(PLAN.step(2))
    assert found.kept == found.all
    assert [one.completion.sample for one in found.rows] == [0, 1, 2] * 4


def test_groups_without_a_signal_are_replaced_by_other_prompts() -> None:
    wanted, spares = ids(PLAN.step(1)), ids(PLAN.spares(1))
    found, asked = drawn([wanted[2], *spares[1:3], spares[4]], rounds=3)
    # Three are missing at first, one after the next draw, and it takes two more to find it.
    assert asked == [wanted, spares[:3], spares[3:4], spares[4:5]]
    assert [group[0].completion.prompt.id for group in found.kept] == [wanted[2], *spares[1:3], spares[4]]
    assert len(found.all) == 9


def test_the_rounds_are_bounded_and_the_step_keeps_its_size() -> None:
    wanted, spares = ids(PLAN.step(1)), ids(PLAN.spares(1))
    found, asked = drawn([spares[0]], rounds=1)
    assert asked == [wanted, spares[:4]]
    # The one informative group comes first; the first drawn fill the rest.
    assert [group[0].completion.prompt.id for group in found.kept] == [spares[0], *wanted[:3]]
    nothing, asked = drawn([], rounds=9)
    assert len(nothing.kept) == 4
    assert sum(map(len, asked)) == len(PROMPTS)  # all there are


def group(*rewards: float | None) -> list[Scored]:
    """Completions with these rewards; None: cut, and so compared with none."""
    return [
        Scored(
            Completion(PROMPTS[0], number, [1], [2], [0.0], "stop"),
            dataclasses.replace(NOTHING, reward=reward or 0.0),
            compared=reward is not None,
        )
        for number, reward in enumerate(rewards)
    ]


def test_a_cut_completion_makes_no_other_look_good() -> None:
    assert advantages(group(0.5, None, None, 0.5), scaled=True) == [0.0] * 4
    assert advantages(group(0.25, None, 0.75, None), scaled=False) == [-0.25, 0.0, 0.25, 0.0]
    scaled = advantages(group(0.25, None, 0.75, None), scaled=True)
    assert scaled == pytest.approx([-(0.5**0.5), 0.0, 0.5**0.5, 0.0], rel=1e-3)  # as the group of the two alone
    assert not informative(group(0.5, None, None, None))
    assert informative(group(0.5, 0.0, None, None))


def test_equal_rewards_give_exactly_nothing() -> None:
    assert advantages(group(*[0.1 + 0.2] * 7, 0.3), scaled=True) == [0.0] * 8


def test_only_with_the_setting_is_a_cut_completion_left_out() -> None:
    class Cutting(Counting):
        def complete(self, *args: Any, **kwargs: Any) -> list[Completion]:
            return [dataclasses.replace(one, finish_reason="length") for one in super().complete(*args, **kwargs)]

    for leave_out in (True, False):
        drawer = Drawer(Cutting(), Telling([PROMPTS[0].id]), Clock(), leave_out)
        (found,) = drawer.groups([PROMPTS[0]], 1, 3)
        assert [one.compared for one in found] == [not leave_out] * 3


def test_seeds_differ_by_step_prompt_and_sample() -> None:
    seeds = {
        rollout_seed(seed, step, prompt, sample)
        for seed in (0, 1)
        for step in (1, 2, 11)
        for prompt in ("a", "1")
        for sample in (0, 1)
    }
    assert len(seeds) == 24
    assert rollout_seed(0, 1, "a", 0) == rollout_seed(0, 1, "a", 0)


rows = st.tuples(st.integers(1, 5), st.integers(1, 6), st.sampled_from([0.0, 1.0, -0.5]), st.booleans())


@given(st.lists(rows, min_size=6, max_size=6), st.sampled_from([1, 2, 3, 6]))
def test_micro_batches_hold_every_row_once_and_no_needless_padding(table: list[Any], count: int) -> None:
    batch = padded(table)
    parts = micro_batches(batch, count)
    seen = [row for part in parts for row in unpadded(part)]
    assert sorted(seen) == sorted(unpadded(batch))
    assert len(parts) == count
    signals = [flag for part in parts for flag in has_signal(part).tolist()]
    assert signals == sorted(signals, reverse=True)
    for part in parts:
        assert part["num_items_in_batch"] is batch["num_items_in_batch"]
        assert part["prompt_mask"].any(0)[0]
        width = part["completion_mask"].shape[1]
        assert width == max(1, int(part["completion_mask"].sum(1).max()))
        assert part["sampling_per_token_logps"].shape[1] == part["completion_ids"].shape[1] == width


def padded(table: list[Any]) -> dict[str, torch.Tensor]:
    """TRL's generation batch: prompts padded on the left, completions on the right; a cut one is masked whole."""
    prompts, completions = max(row[0] for row in table), max(row[1] for row in table)
    prompt_mask = torch.zeros(len(table), prompts, dtype=torch.long)
    completion_mask = torch.zeros(len(table), completions, dtype=torch.long)
    for place, (prompt, completion, _, cut) in enumerate(table):
        prompt_mask[place, prompts - prompt :] = 1
        completion_mask[place, : 0 if cut else completion] = 1
    numbers = torch.arange(1, len(table) + 1)[:, None]
    return {
        "prompt_ids": prompt_mask * numbers,
        "prompt_mask": prompt_mask,
        "completion_ids": completion_mask * numbers,
        "completion_mask": completion_mask,
        "advantages": torch.tensor([row[2] for row in table]),
        "sampling_per_token_logps": -completion_mask.float(),
        "num_items_in_batch": completion_mask.sum(),
    }


def unpadded(batch: dict[str, torch.Tensor]) -> list[Any]:
    """(prompt tokens, completion tokens, advantage) of each row."""
    return [
        (
            batch["prompt_ids"][place][batch["prompt_mask"][place].bool()].tolist(),
            batch["completion_ids"][place][batch["completion_mask"][place].bool()].tolist(),
            float(batch["advantages"][place]),
        )
        for place in range(batch["advantages"].shape[0])
    ]


def test_a_row_moves_the_weights_only_with_an_advantage_and_tokens() -> None:
    batch = padded([(2, 3, 1.0, False), (2, 3, 0.0, False), (2, 3, 1.0, True)])
    assert has_signal(batch).tolist() == [True, False, False]


def test_a_clock_hands_over_and_starts_anew() -> None:
    clock = Clock()
    with clock("a"), pytest.raises(ZeroDivisionError), clock("b"):
        1 / 0  # noqa: B018
    assert clock.take().keys() == {"a", "b"}
    assert clock.take() == {}
