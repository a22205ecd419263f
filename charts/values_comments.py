# SPDX-License-Identifier: MIT-0
"""Reading values.yaml with its comments: each key becomes a `Value` with its default, text and hints."""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import yaml

HINTS = ("type", "enum", "min", "max", "pattern", "items", "map", "k8s", "like", "config", "sets")
OPEN = ("map", "k8s", "like", "config")  # what is below such a value is described elsewhere
TYPES = {
    "string": "string",
    "int": "integer",
    "number": "number",
    "bool": "boolean",
    "object": "object",
    "list": "array",
    "null": "null",
}
OF_PYTHON = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}


class ValuesError(Exception):
    """A values file that cannot be turned into a schema: one line with file, line, key and remedy."""


class _Loader(yaml.SafeLoader):
    """Reads scalars as Helm does: PyYAML alone would take `2e-4`, `y` and `n` for text."""

    bool_values: ClassVar[dict[str, bool]] = {**yaml.SafeLoader.bool_values, "y": True, "n": False}


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]$"), list("yYnN"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


@dataclass
class Value:
    """One key of a values file: where it stands, its default, its text and hints, and the values below it."""

    path: tuple[str, ...]
    default: Any
    text: str
    hints: dict[str, str]
    where: str  # "charts/lingoss/values.yaml line 12"
    below: list["Value"] = field(default_factory=list)

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def types(self) -> list[str]:
        """JSON types, from @type or the default."""
        if "type" in self.hints:
            words = self.hints["type"].split("|")
            for word in words:
                if word not in TYPES:
                    raise self.error(f"@type {word} is unknown: write {', '.join(TYPES)}, joined by |")
            return [TYPES[word] for word in words]
        if self.default is None:
            raise self.error("is null, which does not show its type: add `# @type string|null` or the like above it")
        return [OF_PYTHON[type(self.default)]]

    def error(self, problem: str) -> ValuesError:
        return ValuesError(f"{self.where}: {self.name} {problem}")

    def walk(self) -> Iterator["Value"]:
        """This value and all below it, in the order of the file."""
        yield self
        for value in self.below:
            yield from value.walk()


def read_chart(chart: Path) -> list[Value]:
    """The top-level values of a chart and one section for each child chart, in the order of the README.

    Raises ValuesError on a value without a comment, an unknown hint, or anything that cannot be read the same by all.
    """
    values = read_file(chart / "values.yaml", (), chart.parent)
    for file in sorted(chart.glob("charts/*/values.yaml"), key=lambda file: _order(chart, file.parent.name)):
        section = file.parent.name
        where = str(file.relative_to(chart.parent.parent))
        if clash := next((value for value in values if value.path == (section,)), None):
            raise clash.error(f"belongs into {where}, the child's own file: move it there")
        below = read_file(file, (section,), chart.parent)
        if any(value.path[1] == "global" for value in below):
            raise ValuesError(
                f"{where}: holds `global`, which Helm merges in its own way: keep it in the parent's file"
            )
        text = _description(chart / "charts" / section / "Chart.yaml")
        values.append(Value((section,), {value.path[1]: value.default for value in below}, text, {}, where, below))
    return values


def read_file(file: Path, above: tuple[str, ...], root: Path) -> list[Value]:
    """The values of one file; `above` is the section that Helm puts them in. Raises ValuesError."""
    source = file.read_text()
    where = str(file.relative_to(root.parent))
    try:
        tree = yaml.compose(source, Loader=_Loader)
    except yaml.YAMLError as error:
        raise ValuesError(f"{where}: not valid YAML: {' '.join(str(error).split())}") from None
    return [] if tree is None else _values(tree, above, source.splitlines(), where)


def _values(node: yaml.Node, above: tuple[str, ...], lines: list[str], where: str) -> list[Value]:
    if not isinstance(node, yaml.MappingNode):
        raise ValuesError(f"{where}: must hold `key: value` lines")
    found: list[Value] = []
    for key_node, value_node in node.value:
        line = f"{where} line {key_node.start_mark.line + 1}"
        if key_node.tag != "tag:yaml.org,2002:str":
            raise ValuesError(f"{line}: key {key_node.value} is no text for Helm (YAML 1.1): choose another name")
        path = (*above, key_node.value)
        if any(value.path == path for value in found):
            raise ValuesError(f"{line}: {'.'.join(path)} is written twice: keep one")
        text, hints = _comment(lines, key_node.start_mark.line, f"{line}: {'.'.join(path)}")
        value = Value(path, _default(value_node), text, hints, line)
        found.append(value)
        if isinstance(value.default, dict) and not any(hint in hints for hint in OPEN):
            if not value.default:
                raise value.error("is an empty object: say what it takes with @map, @k8s, @like or @config")
            value.below = _values(value_node, path, lines, where)
    return found


def _default(node: yaml.Node) -> Any:
    loader = _Loader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _comment(lines: list[str], line: int, what: str) -> tuple[str, dict[str, str]]:
    """Text and hints of the comment block directly above `lines[line]`, at the same depth."""
    depth = len(lines[line]) - len(lines[line].lstrip())
    start = line
    while start and lines[start - 1].startswith(" " * depth + "#"):
        start -= 1
    words: list[str] = []
    hints: dict[str, str] = {}
    for text in (entry.strip().lstrip("#").strip() for entry in lines[start:line]):
        if not text.startswith("@"):
            words.append(text)
            continue
        hint, _, rest = text[1:].partition(" ")
        if hint not in HINTS:
            close = difflib.get_close_matches(hint, HINTS, n=1)
            raise ValuesError(f"{what} has the unknown hint @{hint}: write @{close[0] if close else ', @'.join(HINTS)}")
        hints[hint] = rest.strip()
    description = " ".join(" ".join(words).split())
    if not description:
        raise ValuesError(f"{what} has no comment: write a sentence above it, it becomes the documentation")
    if "SPDX-License-Identifier" in description:
        raise ValuesError(f"{what} has the head of the file as its comment: put an empty line between them")
    return description, hints


def _description(chart_yaml: Path) -> str:
    return str(yaml.safe_load(chart_yaml.read_text())["description"]).strip()


def _order(chart: Path, child: str) -> tuple[int, str]:
    """Children stand where Chart.yaml names them; what it does not name comes last."""
    named = [entry["name"] for entry in yaml.safe_load((chart / "Chart.yaml").read_text()).get("dependencies", [])]
    return (named.index(child) if child in named else len(named), child)
