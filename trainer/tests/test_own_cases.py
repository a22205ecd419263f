# SPDX-License-Identifier: MIT-0
"""Further cases of every handed kind, written before reading how the code decides."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lingoss.detect import STRICT_SHARE, detect
from lingoss.score import Request, score
from lingoss.transcript import parse

LATIN = ("en", "fr", "de", "es", "it", "pt", "nl")


def rows(name: str) -> list[dict[str, Any]]:
    path = Path(__file__).parent / "cases" / f"own_{name}_cases.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


LANGUAGE_CASES = rows("language")


@pytest.mark.parametrize("pair", rows("reward"), ids=lambda pair: pair["id"])
def test_own_pair(pair: dict[str, Any]) -> None:
    asked = Request(**pair["request"])
    verdicts = {who: score(parse(pair[who], pair["format"]), asked) for who in ("honest", "adversarial")}
    honest, adversarial = (verdicts[who].reward for who in ("honest", "adversarial"))
    assert honest > adversarial if pair["relation"] == "gt" else honest >= adversarial
    assert honest >= 0.99, "a good answer loses nothing"
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


@pytest.mark.parametrize("case", rows("transcript"), ids=lambda case: case["id"])
def test_own_transcript(case: dict[str, Any]) -> None:
    found, expected = parse(case["text"], case["format"]), case["expect"]
    assert found.reasoning == (expected["reasoning"] or "")
    assert found.answer == (expected["answer"] or "")
    assert (found.format_ok, found.truncated) == (expected["format_ok"], expected["truncated"])


def test_own_short_answers() -> None:
    accepted, foreign = [], 0
    for row in (row for row in LANGUAGE_CASES if row["kind"] == "short"):
        good = {row["lang"], *row.get("also", ())}
        for target in {*good, *LATIN}:
            found = detect(row["text"], target).accepted
            assert found or target not in good, (row["text"], target)
            foreign += target not in good
            if found and target not in good:
                accepted.append((row["text"], target))
    assert len(accepted) <= 0.04 * foreign, accepted


@pytest.mark.parametrize("row", [row for row in LANGUAGE_CASES if row["kind"] != "short"], ids=lambda row: row["id"])
def test_own_language_case(row: dict[str, Any]) -> None:
    found = detect(row["text"])
    if row["kind"] == "mixed":
        length: Counter[str] = Counter()
        for start, end, code in row["spans"]:
            length[code] += end - start
        main = length.most_common(1)[0][0]
        assert found.label == "mixed" or found.shares.get(main, 0.0) < STRICT_SHARE
    else:
        assert found.label == {"und": "neutral"}.get(row["lang"], row["lang"])
        if row["kind"] == "doc":
            assert (detect(row["text"], row["lang"]).target_share or 0.0) >= STRICT_SHARE
