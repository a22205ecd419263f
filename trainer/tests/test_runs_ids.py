# SPDX-License-Identifier: MIT-0
"""Run ids: equal for equal settings however they are written, different for anything that changes the result."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lingoss.errors import LingossError
from lingoss.runs import canonical_json, run_id, run_name
from lingoss.runs.ids import bare_id, split_name

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def test_the_id_is_pinned() -> None:
    """A change here would train everybody's finished runs again."""
    assert (
        canonical_json({"b": 1e-4, "a": [1.0, -0.0, None, True, "é"]}) == r'{"a":[1,0,null,true,"\u00e9"],"b":0.0001}'
    )
    assert run_id("sft", {"lr": 1e-4, "rank": 8}, ["prepare-0123456789ab"], "d", "1") == "8dd345bf4140"


def test_numbers_have_one_form() -> None:
    same = [{"x": 1e-4}, {"x": 0.0001}, json.loads('{"x": 1.0E-4}')]
    assert len({run_id("sft", identity) for identity in same}) == 1
    assert run_id("sft", {"x": 1}) == run_id("sft", {"x": 1.0})
    assert run_id("sft", {"x": True}) != run_id("sft", {"x": 1})
    assert run_id("sft", {"x": "1"}) != run_id("sft", {"x": 1})


def test_order_does_not_matter_where_it_has_no_meaning() -> None:
    assert run_id("sft", {"a": 1, "b": 2}) == run_id("sft", {"b": 2, "a": 1})
    parents = ["sft-0123456789ab", "grpo-ba9876543210"]
    assert run_id("evaluate", {}, parents) == run_id("evaluate", {}, [*reversed(parents), parents[0]])
    assert run_id("evaluate", {}, parents) == run_id("evaluate", {}, ["0123456789ab", "ba9876543210"])
    assert run_id("sft", {"languages": ["en", "fr"]}) != run_id("sft", {"languages": ["fr", "en"]})


def test_everything_that_changes_the_result_changes_the_id() -> None:
    variants = [
        run_id("sft", {"a": 1}),
        run_id("grpo", {"a": 1}),
        run_id("sft", {"a": 2}),
        run_id("sft", {"a": 1}, ["0123456789ab"]),
        run_id("sft", {"a": 1}, [], "data"),
        run_id("sft", {"a": 1}, [], "", "2"),
        run_id("sft", {"a": 1}, [], "2", ""),
    ]
    assert len(set(variants)) == len(variants)


@given(VALUES)
def test_canonical_json_keeps_the_value(value: object) -> None:
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}, {"a": object()}, {"a": {1, 2}}, b"x"])
def test_what_has_no_canonical_form(value: object) -> None:
    with pytest.raises(LingossError, match="no canonical form"):
        canonical_json(value)


def test_names() -> None:
    name = run_name("sft", "0123456789ab")
    assert (name, split_name(name), bare_id(name)) == ("sft-0123456789ab", ("sft", "0123456789ab"), "0123456789ab")
    for other in (
        "sft-0123456789a",
        "sft",
        "lost+found",
        "SFT-0123456789ab",
        "../sft-0123456789ab",
        "sft-0123456789ab\n",
        "",
    ):
        assert split_name(other) is None
    assert split_name("x" * 1_000_000) is None
