# SPDX-License-Identifier: MIT-0
"""Reads docker-bake.hcl, as far as that file goes: variables, groups, targets, `inherits`, strings with ${NAME}.

Docker's buildx reads it whole; this is for builders that know nothing of it. A test compares the two.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

Value = str | list[str] | dict[str, str]

_TOKEN = re.compile(
    r'\s+|#[^\n]*|//[^\n]*|(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<word>[A-Za-z_][\w-]*)|(?P<sign>[{}\[\]=,])'
)
_NAME = re.compile(r"\$\{(\w+)\}")


class BakeError(ValueError):
    """The file says something that this reader does not know, or that makes no sense."""


@dataclass(frozen=True, slots=True)
class Target:
    """One image: what `docker build` needs to know of it."""

    name: str
    context: str
    dockerfile: str
    target: str
    tags: list[str]
    platforms: list[str]
    args: dict[str, str]


class Bake:
    """The file's variables, with `environment` over them, and its groups and targets."""

    def __init__(self, text: str, environment: Mapping[str, str]) -> None:
        self.variables: dict[str, str] = {}
        self.groups: dict[str, list[str]] = {}
        self._targets: dict[str, dict[str, Value]] = {}
        words = list(_tokens(text))
        while words:
            self._block(words, environment)

    def targets(self, name: str) -> list[Target]:
        """The targets of a group, or the one of that name. Raises BakeError when there is neither."""
        if name in self.groups:
            return [one for member in self.groups[name] for one in self.targets(member)]
        if name not in self._targets:
            known = ", ".join([*self._targets, *self.groups])
            raise BakeError(f"there is no image {name}: known are {known}")
        found = self._merged(name)
        wanted = {"context": str, "dockerfile": str, "target": str, "tags": list, "platforms": list, "args": dict}
        for key, kind in wanted.items():
            if not isinstance(found.get(key), kind):
                raise BakeError(f"target {name}: {key} is not there, or no {kind.__name__}")
        return [Target(name, **{key: found[key] for key in wanted})]  # type: ignore[arg-type]

    def _block(self, words: list[str], environment: Mapping[str, str]) -> None:
        kind, name = words.pop(0), _text(words.pop(0))
        fields = _map(words, self._value)
        if kind == "variable":
            self.variables[name] = environment.get(name, str(fields.get("default", "")))
        elif kind == "group":
            members = fields.get("targets")
            self.groups[name] = members if isinstance(members, list) else []
        elif kind == "target":
            self._targets[name] = fields
        else:
            raise BakeError(f"block {kind} is unknown here")

    def _value(self, words: list[str]) -> Value:
        if words[0] == "{":
            return {key: str(value) for key, value in _map(words, self._value).items()}
        if words[0] != "[":
            return self._filled(_text(words.pop(0)))
        found = []
        words.pop(0)
        while words[0] != "]":
            found.append(self._filled(_text(words.pop(0))))
            if words[0] == ",":
                words.pop(0)
        words.pop(0)
        return found

    def _filled(self, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            if match[1] not in self.variables:
                raise BakeError(f"variable {match[1]} is not defined above its use")
            return self.variables[match[1]]

        return _NAME.sub(value, text)

    def _merged(self, name: str) -> dict[str, Value]:
        own = dict(self._targets[name])
        found: dict[str, Value] = {}
        parents = own.pop("inherits", [])
        for parent in parents if isinstance(parents, list) else []:
            found |= self._merged(parent)
        above, args = found.get("args", {}), own.get("args", {})
        if isinstance(above, dict) and isinstance(args, dict):
            own["args"] = above | args
        return found | own


def read(path: Path, environment: Mapping[str, str]) -> Bake:
    """Read the file. Raises BakeError, and OSError when it is not there."""
    return Bake(path.read_text(encoding="utf-8"), environment)


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            line = text.count("\n", 0, at) + 1
            raise BakeError(f"line {line} cannot be read from {text[at : at + 20]!r} on")
        at = match.end()
        if match.lastgroup:
            yield match[match.lastgroup]


def _text(word: str) -> str:
    if not word.startswith('"'):
        raise BakeError(f"a text in quotes was expected, not {word}")
    return re.sub(r"\\(.)", r"\1", word[1:-1])


def _map(words: list[str], value: Callable[[list[str]], Value]) -> dict[str, Value]:
    if words.pop(0) != "{":
        raise BakeError("a block must begin with {")
    found: dict[str, Value] = {}
    while words and words[0] != "}":
        name = words.pop(0)
        if not words or words.pop(0) != "=":
            raise BakeError(f"{name} must be followed by =")
        found[name] = value(words)
        if words and words[0] == ",":
            words.pop(0)
    if not words:
        raise BakeError("a block does not end")
    words.pop(0)
    return found
