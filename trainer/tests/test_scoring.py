# SPDX-License-Identifier: MIT-0
"""Rows in, rows with verdicts out; a faulty row is named by its key."""

import json
from pathlib import Path

import pytest

from lingoss.errors import LingossError
from lingoss.evaluate.scoring import parse_row, read_request, read_scored, score_folder, score_row

REQUEST = {
    "question": "How much is 6 times 7?",
    "question_language": "en",
    "reasoning_language": "fr",
    "answer_language": "French",
    "gold": 42,
}
ROW = {
    "id": "a",
    "format": "think",
    "text": "<think>Six fois sept, c'est la même chose que sept fois six.</think>Cela fait 42.",
    "request": REQUEST,
}


def test_row_keeps_its_keys_and_gains_a_verdict() -> None:
    scored = score_row(ROW)
    assert {key: scored[key] for key in ROW} == ROW
    assert scored["verdict"]["grade"] == "correct"
    assert scored["verdict"]["reward"] == pytest.approx(1.0)
    assert scored["verdict"]["terms"] == pytest.approx(
        {"correctness": 0.4, "language": 0.6, **dict.fromkeys(("relevance", "prose", "repetition", "prompt_copy"), 0.0)}
    )


def test_names_and_codes_of_languages_are_the_same() -> None:
    assert read_request(ROW).answer_language == "fr"
    assert read_request(ROW).gold == "42"


def test_length_as_finish_reason_means_truncated() -> None:
    cut = score_row({**ROW, "finish_reason": "length"})
    assert cut["verdict"]["truncated"] is True
    assert cut["verdict"]["reward"] == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": None}, "`text` must be a string, not NoneType"),
        ({"format": "markdown"}, "unknown chat format 'markdown'"),
        ({"finish_reason": "eos"}, "`finish_reason` must be one of stop, length"),
        ({"request": []}, "`request` must be an object"),
        ({"request": {**REQUEST, "gold": [42]}}, "`request.gold` must be a number, a string or null, not list"),
        ({"request": {**REQUEST, "gold": True}}, "`request.gold` must be a number, a string or null, not bool"),
        ({"request": {**REQUEST, "reasoning_language": 3}}, "`request.reasoning_language` must be a string, not int"),
        ({"request": {**REQUEST, "answer_language": "Klingonisch"}}, "Klingonisch"),
    ],
)
def test_faulty_rows_name_the_key(change: dict, message: str) -> None:
    with pytest.raises(LingossError) as error:
        score_row({**ROW, **change})
    assert message in str(error.value)


def test_missing_key_is_named() -> None:
    with pytest.raises(LingossError, match="`text` is missing"):
        parse_row({"format": "plain"})
    with pytest.raises(LingossError, match=r"`request\.question` is missing"):
        read_request({"request": {key: REQUEST[key] for key in REQUEST if key != "question"}})


def test_a_folder_that_is_none_and_a_card_that_is_none_are_named(tmp_path: Path) -> None:
    samples = tmp_path / "answers.jsonl"
    samples.write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    with pytest.raises(LingossError, match=r"answers\.jsonl is a file: copy it into a folder of its own"):
        read_scored(samples)

    folder = tmp_path / "own"
    folder.mkdir()
    samples.rename(folder / "samples.jsonl")
    assert len(score_folder(folder, "own").rows) == 1  # rows of a user's own need no card
    (folder / "run.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(LingossError, match=r"run\.json must hold a JSON object, but it holds a list"):
        read_scored(folder)
