# SPDX-License-Identifier: MIT-0
"""Which checkpoint is taken: the best one by paired figures, the earlier of two equals, none that lost a language."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lingoss.data import prompt_set
from lingoss.errors import LingossError
from lingoss.grpo.choose import Choice, choose, record
from lingoss.score import score
from test_score import PROBLEM, text

LANGUAGES = ("fr", "de")
PROMPTS = 20  # of each language


def made(step: int, strict: dict[str, int], joint: int = 10, reward: float = 0.5) -> dict[str, Any]:
    """`strict`: compliant answers in each language; `joint`: compliant and right ones, from the first prompt on."""
    outcomes = {
        f"{code}{i}": {"language": code, "strict": float(i < strict[code]), "joint": 0.0, "reward": reward}
        for code in LANGUAGES
        for i in range(PROMPTS)
    }
    for key in list(outcomes)[:joint]:
        outcomes[key]["joint"] = 1.0
    return {"step": step, "figures": {}, "outcomes": outcomes}


START = made(0, {"fr": 15, "de": 15})
SAME = {"fr": 15, "de": 15}


def test_the_largest_share_of_compliant_and_right_answers_wins() -> None:
    found = choose([START, made(50, SAME, 12), made(100, SAME, 14, reward=0.1), made(150, SAME, 13)])
    assert found.step == 100
    assert found.sentence == (
        "Step 100 becomes the adapter: 35\u00a0% of 40 validation prompts are answered right in the languages asked for, "
        "+10.0 points against the SFT policy, reward 0.100."
    )
    assert [(one.step, one.joint) for one in found.candidates] == [(50, 0.3), (100, 0.35), (150, 0.325)]


def test_ties_go_to_the_larger_reward_then_to_the_earlier() -> None:
    assert choose([made(100, SAME, reward=0.6), START, made(50, SAME, reward=0.5)]).step == 100
    assert choose([made(100, SAME), made(50, SAME), START]).step == 50


def test_a_checkpoint_that_lost_a_language_is_never_taken() -> None:
    better = made(100, {"fr": 20, "de": 13}, joint=30)
    found = choose([START, made(50, SAME, 11), better])
    assert found.step == 50
    assert found.sentence.endswith("(step 100 was left out: German lost 10.0 points of compliance).")
    assert choose([START, made(50, SAME, 11), made(100, {"fr": 20, "de": 14}, 30)]).step == 100  # one prompt is chance
    assert choose([START, better], margin=0.1).step == 100


def test_when_each_lost_a_language_the_sft_adapter_stays() -> None:
    found = choose([START, made(50, {"fr": 0, "de": 20}, 40), made(100, {"fr": 20, "de": 10}, 40)])
    assert found.step == 0
    assert found.sentence == (
        "The SFT adapter stays, because every checkpoint lost a language on 40 validation prompts (step 50: French lost "
        "75.0 points of compliance; step 100: German lost 25.0 points of compliance)."
    )


@given(st.permutations(range(6)), st.lists(st.integers(0, 40), min_size=5, max_size=5))
def test_the_order_of_the_records_changes_nothing(order: list[int], joints: list[int]) -> None:
    records = [START, *(made(10 * (i + 1), SAME, joint) for i, joint in enumerate(joints))]
    found = choose([records[i] for i in order])
    assert found == choose(records)
    assert found.step == 10 * (joints.index(max(joints)) + 1)


def test_a_record_holds_each_outcome_and_the_means() -> None:
    prompts = [prompt for prompt in prompt_set("validation", ("de", "en", "fr")) if prompt.answer_language != "en"][:4]
    verdicts = [
        score(text(PROBLEM[prompt.reasoning_language][1], f"{prompt.gold}"), prompt.request()) for prompt in prompts[:3]
    ]
    verdicts.append(score(text("", ""), prompts[3].request()))
    found = json.loads(json.dumps(record(7, prompts, verdicts, "think")))
    codes = [prompt.answer_language for prompt in prompts]
    assert codes == ["de", "fr", "de", "fr"]
    assert found["figures"] == pytest.approx(
        {"reward": 0.75, "strict": 0.75, "correct": 0.75, "joint": 0.75, "graded": 4.0}
        | {"reward/de": 1.0, "strict/de": 1.0, "correct/de": 1.0}
        | {"reward/fr": 0.5, "strict/fr": 0.5, "correct/fr": 0.5}
    )
    assert [found["outcomes"][prompt.id]["joint"] for prompt in prompts] == [1, 1, 1, 0]
    again = choose([{**found, "step": 0}, found])
    assert again.step == 7
    assert json.loads(json.dumps(again.to_dict()))["candidates"] == [
        {"step": 7, "joint": 0.75, "reward": pytest.approx(0.75), "excluded": ""}
    ]
    assert isinstance(again, Choice)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(LingossError, match="needs validation figures of step 0 and of at least one checkpoint"):
        choose([START])
    with pytest.raises(LingossError, match="needs validation figures of step 0"):
        choose([made(50, SAME), made(100, SAME)])
    other = made(50, SAME)
    other["outcomes"].pop("fr0")
    with pytest.raises(LingossError, match="the validation of step 50 asked other prompts"):
        choose([START, other])
