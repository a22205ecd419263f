# SPDX-License-Identifier: MIT-0
"""The generator of values.schema.json and of the README's tables: what it makes of comments, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

import values as generator

HEAD = "# SPDX-License-Identifier: MIT-0\n\n"


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A chart with one child and no values yet."""
    folder = tmp_path / "charts" / "lingoss"
    (folder / "charts" / "sft").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("name: lingoss\ndependencies: [{name: sft}]\n")
    (folder / "charts" / "sft" / "Chart.yaml").write_text("name: sft\ndescription: The child.\n")
    (folder / "charts" / "sft" / "values.yaml").write_text(f"{HEAD}# Nodes.\n# @min 1\nnodes: 2\n")
    (folder / "values.yaml").write_text(
        f"{HEAD}# Shared.\nglobal:\n  # The stage.\n  # @enum none sft\n  stage: none\n"
    )
    (folder / "README.md").write_text(f"before\n{generator.BEGIN}\n{generator.END}\nafter\n")
    return folder


def schema_of(chart: Path, text: str) -> dict[str, Any]:
    """The schema of the value `a` that a text describes."""
    (chart / "values.yaml").write_text(HEAD + text)
    assert generator.main(["--chart", str(chart)]) == 0
    made: dict[str, Any] = json.loads((chart / "values.schema.json").read_text())["properties"]["a"]
    return made


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ('# A.\na: ""', ["", "x"], [1, None, True]),
        ("# A.\na: 3", [0, -1, 3.0], ["3", 3.5, None]),
        ("# A.\na: 0.5", [1, 0.1, 2e-4], ["0.5"]),
        ("# A.\na: 2e-4", [0.5], ["2e-4"]),
        ("# A.\na: true", [False], ["true", 1]),
        ("# A.\n# @type string|null\na: null", [None, "x"], [1]),
        ('# A.\n# @type string|int\na: ""', [1, "1"], [1.5, None]),
        ("# A.\n# @enum x y\na: x", ["y"], ["z", ""]),
        ('# A.\n# @enum "" x\na: ""', ["", "x"], ["y"]),
        ("# A.\n# @min 1\n# @max 5\na: 2", [1, 5], [0, 6]),
        ("# A.\n# @pattern ^v[0-9]+$\na: v1", ["v22"], ["x", "v"]),
        ("# A.\na: [x]", [[], ["y"]], [[1], "x"]),
        ("# A.\n# @items string\n# @pattern ^sg-\na: []", [["sg-1"]], [["x"], [1]]),
        ("# A.\n# @map string\na: {}", [{}, {"k": "v"}], [{"k": 1}, []]),
        ("# A.\n# @k8s Toleration\na: []", [[{"any": {"thing": 1}}]], [["x"], {}]),
        ("# A.\n# @k8s Affinity\na: {}", [{"any": [1]}], [[]]),
        ("# A.\na:\n  # B.\n  b: 1", [{}, {"b": 2}], [{"c": 1}, {"b": "x"}, []]),
        (
            "# A.\n# @config sft\na: {}",
            [{}, {"max_steps": 3}, {"epochs": None}],
            [{"run": "1"}, {"steps": 3}, {"max_steps": 0}],
        ),
    ],
)
def test_a_comment_and_a_default_make_a_schema(chart: Path, text: str, good: list[Any], bad: list[Any]) -> None:
    validator = Draft7Validator(schema_of(chart, text + "\n"))
    assert [value for value in good if not validator.is_valid(value)] == []
    assert [value for value in bad if validator.is_valid(value)] == []


def test_like_copies_the_keys_of_another_value(chart: Path) -> None:
    made = schema_of(chart, "# G.\ng:\n  # B.\n  b: 1\n# A too.\n# @like g\na: {}\n")
    assert (made["description"], made["additionalProperties"], list(made["properties"])) == ("A too.", False, ["b"])


def test_sets_takes_keys_out_of_a_config(chart: Path) -> None:
    made = schema_of(chart, "# A.\n# @config grpo\n# @sets engine rollout.server_url\na: {}\n")
    assert {"engine", "root", "stage", "run"} & set(made["properties"]) == set()
    assert set(made["properties"]["rollout"]["properties"]) >= {"mode", "server_timeout"}
    assert "server_url" not in made["properties"]["rollout"]["properties"]


