# SPDX-License-Identifier: MIT-0
"""The sample sizes of the research note, section 4.3, and its table of informative groups, section 4.4."""

import pytest

from lingoss.errors import LingossError
from lingoss.evaluate import power


@pytest.mark.parametrize(("before", "size"), [(0.5, 608), (0.7, 469), (0.8, 325), (0.9, 121)])
def test_unpaired_sizes(before: float, size: int) -> None:
    assert 0 <= power.unpaired_size(before, before + 0.08) - size <= 1  # the note rounds, we round up


@pytest.mark.parametrize(
    ("gains", "losses", "alpha", "size"),
    [
        (0.08, 0.00, 0.05, 100),
        (0.10, 0.02, 0.05, 155),
        (0.13, 0.05, 0.05, 235),
        (0.18, 0.10, 0.05, 365),
        (0.08, 0.00, 0.01, 130),
        (0.10, 0.02, 0.01, 220),
        (0.13, 0.05, 0.01, 340),
    ],
)
def test_paired_sizes(gains: float, losses: float, alpha: float, size: int) -> None:
    found = power.mcnemar_size(gains, losses, alpha)
    assert -(-found // 5) * 5 == size  # the note searched in steps of five
    assert power.mcnemar_power(found, gains, losses, alpha) >= 0.8
    assert power.mcnemar_power(found - 1, gains, losses, alpha) < 0.8


@pytest.mark.parametrize(
    ("margin", "discordance", "size"),
    [
        (0.05, 0.06, 148),
        (0.05, 0.10, 247),
        (0.05, 0.20, 495),
        (0.03, 0.06, 412),
        (0.03, 0.10, 687),
        (0.03, 0.20, 1374),
        (0.08, 0.06, 58),
        (0.08, 0.10, 97),
        (0.08, 0.20, 193),
    ],
)
def test_noninferiority_sizes(margin: float, discordance: float, size: int) -> None:
    assert 0 <= power.noninferiority_size(margin, discordance) - size <= 1


@pytest.mark.parametrize(("k", "size"), [(1, 300), (2, 150), (4, 80)])
def test_simulated_sizes(k: int, size: int) -> None:
    assert power.sampled_power(size, k, 0.75, 0.83) >= 0.78  # the note's grid is coarse, and so is a simulation
    assert power.sampled_power(size // 2, k, 0.75, 0.83) < 0.70
    assert power.sampled_size(k, 0.75, 0.83) == pytest.approx(size, rel=0.1)


def test_more_samples_help_less_and_less() -> None:
    sizes = [power.sampled_size(k, 0.75, 0.83) for k in (1, 2, 4, 8)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[3] <= 60
    assert power.sampled_power(500, 1, 0.75, 0.83, alpha=0.01) > 0.8
    assert power.sampled_power(150, 4, 0.75, 0.83, alpha=0.01) > 0.8


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (8, (0.04, 0.08, 0.15, 0.34, 0.57, 0.83, 0.99, 0.57, 0.34, 0.15, 0.08)),
        (16, (0.08, 0.15, 0.28, 0.56, 0.81, 0.97, 1.0, 0.81, 0.56, 0.28, 0.15)),
    ],
)
def test_informative_share_of_equal_prompts(k: int, expected: tuple[float, ...]) -> None:
    rates = (0.005, 0.01, 0.02, 0.05, 0.10, 0.20, 0.50, 0.90, 0.95, 0.98, 0.99)
    assert [round(power.informative_share(p, k), 2) for p in rates] == list(
        expected
    )  # the note prints 0.82 for k = 16, p = 0.1 and 0.9; it is 0.8147


@pytest.mark.parametrize(("p", "expected"), [(0.05, 0.12), (0.1, 0.23), (0.5, 0.61)])
def test_informative_share_of_unlike_prompts(p: float, expected: float) -> None:
    assert round(power.informative_share(p, 8, concentration=1.0), 2) == expected


def test_the_gate_floor_is_near_three_percent_success() -> None:
    assert power.informative_share(0.028, 8) == pytest.approx(0.20, abs=0.005)


def test_detectable_difference_inverts_the_size() -> None:
    size = power.mcnemar_size(0.10, 0.02)
    assert power.detectable(size, 0.12) == pytest.approx(0.08, abs=0.002)
    assert power.detectable(20, 0.0) == pytest.approx(0.37, abs=0.01)
    assert power.detectable(5, 0.5) is None  # five pairs cannot reach p < 0.05
    assert power.detectable(0, 0.5) is None
    assert power.detectable_mean(0.02) == pytest.approx(0.056, abs=0.0005)


def test_table_has_every_design() -> None:
    needs = power.table()
    assert {need.design for need in needs} == {
        "unpaired",
        "paired, exact McNemar",
        "paired means",
        "non-inferiority, one-sided",
    }
    assert [need.prompts for need in needs if need.design == "unpaired"] == [608, 470, 325, 122]
    assert all(need.prompts > 0 for need in needs)


def test_table_refuses_what_no_prompts_can_show() -> None:
    for wrong in (0.0, -0.1, 0.001, 0.5, 8.0):
        with pytest.raises(LingossError, match=r"8 points are 0\.08"):
            power.table(wrong)
    with pytest.raises(LingossError):
        power.table(power=1.0)
    small = {need.assumption: need.prompts for need in power.table(0.04) if need.alpha == power.ALPHA}
    assert small["gains 4%, losses 0%"] == power.mcnemar_size(0.04, 0.0)
    assert max(small.values()) < 20_000
