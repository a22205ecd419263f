# SPDX-License-Identifier: MIT-0
"""`<think>reasoning</think>answer`, as Qwen, DeepSeek and SmolLM-like chat models write it. Tags are exact."""

from collections.abc import Sequence

from lingoss.languages import Language
from lingoss.transcript.record import Transcript
from lingoss.transcript.text import CHAT_STOP, Decode, decode_safely, end_of_turn, is_visible

STOP = CHAT_STOP
OPEN, CLOSE = "<think>", "</think>"


def parse(text: str, finish_reason: str | None = None) -> Transcript:
    """Well formed: one block at the start, then a visible answer without further tags.

    A text whose first tag is the closing one started inside the block, because many chat templates end the prompt
    with the opening tag. A block in a block belongs to the outer one. A block that is never closed was cut.
    """
    text, alone = end_of_turn(text)
    opened, closed = text.find(OPEN), text.find(CLOSE)
    if opened < 0 and closed < 0:
        before, reasoning, answer, nested, cut = "", "", text, True, False
    elif opened < 0 or 0 <= closed < opened:
        before, reasoning, answer, nested, cut = "", text[:closed], text[closed + len(CLOSE) :], False, False
    else:
        before, inside = text[:opened], text[opened + len(OPEN) :]
        end = _outer_close(inside)
        reasoning, answer, cut = (inside, "", True) if end < 0 else (inside[:end], inside[end + len(CLOSE) :], False)
        nested = OPEN in reasoning
    reasoning, answer = reasoning.strip(), answer.strip()
    cut = cut or finish_reason == "length"
    whole = alone and not before.strip() and not nested and OPEN not in answer and CLOSE not in answer
    return Transcript("think", reasoning, answer, format_ok=whole and is_visible(answer) and not cut, truncated=cut)


def _outer_close(inside: str) -> int:
    """Index of the closing tag that matches the opening tag before `inside`; -1 when there is none."""
    depth, at = 1, 0
    opened, closed = inside.find(OPEN), inside.find(CLOSE)
    while closed >= 0:
        if 0 <= opened < closed:
            depth, at = depth + 1, opened + len(OPEN)
            opened = inside.find(OPEN, at)
            continue
        depth -= 1
        if depth == 0:
            return closed
        closed = inside.find(CLOSE, closed + len(CLOSE))
    return -1


def parse_ids(ids: Sequence[int], finish_reason: str | None = None, decode: Decode | None = None) -> Transcript:
    """`parse` of the decoded ids."""
    return parse(decode_safely(ids, decode, "think"), finish_reason)


def instruction(reasoning: Language, answer: Language) -> str:
    """The system text that asks for the two languages and this form."""
    return (
        f"Reasoning language: {reasoning.name}. Answer language: {answer.name}.\n"
        "Think inside <think> and </think> in the reasoning language, then give the answer in the answer language."
    )


def render(reasoning: str, answer: str) -> str:
    """The assistant text that `parse` reads back."""
    return f"{OPEN}\n{reasoning}\n{CLOSE}\n{answer}"
