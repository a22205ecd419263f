# SPDX-License-Identifier: MIT-0
"""Turns pydantic's complaints into one line: where, which key and value, what is allowed, what was probably meant."""

import re
import types
from collections.abc import Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import ValidationError

from lingoss.config.choices import nearest
from lingoss.config.common import Section, StageConfig

MOST = 5  # complaints in one message; a file for another program would give hundreds

_TRUTH_WORDS = ("yes", "no", "on", "off", "y", "n", "true", "false")


def shown(value: object, width: int = 80) -> str:
    """A value for an error message: one line, bounded, printable on any terminal."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str) and value.isprintable() and value == value.strip() and value:
        return value if len(value) <= width else value[: width - 3] + "..."
    if isinstance(value, str):
        return repr(value[:width])
    if isinstance(value, list | tuple):
        inside = ", ".join(shown(item, width=24) for item in value[:6])
        return f"[{inside}, ...]" if len(value) > 6 else f"[{inside}]"
    return "a mapping" if isinstance(value, dict) else str(value)[:width]


def known_paths(config_type: type[Section]) -> dict[str, bool]:
    """Every dotted key path of a config type; True for leaves, False for sections."""
    found: dict[str, bool] = {}
    for name, field in config_type.model_fields.items():
        inner = section_type(field.annotation)
        found[name] = inner is None
        if inner is not None:
            found.update({f"{name}.{path}": leaf for path, leaf in known_paths(inner).items()})
    return found


def section_type(annotation: Any) -> type[Section] | None:
    """The section type inside an annotation: itself, in `X | None` or in `tuple[X, ...]`; None when there is none."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType, tuple, Annotated):
        return next((found for part in get_args(annotation) if (found := section_type(part))), None)
    return None


def explain(
    error: ValidationError,
    stage: str,
    origins: Mapping[tuple[str, ...], str],
    source: str,
    stages: Mapping[str, type[StageConfig]],
) -> str:
    """One line for all complaints of `error`.

    `origins` says for each key path which file line or `--set` it came from; `source` stands in where none is known.
    """
    everything = error.errors(include_url=False)
    # A list whose items were refused is then also called too short; only the items' own complaints help.
    outer = {complaint["loc"][:cut] for complaint in everything for cut in range(1, len(complaint["loc"]))}
    complaints = [complaint for complaint in everything if complaint["loc"] not in outer]
    told = []
    for complaint in complaints[:MOST]:
        loc = tuple(str(part) for part in complaint["loc"])
        where = _origin(loc, origins) or source
        if complaint["type"] == "extra_forbidden":
            told.append(f"{where}: {_unknown_key(loc, stage, stages)}")
        else:
            told.append(f"{where}: {_bad_value(loc, complaint)}")
    if len(complaints) > MOST:
        told.append(f"and {len(complaints) - MOST} more")
    return "; ".join(told)


def _origin(loc: tuple[str, ...], origins: Mapping[tuple[str, ...], str]) -> str | None:
    """Where the key, the section around it or (for a section) a key in it was written."""
    for cut in range(len(loc), 0, -1):
        if loc[:cut] in origins:
            return origins[loc[:cut]]
    return next((origin for key, origin in origins.items() if loc and key[: len(loc)] == loc), None)


def _unknown_key(loc: tuple[str, ...], stage: str, stages: Mapping[str, type[StageConfig]]) -> str:
    path = ".".join(loc)
    # Known paths hold no positions in lists.
    keys = (*(part for part in loc[:-1] if not part.isdigit()), loc[-1])
    bare = ".".join(keys)
    own = known_paths(stages[stage])
    if bare in own:
        nested = bare.replace(".", ": {") + ": ..." + "}" * bare.count(".")
        return f"key {shown(loc[-1])} has a dot in it: nest it, as in `{nested}`"
    elsewhere = [name for name, other in stages.items() if name != stage and bare in known_paths(other)]
    if elsewhere:
        return f"{shown(path)} is not a key of stage {stage}, but of stage {' and '.join(elsewhere)}: remove it"
    message = f"unknown key {shown(path)}"
    close = _nearest_path(keys, tuple(own))
    return f"{message}; nearest known key: {close}" if close else f"{message}; known here: {_siblings(keys, own)}"


def _nearest_path(loc: tuple[str, ...], paths: tuple[str, ...]) -> str | None:
    """The key that was probably meant: the same word in another place, then a like word beside it, then anywhere."""
    word = loc[-1]
    same = [path for path in paths if path.rpartition(".")[2] == word]
    if same:
        return nearest(".".join(loc), tuple(same)) or same[0]
    parent = ".".join(loc[:-1])
    beside = {path.rpartition(".")[2]: path for path in paths if path.rpartition(".")[0] == parent}
    if close := nearest(word, tuple(beside)):
        return beside[close]
    anywhere = {path.rpartition(".")[2]: path for path in paths}
    close = nearest(word, tuple(anywhere))
    return anywhere[close] if close else None


def _siblings(loc: tuple[str, ...], paths: Mapping[str, bool]) -> str:
    parent = ".".join(loc[:-1])
    return ", ".join(path.rpartition(".")[2] for path in paths if path.rpartition(".")[0] == parent)


def _bad_value(loc: tuple[str, ...], complaint: Any) -> str:
    kind, given, context = complaint["type"], complaint["input"], complaint.get("ctx") or {}
    path = ".".join(loc)
    if kind == "value_error":
        said = str(context.get("error", complaint["msg"]))
        # A rule over several fields names them itself; a rule of one field needs its key and value in front.
        if isinstance(given, dict | Section):
            return said if path in said else f"{path}: {said}"
        return f"{path} = {shown(given)}: {said}"
    if kind == "missing":
        return f"{path} is required: set it"
    allowed = _allowed(kind, context, complaint["msg"])
    if kind == "bool_type" and isinstance(given, str) and given.lower() in _TRUTH_WORDS:
        allowed += f" ({shown(given)} is a word in YAML 1.2)"
    if kind == "literal_error" and isinstance(given, str):
        close = nearest(given, tuple(re.findall(r"'([^']*)'", context.get("expected", ""))))
        allowed += f"; nearest: {close}" if close else ""
    return f"{path} = {shown(given)}: {allowed}"


def _allowed(kind: str, context: Mapping[str, Any], message: str) -> str:
    bounds = {"greater_than": ">", "greater_than_equal": ">=", "less_than": "<", "less_than_equal": "<="}
    if kind in bounds:
        return f"must be {bounds[kind]} {next(iter(context.values()))}"
    return {
        "bool_type": "must be true or false",
        "int_type": "must be a whole number",
        "float_type": "must be a number",
        "finite_number": "must be a finite number",
        "string_type": "must be text; quote it",
        "string_too_short": "must not be empty",
        "string_unicode": "holds a lone surrogate, which no file can store",
        "too_short": "must hold at least one item",
        "tuple_type": "must be a list, as in [a, b]",
        "dict_type": "must be a mapping of keys",
        "model_type": "must be a section with keys of its own, not a single value",
        "string_pattern_mismatch": f"must match {context.get('pattern')}",
        "literal_error": f"must be one of {context.get('expected')}",
    }.get(kind, message[:1].lower() + message[1:])
