# SPDX-License-Identifier: MIT-0
"""From values with hints to values.schema.json; the config subtrees come from the trainer's own types."""

import shlex
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from jsonschema import Draft7Validator

import lingoss.config
from lingoss.errors import LingossError
from values_comments import OF_PYTHON, TYPES, Value

CHART_SETS = ("root", "stage", "run")  # the chart knows these better than anybody who writes values

Json = dict[str, Any]


def schema(values: list[Value], children: frozenset[str]) -> Json:
    """JSON Schema (draft-07, which every Helm validates) of all values, strict at every level.

    `children` names the sections that are child charts. Helm copies `global` into those before it validates, so it is
    open there: what is wrong in it is told once, at `global` itself, whose values win over a child's.
    Raises ValuesError where a default breaks its own rule.
    """
    everything = {value.name: value for top in values for value in top.walk()}
    properties = {value.path[0]: _schema_of(value, everything) for value in values}
    for child in sorted(children):
        properties[child]["properties"]["global"] = {"description": "Helm's copy of global; set global itself."}
    made: Json = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": "SPDX-License-Identifier: MIT-0. Written by `make docs` from the comments of values.yaml.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }
    for top in values:
        problems = sorted(Draft7Validator(made).iter_errors({top.path[0]: top.default}), key=lambda error: error.path)
        for problem in problems:
            name = ".".join(map(str, problem.path))
            value = next((everything[part] for part in _shorter(name) if part in everything), top)
            raise value.error(f"breaks its own rule: {name}: {problem.message}")
    return made


def _shorter(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition(".")[0]


def _schema_of(value: Value, everything: dict[str, Value]) -> Json:
    if "config" in value.hints:
        return {"description": value.text, **_config_schema(value)}
    if "like" in value.hints:
        like = everything.get(value.hints["like"])
        if like is None or "like" in like.hints:
            raise value.error(f"has @like {value.hints['like']}, but there is no such value: give its whole path")
        return {**_schema_of(like, everything), "description": value.text}
    types = value.types
    made: Json = {"description": value.text, "type": types[0] if len(types) == 1 else types}
    rules = _rules(value, types)
    if value.below:
        made["additionalProperties"] = False
        made["properties"] = {below.path[-1]: _schema_of(below, everything) for below in value.below}
    elif "map" in value.hints:
        made["additionalProperties"] = {**_types_of(value, "map"), **rules}
    elif "array" in types:
        made["items"] = {**_item_types(value), **rules}
    else:
        made.update(rules)
    if value.default not in ({}, []) and not value.below:
        made["default"] = value.default
    return made


def _rules(value: Value, types: list[str]) -> Json:
    """Schema keywords of @enum, @min, @max and @pattern."""
    rules: Json = {}
    if "enum" in value.hints:
        words: list[Any] = shlex.split(value.hints["enum"])
        if "integer" in types:
            words = [int(word) for word in words]
        rules["enum"] = [*words, None] if "null" in types else words
    for hint, keyword in (("min", "minimum"), ("max", "maximum")):
        if hint in value.hints:
            number = float(value.hints[hint])
            rules[keyword] = int(number) if number.is_integer() else number
    if "pattern" in value.hints:
        rules["pattern"] = value.hints["pattern"]
    if value.below and rules:
        raise value.error("is an object with keys: put @enum, @min, @max or @pattern above the key they speak of")
    return rules


def _item_types(value: Value) -> Json:
    if "k8s" in value.hints:
        return {"type": "object"}
    if "items" in value.hints:
        return _types_of(value, "items")
    found = {OF_PYTHON[type(item)] for item in value.default or []}
    if len(found) != 1:
        raise value.error("is a list whose items show no type: add `# @items string` or the like above it")
    return {"type": found.pop()}


def _types_of(value: Value, hint: str) -> Json:
    words = value.hints[hint].split("|")
    for word in words:
        if word not in TYPES:
            raise value.error(f"has @{hint} {word}: write {', '.join(TYPES)}, joined by |")
    types = [TYPES[word] for word in words]
    return {"type": types[0] if len(types) == 1 else types}


def _config_schema(value: Value) -> Json:
    """The trainer's schema of one stage, made self-contained, without the keys that the chart fills in."""
    try:
        made = lingoss.config.schema(value.hints["config"])
    except LingossError as error:
        raise value.error(f"has @config {value.hints['config']}: {error}") from None
    made = _flat(made, made.get("$defs", {}))
    for name in (*CHART_SETS, *value.hints.get("sets", "").split()):
        section = made
        *above, last = name.split(".")
        for key in above:
            section = section.get("properties", {}).get(key, {})
        if section.get("properties", {}).pop(last, None) is None:
            raise value.error(f"has @sets {name}, which is no key of that config: see docs/configuration.md")
    return {key: entry for key, entry in made.items() if key not in ("$defs", "$schema", "description")}


def _flat(entry: Any, definitions: Json) -> Any:
    """`entry` with references written out and `anyOf` of different types joined, which gives Helm shorter messages."""
    if isinstance(entry, list):
        return [_flat(item, definitions) for item in entry]
    if not isinstance(entry, dict):
        return entry
    made = {
        key: {name: _flat(inner, definitions) for name, inner in item.items()}
        if key == "properties"
        else deepcopy(item)
        if key in ("default", "enum", "const")
        else _flat(item, definitions)
        for key, item in entry.items()
        if key not in ("title", "format", "$ref", "$defs")
    }
    if "$ref" in entry:
        made = {**_flat(definitions[entry["$ref"].removeprefix("#/$defs/")], definitions), **made}
    return _joined(made)


def _joined(entry: Json) -> Json:
    """`{anyOf: [A, B]}` as one schema where A and B have different types, so that their keywords cannot meet."""
    options = entry.get("anyOf", [])
    types = [option.get("type") for option in options]
    if not options or not all(isinstance(name, str) for name in types) or len(set(types)) < len(types):
        return entry
    if "integer" in types and "number" in types:
        return entry
    made = {key: item for key, item in entry.items() if key != "anyOf"}
    for option in options:
        made = {**option, **made}
    made["type"] = types
    for option in options:
        if "enum" in option:
            if set(types) - {option["type"], "null"}:
                return entry
            made["enum"] = [*option["enum"], *([None] if "null" in types else [])]
    return made
