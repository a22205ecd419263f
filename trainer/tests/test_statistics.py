# SPDX-License-Identifier: MIT-0
"""Every figure of the research note, section 4, and what must hold for any counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lingoss.evaluate import statistics as s


def rounded(interval: s.Interval, digits: int = 0) -> tuple[float, float]:
    return round(100 * interval.low, digits), round(100 * interval.high, digits)


@pytest.mark.parametrize(
    ("k", "n", "expected"),
    [
        (11, 50, (12.8, 35.2)),
        (50, 50, (92.9, 100.0)),
        (17, 20, (64.0, 94.8)),
        (0, 64, (0.0, 5.7)),
        (0, 20, (0.0, 16.1)),
    ],
)
def test_wilson_figures(k: int, n: int, expected: tuple[float, float]) -> None:
    assert rounded(s.wilson(k, n), 1) == expected


@pytest.mark.parametrize(
    ("k", "n", "expected"),
    [
        (10, 10, (72, 100)),
        (3, 10, (11, 60)),
        (6, 10, (31, 83)),
        (4, 10, (17, 69)),
        (28, 60, (35, 59)),
        (56, 60, (84, 97)),
        (59, 60, (91, 100)),
    ],
)
def test_wilson_figures_printed_whole(k: int, n: int, expected: tuple[int, int]) -> None:
    low, high = s.wilson(k, n)
    assert abs(100 * low - expected[0]) <= 1  # the note truncates some of them
    assert abs(100 * high - expected[1]) <= 1


def test_clopper_pearson_figures() -> None:
    assert rounded(s.clopper_pearson(11, 50), 1) == (11.5, 36.0)
    assert rounded(s.clopper_pearson(50, 50), 1) == (92.9, 100.0)
    assert rounded(s.clopper_pearson(10, 10)) == (69, 100)


@pytest.mark.parametrize(
    ("gains", "losses", "p"),
    [
        (6, 2, 0.29),
        (7, 3, 0.34),
        (8, 4, 0.39),
        (12, 8, 0.50),
        (4, 0, 0.125),
        (3, 0, 0.25),
        (5, 2, 0.45),
        (0, 2, 0.50),
        (2, 4, 0.69),
        (0, 0, 1.0),
    ],
)
def test_mcnemar_figures(gains: int, losses: int, p: float) -> None:
    assert s.mcnemar(gains, losses) == pytest.approx(p, abs=0.005)


def test_mcnemar_of_the_large_effects() -> None:
    assert f"{s.mcnemar(39, 0):.1e}" == "3.6e-12"
    assert f"{s.mcnemar(31, 3):.0e}" == "8e-07"
    assert f"{s.mcnemar(31, 0):.0e}" == "9e-10"


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ((11, 0, 39, 0), (63, 87)),  # 11/50 to 50/50
        ((22, 3, 7, 18), (-5, 20)),  # 25 to 29 of 50
        ((3, 0, 3, 4), (-5, 55)),  # Spanish, at best
        ((4, 2, 0, 4), (-44, 10)),  # Italian, at best
    ],
)
def test_newcombe_paired_figures(cells: tuple[int, int, int, int], expected: tuple[int, int]) -> None:
    low, high = s.newcombe_paired(*cells)
    assert abs(100 * low - expected[0]) <= 1
    assert abs(100 * high - expected[1]) <= 1


def test_newcombe_paired_of_four_gains_reaches_below_zero() -> None:
    assert rounded(s.newcombe_paired(25, 0, 4, 21), 1) == (-0.4, 16.0)


def test_newcombe_unpaired_figure() -> None:
    # Newcombe (1998), example (a): 56/70 - 48/80 = 0.2, (0.0524, 0.3339)
    assert s.newcombe_unpaired(48, 80, 56, 70) == pytest.approx((0.0524, 0.3339), abs=1e-4)


def test_holm_over_five_languages() -> None:
    assert s.holm([0.25, 0.5, 1.0, 1.0, 1.0]) == [1.0] * 5
    assert s.holm([0.01, 0.02, 0.03]) == pytest.approx([0.03, 0.04, 0.04])
    assert s.holm([]) == []


def test_effective_prompts() -> None:
    assert s.effective(50, 10) == pytest.approx(50 / 2.2)
    assert s.effective(20, 20) == 20
    assert s.effective(0, 0) == 0


def test_item_sums_average_samples_before_items() -> None:
    values = [[1.0], [0.0], [1.0], [np.nan]]
    sums, counts = s.item_sums(values, ["p", "p", "q", "r"], ["i", "i", "i", "j"])
    assert sums.tolist() == [[1.5], [0.0]]
    assert counts.tolist() == [[2.0], [0.0]]


def test_bootstrap_resamples_whole_items() -> None:
    # Five prompts of one item move together, so 20 items of 5 prompts are as uncertain as 20 draws, not as 100.
    outcome = np.repeat(np.arange(20) % 2, 5).astype(float)[:, None]
    prompts = [f"p{i}" for i in range(100)]
    clustered = s.bootstrap(*s.item_sums(outcome, prompts, [i // 5 for i in range(100)]))
    apart = s.bootstrap(*s.item_sums(outcome, prompts, range(100)))
    assert clustered.std() == pytest.approx(0.5 / 20**0.5, rel=0.05)
    assert apart.std() == pytest.approx(0.5 / 100**0.5, rel=0.05)
    assert clustered.mean() == pytest.approx(0.5, abs=0.01)


def test_bootstrap_is_the_same_for_the_same_seed_in_any_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sums, counts = s.item_sums(np.arange(30.0)[:, None], range(30), range(30))
    first = s.bootstrap(sums, counts, draws=500)
    assert np.array_equal(first, s.bootstrap(sums, counts, draws=500))
    assert not np.array_equal(first, s.bootstrap(sums, counts, draws=500, seed=1))
    monkeypatch.setattr(s, "_BLOCK", 100)
    assert s.bootstrap(sums, counts, draws=500).shape == (500, 1)


def test_sign_flip_equals_mcnemar_on_single_prompts() -> None:
    assert s.sign_flip([1] * 6 + [-1] * 2 + [0] * 30) == pytest.approx(s.mcnemar(6, 2))
    assert s.sign_flip([0.0, 0.0]) == 1.0
    assert s.sign_flip([1] * 39) == pytest.approx(1 / 10_001)  # the least that 10,000 draws can say
    assert s.sign_flip([1] * 20 + [-1] * 10) == pytest.approx(s.mcnemar(20, 10), abs=0.02)


def test_t_interval_of_known_values() -> None:
    low, high = s.t_interval(np.array([1.0, 2.0, 3.0]))
    assert (low, high) == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5), abs=1e-5)


def test_noninferiority_is_strict() -> None:
    assert s.noninferior(-0.04, 0.05)
    assert not s.noninferior(-0.05, 0.05)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_intervals_hold_the_estimate_and_stay_in_range(kn: tuple[int, int]) -> None:
    k, n = kn
    for interval in (s.wilson(k, n), s.clopper_pearson(k, n)):
        assert 0.0 <= interval.low <= k / n <= interval.high <= 1.0
    mirrored = s.wilson(n - k, n)
    assert s.wilson(k, n).low == pytest.approx(1 - mirrored.high, abs=1e-9)
    assert (s.wilson(k, n).low == 0.0) == (k == 0)
    assert (s.wilson(k, n).high == 1.0) == (k == n)


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[st.integers(0, 60)] * 4))
def test_newcombe_paired_is_antisymmetric(cells: tuple[int, int, int, int]) -> None:
    both, losses, gains, neither = cells
    low, high = s.newcombe_paired(both, losses, gains, neither)
    back_low, back_high = s.newcombe_paired(both, gains, losses, neither)
    assert (low, high) == pytest.approx((-back_high, -back_low), abs=1e-9)
    assert -1.0 <= low <= high <= 1.0
    if sum(cells):
        assert low <= (gains - losses) / sum(cells) <= high
