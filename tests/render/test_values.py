# SPDX-License-Identifier: MIT-0
"""The values: generated files are fresh, every level is strict, and every value does something."""

import json
import re
import subprocess
import sys
from typing import Any

import charts
import pytest
import yaml
from jsonschema import Draft7Validator
from mutations import POD, UNREAD, Leaf, another, effect, leaves, workloads

import values as generator
from cases import stages_of, values

SCHEMA = Draft7Validator(json.loads((charts.CHART / "values.schema.json").read_text()))
OBJECTS = [value for value in values().values() if value.below]
READ_BY_KNOBS = {f"{name}.{knob.path[-1]}" for name in workloads() for knob in values()[POD].below}  # test_knobs.py
MUTATED = [leaf for leaf in leaves() if leaf.name not in READ_BY_KNOBS]


def test_schema_and_readme_are_fresh() -> None:
    done = subprocess.run([sys.executable, generator.__file__, "--check"], check=False, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.returncode == 0


def test_the_schema_takes_the_defaults() -> None:
    charts.text(None, {"global.stage": "none"})


@pytest.mark.parametrize("name", ["", *[value.name for value in OBJECTS], *workloads()])
def test_unknown_keys_are_refused_at_every_level(name: str) -> None:
    (problem,) = SCHEMA.iter_errors(charts.nested({f"{name}.unknownKey".lstrip("."): 1}))
    assert "unknownKey" in problem.message
    assert ".".join(map(str, problem.path)) == name


@pytest.mark.parametrize("version", [4, 3])
@pytest.mark.parametrize("name", ["", *[value.name for value in OBJECTS if len(value.path) == 1], *workloads()[:1]])
def test_helm_says_where_the_unknown_key_stands(name: str, version: int) -> None:
    said = charts.refusal(charts.BASE, {f"{name}.unknownKey".lstrip("."): 1}, version=version)
    assert f"at '{'/' * bool(name)}{name.replace('.', '/')}': additional properties 'unknownKey' not allowed" in said


@pytest.mark.parametrize("leaf", leaves(), ids=str)
def test_a_value_of_the_wrong_type_is_refused(leaf: Leaf) -> None:
    wrongs: tuple[Any, ...] = (3.5, "wrong words, too", [[]], {"a": []}, True)
    for wrong in wrongs:
        if not valid(leaf.name, wrong):
            return
    pytest.fail(f"{leaf.name} takes anything")


def valid(name: str, value: Any) -> bool:
    return SCHEMA.is_valid(charts.nested({name: value}))


@pytest.mark.parametrize("leaf", MUTATED, ids=str)
def test_every_value_is_read(leaf: Leaf) -> None:
    if leaf.name in UNREAD:
        pytest.skip(UNREAD[leaf.name])
    assert valid(leaf.name, another(leaf)), f"mutations.yaml must name a valid value for {leaf.name}"
    assert effect(leaf), f"no template reads {leaf.name}: use it, drop it, or say in mutations.yaml why it is there"


def test_the_exceptions_are_few_and_still_needed() -> None:
    assert len(UNREAD) <= 5
    names = {leaf.name: leaf for leaf in MUTATED}
    assert set(UNREAD) <= set(names)
    for name in UNREAD:
        assert effect(names[name]) is None, f"{name} is read now: drop it from mutations.yaml"


def test_layout_files_are_short_and_say_why() -> None:
    for name, file in charts.LAYOUTS.items():
        lines = file.read_text().splitlines()
        assert lines[0] == "# SPDX-License-Identifier: MIT-0", name
        assert len(lines) < 60, name
        assert yaml.safe_load(file.read_text())["global"]["layout"]["name"] == name


def test_the_smallest_layout_needs_what_its_file_says() -> None:
    """All pods of a stage together, and beside them the hook of an upgrade that is refused."""
    said = re.search(r"([\d.]+) CPUs and ([\d.]+) GiB left", charts.LAYOUTS["local-cpu"].read_text())
    assert said
    needs = []
    for case in stages_of("local-cpu"):
        asked: dict[bool, list[tuple[float, float]]] = {True: [(0, 0)], False: [(0, 0)]}
        for pod in case.pods():
            cpu = sum(charts.cores(charts.requests(one)["cpu"]) for one in pod.spec["containers"])
            memory = sum(charts.gibibytes(charts.requests(one)["memory"]) for one in pod.spec["containers"])
            asked[charts.is_hook(pod.owner)].append((cpu, memory))
        needs.append([sum(one[i] for one in asked[False]) + max(one[i] for one in asked[True]) for i in (0, 1)])
    assert [float(said[1]), float(said[2])] == pytest.approx([max(one) for one in zip(*needs, strict=True)])


def test_children_have_the_versions_of_their_parent() -> None:
    """In a child `.Chart` is the child's own, so a missing appVersion would be an image without a tag."""
    parent = yaml.safe_load((charts.CHART / "Chart.yaml").read_text())
    for file in charts.CHART.glob("charts/*/Chart.yaml"):
        child = yaml.safe_load(file.read_text())
        assert (child["version"], child["appVersion"]) == (parent["version"], parent["appVersion"]), file.parent.name
