# SPDX-License-Identifier: MIT-0
"""The format of gpt-oss: messages of the form `<|start|>role<|channel|>name<|message|>text<|end|>`.

Specification: the openai-harmony package (0.0.8), from which the token numbers are taken. Its own parser is not used:
it turns a completion that was cut in mid-analysis into an ordinary message, and it stops at the first malformed token.
Reading is linear: one pass splits the text at its special tokens, one pass walks over the pieces.
"""

import functools
import itertools
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from lingoss.errors import LingossError
from lingoss.languages import Language
from lingoss.transcript.record import Transcript
from lingoss.transcript.text import Decode, decode_safely, is_visible

STOP = ("<|return|>", "<|call|>")

# Numbers in o200k_harmony; a test compares them with openai-harmony's vocabulary.
SPECIAL = {
    200002: "<|return|>",
    200003: "<|constrain|>",
    200005: "<|channel|>",
    200006: "<|start|>",
    200007: "<|end|>",
    200008: "<|message|>",
    200012: "<|call|>",
}
FIRST_SPECIAL, LAST_SPECIAL = 199_998, 201_088
_TOKENS = frozenset(SPECIAL.values())
# What batches are filled up with: gpt-oss's own padding token, and reserved ones that trainers take for it.
_PADDING = {
    199_998: "<|startoftext|>",
    199_999: "<|endoftext|>",
    **{n: f"<|reserved_{n}|>" for n in range(200_000, LAST_SPECIAL + 1) if n not in SPECIAL},
}
_PADDING_TOKENS = frozenset(_PADDING.values())
_SPLIT = re.compile(r"(<\|(?:return|constrain|channel|start|end|message|call|startoftext|endoftext|reserved_\d{6})\|>)")
_ENDS = ("<|end|>", "<|return|>", "<|call|>")
_CHANNELS = ("analysis", "commentary", "final")
_NAMES = 60  # characters; "lookup_weather json search_flights book_hotel" is 44 long
_KNOWN = frozenset(("assistant", *_CHANNELS))
_PROMPT_ROLES = ("system", "developer", "user")

Piece = tuple[bool, str]  # (is a special token, its text)
_ASSISTANT = (False, "assistant")  # the generation prompt ends with this role, so the text starts behind it


@dataclass(slots=True)
class _Message:
    """One message while it is read; its header is a list of pieces until `<|message|>` comes."""

    header: list[Piece]
    role: str = "assistant"
    channel: str = ""
    recipient: bool = False
    parts: list[str] = field(default_factory=list)
    end: str = ""  # the token that closed it; "" while it is open
    in_header: bool = True
    broken: bool = False

    @property
    def text(self) -> str:
        return "".join(self.parts).strip()

    def is_part(self, channel: str) -> bool:
        """True for what the assistant wrote in that channel; with a recipient it is a tool call instead."""
        return self.role == "assistant" and self.channel == channel and not self.recipient and not self.in_header

    def read_header(self) -> None:
        """Header: `role [to=name]<|channel|>channel [to=name [type]][<|constrain|>type]`; anything more breaks it."""
        sections: list[list[str]] = [[]]
        marks: list[str] = []
        for special, text in self.header:
            if special:
                marks.append(text)
                sections.append([])
            else:
                sections[-1] += text.split()
        self.in_header = False
        self.broken |= marks not in (["<|channel|>"], ["<|channel|>", "<|constrain|>"])
        role, channel, kind = [*sections, [], []][:3]
        self.role, self.channel = (role or [""])[0], (channel or [""])[0]
        rest = role[1:] + channel[1:]
        others = [word for word in rest if not word.startswith("to=")]
        self.recipient = len(others) < len(rest)
        self.broken |= len(others) > (1 if self.recipient and not kind else 0) or len(kind) > 1


