# SPDX-License-Identifier: MIT-0
"""The bars that the detector must reach on the handed cases, and what it makes of the transcripts of the reward pairs."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lingoss.detect import STRICT_SHARE, detect, version
from lingoss.detect.fasttext_model import SHA256
from lingoss.transcript import parse

LATIN = ("en", "fr", "de", "es", "it", "pt", "nl")
CASES = Path(__file__).parent / "cases"


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CASES / name).read_text(encoding="utf-8").splitlines()]


LANGUAGE_CASES = rows("language_cases.jsonl")


def of_kind(kind: str) -> list[dict[str, Any]]:
    found = [row for row in LANGUAGE_CASES if row["kind"] == kind]
    assert len(found) >= 30, "the cases are not the handed ones"
    return found


@pytest.mark.parametrize("kind", ["plain", "math", "code", "doc"])
def test_full_sentences_get_the_right_label(kind: str) -> None:
    cases = of_kind(kind)
    wrong = [row["id"] for row in cases if detect(row["text"]).label != row["lang"]]
    assert len(wrong) <= 0.03 * len(cases), wrong


def test_no_clean_document_is_flagged_as_mixed() -> None:
    for row in of_kind("doc"):
        found = detect(row["text"], row["lang"])
        assert found.accepted, row["id"]
        assert found.target_share is not None
        assert found.target_share >= STRICT_SHARE


def test_neutral_strings_are_neutral() -> None:
    assert [row["id"] for row in of_kind("neutral") if detect(row["text"]).label != "neutral"] == []


def test_short_answers_are_verified() -> None:
    rejected, accepted, foreign = [], [], 0
    for row in of_kind("short"):
        good = {row["lang"], *row.get("also", ())}
        for target in {row["lang"], *LATIN}:
            found = detect(row["text"], target).accepted
            if target in good and not found:
                rejected.append((row["id"], target))
            if target not in good and row["lang"] in LATIN:
                foreign += 1
                if found:
                    accepted.append((row["id"], target))
            if row["lang"] not in LATIN:
                assert found == (target in good), row["id"]
    assert rejected == []
    assert len(accepted) <= 0.04 * foreign, accepted


def test_mixed_documents_are_caught_and_their_parts_found() -> None:
    missed, right, characters = [], 0, 0
    for row in of_kind("mixed"):
        found = detect(row["text"])
        length: Counter[str] = Counter()
        for start, end, code in row["spans"]:
            length[code] += end - start
            overlaps = (min(end, e) - max(start, s) for s, e, label in found.segments if label == code)
            right += sum(max(0, overlap) for overlap in overlaps)
        characters += length.total()
        main = length.most_common(1)[0][0]
        if found.label != "mixed" and found.shares.get(main, 0.0) >= STRICT_SHARE:
            missed.append(row["id"])
    assert len(missed) <= 2, missed
    assert right >= 0.97 * characters


def test_reward_transcripts_are_in_the_languages_that_their_authors_expect() -> None:
    wrong = []
    for row in rows("reward_cases.jsonl"):
        for side in ("honest", "adversarial"):
            transcript = parse(row[side], row["format"])
            parts = {"reasoning": transcript.reasoning, "answer": transcript.answer}
            for part, text in parts.items():
                expected = row["expect"][side].get(part)
                target = row["request"][f"{part}_language"]
                if expected is None or expected == "none":
                    continue
                found = detect(text, target)
                if (found.label, found.accepted) != (expected, expected == target):
                    wrong.append((row["id"], side, part, expected, found.label))
    assert wrong == []


LANGUAGE_HACKS = {
    "boilerplate-prefix": ("reasoning",),
    "alternating-languages": ("reasoning",),
    "english-in-code-or-maths": ("reasoning",),
    "script-spoof": ("reasoning",),
    "romanised": ("reasoning",),
    "language-named-not-used": ("reasoning", "answer"),
}


def test_texts_that_game_the_language_are_not_accepted() -> None:
    accepted, seen = [], 0
    for row in rows("reward_cases.jsonl"):
        for part in LANGUAGE_HACKS.get(row["hack"], ()):
            transcript = parse(row["adversarial"], row["format"])
            text = transcript.reasoning if part == "reasoning" else transcript.answer
            if text:
                seen += 1
                if detect(text, row["request"][f"{part}_language"]).accepted:
                    accepted.append((row["id"], part))
    assert seen >= 20
    assert accepted == []


def test_the_version_names_recipe_and_weights() -> None:
    assert version().startswith("lingoss-detect 4, ")
    assert SHA256 in version()
    assert SHA256 == "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83"
