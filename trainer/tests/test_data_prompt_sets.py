# SPDX-License-Identifier: MIT-0
"""The named prompt sets: who is asked what in which language, and digests that pin every one of them for ever.

A digest that changes means that an id no longer names the text it named: raise `draws.GENERATOR`, then pin anew.
"""

from collections import Counter

import pytest

from lingoss.data import (
    Example,
    Prompt,
    grpo_prompts,
    language_table,
    prompt_digest,
    prompt_set,
    sft_examples,
)
from lingoss.data.families import families
from lingoss.data.prompt_sets import CORE
from lingoss.errors import LingossError

FIVE = ("en", "fr", "de", "es", "it")
SPLITS = {family.name: (family.split, family.validation) for family in families()}


@pytest.mark.parametrize(
    ("name", "rows", "items", "digest"),
    [
        ("core", 50, 10, "623828a45498d4c6"),
        ("core-crossed", 50, 10, "9bb9c1d4c4ecbba7"),
        ("validation", 325, 65, "4c8f6e5d7d2385e2"),
        ("heldout", 1200, 240, "dc41739eecb35c0e"),
    ],
)
def test_the_sets_are_pinned(name, rows, items, digest):
    found = prompt_set(name)
    assert len(found) == len({prompt.id for prompt in found}) == rows
    assert len({prompt.item for prompt in found}) == items
    assert {prompt.split for prompt in found} == {name}
    assert prompt_digest(found)[:16] == digest
    assert prompt_digest(reversed(found)) == prompt_digest(found)
    assert prompt_set(name, ("it", "es", "es", "de", "fr", "en")) == found


@pytest.mark.parametrize(
    ("rows", "digest"),
    [
        (lambda: sft_examples(40, seed=0), "6772c83396b0c343"),
        (lambda: sft_examples(12, seed=7, languages=("fr", "de")), "25d20a13f4f01e88"),
        (lambda: grpo_prompts(40, seed=0), "5d27800531aea66e"),
    ],
)
def test_training_rows_are_pinned(rows, digest):
    assert prompt_digest(rows())[:16] == digest


def test_whole_rows_are_pinned():
    assert prompt_set("core-crossed")[26] == Prompt(
        id="94575f8dbccbecfd",
        item="d33363d0f832532b",
        family="rectangle-area",
        question="Un rectangle mesure 32 centimètres de long et 5 centimètres de large. "
        "Quelle est son aire en centimètres carrés ?",
        question_language="fr",
        reasoning_language="en",
        answer_language="en",
        gold="160",
        split="core-crossed",
    )
    assert sft_examples(1)[2] == Example(
        id="5dca998237f7469a",
        item="0eacd5d83914f49e",
        family="average-temperature",
        question="Mittags zeigt das Thermometer am Montag 30 Grad, am Dienstag 28 Grad und am Mittwoch 29 Grad. "
        "Wie hoch ist die Durchschnittstemperatur dieser drei Tage in Grad?",
        question_language="de",
        reasoning_language="es",
        answer_language="es",
        gold="29",
        split="sft",
        reasoning="Los tres valores suman 30 + 28 + 29 = 87. "
        "Son tres días, así que divido la suma entre 3: 87 ÷ 3 = 29.",
        answer="La temperatura media es de 29 grados.",
    )


def test_families_do_not_cross_splits():
    def used(rows):
        return {SPLITS[row.family] for row in rows}

    assert used(sft_examples(11)) == {("sft", False)}
    assert used(grpo_prompts(11)) == {("grpo", False)}
    assert used(prompt_set("validation")) == {("grpo", True)}
    assert used(prompt_set("heldout")) == used(prompt_set("core")) == {("heldout", False)}
    assert {row.family for row in prompt_set("core")} == set(CORE)
    assert len({row.family for row in prompt_set("validation")}) == 5
    assert len({row.family for row in prompt_set("heldout")}) == 12


def test_core_is_same_language_and_its_twin_crosses_every_pair():
    plain, crossed = prompt_set("core"), prompt_set("core-crossed")
    assert not any(prompt.crossed for prompt in plain)
    assert all(prompt.crossed for prompt in crossed)
    assert {prompt.item for prompt in plain} == {prompt.item for prompt in crossed}
    assert all(prompt.reasoning_language == prompt.answer_language for prompt in crossed)
    pairs = Counter((prompt.question_language, prompt.answer_language) for prompt in crossed)
    assert len(pairs) == 20
    assert set(pairs.values()) == {2, 3}
    golds = {(prompt.item, prompt.answer_language): prompt.gold for prompt in plain}
    assert all(golds[prompt.item, prompt.answer_language] == prompt.gold for prompt in crossed)


