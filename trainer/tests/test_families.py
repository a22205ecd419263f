# SPDX-License-Identifier: MIT-0
"""The problem families: what they are, that no two are alike, and that every draw of each can be put into words."""

import itertools
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from lingoss.data import families as registry
from lingoss.data.canonical import canonical
from lingoss.data.draws import Draw, distinct, draw
from lingoss.data.expressions import evaluate, names
from lingoss.data.families import families, load, words
from lingoss.data.texts import number, render
from lingoss.errors import LingossError

FIVE = ("en", "fr", "de", "es", "it")
DRAWS = 25
NAMES = [family.name for family in families()]


def draws(name: str, count: int = DRAWS):
    family = next(family for family in families() if family.name == name)
    return list(itertools.islice(distinct(family), count))


def test_how_many_there_are():
    assert len(families()) == 33
    assert Counter(family.split for family in families()) == {"sft": 11, "grpo": 10, "heldout": 12}
    assert sum(family.validation for family in families()) == 5
    words_in = Counter(family.split for family in families() if family.kind == "word")
    assert words_in == {"sft": 4, "grpo": 3, "heldout": 3}
    assert registry.languages() == tuple(sorted(FIVE))
    assert registry.review() == "0 of 33 families reviewed by a native speaker"


def test_no_two_families_have_the_same_answer_expression():
    forms = Counter(canonical(family.answer) for family in families())
    assert forms.most_common(1)[0][1] == 1


def test_no_two_number_families_compute_the_same():
    """A stronger check than the form: equal values at three points, under any renaming of the variables."""
    points = [(101, 13, 7, 31, 3), (64, 29, 11, 17, 5), (90, 8, 4, 50, 2)]
    tables: dict[tuple, str] = {}
    for family in families():
        if family.kind != "number":
            continue
        read = sorted(names(family.answer))
        own = set()
        for order in itertools.permutations(range(len(read))):
            values = [evaluate(family.answer, {read[i]: point[at] for i, at in enumerate(order)}) for point in points]
            own.add(tuple(values))
        for table in own:
            assert tables.setdefault(table, family.name) == family.name


@pytest.mark.parametrize("name", NAMES)
def test_every_draw_keeps_its_constraints(name):
    for drawn in draws(name):
        family = drawn.family
        for variable, value in drawn.values.items():
            assert value in family.variables[variable].values()
        known = {**drawn.values, "answer": drawn.answer}
        assert all(evaluate(source, known) for source in family.constraints)
        assert drawn.answer == evaluate(family.answer, drawn.values)
        if family.kind == "number":
            assert family.result.min <= drawn.answer <= family.result.max
            # Below 1,000 and with at most one decimal, a value reads the same with a point or a comma as mark.
            assert 1 <= drawn.answer < 1000
            assert (Fraction(drawn.answer) * 10).denominator == 1


@pytest.mark.parametrize("name", NAMES)
def test_draws_differ_and_never_change(name):
    first = draws(name)
    assert len({tuple(drawn.values.items()) for drawn in first}) == DRAWS
    assert [drawn.values for drawn in draws(name)] == [drawn.values for drawn in first]


@pytest.mark.parametrize("name", [family.name for family in families() if family.kind == "word"])
def test_no_word_answer_is_a_safe_bet(name):
    counts = Counter(int(drawn.answer) for drawn in draws(name, 200))
    family = draws(name, 1)[0].family
    options = len(family.text["en"].options or words("en").lists[family.options])
    assert len(counts) == options
    # No option much more frequent than its fair share.
    assert max(counts.values()) / 200 < 1.25 / options + 0.03


@pytest.mark.parametrize("name", NAMES)
def test_texts_are_whole_and_clean(name):
    for drawn in draws(name):
        for code in FIVE:
            text = render(drawn, code)
            for part in (text.question, text.reasoning, text.answer, text.gold):
                assert part == part.strip()
                assert not re.search(r"[{}|@]|  ", part)
            assert text.answer.endswith(".")
            assert text.reasoning.endswith(".")
            # "True or false: …" ends with the statement that is to be judged; every other question asks.
            assert "?" in text.question or name == "even-sum"
            assert len(text.reasoning) >= 60


@pytest.mark.parametrize("name", NAMES)
def test_a_question_holds_every_number_that_its_answer_needs(name):
    for drawn in draws(name):
        for code in FIVE:
            question = render(drawn, code).question
            shown = {Fraction(text.replace(",", ".")) for text in re.findall(r"\d+(?:[.,]\d+)?", question)}
            for variable in names(drawn.family.answer):
                value = drawn.values[variable]
                if variable in ("today", "first") and drawn.family.options in ("weekdays", "colours"):
                    word = words(code).lists[drawn.family.options][value]
                    assert word in question
                elif name == "next-term":
                    assert len(shown) >= 5
                elif name == "trip-fuel" and variable == "tenths":
                    assert Fraction(value, 10) in shown
                else:
                    assert value in shown


