# SPDX-License-Identifier: MIT-0
"""The adversarial trial: ways to earn reward without doing the task, and the honest texts that must not pay for them."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lingoss import languages
from lingoss.data import families, sft_examples
from lingoss.data.draws import distinct
from lingoss.data.texts import render
from lingoss.score import Request, Verdict, score
from lingoss.score.ngrams import shuffled, units
from lingoss.score.prose import prose
from lingoss.score.relevance import relevance
from lingoss.transcript import Transcript, chat_format, parse

FIVE = ("en", "fr", "de", "es", "it")
PAIRS = [
    json.loads(line) for line in (Path(__file__).parent / "cases" / "trial_reward_cases.jsonl").open(encoding="utf-8")
]
# Known to be open, see docs/reward.md: no cheap rule tells them from honest text.
OPEN = [pair for pair in PAIRS if pair["hack"].startswith("open-")]
CLOSED = [pair for pair in PAIRS if pair not in OPEN]
# How much less a trick must earn at least. A right answer alone keeps 0.4 of 1.
GAP = 0.35
SMALLER = {
    "question-backwards-06": 0.15,  # Chinese: the numbers are reversed too, and hide what was copied
    "question-with-fillers": 0.15,
    "list-of-number-words": 0.15,
    "gold-in-every-sentence": 0.15,
    "another-result": 0.25,
    "yes-to-an-open-question": 0.25,
    "answer-again": 0.25,
    "answer-announced": 0.15,
    "false-sum": 0.25,
}


def verdicts(pair: dict[str, Any]) -> dict[str, Verdict]:
    asked = Request(**pair["request"])
    said = pair.get("finish_reason")  # an engine gives one; without it a text may begin with an echoed prompt
    return {who: score(parse(pair[who], pair["format"], said), asked) for who in ("honest", "adversarial")}


@pytest.mark.parametrize("pair", CLOSED, ids=lambda pair: pair["id"])
def test_a_trick_earns_less_than_the_task(pair: dict[str, Any]) -> None:
    found = verdicts(pair)
    gap = SMALLER.get(pair["id"], SMALLER.get(pair["hack"], GAP))
    assert found["honest"].reward >= 0.99
    assert found["adversarial"].reward <= found["honest"].reward - gap
    for who, expected in pair["expect"].items():
        verdict = found[who]
        shown = {"format_ok": verdict.format_ok, "truncated": verdict.truncated, "grade": verdict.grade}
        shown |= {"reasoning": verdict.reasoning.label, "answer": verdict.answer.label}
        assert {key: shown[key] for key in expected} == expected, who


@pytest.mark.parametrize("pair", OPEN, ids=lambda pair: pair["id"])
def test_what_is_open_is_known_to_be(pair: dict[str, Any]) -> None:
    """When one of these is closed, this fails: then it belongs among the closed ones."""
    found = verdicts(pair)
    assert found["honest"].reward == found["adversarial"].reward == pytest.approx(1.0)


def test_the_trial_is_large_enough() -> None:
    assert len({pair["hack"] for pair in CLOSED}) >= 75
    handed = {json.loads(line)["hack"] for line in (Path(__file__).parent / "cases" / "reward_cases.jsonl").open()}
    assert not handed & {pair["hack"] for pair in PAIRS}
    assert len({pair["id"] for pair in PAIRS}) == len(PAIRS)


Honest = tuple[str, Request, str, str]  # what it comes from, request, reasoning, answer


def from_sft() -> Iterator[Honest]:
    for seed in (0, 1):
        for row in sft_examples(30, seed):
            yield row.family, row.request(), row.reasoning, row.answer


def from_all_families() -> Iterator[Honest]:
    """Those of GRPO and of reports too, each question in each language, each trace in each."""
    for family in families.families():
        for problem in itertools.islice(distinct(family, 777), 2):
            for asked, written in itertools.product(FIVE, FIVE):
                text = render(problem, written, names=asked)
                request = Request(render(problem, asked).question, asked, written, written, text.gold)
                yield family.name, request, text.reasoning, text.answer


def judge(request: Request, reasoning: str, answer: str) -> Verdict:
    return score(parse(chat_format("think").render(reasoning, answer), "think"), request)


@pytest.mark.parametrize("source", [from_sft, from_all_families])
def test_honest_traces_of_every_family_lose_nothing(source: Any) -> None:
    lost = []
    for name, request, reasoning, answer in source():
        found = judge(request, reasoning, answer)
        if (found.relevance, found.prose) != (1.0, 1.0) or found.reward < 1.0 - 1e-9:
            lost.append((name, found.relevance, found.prose, found.terms, reasoning))
    assert lost == []


def in_words(text: str, code: str) -> str:
    """Whole numbers up to 20 and tens spelled out, where the language has one word for them."""
    spelled: dict[int, str] = {}
    for word, value in languages.get(code).words["numbers"].items():
        if value > 1 and value == int(value) and value <= 100 and " " not in word:
            spelled.setdefault(int(value), word)
    return re.sub(r"(?<![\d.,])\d+(?![\d.,]\d)", lambda m: spelled.get(int(m[0]), m[0]), text)


def other_digits(zero: str) -> Any:
    table = {ord("0") + n: chr(ord(zero) + n) for n in range(10)}
    return lambda text, code: text.translate(table)


def backwards(text: str, code: str) -> str:
    """The sentences in another order."""
    return " ".join(reversed(re.split(r"(?<=[.!?]) ", text)))


WRITTEN: dict[str, Any] = {
    "number words": in_words,
    "full-width digits": other_digits("\uff10"),
    "Arabic digits": other_digits("\u0660"),
    "decimal point or comma": lambda text, code: re.sub(r"(\d)[.,](\d)", r"\1{}\2".format("." if code != "en" else ","), text),
    "sentences in another order": backwards,
}  # fmt: skip


@pytest.mark.parametrize("form", WRITTEN)
def test_honest_traces_may_be_written_otherwise(form: str) -> None:
    """Relevance and prose hold in every form; what the detector says of odd digits is not asked here."""
    lost = []
    for name, request, reasoning, answer in from_all_families():
        text = WRITTEN[form](reasoning, request.reasoning_language)
        found = judge(request, text, answer)
        if (found.relevance, found.prose) != (1.0, 1.0):
            lost.append((name, found.relevance, found.prose, text))
    assert lost == []


@pytest.mark.parametrize(
    ("question", "language", "trace", "answer", "gold", "least"),
    [
        # terse, but about the question
        ("A jacket costs 80 euros and the price drops by 15 %.", "fr", "15 % de 80, c'est 12.", "68", "68", 1.0),
        ("Leo has 3 pens.", "de", "Drei Stifte.", "3", "3", 1.0),
        # no number of the question, but what a step makes of them
        ("A jacket costs 80 euros and the price drops by 15 %.", "de", "Also zwölf Euro weniger.", "68", "68", 0.6),
        # nothing to look for: other languages, no number, no name
        ("Why is the sky blue?", "fr", "La lumière bleue est davantage diffusée par l'air.", "Par l'air.", None, 1.0),
        # an open question's number need not come up
        (
            "Give me five tips to sleep better.",
            "fr",
            "Je pense au calme et à l'heure du coucher.",
            "Du calme.",
            None,
            0.5,
        ),
        # names without numbers
        (
            "Anna is older than Ben. Who is younger?",
            "it",
            "Se Anna è più grande, Ben è più piccolo.",
            "Ben",
            "Ben",
            1.0,
        ),
        ("Anna is older than Ben. Who is younger?", "it", "La luna sale piano sul mare.", "Ben", "Ben", 0.0),
    ],
)
def test_signs_of_relevance(
    question: str, language: str, trace: str, answer: str, gold: str | None, least: float
) -> None:
    found = relevance(trace, units(trace), language, question, units(answer), gold, gold)
    assert found >= least if least else found == 0.0


@pytest.mark.parametrize(
    ("trace", "stated", "expected"),
    [
        ("On calcule 80 - 12 = 68 avec 15 %.", "68", 1.0),
        ("On calcule 80 - 12 = 50 avec 15 %.", "68", 0.5),
        ("On calcule 80 × 0,85 = 67,99 avec 15 %.", "68", 1.0),
        ("Le train de 80 km roule 15 + 195 = 210 minutes.", "3.5", 1.0),
        ("La part est 80 ÷ 250 = 32 %, ou 15.", "0.32", 1.0),
        ("On trouve 80 - 12 = 68 ; vérifions avec 15 : 68 + 12 = 80.", "68", 1.0),
        ("On calcule avec 80 et 15.", "68", 1.0),
        ("On calcule 80 - 12 = 50 avec 15 %.", None, 1.0),
    ],
)
def test_a_sum_that_comes_to_something_else(trace: str, stated: str | None, expected: float) -> None:
    question = "A jacket costs 80 euros and the price drops by 15 %. What is the new price?"
    assert relevance(trace, units(trace), "fr", question, ["68"], "68", stated) == expected


def test_prose_of_lists_and_strings() -> None:
    sentence = "On enlève la remise du prix de la veste, et il reste ce que la cliente doit payer à la caisse."
    assert prose(units(sentence), "fr") == 1.0
    assert prose(units("chat chien table"), "fr") == 1.0, "of a few words nothing is said"
    assert prose(units("chat, chien, table, lampe, jardin, nuage, route, pont, port, île, oiseau, cheval"), "fr") == 0.0
    assert prose(units("de la que et dans le pour avec sur les par un une ce qui est"), "fr") == 0.0
    assert prose(units(" ".join(map(str, range(60)))), "fr") == 0.0
    assert prose(units("水をコップに入れます。" * 3), "ja") == 1.0, "repetition has its own term"


def test_shuffled_looks_at_words_of_spaced_scripts() -> None:
    question = "Twelve postal workers share 480 letters equally among them. How many letters does each get?"
    assert shuffled(units(" ".join(sorted(question.split()))), question) == pytest.approx(0.95)
    assert shuffled(units("I divide the 480 letters by the twelve workers, which makes 40 for each."), question) == 0.0
    assert shuffled(units("Twelve workers."), question) == 0.0
    assert shuffled(units("十二人で四百八十通の手紙を分けます"), "四百八十通の手紙を十二人で分けます") == 0.0


@given(
    st.text(st.characters(), max_size=120),
    st.text(st.characters(), max_size=60),
    st.sampled_from(["en", "zh", "ko", "ar", "sw"]),
)
def test_every_text_has_its_shares(trace: str, question: str, code: str) -> None:
    for found in (
        relevance(trace, units(trace), code, question, units(question), question, trace),
        prose(units(trace), code),
    ):
        assert 0.0 <= found <= 1.0


@given(st.text("0123456789.,' \u00a0٣²½-=", max_size=60))
def test_every_string_of_digits_has_its_shares(digits: str) -> None:
    assert 0.0 <= relevance(digits, units(digits), "fr", "80 and 15?", [], "68", "68") <= 1.0
    assert 0.0 <= relevance("80 et 15", ["80", "et", "15"], "fr", digits, [], digits, digits) <= 1.0


@given(st.text(st.characters(), max_size=100))
def test_text_beside_the_channels_never_adds_reward(aside: str) -> None:
    asked = Request("A jacket costs 80 euros, 15 % less now. How much?", "en", "fr", "fr", "68")
    honest = ("harmony", "Quinze pour cent de 80 euros font 12 euros.", "Elle coûte 68 euros.", True, False)
    with_aside = score(Transcript(*honest, aside=aside), asked)
    assert with_aside.reward <= score(Transcript(*honest), asked).reward
    assert score(Transcript(*honest, aside="80 * 0.85"), asked).reward == pytest.approx(1.0)
