# SPDX-License-Identifier: MIT-0
"""From rows to chat messages, and the chat templates that turn messages into text.

The templates are pinned copies of ours, marked with `{% generation %}` around what is trained on, so that training,
evaluation and serving see the same text for ever: the stock gpt-oss template prints today's date. Rendering works as
in transformers (5.10, `utils/chat_template_utils.py`), without loading it.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from lingoss import languages
from lingoss.data.rows import Example, Prompt
from lingoss.errors import LingossError
from lingoss.transcript import chat_format

if TYPE_CHECKING:
    from jinja2 import Template

FOLDER = Path(__file__).with_name("templates")
Message = dict[str, str]


@dataclass(frozen=True, slots=True)
class Chat:
    """A rendered conversation and the [start, end) character ranges that the model is trained to write."""

    text: str
    trained: tuple[tuple[int, int], ...]


def messages(row: Prompt, format: str) -> list[Message]:
    """system (the format's instruction), earlier turns, the question; for an `Example` also the assistant's turn.

    In Harmony that turn has the reasoning in `thinking`, which is left out when there is none, because templates stop
    at a None; in the other formats all of it is `content`.

    Raises:
        LingossError: unknown format or language.
    """
    module = chat_format(format)
    asked = languages.get(row.reasoning_language), languages.get(row.answer_language)
    instruction, history = module.instruction(*asked), list(row.history)
    if history and history[0][0] == "system":
        instruction += "\n\n" + history.pop(0)[1]
    turns = [("system", instruction), *history, ("user", row.question)]
    found = [{"role": role, "content": content} for role, content in turns]
    if isinstance(row, Example):
        if template_name(format) == "gpt-oss":
            thinking = {"thinking": row.reasoning} if row.reasoning else {}
            found.append({"role": "assistant", **thinking, "content": row.answer})
        else:
            found.append({"role": "assistant", "content": module.render(row.reasoning, row.answer)})
    return found


def prompt_text(row: Prompt, format: str) -> str:
    """What a model is given to continue: everything before the assistant's turn, and the generation prompt."""
    asked = messages(row, format)
    if isinstance(row, Example):
        asked.pop()
    return render(asked, template(template_name(format)), add_generation_prompt=True).text


@functools.cache
def templates() -> tuple[str, ...]:
    """Names of the pinned templates."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.jinja")))


@functools.cache
def template(name: str) -> str:
    """The source of one template, as `tokenizer.chat_template` takes it.

    Raises:
        LingossError: there is no such template.
    """
    if name not in templates():
        raise LingossError(f"unknown chat template {name!r}; there are {', '.join(templates())}")
    return (FOLDER / f"{name}.jinja").read_text(encoding="utf-8")


def template_name(format: str) -> str:
    """The template that goes with a transcript format: one of the same name, gpt-oss's for Harmony, else ChatML."""
    if format in templates():
        return format
    return "gpt-oss" if format == "harmony" else "chatml"


def render(
    chat: Sequence[Mapping[str, Any]],
    source: str,
    add_generation_prompt: bool = False,
    variables: Mapping[str, Any] | None = None,
) -> Chat:
    """Render messages with the source of a template.

    Raises:
        LingossError: the template refuses the messages; says why.
    """
    from jinja2 import TemplateError

    pieces: list[str] = []
    trained: list[tuple[int, int]] = []
    done = 0
    try:
        arguments = {"messages": chat, "add_generation_prompt": add_generation_prompt, **(variables or {})}
        for piece in _compiled(source).generate(**arguments):
            if isinstance(piece, _Trained):
                trained.append((done, done + len(piece)))
            pieces.append(piece)
            done += len(piece)
    except (TemplateError, TypeError) as error:
        raise LingossError(f"the chat template refuses these messages: {error}") from error
    return Chat("".join(pieces), tuple(trained))


class _Trained(str):
    """A piece of text from inside a generation block; jinja passes it on as it is."""


@functools.lru_cache(maxsize=16)
def _compiled(source: str) -> "Template":
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension
    from jinja2.parser import Parser
    from jinja2.runtime import Macro
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """The `{% generation %}` block of transformers."""

        tags = {"generation"}  # noqa: RUF012 (jinja's own declaration)

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.CallBlock(self.call_method("_mark"), [], [], body).set_lineno(line)

        def _mark(self, caller: Macro) -> str:
            return _Trained(caller())

    def refuse(reason: str) -> NoReturn:
        raise TemplateError(reason)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = refuse
    return environment.from_string(source)