def test_heldout_asks_in_thirds():
    kinds = Counter()
    for prompt in prompt_set("heldout"):
        asked, target = prompt.question_language, prompt.answer_language
        kinds[target, "target" if asked == target else "English" if asked == "en" else "other"] += 1
    for target in FIVE:
        assert kinds[target, "target"] == 80
        assert kinds[target, "English"] == (0 if target == "en" else 80)
        assert kinds[target, "other"] == (160 if target == "en" else 80)
    others = Counter(
        (prompt.question_language, prompt.answer_language)
        for prompt in prompt_set("heldout")
        if prompt.question_language not in ("en", prompt.answer_language)
    )
    assert set(others.values()) <= {26, 27, 40}


def test_a_tenth_asks_for_two_languages():
    rows = prompt_set("heldout")
    split = Counter(row.answer_language for row in rows if row.reasoning_language != row.answer_language)
    assert split == dict.fromkeys(FIVE, 24)
    pairs = Counter(
        (r.reasoning_language, r.answer_language) for r in rows if r.reasoning_language != r.answer_language
    )
    assert set(pairs.values()) == {6}
    # The slice is spread over families, and over all three kinds of question.
    assert len({row.family for row in rows if row.reasoning_language != row.answer_language}) == 12
    examples = sft_examples(200)
    assert sum(row.reasoning_language != row.answer_language for row in examples) == 100


def test_every_first_part_is_spread():
    part = prompt_set("heldout")[:60]
    assert Counter(prompt.family for prompt in part) == dict.fromkeys({p.family for p in part}, 5)
    assert len({prompt.family for prompt in part}) == 12
    assert Counter(prompt.answer_language for prompt in part) == dict.fromkeys(FIVE, 12)


def test_examples_hold_the_requested_languages_texts():
    for row in sft_examples(22):
        assert row.reasoning
        assert row.gold.casefold() in row.answer.casefold().replace(",", ".")
        assert row.split == "sft"
    french = [row for row in sft_examples(200) if (row.question_language, row.reasoning_language) == ("en", "fr")]
    sweets = next(row for row in french if row.family == "shared-sweets" and row.answer_language == "fr")
    assert sweets.question.startswith("Two bags contain ")
    assert sweets.reasoning.startswith("Les deux sachets contiennent ensemble ")
    assert sweets.answer.startswith("Chaque enfant reçoit ")


def test_seeds_draw_other_problems():
    one, again, other = sft_examples(20, seed=1), sft_examples(20, seed=1), sft_examples(20, seed=2)
    assert one == again
    assert not {row.item for row in one} & {row.item for row in other}
    assert len({row.question for row in sft_examples(60)}) == 300
    # More rows of the same seed only add rows.
    assert sft_examples(30, seed=1)[: len(one)] == one


@pytest.mark.parametrize(("languages", "count"), [(("fr",), 240), (("en",), 240), (("de", "en"), 480)])
def test_fewer_languages(languages, count):
    rows = prompt_set("heldout", languages)
    assert len(rows) == count
    assert {row.answer_language for row in rows} == set(languages)
    assert {row.question_language for row in rows} <= {*languages, "en"}


def test_what_cannot_be_drawn():
    with pytest.raises(LingossError, match="unknown prompt set 'test'; there are core, core-crossed"):
        prompt_set("test")
    with pytest.raises(LingossError, match=r"10 of 10 problem families of this set have no text in pt \(percent-of"):
        prompt_set("core", ("en", "pt", "ja"))
    with pytest.raises(LingossError, match="core-crossed needs at least two languages"):
        prompt_set("core-crossed", ("fr",))
    with pytest.raises(LingossError, match="no language given"):
        prompt_set("core", ())
    with pytest.raises(LingossError, match="n_per_language=-1"):
        sft_examples(-1)
    assert grpo_prompts(0) == []


def test_the_language_table():
    rows = prompt_set("core-crossed", ("en", "fr"))
    table = language_table(rows)
    assert table.counts == {("fr", "en", "en"): 10, ("en", "fr", "fr"): 10}
    assert (table.total, table.crossed, table.split_requests) == (20, 20, 0)
    assert table.to_rows() == [
        {"question": "fr", "reasoning": "en", "answer": "en", "rows": 10},
        {"question": "en", "reasoning": "fr", "answer": "fr", "rows": 10},
    ]
    assert table.markdown() == (
        "| reasoning | answer | question en | question fr | rows |\n"
        "| --- | --- | ---: | ---: | ---: |\n"
        "| en | en |  | 10 | 10 |\n"
        "| fr | fr | 10 |  | 10 |\n"
        "\n"
        "20 rows, 100% crossed, 0% ask for two languages.\n"
    )
    shown = table.rich()
    assert [column.header for column in shown.columns] == ["reasoning", "answer", "question en", "question fr", "rows"]
    assert list(shown.columns[4].cells) == ["10", "10"]
    assert language_table([]).summary() == "no rows"


def test_a_prompt_as_a_request():
    prompt = prompt_set("core-crossed")[0]
    request = prompt.request()
    assert (request.question, request.gold) == (prompt.question, prompt.gold)
    assert request.crossed is prompt.crossed is True
    assert "history" not in prompt.to_dict()
