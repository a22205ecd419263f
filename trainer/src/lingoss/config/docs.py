# SPDX-License-Identifier: MIT-0
"""The configs as documentation (`markdown`) and as JSON Schema (`schema`): both come from the types alone."""

import ast
import inspect
import json
import textwrap
from typing import Any

from lingoss.config.common import Mark, Section
from lingoss.config.explain import section_type
from lingoss.config.load import STAGES, load, stage_type

_HEAD = """<!-- SPDX-License-Identifier: MIT-0 -->
<!-- Written by `python -m lingoss.config`; change the sentences in trainer/src/lingoss/config. -->

# Configuration

Each stage reads one YAML file (`--config file.yaml`) and then each `--set key.path=value`. Unknown keys are refused.
YAML is read by version 1.2: `1e-4` is a number, `no` and `on` are text, and anchors and tags are refused.

A field with **id** in the column *run* is part of the run id: another value starts another run. All others may change
when a run is resumed. The id also holds the stage, `run`, the ids of the parent runs and the digest of the data.
"""


def field_docs(section: type[Section]) -> dict[str, str]:
    """The sentence under each field of a config type, those of its bases included.

    Read from the source when asked for: pydantic's own way (`use_attribute_docstrings`) costs every import 50 ms.
    """
    found: dict[str, str] = {}
    for base in reversed(section.__mro__):
        if not (issubclass(base, Section) and base is not Section):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, below in zip(body.body, body.body[1:], strict=False):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(sentence))):
                    found[name] = " ".join(sentence.split())
    return found


def sections(config_type: type[Section]) -> dict[str, type[Section]]:
    """A config type and all types nested in it, by class name."""
    found = {config_type.__name__: config_type}
    for field in config_type.model_fields.values():
        if inner := section_type(field.annotation):
            found.update(sections(inner))
    return found


def schema(stage: str) -> dict[str, Any]:
    """JSON Schema (2020-12) of a stage's file, strict at every level. Raises LingossError on an unknown stage."""
    config_type = stage_type(stage)
    made = config_type.model_json_schema()
    for name, section in sections(config_type).items():
        entry = made if section is config_type else made["$defs"][name]
        for field, sentence in field_docs(section).items():
            entry["properties"][field]["description"] = sentence
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def markdown() -> str:
    """The reference page `docs/configuration.md`."""
    parts = [_HEAD]
    for stage, config_type in STAGES.items():
        about = " ".join((config_type.__doc__ or "").split())
        parts.append(f"\n## {stage}\n\n{about}\n\n| key | value | default | run | meaning |\n|---|---|---|---|---|\n")
        made = config_type.model_json_schema()
        parts.extend(_rows(load(stage), made, made))
    return "".join(parts)


def _rows(defaults: Section, entry: dict[str, Any], root: dict[str, Any], prefix: str = "") -> list[str]:
    rows = []
    meanings = field_docs(type(defaults))
    for name, field in type(defaults).model_fields.items():
        path = prefix + name
        value = getattr(defaults, name)
        if isinstance(value, Section):
            rows.extend(_rows(value, root["$defs"][type(value).__name__], root, f"{path}."))
            continue
        default = f"`{json.dumps(value, default=str, ensure_ascii=False)}`"
        in_id = "id" if any(isinstance(mark, Mark) and mark.identity for mark in field.metadata) else ""
        cells = (f"`{path}`", _kind(entry["properties"][name], root), default, in_id, meanings[name])
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return rows


def _kind(entry: dict[str, Any], root: dict[str, Any]) -> str:
    """A JSON Schema entry in words."""
    if "$ref" in entry:
        return f"mapping of {', '.join(root['$defs'][entry['$ref'].rpartition('/')[2]]['properties'])}"
    if "anyOf" in entry:
        return " or ".join(_kind(option, root) for option in entry["anyOf"])
    if "const" in entry or "enum" in entry:
        return ", ".join(f"`{option}`" for option in entry.get("enum", [entry.get("const")]))
    kind = entry["type"]
    if kind == "array":
        return f"list of {_kind(entry['items'], root)}"
    if kind == "string":
        return "path" if entry.get("format") == "path" else "text"
    # Bounds that only keep numbers exact in JSON say nothing to a reader.
    bounds = ", ".join(
        f"{sign} {entry[key]:g}"
        for key, sign in (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
        if key in entry and entry[key] < 2**32
    )
    word = {"integer": "whole number", "boolean": "true, false", "object": "mapping"}.get(kind, kind)
    return f"{word} {bounds}".strip()
