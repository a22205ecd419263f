# SPDX-License-Identifier: MIT-0
"""Rows in, rows with verdicts out; a faulty row is named by its key."""

import pytest

from lingoss.errors import LingossError
from lingoss.evaluate.scoring import parse_row, read_request, score_row

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
        {"correctness": 0.4, "language": 0.6, "repetition": 0.0, "prompt_copy": 0.0}
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
