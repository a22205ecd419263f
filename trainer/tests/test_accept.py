# SPDX-License-Identifier: MIT-0
"""GRPO against SFT: every clause can fail alone, and is named with its numbers."""

import json
from typing import Any

import pytest

from lingoss.errors import LingossError
from lingoss.evaluate.accept import AcceptSettings, accept
from lingoss.evaluate.rows import ScoredRun
from synthetic import outcomes, run

N = 240
CODES = ("fr", "de")


def both(pattern: str, **fields: Any) -> list[dict[str, Any]]:
    return [row for code in CODES for row in outcomes(pattern, code, **fields)]


def sft() -> ScoredRun:
    return run("sft", both("1" * 180 + "0" * 60))


BETTER = "1" * 215 + "0" * 25


def clauses(candidate: list[dict[str, Any]], **settings: Any) -> list[str]:
    found = accept(run("grpo", candidate), sft(), AcceptSettings(**settings))
    assert found.decision == ("keep" if found.failed else "accept")
    return [clause.split(":")[0] for clause in found.failed]


def test_a_clear_gain_without_losses_is_accepted() -> None:
    found = accept(run("grpo", both(BETTER)), sft())
    assert (found.decision, found.failed) == ("accept", ())
    assert found.metrics["primary"]["difference"] == pytest.approx(35 / N)
    assert found.metrics["languages"]["fr"]["reasoning"]["prompts"] == N
    assert found.runs == ("grpo", "sft")


def test_no_gain_keeps_the_sft_adapter_and_says_what_would_have_shown() -> None:
    found = accept(run("grpo", both("1" * 182 + "0" * 58)), sft())
    assert found.decision == "keep"
    assert len(found.failed) == 1
    assert found.failed[0].startswith("primary: joint changed by +0.8 points")
    assert "would have shown" in found.failed[0]


def test_one_language_worse_is_named() -> None:
    rows = [*outcomes("1" * N, "fr"), *outcomes("1" * 165 + "0" * 75, "de")]
    assert clauses(rows) == ["language de, reasoning"]
    assert clauses(rows, language_margin=0.15) == []


def test_a_wide_interval_is_not_evidence_of_no_loss() -> None:
    small = run("sft", both("1" * 5 + "0" * 15))
    found = accept(run("grpo", both("1" * 20)), small)
    assert [clause.split(":")[0] for clause in found.failed] == [
        "language fr, answer", "language de, answer", "correctness",
    ]  # fmt: skip
    assert "not excluded" in found.failed[0]


def test_lost_correctness_is_named() -> None:
    rows = both(BETTER)
    for row in rows[::12]:
        row["verdict"]["grade"] = "incorrect"
    assert "correctness" in clauses(rows, primary="strict")
    assert clauses(rows, primary="strict", correctness_margin=0.15) == []


@pytest.mark.parametrize(
    ("clause", "change"),
    [
        ("format", {"format_ok": False}),
        ("truncation", {"truncated": True}),
        ("repetition", {"repetition": 0.9}),
    ],
)
def test_form_and_repetition_are_bounded(clause: str, change: dict[str, Any]) -> None:
    rows = both(BETTER)
    for row in rows[::20]:
        row["verdict"].update(change)
    assert clauses(rows) == [clause]


@pytest.mark.parametrize(
    ("tokens", "failed"),
    [(60, []), (89, []), (41, []), (95, ["length fr", "length de"]), (35, ["length fr", "length de"])],
)
def test_median_length_is_bounded_in_each_language(tokens: int, failed: list[str]) -> None:
    assert clauses(both(BETTER, new_tokens=tokens)) == failed


def test_prompts_without_known_answer_are_reported_apart() -> None:
    candidate = [*both(BETTER), *outcomes("11", "fr", prefix="open", grade=None)]
    current = [*both("1" * 180 + "0" * 60), *outcomes("01", "fr", prefix="open", grade=None)]
    found = accept(run("grpo", candidate), run("sft", current))
    assert found.metrics["without_known_answer"]["prompts"] == 2
    assert found.metrics["correctness"]["prompts"] == 2 * N


def test_runs_that_cannot_be_paired_are_refused() -> None:
    with pytest.raises(LingossError, match="different prompt sets"):
        accept(run("grpo", both("1"), prompt_digest="e" * 64), sft())
    with pytest.raises(LingossError, match="unknown primary metric 'reward'"):
        accept(run("grpo", both("1")), sft(), AcceptSettings(primary="reward"))
    with pytest.raises(LingossError, match="share no prompt"):
        accept(run("grpo", outcomes("1", prefix="other")), sft())


def test_accept_json_has_exactly_the_designed_shape() -> None:
    found = accept(run("grpo", both("1" * 180 + "0" * 60)), sft()).to_dict()
    assert list(found) == ["decision", "failed", "metrics", "runs"]
    assert json.loads(json.dumps(found, allow_nan=False))["decision"] == "keep"
