# SPDX-License-Identifier: MIT-0
"""Rows to tokens: what is learned is exactly the assistant's turn, and no row is cut or lost in silence."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lingoss.data import Example, sft_examples
from lingoss.errors import LingossError
from lingoss.models import load_tokenizer
from lingoss.sft.dataset import IGNORED, Encoded, encode, encode_all, fit_length, histogram, require_all, to_dataset
from lingoss.transcript import parse


@pytest.fixture(scope="module")
def tokenizer(tiny_llama: Path) -> Any:
    return load_tokenizer(tiny_llama)


@pytest.fixture(scope="module")
def rows() -> list[Example]:
    return sft_examples(6)


def learned(encoded: Encoded) -> list[int]:
    return [label for label in encoded.labels if label != IGNORED]


def test_learned_tokens_are_the_answer_and_its_stop_token(rows: list[Example], tokenizer: Any) -> None:
    for row in rows:
        encoded = encode(row, "think", "chatml", tokenizer)
        assert tokenizer.decode(learned(encoded)) == f"<think>\n{row.reasoning}\n</think>\n{row.answer}<|im_end|>\n"
        # and they are one piece at the end, behind a prompt that has the question in it
        start = len(encoded.ids) - encoded.trained
        assert encoded.labels == [IGNORED] * start + encoded.ids[start:]
        prompt = tokenizer.decode(encoded.ids[:start])
        assert row.question in prompt
        assert prompt.endswith("<|im_start|>assistant\n")


def test_the_learned_text_is_what_the_transcript_reads_back(rows: list[Example], tokenizer: Any) -> None:
    for row in rows:
        found = parse(tokenizer.decode(learned(encode(row, "think", "chatml", tokenizer))), "think", "stop")
        assert (found.reasoning, found.answer, found.format_ok) == (row.reasoning, row.answer, True)


@pytest.mark.slow
def test_harmony_learns_both_channels(rows: list[Example], gpt_oss_tokenizer_folder: Path) -> None:
    tokenizer = load_tokenizer(gpt_oss_tokenizer_folder)
    for row in rows[:4]:
        encoded = encode(row, "harmony", "gpt-oss", tokenizer)
        text = tokenizer.decode(learned(encoded))
        assert text == (
            f"<|start|>assistant<|channel|>analysis<|message|>{row.reasoning}<|end|>"
            f"<|start|>assistant<|channel|>final<|message|>{row.answer}<|return|>"
        )
        assert learned(encoded)[-1] == 200_002
        assert parse(text, "harmony").answer == row.answer
        assert "Current date: 2025-08-05" in tokenizer.decode(encoded.ids)


def test_earlier_turns_are_read_and_not_learned(rows: list[Example], tokenizer: Any) -> None:
    row = replace(rows[0], history=(("user", "Bonjour"), ("assistant", "Salut toi")))
    encoded = encode(row, "think", "chatml", tokenizer)
    assert "Salut toi" in tokenizer.decode(encoded.ids)
    assert "Salut" not in tokenizer.decode(learned(encoded))


def test_a_repeated_row_is_kept_as_often_as_it_is_in_the_mix(rows: list[Example], tokenizer: Any) -> None:
    encoded = encode_all([rows[0], rows[1], rows[0]], "think", "chatml", tokenizer)
    assert encoded[0] == encoded[2] != encoded[1]
    dataset = to_dataset(encoded)
    assert dataset.num_rows == 3
    assert dataset[1] == {"input_ids": encoded[1].ids, "labels": encoded[1].labels}


def test_length_comes_from_the_data_when_it_is_null(rows: list[Example], tokenizer: Any) -> None:
    encoded = encode_all(rows, "think", "chatml", tokenizer)
    longest = max(len(one.ids) for one in encoded)
    assert fit_length(encoded, rows, None, 1024) == longest
    assert fit_length(encoded, rows, longest + 50, 1024) == longest + 50


def test_rows_that_are_too_long_are_refused_by_name(rows: list[Example], tokenizer: Any) -> None:
    encoded = encode_all(rows, "think", "chatml", tokenizer)
    longest = max(len(one.ids) for one in encoded)
    place = next(i for i, one in enumerate(encoded) if len(one.ids) == longest)
    with pytest.raises(LingossError) as refused:
        fit_length(encoded, rows, longest - 1, 1024)
    assert f"{place + 1} (id {rows[place].id}, {longest} tokens)" in str(refused.value)
    assert f"longer than max_length={longest - 1}" in str(refused.value)
    assert f"set max_length={longest} or null" in str(refused.value)
    with pytest.raises(LingossError, match=rf"the model's context of {longest - 1} tokens.*take these rows out"):
        fit_length(encoded, rows, None, longest - 1)


def test_lost_rows_are_an_error() -> None:
    require_all(3, 3)
    with pytest.raises(LingossError, match="2 of 5 rows were lost"):
        require_all(5, 3)


def test_histogram() -> None:
    encoded = [Encoded([1] * n, [IGNORED] * (n - 1) + [1]) for n in range(1, 101)]
    assert histogram(encoded) == {
        "tokens": 5050, "learned": 100, "shortest": 1, "median": 51, "p90": 90, "p99": 99, "longest": 100,
    }  # fmt: skip
