# SPDX-License-Identifier: MIT-0
"""Sums in a trace: which are false whatever is meant, and letters that nobody judged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lingoss.score import sums, unread
from lingoss.score.ngrams import shared, units


@pytest.mark.parametrize(
    "text",
    [
        "80 + 15 = 68",
        "So x = 80 + 15 = 68.",
        "80+15=68",
        "80 × 15 = 68",
        "4 × 75 = 310",
        "2 × 3 + 4 × 5 = 50",
        "10 + 6 = 3",
        "1/3 + 1/6 = 0.7",
        "80 - 12 = 68 and then 68 + 15 = 70",
        "٣ + ٤ = ٨",
    ],
)
def test_false_sums(text: str) -> None:
    assert sums.is_false(text)


@pytest.mark.parametrize(
    "text",
    [
        "80 - 12 = 68",
        "80 + 15 = 99, no: 80 - 12 = 68",  # the last one counts: a slip may be put right
        "68 + 12 = 80 - 12 = 68",
        "we check with 15 : 68 + 12 = 80",
        "1 200 + 300 = 1 500",
        "1.200 + 300 = 1.500",
        "1,200 + 300 = 1,500",
        "1'200 + 300 = 1'500",
        "57 ÷ 7 = 8",
        "57 : 7 = 8 R 1",
        "57 / 7 = 8.14",
        "2 / 3 = 0.67",
        "0,15 × 80 = 12",
        "15 × 80 / 100 = 12",
        "15 × 80 = 12 %",
        "2 × 3 + 4 × 5 = 26",
        "1/3 + 1/6 = 1/2",
        "8:30 + 2 = 10:30",
        "2 h 30 + 15 = 2 h 45",
        "10 + 5 = 3",  # a clock
        "2 + 10 = 5",  # a week
        "45 × 4 = 3",  # minutes and hours
        "240 / 80 = 3 heures",
        "2^3 + 1 = 9",
        "(2 + 3) × 4 = 20",
        "f(3) + 2 = 11",
        "-5 + 3 = -2",
        "3 × 10^2 = 300",
        "8 / 0 = 3",
        "15 = 1 (mod 7)",
        "80 and 15",
        "",
    ],
)
def test_what_is_no_false_sum(text: str) -> None:
    assert not sums.is_false(text)


NUMBER = st.integers(0, 10**6)


@given(NUMBER, NUMBER, st.sampled_from(["{} + {} = {}", "Also {}+{}={}.", "x = {} + {} = {}, alors"]))
def test_a_true_sum_is_never_false(a: int, b: int, form: str) -> None:
    assert not sums.is_false(form.format(a, b, a + b))
    assert not sums.is_false(form.replace("+", "×").format(a, b, a * b))


@given(st.integers(100, 999), st.integers(1, 99))
def test_a_sum_that_is_twice_off_is_false(a: int, b: int) -> None:
    wrong = a + b + a // 2 + 0.37
    assert sums.is_false(f"{a} + {b} = {wrong}")


@given(st.text("0123456789 +-×÷/:=≈.,'^()%x٣", max_size=80))
def test_any_text_is_read(text: str) -> None:
    assert sums.is_false(text) in (True, False)
    assert sums.contradicts(text, 68.0) in (True, False)


@given(st.text(max_size=200), st.integers(0, 200), st.floats(0, 500))
def test_unread_letters_give_a_share(text: str, read: int, weighted: float) -> None:
    assert 0.0 <= unread.beside(text, read, weighted) <= 1.0
    assert 0.0 <= unread.alone(text) <= 1.0


def test_letters_that_nobody_read() -> None:
    prose = "We take 12 off the 80 and get the price. " * 3
    letters = sum(map(str.isalpha, prose))
    assert unread.beside(prose, letters, letters) == 1.0
    formulas = prose + r"$\frac{a}{b} \cdot c \times d \approx \text{e}$ and `total_price` in https://example.com/a"
    assert unread.beside(formulas, letters, letters) == 1.0
    assert unread.beside(prose + "x" * (4 * letters), letters, letters) == 0.0
    assert unread.alone("84 m²") == unread.alone(r"\boxed{\frac{3}{4}}") == 1.0
    assert unread.alone('{"final_price_in_euros_after_discount": 68}') == 0.0


def test_what_stands_in_both() -> None:
    answer = units("The jacket now costs 68 euros in all.")
    assert shared(answer, answer) == 1.0
    assert shared(units("I take fifteen percent of 80 off, which makes 68."), answer) == 0.0
    assert shared(answer, answer[:3]) == 0.0, "so short an answer cannot hold half of it"
    assert shared([], []) == 0.0
