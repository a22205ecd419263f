# SPDX-License-Identifier: MIT-0
"""The rules of the reward as properties, then the handed pairs of honest and gaming texts."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lingoss.score import DEFAULT, Request, score
from lingoss.score.ngrams import copied, repetition
from lingoss.transcript import Transcript, formats, parse

PAIRS = [json.loads(line) for line in (Path(__file__).parent / "cases" / "reward_cases.jsonl").open(encoding="utf-8")]

# One problem in several languages: a question, a trace and an answer that are right, and a wrong answer.
PROBLEM = {
    "en": (
        "A shop sells pens at 3 euros each. How much do 14 pens cost in euros?",
        "Each pen costs three euros. There are fourteen pens, so I multiply the two numbers.",
        "The pens cost 42 euros together.",
        "The pens cost 45 euros together.",
    ),
    "fr": (
        "Un magasin vend des stylos à 3 euros pièce. Combien coûtent 14 stylos en euros ?",
        "Chaque stylo coûte trois euros. Il y a quatorze stylos, je multiplie donc les deux nombres.",
        "Les stylos coûtent 42 euros en tout.",
        "Les stylos coûtent 45 euros en tout.",
    ),
    "de": (
        "Ein Laden verkauft Stifte zu je 3 Euro. Wie viel kosten 14 Stifte in Euro?",
        "Jeder Stift kostet drei Euro. Es sind vierzehn Stifte, also multipliziere ich die beiden Zahlen.",
        "Die Stifte kosten zusammen 42 Euro.",
        "Die Stifte kosten zusammen 45 Euro.",
    ),
    "ja": (
        "ある店ではペンを1本3ユーロで売っています。14本ではいくらですか。",
        "ペンは一本につき三ユーロです。全部で十四本あるので、二つの数を掛けます。",
        "ペンは全部で42ユーロです。",
        "ペンは全部で45ユーロです。",
    ),
}
LANGUAGES = st.sampled_from(sorted(PROBLEM))
SHORT = {"en": "42 euros", "fr": "Quarante-deux euros", "de": "Zweiundvierzig Euro", "ja": "42ユーロです"}


def request(question: str, reasoning: str, answer: str, gold: str | None = "42") -> Request:
    return Request(PROBLEM[question][0], question, reasoning, answer, gold)


def text(reasoning: str, answer: str, format: str = "think", **changes: bool) -> Transcript:
    return Transcript(format, reasoning, answer, **{"format_ok": True, "truncated": False, **changes})


@given(LANGUAGES, LANGUAGES, LANGUAGES)
def test_right_answer_in_the_requested_languages_earns_everything(question: str, reasoning: str, answer: str) -> None:
    verdict = score(text(PROBLEM[reasoning][1], PROBLEM[answer][2]), request(question, reasoning, answer))
    assert verdict.grade == "correct"
    assert verdict.reward == pytest.approx(1.0)


@given(LANGUAGES, LANGUAGES, st.sampled_from(formats()), st.sampled_from(["cut", "no form"]))
def test_cut_or_malformed_earns_nothing(asked: str, written: str, format: str, fault: str) -> None:
    changes = {"truncated": True, "format_ok": False} if fault == "cut" else {"format_ok": False}
    verdict = score(text(PROBLEM[written][1], PROBLEM[written][2], format, **changes), request("en", asked, asked))
    assert verdict.reward == 0.0
    assert set(verdict.terms.values()) == {0.0}


@given(LANGUAGES, LANGUAGES, LANGUAGES)
def test_language_cannot_buy_what_correctness_did_not_earn(asked: str, right: str, wrong: str) -> None:
    """The best wrong answer stays below the right answer in the worst language."""
    honest = score(text(PROBLEM[right][1], PROBLEM[right][2]), request("en", asked, asked))
    bought = score(text(PROBLEM[wrong][1], PROBLEM[wrong][3]), request("en", asked, asked))
    assert (honest.grade, bought.grade) == ("correct", "incorrect")
    assert bought.reward < honest.reward
    assert bought.reward <= DEFAULT.incorrect_language * DEFAULT.language + 1e-9


@given(LANGUAGES, LANGUAGES, LANGUAGES)
def test_the_worse_of_reasoning_and_answer_decides(asked: str, reasoning: str, answer: str) -> None:
    verdict = score(text(PROBLEM[reasoning][1], PROBLEM[answer][2]), request("en", asked, asked))
    both = reasoning == asked and answer == asked
    assert verdict.reward == pytest.approx(1.0 if both else DEFAULT.correctness, abs=1.3e-4)


@given(LANGUAGES, LANGUAGES)
def test_short_right_answer_is_never_penalised(question: str, asked: str) -> None:
    long = score(text(PROBLEM[asked][1], PROBLEM[asked][2]), request(question, asked, asked))
    short = score(text(PROBLEM[asked][1], SHORT[asked]), request(question, asked, asked))
    bare = score(text(PROBLEM[asked][1], "42"), request(question, asked, asked))
    assert short.reward == bare.reward == long.reward == pytest.approx(1.0)
    assert bare.answer.label == "neutral"


def test_neutral_answer_to_a_question_without_known_answer_shows_only_half() -> None:
    known = score(text(PROBLEM["fr"][1], PROBLEM["fr"][2]), request("en", "fr", "fr", gold=None))
    bare = score(text(PROBLEM["fr"][1], "42"), request("en", "fr", "fr", gold=None))
    assert (known.grade, bare.grade) == (None, None)
    assert known.reward == pytest.approx(1.0)
    assert bare.reward == pytest.approx(DEFAULT.neutral_ungraded)


@pytest.mark.parametrize("format", ["think", "harmony"])
@pytest.mark.parametrize("reasoning", ["", "42", "14 × 3 = 42", "Oui.", "🎉🎉🎉"])
def test_reasoning_must_be_there_and_be_words(format: str, reasoning: str) -> None:
    verdict = score(text(reasoning, PROBLEM["fr"][2], format), request("en", "fr", "fr"))
    assert verdict.grade == "correct"
    assert verdict.reward < DEFAULT.correctness + 0.2 * DEFAULT.language


def test_short_reasoning_in_hindi_counts_its_vowel_signs() -> None:
    reasoning = "एक किलो 6.50 यूरो का है। तीन किलो के लिए 3 × 6.50 = 19.50 यूरो लगेंगे।"
    asked = request("en", "hi", "hi", gold="19.5")
    assert score(text(reasoning, "19.50 यूरो"), asked).reward == pytest.approx(1.0)
    assert score(text("ठीक है।", "19.50 यूरो"), asked).reward < DEFAULT.correctness + 0.3 * DEFAULT.language


def test_plain_text_has_no_reasoning_to_judge() -> None:
    assert score(text("", PROBLEM["fr"][2], "plain"), request("en", "fr", "fr")).reward == pytest.approx(1.0)


@given(st.integers(6, 40), LANGUAGES)
def test_repeating_a_sentence_loses_the_reward(times: int, language: str) -> None:
    looped = " ".join([PROBLEM[language][1]] * times)
    verdict = score(text(looped, PROBLEM[language][2]), request("en", language, language))
    assert verdict.repetition > 0.55
    assert verdict.reward == pytest.approx(0.0, abs=1e-9)


@given(LANGUAGES)
def test_copying_the_question_is_no_reasoning(language: str) -> None:
    verdict = score(text(PROBLEM[language][0], PROBLEM[language][2]), request(language, language, language))
    assert verdict.prompt_copy == pytest.approx(1.0)
    assert verdict.reward == pytest.approx(0.0, abs=1e-9)


@given(
    st.text(max_size=200), st.text(max_size=80), st.sampled_from(formats()), st.booleans(), LANGUAGES, LANGUAGES,
    st.one_of(st.none(), st.text(max_size=8), st.integers().map(str)),
)  # fmt: skip
def test_never_raises_and_adds_up(reasoning, answer, format, well_formed, asked, question, gold) -> None:
    verdict = score(text(reasoning, answer, format, format_ok=well_formed), request(question, asked, asked, gold))
    assert 0.0 <= verdict.reward <= 1.0
    assert sum(verdict.terms.values()) == pytest.approx(verdict.reward, abs=1.3e-4)
    assert 0.0 <= verdict.repetition <= 1.0
    assert 0.0 <= verdict.prompt_copy <= 1.0
    json.dumps(verdict.to_dict())


@given(st.sampled_from([n / 4096 for n in range(0, 4097, 7)]), st.integers(2, 1024))
def test_the_mean_of_equal_rewards_is_the_reward(reward: float, size: int) -> None:
    """In float32, whatever the order: OpenRLHF divides what is left of a group by its deviation + 1e-9."""
    import numpy as np

    group = np.full(size, reward, dtype=np.float32)
    assert float(np.cumsum(group)[-1]) == size * reward
    asked = request("en", "fr", "fr")
    assert (
        score(parse("<think>Je compte : un, deux, trois, quatre.</think>Cela fait 41.", "think"), asked).reward * 4096
    ) % 1 == 0


@given(st.text(max_size=300))
def test_same_text_same_verdict(anything: str) -> None:
    asked = request("en", "fr", "fr")
    assert score(parse(anything, "think"), asked) == score(parse(anything, "think"), asked)


@pytest.mark.parametrize(
    ("sample", "low", "high"),
    [
        ("", 0.0, 0.0),
        ("one two three", 0.0, 0.0),
        ("The six notes of twenty euros are worth 120. The three notes of fifty euros are worth 150.", 0.0, 0.1),
        ("suo suo suo suo suo suo suo suo suo suo", 0.8, 1.0),
        ("la la la suma suma total total es es el el largo largo por por el el ancho ancho", 0.45, 1.0),
        ("non non", 0.0, 0.0),
        ("1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5", 0.0, 0.1),
        ("4" * 500, 0.9, 1.0),
        ("所以把31乘以二。" * 10, 0.8, 1.0),
        ("我先看看前一个数怎样变成后一个数。每个数都是前一个数的两倍再加一。", 0.0, 0.05),
        ("सात डिब्बों में बारह अंडे हैं। " * 8, 0.8, 1.0),
    ],
)
def test_repetition_counts_words_characters_and_floods(sample: str, low: float, high: float) -> None:
    assert low <= repetition(sample) <= high


def test_copied_counts_the_part_that_stands_in_the_question() -> None:
    question = "Twelve postal workers share 480 letters equally among them."
    assert copied(question, question) == 1.0
    assert copied(question.upper(), question) == 1.0
    assert copied("So I divide the number of letters by the number of workers.", question) == 0.0
    assert copied("40 letters", question) == 0.0


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["id"])
def test_handed_pairs(pair: dict) -> None:
    asked = Request(**pair["request"])
    verdicts = {who: score(parse(pair[who], pair["format"]), asked) for who in ("honest", "adversarial")}
    honest, adversarial = (verdicts[who].reward for who in ("honest", "adversarial"))
    assert honest > adversarial if pair["relation"] == "gt" else honest >= adversarial
    for who, expected in pair["expect"].items():
        verdict = verdicts[who]
        found = {
            "format_ok": verdict.format_ok,
            "truncated": verdict.truncated,
            "reasoning": verdict.reasoning.label if parse(pair[who], pair["format"]).reasoning else "none",
            "answer": verdict.answer.label,
            "grade": verdict.grade,
        }
        assert {key: found[key] for key in expected} == expected, who
