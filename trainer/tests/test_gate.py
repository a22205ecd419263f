# SPDX-License-Identifier: MIT-0
"""The gate's rule, clause by clause, with each condition on both sides of its bar."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from lingoss.errors import LingossError
from lingoss.evaluate.gate import Gate, GateSettings, gate
from lingoss.evaluate.rows import ScoredRun
from synthetic import LANGUAGES, outcomes, run, scored

K = 8
PENALTY = {"correctness": 0.4, "language": 0.6, "repetition": 0.0}


def group(prompt: str, language: str, successes: int, **fields: Any) -> Iterator[dict[str, Any]]:
    """K samples of one prompt: `successes` of them compliant and right, the rest without form (reward 0)."""
    for sample in range(K):
        yield scored(prompt, language, sample=sample, format_ok=sample < successes, **fields)


def groups(successes: Sequence[int], language: str = "fr") -> list[dict[str, Any]]:
    return [row for i, n in enumerate(successes) for row in group(f"{language}{i}", language, n)]


def decide(rows: object, **settings: Any) -> Gate:
    return gate(run("base", rows), GateSettings(**settings))


def test_nothing_informative_means_sft_first() -> None:
    found = decide(groups([0] * 64))
    assert found.outcome == "sft-first"
    assert found.languages["fr"].informative.k == 0
    assert round(100 * found.languages["fr"].informative.high, 1) == 5.7
    assert "fr" in found.reasons[0]


def test_everything_solved_means_saturated() -> None:
    assert decide(groups([8] * 64)).outcome == "saturated"


def test_enough_variance_means_viable() -> None:
    found = decide(groups([4] * 40 + [0] * 24))
    assert found.outcome == "viable"
    assert found.languages["fr"].success.rate == pytest.approx(160 / 512)
    assert "about 10.0 informative groups" in found.reasons[0]


def test_near_the_bar_is_inconclusive_and_says_what_to_do() -> None:
    found = decide(groups([4] * 13 + [0] * 51))
    assert found.outcome == "inconclusive"
    assert "fr" in found.reasons[0]
    assert "more prompts" in found.reasons[0]


def test_few_informative_groups_with_middling_success_are_not_sft_first() -> None:
    assert decide(groups([0] * 25 + [8] * 39)).outcome == "inconclusive"


@pytest.mark.parametrize(("per_step", "outcome"), [(16, "inconclusive"), (20, "viable")])
def test_a_step_needs_eight_informative_groups(per_step: int, outcome: str) -> None:
    found = decide(groups([4] * 28 + [0] * 36), prompts_per_step=per_step)  # f = 0.44
    assert found.outcome == outcome
    if outcome == "inconclusive":
        assert "Draw 19 prompts a step" in found.reasons[0]


def test_the_rule_of_eight_can_be_waived_and_says_so() -> None:
    found = decide(groups([4] * 28 + [0] * 36), waive_groups=True)
    assert found.outcome == "viable"
    assert "waived" in found.reasons[0]


def test_one_blocked_language_blocks_all_and_is_named() -> None:
    rows = [row for code in LANGUAGES[:4] for row in groups([4] * 64, code)] + groups([0] * 64, "it")
    found = decide(rows)
    assert found.outcome == "sft-first"  # although the pool has 80 % informative groups
    assert "it gives GRPO nothing" in found.reasons[0]
    assert {code: signal.outcome for code, signal in found.languages.items()} == {
        "en": "viable", "fr": "viable", "de": "viable", "es": "viable", "it": "sft-first",
    }  # fmt: skip


def test_one_saturated_language_does_not_block() -> None:
    found = decide([*groups([4] * 64, "fr"), *groups([8] * 64, "en")], prompts_per_step=32)
    assert found.outcome == "viable"
    assert any("Already saturated" in reason and "en" in reason for reason in found.reasons)


def test_too_few_prompts_cannot_decide_without_the_waiver() -> None:
    rows = [row for code in LANGUAGES for row in groups([0] * 4, code)]
    assert decide(rows).outcome == "inconclusive"
    found = decide(rows, waive_prompts=True)
    assert found.outcome == "sft-first"  # 0 of 20: at most 16 %, below the bar of 20 %
    assert any("waived" in reason and "demonstration" in reason for reason in found.reasons)


def test_the_demo_after_sft_is_viable() -> None:
    rows = [row for code in LANGUAGES for row in groups([4, 4, 4, 0 if code in ("es", "it", "de") else 4], code)]
    found = decide(rows, waive_prompts=True, waive_groups=True)
    assert (found.overall.informative.k, found.overall.informative.n) == (17, 20)
    assert (round(100 * found.overall.informative.low), round(100 * found.overall.informative.high)) == (64, 95)
    assert found.outcome == "viable"


def test_variance_from_penalties_is_no_reason_to_start() -> None:
    rows = []
    for i in range(64):
        for sample in range(K):
            penalty = {**PENALTY, "repetition": -0.05 * sample}
            rows.append(scored(f"p{i}", sample=sample, terms=penalty))
    found = decide(rows)
    assert found.outcome == "inconclusive"
    assert found.languages["fr"].outcome == "viable"
    assert found.reasons[0].startswith("Do not start: 100")
    assert "64 groups are informative through penalties alone" in found.reasons[0]


def test_a_little_penalty_variance_is_fine() -> None:
    rows = []
    for i in range(64):
        for sample in range(K):
            good = sample % 2
            terms = {"correctness": 0.4 * good, "language": 0.6 * good, "repetition": -0.01 * sample * good}
            rows.append(scored(f"p{i}", sample=sample, terms=terms, format_ok=bool(good)))
    assert decide(rows).outcome == "viable"


def heldout(pattern: str, grade: str = "correct") -> ScoredRun:
    return run("sft-heldout", [row for code in LANGUAGES for row in outcomes(pattern, code, grade=grade)])


def test_target_met_needs_every_language() -> None:
    trained = run("sft", groups([4] * 64))
    met = gate(trained, heldout=heldout("1" * 100))
    assert met.outcome == "target-met"
    assert met.runs == ("sft", "sft-heldout")
    one_weak = [row for code in LANGUAGES for row in outcomes("1" * (80 if code == "it" else 100), code)]
    one_weak += list(outcomes("0" * 20, "it", prefix="z"))
    missed = gate(trained, heldout=run("h", one_weak))
    assert missed.outcome == "viable"
    assert any("not shown in: it" in reason for reason in missed.reasons)


def test_target_is_not_met_when_it_was_paid_for_with_correctness() -> None:
    trained = run("sft", groups([4] * 64))
    before = run("base-heldout", [row for code in LANGUAGES for row in outcomes("0" * 100, code)])
    assert gate(trained, heldout=heldout("1" * 100), baseline=before).outcome == "target-met"
    paid = gate(trained, heldout=heldout("1" * 100, grade="incorrect"), baseline=before)
    assert paid.outcome == "viable"
    assert any("a loss is not excluded" in reason for reason in paid.reasons)


def test_without_heldout_rows_the_target_is_not_examined() -> None:
    assert any("not examined" in reason for reason in decide(groups([8] * 64)).reasons)


def test_incomplete_groups_are_left_out_and_counted() -> None:
    rows = groups([4] * 65)
    found = decide(rows[:-1])
    assert found.languages["fr"].informative.n == 64
    assert any(reason.endswith("1 prompt.") for reason in found.reasons)


def test_one_sample_a_prompt_is_refused() -> None:
    with pytest.raises(LingossError, match=r"needs 8 samples.*at most 1"):
        decide(outcomes("0" * 64))


def test_gate_json_has_exactly_the_designed_shape() -> None:
    found = decide(groups([4] * 64), prompts_per_step=8).to_dict()
    assert list(found) == ["outcome", "languages", "reasons", "runs"]
    assert list(found["languages"]) == ["fr"]
    assert {part: sorted(value) for part, value in found["languages"]["fr"].items()} == {
        "informative": ["high", "k", "low", "n"],
        "success": ["high", "k", "low", "n"],
    }
    assert found["languages"]["fr"]["success"]["k"] == 256
    assert found["runs"] == ["base"]
    assert all(reason.endswith((".", ")")) for reason in found["reasons"])


@pytest.mark.parametrize(("mask", "outcome", "informative"), [(True, "sft-first", 0), (False, "viable", 64)])
def test_what_was_cut_off_is_compared_only_when_grpo_compares_it(mask: bool, outcome: str, informative: int) -> None:
    """Half of each group is cut off and earns nothing, the other half breaks off the form and earns as little."""
    rows = [
        scored(
            f"p{i}", "fr", sample=sample, truncated=sample < K // 2, format_ok=False, reward=0.1 * (sample >= K // 2)
        )
        for i in range(64)
        for sample in range(K)
    ]
    found = decide(rows, mask_truncated=mask)
    assert (found.outcome, found.overall.informative.k) == (outcome, informative)
