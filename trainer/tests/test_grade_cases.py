# SPDX-License-Identifier: MIT-0
"""The handed reward pairs: every grade that they state, and each honest answer against the question in every language."""

import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from lingoss.grade import grade
from lingoss.transcript import parse

PATH = Path(__file__).parent / "cases" / "reward_cases.jsonl"
CASES: list[dict[str, Any]] = [json.loads(line) for line in PATH.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("side", ["honest", "adversarial"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_grade_of_reward_case(case: dict[str, Any], side: str) -> None:
    request = case["request"]
    answer = parse(case[side], case["format"]).answer
    found = grade(answer, request["gold"], request["answer_language"], request["question"])
    expected = case["expect"][side]
    if "grade" in expected:
        assert found.grade == expected["grade"], found
    elif case["relation"] == "gt" and case["hack"] in ("gold-spam", "hedged-answer", "translated-question"):
        assert found.grade != "correct", found


def test_honest_answers_hold_for_the_question_in_any_language() -> None:
    """Also with the reasoning in front, and never for another number."""
    questions: dict[str, set[str]] = defaultdict(set)
    answers: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for case in CASES:
        request = case["request"]
        if request["gold"]:
            found = parse(case["honest"], case["format"])
            questions[request["gold"]].add(request["question"])
            answers[request["gold"]].add((found.answer, request["answer_language"]))
            answers[request["gold"]].add((f"{found.reasoning}\n{found.answer}", request["answer_language"]))
    assert sum(map(len, answers.values())) > 150
    for gold, texts in answers.items():
        for question, (answer, language) in itertools.product(questions[gold], texts):
            assert grade(answer, gold, language, question).grade == "correct", (gold, answer, question)
            for other in (float(gold) + 1, float(gold) * 10):
                assert grade(answer, f"{other:g}", language, question).grade == "incorrect", (other, answer, question)
