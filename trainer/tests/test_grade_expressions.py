# SPDX-License-Identifier: MIT-0
"""Formulas, by math-verify: only where there is one, never for long, and in any thread."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lingoss.grade import grade
from lingoss.grade.expressions import boxed, equal, is_expression

CASES = [
    # expr
    ("correct", "en", "", "\\frac{3}{4}", "\\frac{6}{8}"),
    ("correct", "en", "", "2\\sqrt{3}", "The answer is $2\\sqrt{3}$."),
    ("correct", "en", "", "2\\sqrt{3}", "\\boxed{\\sqrt{12}}"),
    ("correct", "en", "", "7", "\\sqrt{49}"),
    ("correct", "en", "", "8", "2^3"),
    ("correct", "en", "", "x^2+1", "1+x^2"),
    ("incorrect", "en", "", "2\\sqrt{3}", "\\boxed{\\sqrt{13}}"),
    ("incorrect", "en", "", "9", "2^3"),
]


@pytest.mark.parametrize(("expected", "language", "question", "gold", "answer"), CASES)
def test_formula(expected: str, language: str, question: str, gold: str, answer: str) -> None:
    found = grade(answer, gold, language, question)
    assert found.grade == expected, found


def test_formulas_are_compared_in_any_thread() -> None:
    with ThreadPoolExecutor(2) as pool:
        grades = list(
            pool.map(lambda answer: grade(answer, "2\\sqrt{3}", "en").grade, ["$\\sqrt{12}$", "$\\sqrt{11}$"] * 3)
        )
    assert grades == ["correct", "incorrect"] * 3


@pytest.mark.parametrize(
    "text", ["", "84 m²", "In 4 years the tree is 310 cm tall.", "5 + 3 = 8", "3/4", "37 %", "snake_case", "$5"]
)
def test_ordinary_text_never_reaches_math_verify(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("math-verify was asked")

    monkeypatch.setattr("lingoss.grade.expressions.equal", refuse)
    assert grade(text, "84", "en").grade in ("correct", "incorrect", "unparsed")


@pytest.mark.parametrize(
    "answer",
    [
        "9^{9^{9^9}}",
        "9^9^9",
        "(x+y+z+w)^{40}",
        "(x+1)^{999}",
        "1000000!",
        "\\sum_{i=1}^{999} i",
        "2" * 200,
        "\\sqrt{" * 200,
        "\\sin(x)^{99}+\\cos(x)^{99}",
        "x" + "+x" * 200,
    ],
)
def test_what_could_run_long_is_not_evaluated(answer: str) -> None:
    start = time.process_time()
    assert equal(answer, "x^2+1") is None
    assert equal("7", answer) is None
    assert time.process_time() - start < 0.1


@pytest.mark.parametrize("answer", ["2^{999}", "(x+y+z+w)^{8}", "\\sin(\\sin(\\sin(x^{8})))"])
def test_what_is_evaluated_takes_seconds_at_most(answer: str) -> None:
    equal("x^2", "x^2+1")  # the import is not counted
    start = time.process_time()
    assert equal(answer, "x^2+1") is False
    assert time.process_time() - start < 5


def test_boxes() -> None:
    assert boxed("\\boxed{42}") == ["42"]
    assert boxed("a \\boxed{\\frac{1}{2}} b \\boxed{ 3 }") == ["\\frac{1}{2}", "3"]
    assert boxed("\\boxed{4") == []
    assert boxed("}{ \\boxed{} \\{ \\boxed{\\{1\\}}") == ["\\{1\\}"]


def test_syntax_of_formulas() -> None:
    assert is_expression("\\frac{x}{2}")
    assert is_expression("√2")
    assert not is_expression("84 % of 3/4 = 5 + 3")