@pytest.mark.parametrize("name", NAMES)
def test_number_answers_are_written_as_the_language_writes_them(name):
    for drawn in draws(name):
        for code in FIVE:
            text = render(drawn, code)
            if drawn.family.kind == "number":
                written = text.gold if code == "en" else text.gold.replace(".", ",")
                assert re.findall(r"\d+(?:[.,]\d+)?", text.answer) == [written]
                assert re.fullmatch(r"[1-9]\d{0,2}(\.[1-9])?", text.gold)
                assert text.reasoning.count(written) >= 1
                assert Fraction(text.gold) == drawn.answer
            else:
                assert re.search(rf"\b{text.gold}\b", text.answer, re.IGNORECASE)
                assert not text.gold.isdigit()


def test_nothing_is_one_of_many():
    """ "1 hours" and its like in any language: the plural form of a choice never follows the number one."""
    for code in FIVE:
        plurals = set()
        for family in families():
            text = family.text[code]
            for template in (text.question, *text.reasoning, *text.answer):
                for forms in re.findall(r"\{[^{}|]*\|([^{}]*)\}", template):
                    one, many = forms.split("|")
                    if one != many:
                        plurals.add(many)
        # Nouns that other families only print with numbers from two on.
        for family in families():
            for drawn in draws(family.name, 30):
                text = render(drawn, code)
                for part in (text.question, text.reasoning, text.answer):
                    for word in re.findall(r"(?<![\d.,])1 ([^\W\d]+(?: supplémentaires| pains)?)", part):
                        assert word not in plurals, part
                        assert word not in ("euros", "pages", "Seiten", "litres", "litros", "litri", "metres"), part


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("en", ["A train travels at a constant speed of 100 kilometres per hour. How many kilometres does it travel in "
                "1 hour and 30 minutes?", "In 1 hour the train travels 1 × 100 = 100 kilometres."]),
        ("fr", ["Combien de kilomètres parcourt-il en 1 heure et 30 minutes ?", "En 1 heure, le train parcourt"]),
        ("de", ["in 1 Stunde und 30 Minuten zurück?", "In 1 Stunde legt der Zug 1 · 100 = 100 Kilometer zurück."]),
        ("es", ["¿Cuántos kilómetros recorre en 1 hora y 30 minutos?", "En 1 hora el tren recorre"]),
        ("it", ["Quanti chilometri percorre in 1 ora e 30 minuti?", "In 1 ora il treno percorre"]),
    ],
)  # fmt: skip
def test_singular_forms(code, expected):
    family = draws("train-distance", 1)[0].family
    text = render(Draw(family, 0, {"speed": 100, "hours": 1, "minutes": 30}, 150), code)
    assert expected[0] in text.question
    assert expected[1] in text.reasoning
    assert text.gold == "150"


def test_names_come_from_the_question():
    drawn = draws("youngest-of-three", 1)[0]
    english, french = render(drawn, "en"), render(drawn, "fr", names="en")
    assert french.gold == english.gold
    assert english.gold in french.answer
    assert english.gold in words("en").lists["names"]
    assert render(drawn, "fr").gold in words("fr").lists["names"]


@pytest.mark.parametrize(
    ("value", "decimal", "text"),
    [(7, ".", "7"), (Fraction(71, 10), ",", "7,1"), (Fraction(1, 4), ".", "0.25"), (Fraction(-5, 2), ",", "-2,5"),
     (9999, ".", "9999"), (Fraction(3, 1), ",", "3"), (Fraction(5, 100), ",", "0,05")],
)  # fmt: skip
def test_numbers(value, decimal, text):
    assert number(value, decimal) == text


@pytest.mark.parametrize("value", [10_000, -10_000, Fraction(1, 3), Fraction(1, 1000)])
def test_numbers_that_would_read_differently_elsewhere(value):
    with pytest.raises(LingossError, match="cannot print"):
        number(value, ".")


