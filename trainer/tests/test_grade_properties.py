# SPDX-License-Identifier: MIT-0
"""What holds for every value, language and text; and that grading is fast and linear."""

import time
from decimal import Decimal

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from lingoss import languages
from lingoss.grade import grade
from lingoss.grade.lexicon import lexicon
from lingoss.grade.numbers import parse

CODES = st.sampled_from(languages.builtin())
DIGITS = {
    "ar": "٠١٢٣٤٥٦٧٨٩",
    "hi": "०१२३४५६७८९",
    "ja": "０１２３４５６７８９",
    "zh": "０１２３４５６７８９",
}
FRAGMENTS = [
    "80", "60", "7", "1.234", "1 234", " or ", " maybe ", " oder ", "か", "=", "+", "(", ")", "\n", ". ", "? ", "½", "/", ",",
    "\\frac{", "}", "\\boxed{", "^", "√", " %", "-", "−", "not ", "because ", "The answer is ", "三", "百", "分之", "点", "半",
    "سبعة", " و", "दो", "सौ", "십", "이", "열", "one", " hundred ", " and a half", "Yes", "no", "true", "Wednesday", "Sarah", "B",
    "\u200b", "\u0301", "\ud800", "第", "٫", "٬", "'", "x", "°", "²", "e5", "×10^", "h30", ":30", "`", "**", "$",
]  # fmt: skip
TEXTS = st.one_of(st.text(st.characters(codec=None)), st.lists(st.sampled_from(FRAGMENTS), max_size=24).map("".join))
GOLDS = [
    "80",
    "-4",
    "1234.5",
    "0.75",
    "yes",
    "Wednesday",
    "mars",
    "Sarah",
    "B",
    "true",
    "赤",
    "نعم",
    "33.333333",
    "3/4",
]

TEMPLATES = {
    "en": ["{}", "The answer is {}.", "There are {} apples left.", "In 4 years it is {} cm tall.", "x = {}", "**{}**"],
    "fr": ["{}", "La réponse est {}.", "Il reste {} pommes.", "Dans 4 ans, il mesurera {} cm.", "Réponse : {}"],
    "de": ["{}", "Die Antwort lautet {}.", "Es sind noch {} Äpfel übrig.", "In 4 Jahren ist er {} cm hoch."],
    "es": ["{}", "La respuesta es {}.", "Quedan {} manzanas.", "Dentro de 4 años medirá {} cm."],
    "it": ["{}", "La risposta è {}.", "Restano {} mele.", "Fra 4 anni sarà alto {} cm."],
    "pt": ["{}", "A resposta é {}.", "Restam {} maçãs.", "Daqui a 4 anos medirá {} cm."],
    "nl": ["{}", "Het antwoord is {}.", "Er zijn nog {} appels over.", "Over 4 jaar is hij {} cm hoog."],
    "zh": ["{}", "答案是{}。", "还剩{}个苹果。", "4年后高{}厘米。"],
    "ja": ["{}", "答えは{}です。", "りんごは{}個残っています。", "4年後には{}センチになります。"],
    "ko": ["{}", "답은 {}입니다.", "사과가 {}개 남았습니다.", "4년 뒤에는 {}센티미터입니다."],
    "ar": ["{}", "الجواب هو {}.", "بقي {} تفاحة.", "بعد 4 سنوات يصبح الطول {} سم."],
    "hi": ["{}", "उत्तर {} है।", "{} सेब बचे हैं।", "4 साल बाद {} सेमी होगा।"],
}
QUESTION = "A tree of 130 cm grows. How tall is it in 4 years?"


@st.composite
def written(draw: st.DrawFn) -> tuple[str, Decimal, str]:
    """A value as one of the languages writes it: (code, value, text)."""
    code = draw(CODES)
    language = languages.get(code)
    value = draw(st.decimals(0, 10**9, places=draw(st.integers(0, 4)), allow_nan=False))
    whole, _, part = f"{value:f}".partition(".")
    group = draw(st.sampled_from(["", *(mark for mark in language.groups if mark != language.decimal)]))
    if code == "hi" and group == "," and len(whole) > 3:
        head, groups = whole[:-3], [whole[-3:]]
        while head:
            groups.insert(0, head[-2:])
            head = head[:-2]
    else:
        start = len(whole) % 3
        groups = [whole[:start]] * bool(start) + [whole[at : at + 3] for at in range(start, len(whole), 3)]
    text = (group.join(groups) if group else whole) + (language.decimal + part if part else "")
    sign = draw(st.sampled_from(["", "-", "−"]))
    if draw(st.booleans()):
        text = text.translate({ord(str(n)): digit for n, digit in enumerate(DIGITS.get(code, "0123456789"))})
    return code, -value if sign else value, sign + text


