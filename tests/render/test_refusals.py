# SPDX-License-Identifier: MIT-0
"""Wrong values are refused before anything reaches a cluster, with the key, the value and what to do (bad_values.yaml)."""

import re
from pathlib import Path
from typing import Any

import charts
import pytest
import yaml

from cases import each, engines, stages_of, words

BAD = yaml.safe_load((Path(__file__).parent / "bad_values.yaml").read_text())
# A message of the chart itself: one line, what is wrong with key and value, a colon, and what to do.
ADVICE = re.compile(r": [^:]*(--set|--namespace|\b(ask|change|choose|install|lower|raise|run|set|use|write)\b)")


every = pytest.mark.parametrize("entry", BAD, ids=lambda entry: ",".join(map("=".join, shown(entry["values"]))))


def shown(values: dict[str, Any]) -> list[tuple[str, str]]:
    return [(key, str(value)) for key, value in values.items()]


def refused(entry: dict[str, Any]) -> str:
    options: dict[str, Any] = {name: entry[name] for name in ("release", "namespace") if name in entry}
    if "apis" in entry:
        options["apis"] = tuple(entry["apis"])
    return charts.refusal(entry.get("layout", charts.BASE), entry["values"], **options)


@pytest.mark.parametrize(
    "entry", BAD, ids=lambda entry: ",".join(f"{key}={value}" for key, value in entry["values"].items())
)
def test_wrong_values_are_refused(entry: dict[str, Any]) -> None:
    said = refused(entry)
    for part in [entry["says"]] if isinstance(entry["says"], str) else entry["says"]:
        assert part in said


@pytest.mark.parametrize(
    "entry", BAD, ids=lambda entry: ",".join(f"{key}={value}" for key, value in entry["values"].items())
)
def test_a_refusal_is_one_line_that_names_the_key_and_says_what_to_do(entry: dict[str, Any]) -> None:
    said = refused(entry)
    lines = [line for line in said.splitlines() if line and "--debug" not in line and "level=INFO" not in line]
    if "specifications of the schema" in said:
        (line,) = lines[2:]
        assert re.match(r"- at '(/[^']*)?': ", line)
        return
    (line,) = lines
    assert line.startswith("Error: execution error at")
    message = line.split("): ", 1)[1]
    assert ADVICE.search(message)
    assert len(message) < 320
    assert entry.get("release", "") in message
    assert "release" in entry or any(name in message for name in names(entry["values"])), "it names no key"


def names(values: dict[str, Any]) -> set[str]:
    """Each key, its last word, the sections that it stands in, and the keys inside its value."""
    found: set[str] = set()
    for key, value in values.items():
        parts = key.split(".")
        found |= {".".join(parts[:depth]) + "." * (depth == 1) for depth in range(1, len(parts) + 1)}
        found |= {parts[-1], *(value if isinstance(value, dict) else ())}
    return found - {"global.", "enabled"}


def test_there_are_enough_of_them() -> None:
    assert len({str(sorted(entry["values"])) + str(entry.get("apis")) for entry in BAD}) >= 60


@pytest.mark.parametrize("layout", charts.LAYOUTS)
def test_an_engine_that_does_not_fit_a_layout_is_refused_by_name(layout: str) -> None:
    for engine in set(words("grpo.engine")) - set(engines(layout)):
        said = charts.refusal(layout, {"global.stage": "grpo", "grpo.engine": engine})
        assert f"grpo.engine={engine} does not fit layout {layout}" in said
        assert f"--set grpo.engine={engines(layout)[0]}" in said


@each(
    [
        case
        for layout in charts.LAYOUTS
        for case in stages_of(layout)
        if case.stage in ("sft", "grpo", "evaluate", "serve")
    ]
)
def test_a_layout_with_too_few_gpus_is_refused_with_the_number(case: Any) -> None:
    there = charts.layout(case.layout)["global"]["layout"]["gpus"]
    if not there:
        return
    said = charts.refusal(case.layout, {**case.values, **asking(case.stage, case.values.get("grpo.engine"), there + 1)})
    assert re.search(rf"\b{there + 1} GPUs", said), said
    assert re.search(rf"has {there}\b", said), said


def asking(stage: str, engine: str | None, gpus: int) -> dict[str, Any]:
    """Values that ask for so many GPUs on one node."""
    limits = {"limits": {"nvidia.com/gpu": gpus}}
    if stage == "evaluate":
        return {"inference.evaluate.generate.gpus": gpus}
    if stage == "serve":
        return {"inference.serve.gpus": gpus}
    return {"kuberay.trainer.resources": limits} if engine not in (None, "trl") else {f"{stage}.resources": limits}
