# SPDX-License-Identifier: MIT-0
"""Raw model output -> reasoning, answer, well formed?, cut? A chat format is added by adding a file to `formats/`."""

import functools
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from lingoss.errors import LingossError
from lingoss.languages import Language

# Imported before `formats()` is defined: loading a subpackage later would replace the function of the same name.
from lingoss.transcript import formats as _package
from lingoss.transcript.record import Transcript
from lingoss.transcript.text import is_visible

__all__ = ["ChatFormat", "Transcript", "chat_format", "formats", "is_visible", "parse", "parse_ids", "stop_ids"]

_FOLDER = _package.__path__


class ChatFormat(Protocol):
    """What a module in `formats/` offers."""

    STOP: tuple[str, ...]

    def parse(self, text: str, finish_reason: str | None = None) -> Transcript: ...

    def parse_ids(
        self,
        ids: Sequence[int],
        finish_reason: str | None = None,
        decode: Callable[[Sequence[int]], str] | None = None,
    ) -> Transcript: ...

    def instruction(self, reasoning: Language, answer: Language) -> str: ...

    def render(self, reasoning: str, answer: str) -> str: ...


@functools.cache
def formats() -> tuple[str, ...]:  # type: ignore[no-redef]
    """Names of the chat formats, sorted: one for each file in `formats/`."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(_FOLDER)))


@functools.cache
def chat_format(name: str) -> ChatFormat:
    """The module of one chat format.

    Raises:
        LingossError: there is no such format.
    """
    if name not in formats():
        raise LingossError(f"unknown chat format {name!r}; known: {', '.join(formats())}")
    return cast(ChatFormat, importlib.import_module(f"lingoss.transcript.formats.{name}"))


def stop_ids(format: str, tokenizer: Any) -> set[int]:
    """The format's stop tokens that the tokenizer's vocabulary has, and the tokenizer's own.

    Raises:
        LingossError: unknown format.
    """
    vocabulary = tokenizer.get_vocab()
    own = (tokenizer.eos_token_id,) if tokenizer.eos_token_id is not None else ()
    return {*(vocabulary[token] for token in chat_format(format).STOP if token in vocabulary), *own}


def parse(text: str, format: str, finish_reason: str | None = None) -> Transcript:
    """Read what a model wrote. Never raises on any text.

    `finish_reason` is the engine's: "length" means cut, whatever the text looks like; "stop" stands for a stop token
    that the engine dropped from a Harmony text.

    Raises:
        LingossError: unknown format.
    """
    return chat_format(format).parse(text, finish_reason)


def parse_ids(
    ids: Sequence[int],
    format: str,
    finish_reason: str | None = None,
    decode: Callable[[Sequence[int]], str] | None = None,
) -> Transcript:
    """Read what a model wrote from its token ids. Never raises on any integers.

    For Harmony only the special ids count: a stop token that was typed in ordinary tokens stays text.

    Raises:
        LingossError: unknown format; or no `decode` where the format has no vocabulary of its own at hand.
    """
    return chat_format(format).parse_ids(ids, finish_reason, decode)
