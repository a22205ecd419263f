# SPDX-License-Identifier: MIT-0
"""The `think` and `plain` formats, what a format offers, and that formats are found by their files."""

from types import ModuleType

import pytest

from lingoss import languages
from lingoss.errors import LingossError
from lingoss.transcript import Transcript, chat_format, formats, parse, parse_ids
from lingoss.transcript.formats import harmony, plain, think

MODULES = {"harmony": harmony, "plain": plain, "think": think}


def codes(text: str) -> list[int]:
    return [ord(char) for char in text]


def decode(ids: list[int]) -> str:
    return "".join(map(chr, ids))


def test_formats_are_found_by_their_files() -> None:
    assert formats() == ("harmony", "plain", "think")
    assert [chat_format(name) for name in formats()] == [MODULES[name] for name in formats()]


def test_unknown_format_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(LingossError, match=r"unknown chat format 'chatml'; known: harmony, plain, think"):
        parse("42", "chatml")
    with pytest.raises(LingossError, match="unknown chat format"):
        parse_ids([42], "../plain")


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_instruction_names_both_languages_in_english(module: ModuleType) -> None:
    text = module.instruction(languages.get("fr"), languages.get("de"))
    assert text.startswith("Reasoning language: French. Answer language: German.\n")
    assert len(text) < 200


def test_instruction_shows_the_form() -> None:
    french = languages.get("fr")
    assert "<think> and </think>" in think.instruction(french, french)
    assert "analysis channel" in harmony.instruction(french, french)
    assert "final channel" in harmony.instruction(french, french)


@pytest.mark.parametrize("name", ["think", "plain"])
def test_length_means_cut(name: str) -> None:
    text = chat_format(name).render("Six fois sept.", "Cela fait 42.")
    found = parse(text, name, "length")
    assert (found.answer, found.format_ok, found.truncated) == ("Cela fait 42.", False, True)
    assert parse(text, name, "stop").format_ok


@pytest.mark.parametrize("name", ["think", "plain"])
@pytest.mark.parametrize(
    "stop", ["<|im_end|>", "</s>", "<|endoftext|>", "<|eot_id|>", "<|im_end|>\n<|endoftext|>", "</s></s>"]
)
def test_stop_token_is_not_part_of_the_answer(name: str, stop: str) -> None:
    found = parse(chat_format(name).render("Six fois sept.", "Cela fait 42.") + stop, name)
    assert (found.answer, found.format_ok) == ("Cela fait 42.", True)


@pytest.mark.parametrize("name", ["think", "plain"])
def test_nothing_may_follow_the_stop_token(name: str) -> None:
    text = chat_format(name).render("a", "Cela fait 42.")
    found = parse(f"{text}<|im_end|>\n<|im_start|>user\nMerci", name)
    assert (found.answer, found.format_ok) == ("Cela fait 42.", False)


def test_struck_text_in_the_middle_is_no_stop() -> None:
    assert parse("<s>41</s> 42", "plain") == Transcript("plain", "", "<s>41</s> 42", True, False)


def test_stop_inside_the_block_means_it_was_never_closed() -> None:
    assert parse("<think>Six<|im_end|></think>42", "think") == Transcript("think", "Six", "", False, True)


@pytest.mark.parametrize(
    "text", ["<Think>a</Think>42", "<THINK>a</THINK>42", "<think >a</think >42", "＜think＞a＜/think＞42"]
)
def test_tags_are_exact(text: str) -> None:
    assert parse(text, "think") == Transcript("think", "", text, False, False)


@pytest.mark.parametrize(
    ("text", "reasoning", "answer", "well_formed", "cut"),
    [
        ("<think>a<think>b</think>c", "a<think>b</think>c", "", False, True),
        ("<think>a<think>b</think>c</think>d", "a<think>b</think>c", "d", False, False),
        ("a</think>b</think>c", "a", "b</think>c", False, False),
        ("</think>42", "", "42", True, False),
        ("a</think>", "a", "", False, False),
        ("a</think>b<think>c", "a", "b<think>c", False, False),
        ("<think>a</think>\u200b", "a", "\u200b", False, False),
    ],
)
def test_odd_blocks(text: str, reasoning: str, answer: str, well_formed: bool, cut: bool) -> None:
    assert parse(text, "think") == Transcript("think", reasoning, answer, well_formed, cut)


@pytest.mark.parametrize("name", ["think", "plain"])
def test_ids_are_decoded(name: str) -> None:
    text = chat_format(name).render("Six fois sept.", "Cela fait 42.") + "<|im_end|>"
    for finish_reason in (None, "length"):
        assert parse_ids(codes(text), name, finish_reason, decode) == parse(text, name, finish_reason)


@pytest.mark.parametrize("name", ["think", "plain"])
def test_ids_that_the_tokenizer_refuses_become_replacement_characters(name: str) -> None:
    answer = parse_ids([*codes("<think></think>4"), -1, 10**30, *codes("2")], name, decode=decode).answer
    assert answer.endswith("4\ufffd\ufffd2")


@pytest.mark.parametrize("name", ["think", "plain"])
def test_ids_without_decode_are_an_error(name: str) -> None:
    with pytest.raises(LingossError, match="need `decode`"):
        parse_ids([42], name)
