# SPDX-License-Identifier: MIT-0
"""Harmony from text: what the handed cases leave open."""

import pytest

from lingoss.transcript import Transcript, parse

ANALYSIS = "<|channel|>analysis<|message|>Six fois sept.<|end|><|start|>assistant"
FINAL = "<|channel|>final<|message|>Cela fait 42."
WHOLE = f"{ANALYSIS}{FINAL}<|return|>"


def read(text: str, finish_reason: str | None = None) -> Transcript:
    return parse(text, "harmony", finish_reason)


def verdict(text: str, finish_reason: str | None = None) -> tuple[bool, bool]:
    found = read(text, finish_reason)
    return found.format_ok, found.truncated


def test_length_means_cut_whatever_the_text_says() -> None:
    assert verdict(WHOLE, "length") == (False, True)
    assert read(WHOLE, "length").answer == "Cela fait 42."


def test_stop_stands_for_a_stop_token_that_the_engine_dropped() -> None:
    assert verdict(ANALYSIS + FINAL) == (False, True)
    assert verdict(ANALYSIS + FINAL, "stop") == (True, False)


@pytest.mark.parametrize("text", ["", ANALYSIS, ANALYSIS.removesuffix("<|end|><|start|>assistant"), "Cela fait 42."])
def test_stop_closes_nothing_but_a_final(text: str) -> None:
    assert verdict(text, "stop") == (False, True)


@pytest.mark.parametrize(
    "text",
    [
        f"{ANALYSIS}<|channel|>final|<|message|>42<|return|>",
        f"{ANALYSIS}<|channel|>final the reasoning hides here<|message|>42<|return|>",
        f"{ANALYSIS}<|channel|>final json<|message|>42<|return|>",
        f"{ANALYSIS}<|channel|>final <|constrain|>two words<|message|>42<|return|>",
        f"{ANALYSIS} please<|channel|>final<|message|>42<|return|>",
        f"{ANALYSIS}<|channel|>final<|channel|>final<|message|>42<|return|>",
        f"{ANALYSIS}<|message|>42<|return|>",
        f"{ANALYSIS}{FINAL}<|message|>43<|return|>",
        f"{ANALYSIS}{FINAL}<|endoftext|>43<|return|>",
        f"{ANALYSIS}{FINAL}<|call|>",
        f"{ANALYSIS}{FINAL}<|end|><|return|>",
        f"{ANALYSIS}{FINAL}<|end|><|start|>assistant",
        f"{ANALYSIS}{FINAL}<|end|><|start|>assistant<|channel|>commentary<|message|>Done.<|return|>",
        f"{ANALYSIS}<|channel|>final<|message|><|end|><|start|>assistant{FINAL}<|return|>",
        f"{ANALYSIS}<|channel|>final to=functions.x<|message|>42<|call|>",
        f"<|start|>{FINAL}<|return|>",
        f"<|channel|>analysis<|message|>a<|end|>{FINAL}<|return|>",
        f"<|channel|>analysis<|message|>a<|call|><|start|>assistant{FINAL}<|return|>",
        f"<|channel|>analysis<|message|>a<|end|><|start|>python to=assistant<|channel|>commentary<|message|>42<|end|>"
        f"<|start|>assistant{FINAL}<|return|>",
        f"<|end|>{ANALYSIS}{FINAL}<|return|>",
        f"{ANALYSIS}<|start|>assistant{FINAL}<|return|>",
    ],
)
def test_broken_forms(text: str) -> None:
    assert not read(text).format_ok


@pytest.mark.parametrize(
    "blank", ["", " \n", "\u200b", "\u200b\ufeff\u2060", "\u00ad", "\u2800", "\u3164", "\ufe0f", "\u0301"]
)
def test_a_final_without_a_visible_character_is_empty(blank: str) -> None:
    assert verdict(f"{ANALYSIS}<|channel|>final<|message|>{blank}<|return|>") == (False, False)


@pytest.mark.parametrize("ink", ["4", "?", "є", "✅", "٤", "न", "\u200b.\u200b"])
def test_one_visible_character_is_an_answer(ink: str) -> None:
    assert read(f"{ANALYSIS}<|channel|>final<|message|>{ink}<|return|>").format_ok


@pytest.mark.parametrize(
    "text",
    [
        f"<|start|>assistant{WHOLE}",
        f"<|start|>system<|message|>Reasoning: medium<|end|><|start|>user<|message|>6 × 7?<|end|><|start|>assistant{WHOLE}",
        f"<|endoftext|><|endoftext|>{WHOLE}<|endoftext|>\n<|reserved_200017|>",
        f"{ANALYSIS}{FINAL}<|end|><|endoftext|>",
        f"{ANALYSIS}<|channel|>commentary to=functions.x <|constrain|>json<|message|>{{}}<|call|><|start|>functions.x "
        f"to=assistant<|channel|>commentary<|message|>7<|end|><|start|>assistant{FINAL}<|return|>",
        f" to=functions.x<|channel|>commentary json<|message|>{{}}<|call|><|start|>functions.x to=assistant"
        f"<|channel|>commentary<|message|>7<|end|><|start|>assistant{WHOLE}",
    ],
)
def test_well_formed_with_prompt_padding_or_tools(text: str) -> None:
    found = read(text)
    assert (found.reasoning, found.answer) == ("" if "Six" not in text else "Six fois sept.", "Cela fait 42.")
    assert (found.format_ok, found.truncated) == (True, False)


def test_an_earlier_answer_does_not_count() -> None:
    turn = f"<|start|>user<|message|>?<|end|><|start|>assistant{FINAL}<|end|>"
    assert read(f"{turn}<|start|>user<|message|>?<|end|><|start|>assistant") == Transcript(
        "harmony", "", "", False, True
    )


def test_an_engine_echoes_no_prompt() -> None:
    """With a reason to stop, a text is a completion: thinking in a system message of its own is no echoed prompt."""
    invented = f"<|start|>system<|message|>I think in here.<|end|><|start|>assistant{WHOLE}"
    assert read(invented).format_ok
    assert not read(invented, "stop").format_ok
    assert not read(invented, "length").format_ok
    assert read(WHOLE, "stop").format_ok


def test_a_few_tools_are_no_thinking() -> None:
    call = (
        "<|channel|>commentary to=functions.{} <|constrain|>json<|message|>{{}}<|call|>"
        "<|start|>functions.{} to=assistant<|channel|>commentary<|message|>7<|end|><|start|>assistant"
    )
    tools = "".join(call.format(name, name) for name in ("lookup_weather", "search_flights", "book_hotel"))
    assert read(f"{tools}{WHOLE}").aside.split() == ["{}", "7"] * 3
    words = "the jacket costs eighty euros and the price drops by fifteen percent so it is less".split()
    thinking = "".join(call.format(name, name) for name in words)
    assert "jacket costs eighty euros" in read(f"{thinking}{WHOLE}").aside


def test_the_prompt_alone_is_a_cut_answer() -> None:
    assert read("<|start|>user<|message|>6 × 7?<|end|>") == Transcript("harmony", "", "", False, True)


def test_unknown_tokens_are_text() -> None:
    text = f"{ANALYSIS}<|channel|>final<|message|><|im_end|> <|reserved_999999|> <|RETURN|> 42<|return|>"
    assert read(text).answer == "<|im_end|> <|reserved_999999|> <|RETURN|> 42"
    assert read(text).format_ok