def parse(text: str, finish_reason: str | None = None) -> Transcript:
    """Read a completion from its text; it starts after `<|start|>assistant`, or, where no `finish_reason` is given, with
    a whole echoed prompt: an engine that gives one hands over a completion, whose system or user messages are invented.

    Truncated unless the turn reached `<|return|>` or `<|call|>`, or its last token closes the final message.
    Engines may drop the stop token from the text: with `finish_reason` "stop", a text that ends inside an open final
    message counts as stopped there. "length" means truncated, whatever the text says.
    """
    return _read(_split(text), finish_reason)


def parse_ids(ids: Sequence[int], finish_reason: str | None = None, decode: Decode | None = None) -> Transcript:
    """Read a completion from token ids. Only special ids count as special tokens, never what was typed to look so.

    Ordinary ids go through `decode`; without it through openai-harmony's vocabulary, which needs the environment
    variable TIKTOKEN_ENCODINGS_BASE (see `lingoss.vocab`). Ids outside the vocabulary become U+FFFD.

    Raises:
        LingossError: no `decode` and no vocabulary.
    """
    return _read(_split_ids(ids, decode or _vocabulary()), finish_reason)


def instruction(reasoning: Language, answer: Language) -> str:
    """The developer text that asks for the two languages and this form."""
    return (
        f"Reasoning language: {reasoning.name}. Answer language: {answer.name}.\n"
        "Think in the analysis channel in the reasoning language, "
        "then give the answer in the final channel in the answer language."
    )


def render(reasoning: str, answer: str) -> str:
    """The assistant text after `<|start|>assistant` that `parse` reads back."""
    analysis = f"<|channel|>analysis<|message|>{reasoning}<|end|><|start|>assistant" if reasoning else ""
    return f"{analysis}<|channel|>final<|message|>{answer}<|return|>"


def _split(text: str) -> list[Piece]:
    return [(piece in _TOKENS or piece in _PADDING_TOKENS, piece) for piece in _SPLIT.split(text) if piece]


def _split_ids(ids: Iterable[int], decode: Decode) -> list[Piece]:
    pieces: list[Piece] = []
    for special, run in itertools.groupby(map(int, ids), lambda number: not 0 <= number < FIRST_SPECIAL):
        if special:
            pieces += map(_special_piece, run)
        else:
            pieces.append((False, decode_safely(run, decode, "harmony")))
    return pieces


def _special_piece(number: int) -> Piece:
    token = SPECIAL.get(number) or _PADDING.get(number)
    return (True, token) if token else (False, "\ufffd")


@functools.cache
def _encoding(folder: str) -> Decode:
    from openai_harmony import HarmonyEncodingName, load_harmony_encoding

    return cast(Callable[[Sequence[int]], str], load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS).decode)


def _vocabulary() -> Decode:
    folder = os.environ.get("TIKTOKEN_ENCODINGS_BASE", "")
    # Without the file openai-harmony would try to download it.
    if not folder or not (Path(folder) / "o200k_base.tiktoken").is_file():
        raise LingossError(
            "reading Harmony from token ids needs `decode` or the gpt-oss vocabulary: "
            f"TIKTOKEN_ENCODINGS_BASE is {folder!r}, which must name the folder of o200k_base.tiktoken"
        )
    return _encoding(folder)


def _is_padding(piece: Piece) -> bool:
    special, text = piece
    return text in _PADDING_TOKENS if special else not text.strip()


def _without_padding(pieces: list[Piece]) -> list[Piece]:
    """Drop the padding of a batch and blank space at both ends."""
    first, last = 0, len(pieces)
    while first < last and _is_padding(pieces[first]):
        first += 1
    while first < last and _is_padding(pieces[last - 1]):
        last -= 1
    return pieces[first:last]


