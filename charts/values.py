# SPDX-License-Identifier: MIT-0
"""One comment beside each value, three outputs: values.yaml itself, values.schema.json and the tables of the README.

`python charts/values.py` (or `make docs`) writes the schema and the tables; `--check` only tells whether they are stale.

The comment block directly above a key is its description. Lines in it that start with `# @` are hints for what the
default value does not show:

    @type string|null      the JSON type: string int number bool object list, joined by |; only where the default cannot say
    @enum a b c            allowed words, split as a shell would ("" is the empty word); @min 0 · @max 5 · @pattern ^…$
    @items string          type of a list's items; @enum, @min, @max and @pattern of a list speak of its items
    @map string            an object with free keys and values of this type
    @k8s Toleration        a Kubernetes object, or a list of them, that Kubernetes itself checks
    @like global.pod       the same keys as that other value
    @config sft            the trainer's own config of a stage, checked by the trainer's own schema
    @sets engine a.b       beside @config: keys that the chart fills in itself (always root, stage and run)
"""

import argparse
import json
import shlex
import sys
from pathlib import Path

from values_comments import Value, ValuesError, read_chart
from values_schema import schema

CHART = Path(__file__).parent / "lingoss"
BEGIN, END = "<!-- values:begin -->", "<!-- values:end -->"
_WIDEST_DEFAULT = 60


def tables(values: list[Value]) -> str:
    """The values tables of the README: one for each section, single top-level values first."""
    single = [value for value in values if not value.below]
    parts = [_table("", [], single)] if single else []
    for section in values:
        if section.below:
            parts.append(_table(f"### {section.name}\n\n{section.text}\n\n", list(section.walk())[1:], []))
    return "\n".join(parts)


def _table(head: str, rows: list[Value], single: list[Value]) -> str:
    lines = ["| key | default | meaning |", "|---|---|---|"]
    lines += [f"| `{value.name}` | {_shown(value)} | {_meaning(value)} |" for value in (*single, *rows)]
    return head + "\n".join(lines) + "\n"


def _shown(value: Value) -> str:
    if value.below:
        return ""
    text = json.dumps(value.default, ensure_ascii=False)
    return f"`{_cell(text)}`" if len(text) <= _WIDEST_DEFAULT else "see values.yaml"


def _meaning(value: Value) -> str:
    parts = [value.text]
    if "enum" in value.hints:
        shown = [f"`{word}`" if word else '`""`' for word in shlex.split(value.hints["enum"])]
        parts.append(f"One of {', '.join(shown)}.")
    if "like" in value.hints:
        parts.append(f"Keys as in `{value.hints['like']}`.")
    if "k8s" in value.hints:
        several = "list of " if "array" in value.types else ""
        parts.append(f"Kubernetes {several}`{value.hints['k8s']}`.")
    if "config" in value.hints:
        stage = value.hints["config"]
        parts.append(f"Keys: [configuration of {stage}](../../docs/configuration.md#{stage}).")
    return _cell(" ".join(parts))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def outputs(chart: Path = CHART) -> dict[Path, str]:
    """The two generated files of a chart with the text that they must have. Raises ValuesError."""
    values = read_chart(chart)
    children = frozenset(file.parent.name for file in chart.glob("charts/*/values.yaml"))
    made = json.dumps(schema(values, children), indent=1, ensure_ascii=False) + "\n"
    readme = chart / "README.md"
    before, begin, rest = readme.read_text().partition(BEGIN) if readme.exists() else ("", "", "")
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValuesError(
            f"{readme.relative_to(chart.parent.parent)}: lacks the lines {BEGIN} and {END} around its tables"
        )
    return {chart / "values.schema.json": made, readme: f"{before}{BEGIN}\n\n{tables(values)}\n{END}{after}"}


def main(arguments: list[str] | None = None) -> int:
    """Write the generated files, or with --check name those that are stale. Exit status 1 on stale files and errors."""
    parser = argparse.ArgumentParser(description="Write values.schema.json and the README's tables.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is stale")
    parser.add_argument("--chart", type=Path, default=CHART, help="folder of the chart")
    options = parser.parse_args(arguments)
    try:
        wanted = outputs(options.chart.resolve())
    except ValuesError as error:
        print(error, file=sys.stderr)
        return 1
    stale = [file for file, text in wanted.items() if not file.exists() or file.read_text() != text]
    for file in stale:
        name = file.relative_to(options.chart.resolve().parent.parent)
        if options.check:
            print(f"{name} is stale: run `make docs`", file=sys.stderr)
        else:
            file.write_text(wanted[file])
            print(f"wrote {name}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
