# SPDX-License-Identifier: MIT-0
"""The parity report on made-up log-probabilities: what broke, told from numbers alone."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lingoss.errors import LingossError
from lingoss.grpo.parity import FLOOR, Drawn, ParityReport, Rows, compare, own_tolerance

NOISE = 0.04
TOLERANCE = 0.1
Made = list[list[float]]


def made(draw: Callable[[np.random.Generator, int], Any], seed: int, texts: int = 8, tokens: int = 60) -> Made:
    """Rows of different lengths from a random stream of their own."""
    random = np.random.default_rng(seed)
    return [draw(random, tokens + place).tolist() for place in range(texts)]


def noisy(rows: Rows, scale: float = NOISE, seed: int = 1) -> Made:
    random = np.random.default_rng(seed)
    return [(np.asarray(row) + random.normal(0, scale, len(row))).tolist() for row in rows]


def mixed(first: Rows, second: Rows, share: float) -> Made:
    return [((1 - share) * np.asarray(a) + share * np.asarray(b)).tolist() for a, b in zip(first, second, strict=True)]


POLICY = made(lambda random, n: -8 - random.exponential(1.5, n), 0)
BASE = noisy(POLICY, 1.0, 2)
OTHER = made(lambda random, n: -8 - random.exponential(1.5, n), 3)


def against_base(engine: Rows, **more: Any) -> ParityReport:
    return compare(engine, POLICY, TOLERANCE, known={"the base model": BASE}, **more)


def test_a_fresh_engine_agrees_and_the_numbers_are_right() -> None:
    report = compare([[-1.0, -2.0], [-3.0]], [[-1.1, -2.0], [-3.05]], 0.1)
    assert (report.layer, report.tokens, report.tolerance) == (None, 3, 0.1)
    assert report.difference == pytest.approx(0.05)
    assert report.largest == pytest.approx(0.1)
    assert report.sentence == "engine and trainer agree (mean difference 0.05 over 3 tokens, tolerance 0.1)"
    report.raise_if_broken()
    fresh = against_base(noisy(POLICY))
    assert fresh.layer is None
    assert fresh.ways[0].fraction == pytest.approx(1, abs=0.02)
    assert "1.00 ± 0.00 of the way from the base model" in fresh.sentence


def test_a_stale_engine_is_told_apart_far_below_the_tolerance() -> None:
    start = noisy(POLICY, 0.02, 5)  # differs by less than the engine's own rounding
    known = {"the SFT policy": start}
    assert compare(noisy(POLICY), POLICY, TOLERANCE, known=known).layer is None
    stale = compare(noisy(start), POLICY, TOLERANCE, known=known)
    assert stale.layer == "adapter"
    assert stale.difference < TOLERANCE
    with pytest.raises(
        LingossError, match=r"^the rollout engine does not mean .* still runs the SFT policy: the trained"
    ):
        stale.raise_if_broken()


def test_what_it_cannot_tell_it_says() -> None:
    near = noisy(POLICY, 0.0005, 5)
    for engine in (noisy(POLICY), noisy(near)):
        report = compare(engine, POLICY, TOLERANCE, known={"the SFT policy": near})
        assert report.layer is None
        assert (
            "whether it runs the trained policy or the SFT policy (which differs by 0.00039) is too close"
            in report.sentence
        )
    same = compare(noisy(POLICY), POLICY, TOLERANCE, known={"the base model": POLICY})
    assert math.isinf(same.ways[0].error)
    assert same.layer is None
    assert "too close to tell" in same.sentence
    assert compare([[-1.0]], [[-1.0]], TOLERANCE, known={"x": [[-2.0]]}).ways[0].tells is False  # one text, no spread


def test_an_engine_without_the_adapter_and_one_with_half_of_it() -> None:
    assert against_base(noisy(BASE)).layer == "adapter"
    assert "still runs the base model" in against_base(noisy(BASE)).sentence
    half = against_base(noisy(mixed(BASE, POLICY, 0.5)))
    assert half.layer == "adapter"
    assert (
        "only a part of the trained weights has arrived: the engine stands at 0.50 ± 0.00 of the way from the base model"
        in half.sentence
    )


def test_other_weights_are_no_matter_of_the_adapter() -> None:
    report = against_base(OTHER)
    assert report.layer == "base"
    assert "neither the trained policy's nor those of the base model" in report.sentence
    # Another base under the right adapter: all of the adapter's effect, and more.
    moved = noisy(POLICY, 1.0, 9)
    assert against_base(moved).layer == "base"
    alone = compare(OTHER, POLICY, TOLERANCE)
    assert alone.layer == "base"
    assert "or the adapter has not arrived" in alone.sentence


def test_more_rounding_than_granted_is_precision() -> None:
    report = against_base(noisy(POLICY, 0.25))
    assert report.layer == "precision"
    assert "rounds more than its dtype explains" in report.sentence
    assert against_base(noisy(POLICY, 0.1)).layer is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.5, -1e300])
def test_numbers_that_are_none_are_damage(bad: float) -> None:
    engine = noisy(POLICY)
    engine[2][5] = bad
    report = against_base(engine)
    assert report.layer == "base"
    assert report.sentence.startswith("1 of the engine's 508 log-probabilities are none")
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["difference"] is None


def test_other_tokens_come_before_all_else() -> None:
    ours = [[5, 6, 7], [8, 9]]
    cases = {
        "token 2 of text 1 is 4 there and 6 in the trainer": [[5, 4, 7], [8, 9]],
        "token 3 of text 2 is 1 there and nothing in the trainer": [[5, 6, 7], [8, 9, 1]],
        "token 2 of text 2 is nothing there and 9 in the trainer": [[5, 6, 7], [8]],
    }
    for words, theirs in cases.items():
        report = against_base(OTHER, ids=(theirs, ours))
        assert report.layer == "ids"
        assert words in report.sentence
    assert against_base(noisy(POLICY), ids=(ours, ours)).layer is None
    short = against_base(noisy(POLICY)[:-1])
    assert short.layer == "ids"
    assert "the engine tells of 441 tokens in 7 texts, the trainer of 508 in 8" in short.sentence


def scaled(rows: Rows, temperature: float) -> Made:
    """Not a softmax, but like one it stretches log-probabilities when it gets colder."""
    return [[value / temperature for value in row] for row in rows]


def test_a_wrong_temperature_is_named() -> None:
    read = {value: scaled(POLICY, value) for value in (0.5, 0.7, 1.0)}
    report = against_base(noisy(POLICY), drawn=Drawn(noisy(scaled(POLICY, 0.7)), read, 1.0))
    assert report.layer == "sampling"
    assert "it samples with temperature 0.7 (weights agree: mean difference" in report.sentence
    assert report.drawn is not None
    assert report.drawn > TOLERANCE
    right = against_base(noisy(POLICY), drawn=Drawn(noisy(scaled(POLICY, 0.7)), read, 0.7))
    assert right.layer is None


def test_a_filter_makes_its_own_tokens_likelier() -> None:
    kept = [[value + 0.3 for value in row] for row in POLICY]
    report = against_base(noisy(POLICY), drawn=Drawn(noisy(kept), {1.0: POLICY}, 1.0))
    assert report.layer == "sampling"
    assert "a filter (top-p, top-k or min-p)" in report.sentence
    other = against_base(noisy(POLICY), drawn=Drawn(noisy(POLICY, 0.6), {1.0: POLICY}, 1.0))
    assert other.layer == "sampling"
    assert "other parameters (a penalty" in other.sentence
    damaged = against_base(noisy(POLICY), drawn=Drawn([[math.nan, -1.0]], {1.0: [[-1.0, -1.0]]}, 1.0))
    assert damaged.layer == "sampling"
    assert "1 of the log-probabilities that the engine drew its tokens with are none" in damaged.sentence


def test_wrong_weights_are_not_blamed_on_the_sampling() -> None:
    report = against_base(noisy(BASE), drawn=Drawn(noisy(BASE), {1.0: POLICY}, 1.0))
    assert report.layer == "adapter"


def test_the_tolerance_follows_the_model() -> None:
    assert own_tolerance(POLICY, POLICY) == FLOOR
    assert own_tolerance(POLICY, noisy(POLICY)) == pytest.approx(3 * NOISE * math.sqrt(2 / math.pi), rel=0.1)
    noise = own_tolerance(POLICY, noisy(POLICY, 0.38))
    assert compare(noisy(POLICY, 0.5), POLICY, noise).layer is None  # routing ties of random experts
    with pytest.raises(ValueError, match="about the same tokens"):
        own_tolerance(POLICY, POLICY[:-1])
    with pytest.raises(ValueError, match="finite"):
        own_tolerance([[0.0]], [[math.nan]])


@pytest.mark.parametrize(
    ("trainer", "known", "words"),
    [
        ([[]], {}, "at least one"),
        ([[-1.0]], {"base": [[-1.0, -2.0]]}, "about the same tokens"),
        ([[math.nan]], {}, "must be finite"),
        ([[-1.0]], {"base": [[-math.inf]]}, "must be finite"),
    ],
)
def test_the_trainers_own_faults_are_bugs(trainer: Made, known: dict[str, Made], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        compare([[-1.0]], trainer, TOLERANCE, known=known)


LOGPROB = st.floats(-30, 0)


@given(st.lists(st.lists(LOGPROB, min_size=1, max_size=6), min_size=1, max_size=6), st.data())
def test_any_answer_gets_one_line_and_plain_values(rows: Made, data: st.DataObject) -> None:
    anything = st.floats(allow_nan=True, allow_infinity=True)
    engine = [[data.draw(LOGPROB | anything) for _ in row] for row in rows]
    base = [[data.draw(LOGPROB) for _ in row] for row in rows]
    drawn = Drawn([[data.draw(anything)]], {1.0: [[-1.0]], 0.7: [[-2.0]]}, 1.0)
    report = compare(engine, rows, 0.1, known={"the base model": base}, drawn=drawn)
    assert report.sentence
    assert "\n" not in report.sentence
    json.dumps(report.to_dict(), allow_nan=False)
    if report.layer is None:
        assert report.difference <= 0.1
        report.raise_if_broken()
    else:
        with pytest.raises(LingossError):
            report.raise_if_broken()


@given(st.integers(0, 10_000), st.floats(0.03, 1.5))
def test_the_way_finds_the_side_whatever_the_distance(seed: int, distance: float) -> None:
    """Fresh is never called stale, and stale never fresh, at any distance that is worth a word."""
    known = {"the SFT policy": noisy(POLICY, distance, seed)}
    assert compare(noisy(POLICY, seed=seed + 1), POLICY, TOLERANCE, known=known).layer is None
    assert compare(noisy(known["the SFT policy"], seed=seed + 1), POLICY, TOLERANCE, known=known).layer == "adapter"
