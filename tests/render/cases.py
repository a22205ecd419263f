# SPDX-License-Identifier: MIT-0
"""What the tests render: each layout in each stage (with each GRPO engine that fits it), the variants of variants.yaml, and the examples.

Nothing here names a layout, a stage or an engine: they are read from values/ and from the comments of values.yaml.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import charts
import pytest
import yaml

from values_comments import Value, read_chart

# veRL hands the reward texts without the channels of Harmony, so it trains models of another format.
ENGINE_NEEDS: dict[str, dict[str, Any]] = {"verl": {"grpo.config.format": "think", "grpo.config.template": "chatml"}}
VARIANTS: dict[str, dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "variants.yaml").read_text())


@cache
def values() -> dict[str, Value]:
    """Every value of the chart, with default, text and hints, by its full name."""
    return {value.name: value for top in read_chart(charts.CHART) for value in top.walk()}


def words(name: str) -> list[str]:
    """The allowed words of a value with @enum."""
    return values()[name].hints["enum"].split()


@cache
def engines(layout: str) -> tuple[str, ...]:
    """GRPO engines that fit a layout, as its file says."""
    file = yaml.safe_load(charts.LAYOUTS[layout].read_text())
    return tuple(file["global"]["layout"]["engines"])


@dataclass(frozen=True)
class Case:
    """One render: a name for test reports, the layout and the values on top of it.

    Rendered as an upgrade, which has all that an install has and the hook before an uninstall.
    """

    name: str
    layout: str
    given: tuple[tuple[str, Any], ...]
    apis: tuple[str, ...] | None = None  # of a cluster without some operator; None is one with all
    namespace: str = "lingoss"  # HyperPod's task governance ties a team's queue to its namespace
    upgrade: bool = False  # whether its golden file shows it as an upgrade

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    @property
    def values(self) -> dict[str, Any]:
        return dict(self.given)

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def stage(self) -> str:
        return str(self.values.get("global.stage", "prepare"))

    def text(self, more: charts.Values | None = None, **options: Any) -> str:
        defaults = {"namespace": self.namespace, "apis": self.apis, "upgrade": True}
        return charts.text(self.layout, {**self.values, **(more or {})}, **{**defaults, **options})

    def manifests(self, more: charts.Values | None = None, **options: Any) -> list[charts.Manifest]:
        return charts.parsed(self.text(more, **options))

    def notes(self, more: charts.Values | None = None) -> str:
        return charts.notes(self.layout, {**self.values, **(more or {})}, namespace=self.namespace)

    def pods(self, more: charts.Values | None = None, **options: Any) -> list[charts.Pod]:
        return charts.pods(self.manifests(more, **options))


def stages_of(layout: str) -> list[Case]:
    """Every stage on a layout; stage grpo once for each engine that fits it."""
    made: list[Case] = []
    for stage in words("global.stage"):
        for engine in engines(layout) if stage == "grpo" else [None]:
            given = {
                "global.stage": stage,
                **({"grpo.engine": engine} | ENGINE_NEEDS.get(engine, {}) if engine else {}),
            }
            made.append(Case("-".join(filter(None, (layout, stage, engine))), layout, tuple(given.items())))
    return made


def flat(section: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Nested values by their full names, down to what the chart calls a value."""
    found: dict[str, Any] = {}
    for key, value in section.items():
        name = f"{above}{key}"
        found |= flat(value, f"{name}.") if values()[name].below else {name: value}
    return found


def example(name: str) -> list[Case]:
    """Every stage of an example, which is laid over the base layout."""
    given = flat(yaml.safe_load(charts.EXAMPLES[name].read_text()))
    stages = words("global.stage")
    return [Case(f"{name}-{stage}", charts.BASE, tuple({**given, "global.stage": stage}.items())) for stage in stages]


MATRIX = [case for layout in charts.LAYOUTS for case in stages_of(layout)]
EXTRA = [
    Case(
        name,
        entry.get("layout", charts.BASE),
        tuple(entry["values"].items()),
        tuple(entry["apis"]) if "apis" in entry else None,
        entry.get("namespace", "lingoss"),
        entry.get("upgrade", False),
    )
    for name, entry in VARIANTS.items()
]
EXTRA += [case for name in charts.EXAMPLES for case in example(name)]
CASES = [*MATRIX, *EXTRA]
# Enough where numbers do not matter: two layouts with all stages and engines, and the switches.
FEW = [*stages_of(charts.BASE), *stages_of("local-cpu"), *EXTRA]
# Enough where only the kind of the workload matters: the stages, and the variants with another kind.
KINDS = [*stages_of(charts.BASE), *(case for case in EXTRA if VARIANTS.get(case.name, {}).get("kind"))]


def each(cases: list[Case]) -> Callable[[Any], Any]:
    """Parametrise a test over cases."""
    return pytest.mark.parametrize("case", cases, ids=str)


everywhere = each(CASES)
