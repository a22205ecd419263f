# SPDX-License-Identifier: MIT-0
"""The answers of our own problem families, as another room writes them: right ones pass, altered ones never do."""

import itertools

import pytest

from lingoss.data.draws import draw
from lingoss.data.families import Family, families
from lingoss.data.texts import render
from lingoss.grade import grade

LANGUAGES = ("en", "fr", "de", "es", "it")
PAIRS = list(itertools.product(LANGUAGES, LANGUAGES))


@pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
def test_answers_of_family(family: Family) -> None:
    for seed, (asked, answered) in itertools.product((0, 1), PAIRS):
        drawn = draw(family, seed)
        question, text = render(drawn, asked).question, render(drawn, answered, asked)
        found = grade(text.answer, text.gold, answered, question)
        assert found.grade == "correct", (text, found)
        working = f"{text.reasoning} {text.answer}"
        assert grade(working, text.gold, answered, question).grade == "correct", working
        other = render(draw(family, seed + 100), answered, asked)
        if other.gold != text.gold:
            assert grade(other.answer, text.gold, answered, question).grade != "correct", (text.gold, other.answer)
        for restated in (question, render(drawn, answered).question):
            assert grade(restated, text.gold, answered, question).grade != "correct", restated


@pytest.mark.parametrize("family", [f for f in families() if f.kind == "number"], ids=lambda family: family.name)
def test_altered_answers_of_family(family: Family) -> None:
    for answered in LANGUAGES:
        drawn = draw(family, 0)
        text = render(drawn, answered)
        if not text.gold.isdigit():
            continue
        value = int(text.gold)
        for wrong in (value + 1, value - 1, value * 10, value * 100):
            answer = text.answer.replace(text.gold, str(wrong), 1)
            assert grade(answer, text.gold, answered, text.question).grade == "incorrect", answer
        spam = [
            f"{value - 1} {value} {value + 1}",
            f"{value - 1}, {value}, {value + 1}",
            f"{value + 1}\n{value}",
            f"{text.answer} ({value + 1}, {value + 2})",
            f"{text.answer} {text.answer.replace(text.gold, str(value + 1))}",
            f"{text.answer.replace(text.gold, str(value + 1))} {text.answer}",
        ]
        for answer in spam:
            assert grade(answer, text.gold, answered, text.question).grade != "correct", answer
