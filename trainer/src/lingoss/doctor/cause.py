# SPDX-License-Identifier: MIT-0
"""The causes, one YAML file each in `causes/`: what it means, what to do, and the lines that programs write because of it.

A file has `meaning`, `remedy`, `layer`, `patterns` and, where the usual signs of health are not enough, `healed_by`. A
pattern is a regular expression, or a mapping with `match` and

  layer      another layer than the cause's
  near       only where this is found too, in the line or the lines around it
  unless     not where this is found, in the line or the lines around it
  unless_nearby  the same within as many lines as a chain of tracebacks has
  with       only in files that have a line like this
  healed_by  groups of `signs/health.yaml` whose lines, when they follow, show that it did no harm ([] = it lasts)
  refine     name of an analysis that finds the line to show

Layers say what explains what: a `machine` fails and so a `program` ends; others are found `waiting` for it in vain; a `sign`
only says that something went wrong. A lower layer explains a higher one that was seen later.
"""

import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

LAYERS = ("machine", "program", "waiting", "sign")
HEALTH = ("progress", "serving", "finished")
"""The groups of health signs that undo a pattern which names none."""


@dataclass(frozen=True)
class Pattern:
    """One kind of line. `layer` is a position in LAYERS."""

    cause: str
    match: re.Pattern[str]
    layer: int
    near: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    unless_nearby: re.Pattern[str] | None = None
    with_line: re.Pattern[str] | None = None
    healed_by: tuple[str, ...] = HEALTH
    refine: str = ""


@dataclass(frozen=True)
class Cause:
    """What can be wrong. `name` is the name of its file, `layer` a position in LAYERS."""

    name: str
    meaning: str
    remedy: str
    layer: int
    patterns: tuple[Pattern, ...] = field(default=(), repr=False)


@cache
def causes() -> dict[str, Cause]:
    """All causes by name, in the order of their names."""
    folder = files("lingoss.doctor") / "causes"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    return {name[:-5]: _cause(name[:-5], _load((folder / name).read_text(encoding="utf-8"))) for name in names}


@cache
def signs(name: str) -> dict[str, list[re.Pattern[str]]]:
    """A file of `signs/`: groups of patterns by their names."""
    text = (files("lingoss.doctor") / "signs" / f"{name}.yaml").read_text(encoding="utf-8")
    return {group: [re.compile(pattern) for pattern in patterns] for group, patterns in _load(text).items()}


def _load(text: str) -> Any:
    # The C parser takes a tenth of the time; both are the safe kind.
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _cause(name: str, entry: dict[str, Any]) -> Cause:
    default = LAYERS.index(entry["layer"])
    healed_by = tuple(entry.get("healed_by", HEALTH))
    patterns = tuple(_pattern(name, default, healed_by, row) for row in entry.get("patterns", ()))
    return Cause(name, _one_line(entry["meaning"]), _one_line(entry["remedy"]), default, patterns)


def _pattern(cause: str, layer: int, healed_by: tuple[str, ...], row: str | dict[str, Any]) -> Pattern:
    row = {"match": row} if isinstance(row, str) else row
    unknown = set(row) - {"match", "layer", "near", "unless", "unless_nearby", "with", "healed_by", "refine"}
    if unknown:
        raise ValueError(f"causes/{cause}.yaml: a pattern has no key {', '.join(sorted(unknown))}")
    compiled = {
        key: re.compile(row[key]) if key in row else None for key in ("near", "unless", "unless_nearby", "with")
    }
    return Pattern(
        cause,
        re.compile(row["match"]),
        LAYERS.index(row["layer"]) if "layer" in row else layer,
        compiled["near"],
        compiled["unless"],
        compiled["unless_nearby"],
        compiled["with"],
        tuple(row.get("healed_by", healed_by)),
        row.get("refine", ""),
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
