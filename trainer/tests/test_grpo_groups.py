# SPDX-License-Identifier: MIT-0
"""A step's figures and advantages, against sums done by hand and against TRL's own formula."""

import inspect
import math
import re
import textwrap
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lingoss.evaluate.informative import EQUAL, is_informative
from lingoss.grpo.groups import advantages, step_row
from lingoss.score import Request, Verdict, score
from test_score import PROBLEM, request, text


def judged(asked: Request, reasoning: str, answer: str, right: bool = True, **changes: Any) -> Verdict:
    return score(text(PROBLEM[reasoning][1], PROBLEM[answer][2 if right else 3], **changes), asked)


FRENCH, GERMAN = request("en", "fr", "fr"), request("en", "de", "de")
OPEN = request("en", "de", "de", gold=None)
STEP = [
    (FRENCH, judged(FRENCH, "fr", "fr")),  # 1.0
    (FRENCH, judged(FRENCH, "fr", "fr", right=False)),  # language alone
    (GERMAN, judged(GERMAN, "en", "de")),  # right, reasoned in English
    (GERMAN, judged(GERMAN, "en", "de")),
    (OPEN, judged(OPEN, "de", "de")),
    (OPEN, judged(OPEN, "de", "de", truncated=True)),
]


def row(step: list[tuple[Request, Verdict]] = STEP, **changes: Any) -> dict[str, float]:
    tokens = [10 * (place + 1) for place in range(len(step))]
    fields: dict[str, Any] = {"format": "think", "tokens": tokens, "finish": ["stop"] * 5 + ["length"]} | changes
    finish = fields.pop("finish")
    return step_row([verdict for _, verdict in step], [asked for asked, _ in step], 2, finish, **fields)


def test_the_figures_of_a_step_by_hand() -> None:
    found = row()
    rewards = [verdict.reward for _, verdict in STEP]
    grid = 1 / 8192  # half of the grid on which rewards lie
    assert rewards == pytest.approx([1.0, 0.18, 0.4, 0.4, 1.0, 0.0], abs=grid)
    expected = {
        "reward": 2.98 / 6,
        "reward/fr": 0.59,
        "reward/de": 0.45,
        "term/correctness": 1.2 / 6,
        "term/correctness/fr": 0.2,
        "term/language": 1.78 / 6,
        "term/language/de": 0.25,
        "informative": 1 / 3,
        "informative/fr": 1.0,
        "informative/de": 0.0,
        "informative_groups": 1.0,
        "groups": 3.0,
        "strict": 3 / 6,
        "strict/fr": 1.0,
        "strict/de": 0.25,
        "correct": 3 / 4,
        "correct/fr": 0.5,
        "correct/de": 1.0,
        "unparsed": 0.0,
        "format_ok": 1.0,
        "truncated": 1 / 6,
        "abstained": 0.0,
        "tokens": 35.0,
        "tokens/max": 60.0,
        "without_gold": 1 / 3,
        "without_gold/reward": 0.5,
        "without_gold/strict": 0.5,
    }
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=grid)
    # The last group holds one finished completion, which nothing is compared with; without the mask it has two.
    assert row(mask_truncated=False)["informative/de"] == 0.5
    assert found["reward"] == pytest.approx(sum(found[f"term/{name}"] for name in STEP[0][1].terms), abs=grid)
    assert all(isinstance(value, float) and math.isfinite(value) for value in found.values())


def test_what_nothing_belongs_to_is_left_out() -> None:
    alone = row(STEP[4:], finish=["stop", "stop"])
    assert not alone.keys() & {"correct", "unparsed", "correct/de"}
    graded = row(STEP[:4], finish=["stop"] * 4)
    assert graded["without_gold"] == 0.0
    assert "without_gold/reward" not in graded


def test_cut_off_by_the_engine_counts_as_truncated_whatever_the_text_looks_like() -> None:
    assert row(STEP[:4], finish=["length", "stop", "stop", "stop"])["truncated"] == 0.25


@pytest.mark.parametrize("changes", [{"tokens": [1]}, {"finish": ["stop"]}])
def test_sizes_that_do_not_fit_are_refused(changes: Any) -> None:
    with pytest.raises(ValueError, match="not whole groups of 2: 6 verdicts"):
        row(**changes)
    with pytest.raises(ValueError, match="not whole groups of 2: 5 verdicts"):
        row(STEP[:5], finish=["stop"] * 5)


def test_every_key_is_documented() -> None:
    from lingoss.grpo import groups

    lines = [line for line in (groups.__doc__ or "").splitlines() if line.startswith("    ")]
    documented = {key for line in lines for key in re.split(r" {2,}", line.strip())[:-1]}
    names = {re.sub("<name>", term, key) for key in documented for term in STEP[0][1].terms}
    names |= {re.sub("<language>", code, key) for key in names for code in ("fr", "de")}
    assert row().keys() <= names


def test_equal_to_a_billionth_is_equal() -> None:
    assert is_informative([[0.5, 0.5, 0.0], [0.5, 0.4, 0.0], [0.5, 0.0, 0.0]], [[1, 1, 0], [1, 1, 0], [1, 0, 0]]).tolist() == [
        False, True, False,
    ]  # fmt: skip
    assert is_informative([[0.5, 0.5 + EQUAL / 2], [0.5, 0.5 + 2 * EQUAL], [0.1, 0.1]]).tolist() == [False, True, False]


@cache
def trls_lines() -> Any:
    """The lines of the installed TRL that turn rewards into advantages, cut out of its source."""
    from trl import GRPOTrainer

    source = inspect.getsource(GRPOTrainer)
    start = source.index("            rewards = (rewards_per_func * self.reward_weights")
    end = source.index('        elif self.multi_objective_aggregation == "normalize_then_sum":', start)
    return compile(textwrap.dedent(source[start:end]), "trl", "exec")


def trl_advantages(rewards: list[float], size: int, scale: str) -> list[float]:
    import torch
    from trl.trainer.utils import nanstd

    names: dict[str, Any] = {
        "torch": torch,
        "nanstd": nanstd,
        "self": SimpleNamespace(reward_weights=torch.ones(1), scale_rewards=scale),
        "device": "cpu",
        "num_generations": size,
        "rewards_per_func": torch.tensor(rewards)[:, None],
        "unscorable_mask": torch.zeros(len(rewards), dtype=torch.bool),
    }
    exec(trls_lines(), names)
    return [float(value) for value in names["advantages"]]


# Equal to the last bit or well apart: of what TRL rounds to a millionth of a reward it makes an advantage of 0.01.
REWARDS = st.integers(0, 64).map(lambda part: part / 64)


@settings(max_examples=60)
@given(
    st.integers(2, 8).flatmap(
        lambda size: st.tuples(
            st.just(size),
            st.lists(st.lists(REWARDS, min_size=size, max_size=size), min_size=1, max_size=5),
        )
    ),
    st.booleans(),
)
def test_advantages_are_trls(groups: tuple[int, list[list[float]]], scaled: bool) -> None:
    size, table = groups
    rewards = [value for group in table for value in group]
    found = advantages(rewards, size, scaled)
    assert found == pytest.approx(trl_advantages(rewards, size, "group" if scaled else "none"), abs=2e-3)
    if not scaled:
        assert [sum(found[at : at + size]) for at in range(0, len(found), size)] == pytest.approx(
            [0.0] * len(table), abs=1e-9
        )