def _messages(pieces: list[Piece]) -> tuple[list[_Message], bool]:
    """The messages up to the first `<|return|>`, and whether there is text that belongs to none of them."""
    messages: list[_Message] = []
    loose = False

    def begin(*header: Piece, broken: bool = False) -> _Message:
        messages.append(_Message(list(header), broken=broken))
        return messages[-1]

    message: _Message | None = None
    for index, piece in enumerate(pieces):
        special, text = piece
        if special and text == "<|start|>":
            if message and not message.end:
                message.broken = True
            # One start after another opens one message.
            if not message or message.header or message.end or not message.in_header:
                message = begin()
        elif message is None or message.end:
            opens_turn = index == 0
            if special and text == "<|channel|>":
                message = begin(_ASSISTANT, piece, broken=not opens_turn)
            elif special and text in STOP:
                message = message or begin()
                message.end, message.broken = text, True
            elif not special and opens_turn and text.lstrip().startswith("to="):
                message = begin(_ASSISTANT, piece)
            else:
                loose |= special or bool(text.strip())
        elif special and text in _ENDS:
            message.end = text
        elif message.in_header:
            if special and text == "<|message|>":
                message.read_header()
            else:
                message.header.append(piece)
        elif special and text == "<|channel|>":
            message.broken = True
            message = begin(_ASSISTANT, piece, broken=True)
        else:
            message.broken |= special
            message.parts.append(text)
        if message and message.end == "<|return|>":
            return messages, loose or index + 1 < len(pieces)
    return messages, loose


def _last_turn(messages: list[_Message]) -> list[_Message]:
    """What the assistant wrote after the last prompt message, when the text begins with an echoed prompt.

    A user message that no assistant message follows is not prompt: the model wrote on past its turn.
    """
    if not messages or messages[0].role not in _PROMPT_ROLES:
        return messages
    wrote = False
    for index in range(len(messages) - 1, -1, -1):
        if wrote and messages[index].role in _PROMPT_ROLES:
            return messages[index + 1 :]
        wrote |= messages[index].role == "assistant"
    return []


def _is_well_formed(message: _Message, before: _Message | None) -> bool:
    if message.broken or message.in_header or not message.end or message.channel not in _CHANNELS:
        return False
    if message.role == "assistant":
        return message.recipient or message.end != "<|call|>"
    # A tool may answer a call; prompt messages have no place inside the turn.
    called = before is not None and (before.recipient or before.role != "assistant")
    return called and message.role not in _PROMPT_ROLES


def _read(pieces: list[Piece], finish_reason: str | None) -> Transcript:
    messages, loose = _messages(_without_padding(pieces))
    # An engine that says why it stopped hands over a completion: a prompt in it is the model's own invention.
    turn = _last_turn(messages) if finish_reason is None else messages
    finals = [message for message in turn if message.is_part("final")]
    last = turn[-1] if turn else None
    closes = last is not None and last.is_part("final")
    if last and closes and not last.end and finish_reason == "stop":
        last.end = "<|return|>"
    stopped = last is not None and (last.end in STOP or (closes and last.end == "<|end|>"))
    cut = not stopped or finish_reason == "length"
    reasoning = "\n".join(filter(None, (message.text for message in turn if message.is_part("analysis"))))
    answer = next(filter(None, (message.text for message in reversed(finals))), "")
    well_formed = closes and len(finals) == 1 and is_visible(answer) and not loose and not cut
    well_formed = well_formed and all(map(_is_well_formed, turn, [None, *turn]))
    aside = "\n".join(filter(None, (_headers(turn), *map(_aside, turn))))
    return Transcript("harmony", reasoning, answer, format_ok=well_formed, truncated=cut, aside=aside)


def _aside(message: _Message) -> str:
    """The text of a message that is neither reasoning nor answer; an echoed prompt is not the model's."""
    own = message.is_part("analysis") or message.is_part("final") or message.role in _PROMPT_ROLES
    return "" if own else message.text


def _headers(turn: list[_Message]) -> str:
    """The names that the headers of a turn give beside roles and channels, each once, where they are more than a few
    tools and types need: thinking in one long header, or word by word in many."""
    said: dict[str, None] = {}
    for message in turn:
        words = " ".join(text for special, text in message.header if not special).split()
        said |= dict.fromkeys(word.removeprefix("to=").removeprefix("functions.") for word in words)
    names = " ".join(word for word in said if word not in _KNOWN)
    return names if len(names) > _NAMES else ""
