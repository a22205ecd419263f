# SPDX-License-Identifier: MIT-0
"""No marks at all: the whole text is the answer."""

from collections.abc import Sequence

from lingoss.languages import Language
from lingoss.transcript.record import Transcript
from lingoss.transcript.text import CHAT_STOP, Decode, decode_safely, end_of_turn, is_visible

STOP = CHAT_STOP


def parse(text: str, finish_reason: str | None = None) -> Transcript:
    """Everything before the chat model's stop token is answer. Only `finish_reason` can tell that it was cut."""
    answer, alone = end_of_turn(text)
    answer, cut = answer.strip(), finish_reason == "length"
    return Transcript("plain", "", answer, format_ok=alone and is_visible(answer) and not cut, truncated=cut)


def parse_ids(ids: Sequence[int], finish_reason: str | None = None, decode: Decode | None = None) -> Transcript:
    """`parse` of the decoded ids."""
    return parse(decode_safely(ids, decode, "plain"), finish_reason)


def instruction(reasoning: Language, answer: Language) -> str:
    """The system text that asks for the two languages and this form."""
    return (
        f"Reasoning language: {reasoning.name}. Answer language: {answer.name}.\n"
        "Write only the answer, in the answer language."
    )


def render(reasoning: str, answer: str) -> str:
    """The assistant text; this format has no place for `reasoning`."""
    return answer
