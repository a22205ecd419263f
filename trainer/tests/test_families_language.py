# SPDX-License-Identifier: MIT-0
"""Every text of every family, as the rooms that judge it see it: the detector accepts it, the grader reads it."""

import itertools
from dataclasses import replace

import pytest

from lingoss.data.draws import distinct
from lingoss.data.families import families, words
from lingoss.data.texts import render
from lingoss.detect import STRICT_SHARE, detect
from lingoss.grade import grade

FIVE = ("en", "fr", "de", "es", "it")
NAMES = [family.name for family in families()]
PAIRS = [(code, FIVE[(place + 1) % 5]) for place, code in enumerate(FIVE)]  # a language, and one whose names are used


def rendered(name: str, count: int):
    family = next(family for family in families() if family.name == name)
    for drawn in itertools.islice(distinct(family), count):
        for code, names in PAIRS:
            yield drawn, code, render(drawn, code), render(drawn, code, names=names)


@pytest.mark.parametrize("name", NAMES)
def test_the_detector_accepts_every_text(name):
    for _, code, own, foreign in rendered(name, 4):
        for text in (own, foreign):
            for part in (text.question, text.reasoning, text.answer):
                found = detect(part, target=code)
                assert found.accepted, part
                assert found.target_share >= STRICT_SHARE, part
            assert detect(text.reasoning).label == code


@pytest.mark.parametrize("name", NAMES)
def test_the_grader_reads_every_answer(name):
    for drawn, code, own, foreign in rendered(name, 12):
        for text in (own, foreign):
            assert grade(text.answer, text.gold, code, text.question).grade == "correct", (text.answer, text.gold)
            assert grade(text.gold, text.gold, code, text.question).grade == "correct", text.gold
        for answer in others(drawn):
            wrong = render(replace(drawn, answer=answer), code)
            found = grade(wrong.answer, own.gold, code, own.question).grade
            # Among free choices (colours, shops) only the right one is known to the grader.
            open_choice = drawn.family.name in ("bead-colour", "cheaper-apples")
            assert found in (("incorrect", "unparsed") if open_choice else ("incorrect",)), (wrong.answer, own.gold)


def others(drawn):
    """Wrong answers to the problem. The sentence follows the answer, so each is a wrong answer in a right sentence."""
    if drawn.family.kind == "number":
        return drawn.answer + 1, drawn.answer * 2
    options = len(drawn.family.text["en"].options or words("en").lists[drawn.family.options])
    return [index for index in range(options) if index != int(drawn.answer)][:2]