def test_the_schema_needs_nothing_beside_it(chart: Path) -> None:
    assert "$ref" not in json.dumps(schema_of(chart, "# A.\n# @config evaluate\na: {}\n"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\n", "values.yaml line 3: a has no comment: write a sentence above it"),
        ("# A.\n\na: 1\n", "line 5: a has no comment"),
        ("# A.\na:\n  b: 1\n", "line 5: a.b has no comment"),
        ("# A.\n# @typ string\na: 1\n", "a has the unknown hint @typ: write @type"),
        ("# A.\n# @type text\na: 1\n", "a @type text is unknown: write string, int"),
        ("# A.\n# @map text\na: {}\n", "a has @map text: write string, int"),
        ("# A.\na: null\n", "a is null, which does not show its type: add `# @type string|null`"),
        ("# A.\na: []\n", "a is a list whose items show no type: add `# @items string`"),
        ("# A.\na: {}\n", "a is an empty object: say what it takes with @map, @k8s, @like or @config"),
        ("# A.\n# @min 2\na: 1\n", "a breaks its own rule: a: 1 is less than the minimum of 2"),
        ("# A.\n# @enum x y\na: z\n", "a breaks its own rule: a: 'z' is not one of ['x', 'y']"),
        (
            "# A.\n# @config sft\na: {steps: 3}\n",
            "a breaks its own rule: a: Additional properties are not allowed ('steps'",
        ),
        ("# A.\n# @config train\na: {}\n", "a has @config train: unknown stage train"),
        ("# A.\n# @config sft\n# @sets engine\na: {}\n", "a has @sets engine, which is no key of that config"),
        ("# A.\n# @like b.c\na: {}\n", "a has @like b.c, but there is no such value"),
        (
            "# A.\n# @min 1\na:\n  # B.\n  b: 1\n",
            "a is an object with keys: put @enum, @min, @max or @pattern above the key",
        ),
        ("# A.\na: 1\n# A.\na: 2\n", "line 6: a is written twice: keep one"),
        ("# A.\non: 1\n", "line 4: key on is no text for Helm"),
        ("# A.\ny: 1\n", "line 4: key y is no text for Helm (YAML 1.1)"),
        ("# A.\nsft: {}\n", "sft is an empty object"),
        ("# A.\na: [\n", "values.yaml: not valid YAML: "),
        ("- a\n", "values.yaml: must hold `key: value` lines"),
    ],
)
def test_what_cannot_be_documented_is_refused_with_file_line_key_and_remedy(
    chart: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (chart / "values.yaml").write_text(HEAD + text)
    assert generator.main(["--chart", str(chart)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("charts/lingoss/values.yaml")
    assert said in line


def test_the_head_of_a_file_is_no_comment(chart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (chart / "values.yaml").write_text("# SPDX-License-Identifier: MIT-0\na: 1\n")
    assert generator.main(["--chart", str(chart)]) == 1
    assert "put an empty line between them" in capsys.readouterr().err


def test_a_child_keeps_its_own_section_and_no_global(chart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (chart / "values.yaml").write_text(f"{HEAD}# A.\nsft:\n  # B.\n  b: 1\n")
    assert generator.main(["--chart", str(chart)]) == 1
    assert "sft belongs into charts/lingoss/charts/sft/values.yaml" in capsys.readouterr().err
    (chart / "values.yaml").write_text(f"{HEAD}# A.\na: 1\n")
    (chart / "charts" / "sft" / "values.yaml").write_text(f"{HEAD}# G.\nglobal:\n  # B.\n  b: 1\n")
    assert generator.main(["--chart", str(chart)]) == 1
    assert "charts/sft/values.yaml: holds `global`" in capsys.readouterr().err


def test_tables_stand_between_the_marks_of_the_readme(chart: Path) -> None:
    (chart / "values.yaml").write_text(
        f"{HEAD}# One | two.\n# @enum x y\na: x\n# B.\nb:\n  # C.\n  # @config sft\n  c: {{}}\n"
    )
    assert generator.main(["--chart", str(chart)]) == 0
    text = (chart / "README.md").read_text()
    assert text.startswith(f"before\n{generator.BEGIN}\n")
    assert text.endswith(f"{generator.END}\nafter\n")
    assert '| `a` | `"x"` | One \\| two. One of `x`, `y`. |' in text
    assert "| `b.c` | `{}` | C. Keys: [configuration of sft](../../docs/configuration.md#sft). |" in text
    assert "### sft\n\nThe child.\n" in text
    assert "| `sft.nodes` | `2` | Nodes. |" in text


def test_check_names_each_stale_file_and_the_command(chart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generator.main(["--chart", str(chart)]) == 0
    assert generator.main(["--chart", str(chart), "--check"]) == 0
    (chart / "charts" / "sft" / "values.yaml").write_text(f"{HEAD}# Nodes that train.\n# @min 1\nnodes: 2\n")
    capsys.readouterr()
    assert generator.main(["--chart", str(chart), "--check"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "charts/lingoss/values.schema.json is stale: run `make docs`",
        "charts/lingoss/README.md is stale: run `make docs`",
    ]


def test_a_readme_without_marks_is_refused(chart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (chart / "README.md").write_text("nothing\n")
    assert generator.main(["--chart", str(chart)]) == 1
    assert f"lacks the lines {generator.BEGIN} and {generator.END}" in capsys.readouterr().err
