# SPDX-License-Identifier: MIT-0
"""YAML without surprises, in both directions.

Reading follows the YAML 1.2 core schema: `no`, `on` and `2025-08-05` are text (Norway is safe), `1e-4` is a number.
What other readers would take differently is refused: `010`, tags, anchors, a key written twice, a second document.
"""

import re
from typing import Any

import yaml

from lingoss.errors import LingossError

MAX_BYTES = 256 * 1024  # hundreds of times a real config; bounds the time that a wrong file can cost
MAX_DEPTH = 16
_NUMBER_WIDTH = 64

Lines = dict[tuple[str, ...], int]

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_OCTAL_LOOK = re.compile(r"[-+]?0[0-9]+")
_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}


class _RefusedError(Exception):
    """A construct that this reader does not take: the reason and the line (from 1)."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class _Loader(yaml.BaseLoader):
    """Builds the node tree and nothing else; refuses what could blow up or run code before it is built."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _RefusedError("anchors (&) and aliases (*) are not supported: write the value out, or quote it", line)
        if getattr(event, "tag", None) is not None:
            raise _RefusedError(
                f"tags ({event.tag[:40]}) are not supported: leave the tag out, or quote the value", line
            )
        if self.depth >= MAX_DEPTH:
            raise _RefusedError(f"nested more than {MAX_DEPTH} levels deep", line)
        self.depth += 1
        node = super().compose_node(parent, index)  # type: ignore[no-untyped-call]
        self.depth -= 1
        return node  # type: ignore[no-any-return]


def decode(data: bytes, source: str) -> str:
    """UTF-8 text of a config file. LingossError on too many bytes, NUL bytes or other encodings; a BOM is dropped."""
    if len(data) > MAX_BYTES:
        raise LingossError(f"{source}: more than {MAX_BYTES // 1024} KiB, so this is no config file: check the path")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise LingossError(f"{source}: UTF-16 text: save it as UTF-8")
    if b"\0" in data:
        raise LingossError(f"{source}: holds NUL bytes, so this is no YAML text but a binary file: check the path")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LingossError(
            f"{source}: not UTF-8 text (byte {error.start}): check the path, or save it as UTF-8"
        ) from None


def read(text: str, source: str) -> tuple[Any, Lines]:
    """The value of a YAML text and the line (from 1) of each mapping key, by its path.

    `source` names the text in errors. Raises LingossError with source and line on anything malformed or refused.
    """
    lines: Lines = {}
    try:
        node = yaml.compose(text, Loader=_Loader)
        return (None if node is None else _value(node, (), lines)), lines
    except _RefusedError as error:
        raise LingossError(f"{source} line {error.line}: {error.reason}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" line {mark.line + 1}" if mark else ""
        problem = error.problem or error.context or "malformed"
        if "single document" in (error.context or ""):
            problem = "a second document starts here: keep one"
        raise LingossError(f"{source}{where}: not valid YAML: {_one_line(problem)}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise LingossError(f"{source}: not valid YAML: {_one_line(str(error) or 'nested too deeply')}") from None


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]


def _value(node: yaml.Node, path: tuple[str, ...], lines: Lines) -> Any:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, str(position)), lines) for position, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise _RefusedError("a key must be a word, not a list or mapping", line)
            key = key_node.value
            here = (*path, key)
            if key in found:
                raise _RefusedError(
                    f"key {_shown(here)} is written twice (first on line {lines[here]}): keep one", line
                )
            lines[here] = line
            found[key] = _value(value_node, here, lines)
        return found
    assert isinstance(node, yaml.ScalarNode)
    return node.value if node.style else _scalar(node.value, line)


def _scalar(word: str, line: int) -> Any:
    """A plain (unquoted) scalar as YAML 1.2 reads it; a whole number written `1e6`, as Helm does, is a whole number."""
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if len(word) > _NUMBER_WIDTH:
        return word
    if _OCTAL_LOOK.fullmatch(word):
        raise _RefusedError(
            f"{word} is octal to some YAML readers and decimal to others: drop the leading 0, or quote it", line
        )
    if _INT.fullmatch(word):
        return int(word)
    if _FLOAT.fullmatch(word):
        number = float(word)
        if number in (float("inf"), float("-inf")):
            raise _RefusedError(f"{word} is too large for a number", line)
        return int(number) if "." not in word and number.is_integer() and abs(number) <= 2**53 else number
    return word


def _shown(path: tuple[str, ...]) -> str:
    return repr(".".join(path)[:120])


class _Dumper(yaml.SafeDumper):
    """Writes only what `read` gives back unchanged."""


_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_/-]*(\.[A-Za-z0-9_/-]+)*")
# Words that YAML 1.1 readers (Helm, editors) take for something else are quoted, though this module would not need it.
_YAML_1_1 = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


def _represent_str(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    plain = len(value) < 100 and _PLAIN.fullmatch(value) and value.lower() not in _YAML_1_1
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


def _represent_list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.Node:
    flow = not any(isinstance(item, dict | list) for item in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=flow)


_Dumper.add_representer(str, _represent_str)
_Dumper.add_representer(list, _represent_list)


def write(value: dict[str, Any]) -> str:
    """YAML text of plain JSON values, in the order of the dict."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=10_000)
