# SPDX-License-Identifier: MIT-0
"""What holds for every text in every format, and that reading is linear."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lingoss.transcript import Transcript, chat_format, formats, is_visible, parse

TOKENS = [
    "<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>", "<|endoftext|>",
    "<|reserved_200017|>", "<think>", "</think>", "</s>", "<|im_end|>", "<|eot_id|>", "<|im_start|>",
]  # fmt: skip
WORDS = [
    "assistant",
    "user",
    "system",
    "python",
    "analysis",
    "final",
    "commentary",
    " to=x",
    " json",
    "42",
    " ",
    "\n",
    "\u200b",
]
TEXTS = st.one_of(
    st.text(st.characters(codec=None)), st.lists(st.sampled_from(TOKENS + WORDS), max_size=30).map("".join)
)
FORMATS = st.sampled_from(formats())
FREE = st.text().filter(lambda text: "<" not in text)


@given(TEXTS, FORMATS, st.sampled_from([None, "stop", "length", "abort"]))
@example("\ud800<|channel|>final<|message|>\ud800<|return|>", "harmony", None)
def test_any_text_is_read(text: str, name: str, finish_reason: str | None) -> None:
    found = parse(text, name, finish_reason)
    assert found.format == name
    assert found.reasoning == found.reasoning.strip()
    assert found.answer == found.answer.strip()
    assert not (found.truncated and found.format_ok)
    assert not found.format_ok or is_visible(found.answer)
    assert finish_reason != "length" or found.truncated
    for part in (found.answer, *found.reasoning.split("\n")):
        assert name == "harmony" or part in text
    assert sum(map(len, (found.reasoning, found.answer))) <= len(text)


@given(TEXTS, FORMATS)
def test_length_changes_nothing_but_the_verdict(text: str, name: str) -> None:
    whole, cut = parse(text, name), parse(text, name, "length")
    assert (cut.reasoning, cut.answer) == (whole.reasoning, whole.answer)


@given(TEXTS)
def test_stop_can_only_help_a_final_that_is_open(text: str) -> None:
    before, after = parse(text, "harmony"), parse(text, "harmony", "stop")
    if before != after:
        assert before.truncated
        assert not after.truncated
        assert (before.reasoning, before.answer) == (after.reasoning, after.answer)


@given(FREE, FREE, FORMATS)
@example("a\r\n\tb", "42 \u00a0<", "think")
def test_round_trip(reasoning: str, answer: str, name: str) -> None:
    found = parse(chat_format(name).render(reasoning, answer), name)
    expected = reasoning.strip() if name != "plain" else ""
    assert found == Transcript(name, expected, answer.strip(), format_ok=is_visible(answer), truncated=False)


@given(FREE.filter(is_visible), FREE.filter(is_visible), st.data())
def test_a_cut_harmony_text_is_never_well_formed(reasoning: str, answer: str, data: st.DataObject) -> None:
    text = chat_format("harmony").render(reasoning, answer)
    found = parse(text[: data.draw(st.integers(0, len(text) - 1))], "harmony")
    assert (found.format_ok, found.truncated) == (False, True)


UNITS = [
    "a",
    "<",
    " ",
    "\n",
    "0",
    "\u200b",
    "\u0301",
    "<|",
    "<think>",
    "</think>",
    "</s>",
    "<|im_end|>",
    "to=",
    *TOKENS,
]


@pytest.mark.parametrize("unit", UNITS)
def test_a_megabyte_of_anything_takes_less_than_a_second(unit: str) -> None:
    for opening in ("", "<|channel|>final<|message|>", "<think>"):
        text = opening + unit * (1_000_000 // len(unit))
        for name in formats():
            start = time.process_time()
            parse(text, name)
            assert time.process_time() - start < 1