def test_parallel_word_lists():
    lists = {code: words(code).lists for code in FIVE}
    for name in ("names", "weekdays", "no_yes", "false_true", "colours"):
        assert len({len(lists[code][name]) for code in FIVE}) == 1
        for code in FIVE:
            assert len(set(lists[code][name])) == len(lists[code][name])
    for code in FIVE:
        assert all(name[0] not in "AEIOUÁÉÍÓÚÂÊÎÔÛ" for name in lists[code]["names"])
    assert lists["fr"]["weekdays"][2] == "mercredi"
    assert [lists[code]["no_yes"][1] for code in FIVE] == ["yes", "oui", "ja", "sí", "sì"]


FAMILY = {
    "split": "sft",
    "kind": "number",
    "steps": 1,
    "variables": {"a": {"min": 1, "max": 9}},
    "answer": "a + 1",
    "text": {"en": {"question": "What comes after {a}?", "reasoning": "I add one.", "answer": "It is {answer}."}},
}


def write(tmp_path, **changes):
    path = tmp_path / "counting.yaml"
    path.write_text(yaml.safe_dump({**FAMILY, **changes}, allow_unicode=True), encoding="utf-8")
    return path


def test_a_family_file_is_read(tmp_path):
    family = load(write(tmp_path))
    assert (family.name, family.split, family.result.max) == ("counting", "sft", 999)
    text = render(draw(family, 0), "en")
    assert re.fullmatch(r"What comes after \d\?", text.question)


def test_the_documented_family_is_one(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "pens.yaml").write_text(block, encoding="utf-8")
    text = render(draw(load(tmp_path / "pens.yaml"), 3), "en")
    assert re.fullmatch(r"There are \d+ boxes with \d+ pens each\. How many pens are there\?", text.question)
    assert text.answer == f"There are {text.gold} pens."


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"answer": "a + b"}, "'a \\+ b' reads b; variables: a, answer"),
        ({"constraints": ["q > 1"]}, "'q > 1' reads q"),
        ({"split": "test"}, "split: Input should be 'sft', 'grpo' or 'heldout'"),
        ({"validation": True}, "validation families belong to the grpo split"),
        ({"kind": "word"}, "a word family names a list"),
        ({"options": "weekdays"}, "a word family names a list"),
        ({"result": {"max": 5000}}, "results above 999 read differently"),
        ({"result": {"decimals": 3}}, "result.decimals: Input should be less than or equal to 2"),
        ({"variables": {"a": {"min": 3, "max": 3}}}, "variables.a: Value error, max 3 is not above min 3"),
        ({"variables": {"a": {"choices": [1], "max": 3}}}, "give either choices or min"),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
        ({"answer": "a.real"}, "Attribute is not part|is not part|reads"),
    ],
)
def test_a_broken_family_is_named_with_its_rule(tmp_path, changes, reason):
    with pytest.raises(LingossError, match=reason) as caught:
        draw(load(write(tmp_path, **changes)), 0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"- a\n- b\n", "must hold a mapping, found list"),
        (b"", "must hold a mapping, found NoneType"),
        (b"a: [", "cannot read"),
        (b"a: \xff", "cannot read"),
    ],
)
def test_a_file_that_is_no_family(tmp_path, content, reason):
    path = tmp_path / "counting.yaml"
    path.write_bytes(content)
    with pytest.raises(LingossError, match=reason):
        load(path)


def test_what_cannot_be_rendered_is_named(tmp_path):
    family = load(write(tmp_path))
    with pytest.raises(LingossError, match="family counting has no text in 'fr'; it has en"):
        render(draw(family, 0), "fr")
    with pytest.raises(LingossError, match="no problem families in 'xx', only in de, en, es, fr, it"):
        words("xx")
    texts = {"en": {"question": "{a@animals}", "reasoning": "I add one.", "answer": "It is {answer}."}}
    with pytest.raises(LingossError, match="no list 'animals', only"):
        render(draw(load(write(tmp_path, text=texts)), 0), "en")
    with pytest.raises(LingossError, match="no values keep the constraints in 20000 attempts"):
        draw(load(write(tmp_path, constraints=["a > 9"])), 0)


def test_a_family_that_is_used_up_begins_again(tmp_path):
    family = load(write(tmp_path))
    values = [drawn.values["a"] for drawn in itertools.islice(distinct(family), 18)]
    assert sorted(values[:9]) == list(range(1, 10))
    assert sorted(values[9:]) == list(range(1, 10))


def test_two_families_with_one_sum_are_refused(tmp_path, monkeypatch):
    for name, answer in (("one", "a * 2 + 1"), ("two", "1 + 2 * a")):
        write(tmp_path, answer=answer).rename(tmp_path / f"{name}.yaml")
    monkeypatch.setattr(registry, "FOLDER", tmp_path)
    with pytest.raises(LingossError, match="families one and two have the same answer expression"):
        families.__wrapped__()
