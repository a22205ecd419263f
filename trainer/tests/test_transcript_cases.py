# SPDX-License-Identifier: MIT-0
"""The handed cases: raw model text and what it is taken apart into."""

import json
from pathlib import Path
from typing import Any

import pytest

from lingoss.transcript import parse

CASES = Path(__file__).parent / "cases"


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CASES / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", rows("transcript_cases.jsonl"), ids=lambda case: case["id"])
def test_transcript_case(case: dict[str, Any]) -> None:
    found = parse(case["text"], case["format"])
    expected = case["expect"]
    assert found.reasoning == (expected["reasoning"] or "")
    assert found.answer == (expected["answer"] or "")
    assert (found.format_ok, found.truncated) == (expected["format_ok"], expected["truncated"])


@pytest.mark.parametrize("side", ["honest", "adversarial"])
@pytest.mark.parametrize("case", rows("reward_cases.jsonl"), ids=lambda case: case["id"])
def test_form_of_reward_case(case: dict[str, Any], side: str) -> None:
    found = parse(case[side], case["format"])
    expected = case["expect"][side]
    for name in ("format_ok", "truncated"):
        assert getattr(found, name) == expected.get(name, getattr(found, name)), name
    if expected.get("reasoning") == "none":
        assert found.reasoning == ""