@given(written())
@example(("fr", Decimal("-1234567.5"), "−1\u202f234\u202f567,5"))
@example(("ar", Decimal("1234.5"), "١٬٢٣٤٫٥"))
def test_a_number_reads_as_its_language_writes_it(case: tuple[str, Decimal, str]) -> None:
    code, value, text = case
    assert parse(text, lexicon(code))[0] == value


@given(written(), st.data())
def test_a_sentence_is_right_for_its_value_and_no_other(case: tuple[str, Decimal, str], data: st.DataObject) -> None:
    code, value, text = case
    assume(value not in (4, 130))
    answer = data.draw(st.sampled_from(TEMPLATES[code])).format(text)
    assert grade(answer, f"{value:f}", code, QUESTION).grade == "correct"
    # One with three decimals has a second reading, which may be the other value.
    if value == value.to_integral():
        assert grade(answer, f"{value + 1:f}", code, QUESTION).grade == "incorrect"
        assert grade(answer, f"{value * 10 + 1:f}", code, QUESTION).grade == "incorrect"


@given(CODES, st.integers(21, 9999), st.integers(1, 9))
def test_two_values_side_by_side_are_never_right(code: str, value: int, step: int) -> None:
    assume(value not in (130, 4) and value + step != 130)
    either = {"en": "or", "fr": "ou", "de": "oder", "es": "o", "it": "o", "pt": "ou", "nl": "of", "zh": "或者", "ja": "または",
              "ko": "또는", "ar": "أو", "hi": "या"}[code]  # fmt: skip
    for text in (
        f"{value}, {value + step}",
        f"{value + step}\n{value}",
        f"{value} {either} {value + step}",
        f"{value}; {value - step}",
    ):
        for template in TEMPLATES[code][:3]:
            assert grade(template.format(text), str(value), code, QUESTION).grade != "correct", text


@given(CODES, st.integers(5, 9999))
def test_repeating_the_answer_changes_nothing(code: str, value: int) -> None:
    for template in TEMPLATES[code]:
        answer = template.format(value)
        assert grade(f"{answer}\n{answer}", str(value), code, QUESTION).grade == "correct"


@settings(max_examples=300)
@given(TEXTS, st.sampled_from(GOLDS), st.sampled_from([*languages.builtin(), "xx", ""]), TEXTS)
def test_any_text_is_graded(answer: str, gold: str, language: str, question: str) -> None:
    found = grade(answer, gold, language, question)
    assert found.grade in ("correct", "incorrect", "unparsed")
    assert found.rule
    assert found.grade != "correct" or found.value is not None


@given(TEXTS, st.one_of(st.none(), TEXTS), st.text(max_size=5))
def test_any_gold_is_survived(answer: str, gold: str | None, language: str) -> None:
    assume(gold is None or ("\\" not in gold and "^" not in gold and "√" not in gold))  # no sympy here
    found = grade(answer, gold, language)
    assert (found.grade is None) == (gold is None or not gold.strip())


UNITS = ["a", "1", "9", " ", "\n", ".", ",", "-", "(", "{", "\\", "$", "?", "\u200b", "\u0301", "一", "가", "십", "ا", "क", "🙂",
         "1,", "1 ", "1/", "1. a\n", "one ", "hundred ", "80 or ", "= 1", "( 1", "because 1 ", "not 1 ", "The answer is 1 ",
         "\\boxed{", "\\boxed{1}", "yes. ", "Sarah or ", "Wednesday ", "(B) ", "سبعة و", "दो सौ ", "열 "]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_a_megabyte_of_anything_takes_less_than_a_second(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    grade("\\frac{2}{4}", "\\frac{1}{2}", "en")  # imports math-verify, which takes seconds once
    for gold in ("80", "yes", "Wednesday", "Sarah", "B", "\\frac{3}{4}"):
        for code in ("en", "ja"):
            start = time.process_time()
            grade(text, gold, code, text[:10_000])
            assert time.process_time() - start < 1, (gold, code)


def test_a_thousand_ordinary_answers_take_less_than_a_quarter_of_a_second() -> None:
    answers = [
        (code, template.format(number)) for code in TEMPLATES for template in TEMPLATES[code] for number in (77, 310)
    ]
    for code, answer in answers:
        grade(answer, "310", code, QUESTION)  # word lists are loaded once
    start = time.process_time()
    for code, answer in answers:
        grade(answer, "310", code, QUESTION)
    assert (time.process_time() - start) / len(answers) < 0.000_25
