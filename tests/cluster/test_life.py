# SPDX-License-Identifier: MIT-0
"""The whole life of a release on each layout: every stage schedules, with exactly its GPUs, and none is left behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster import world
from cluster.release import Release, layout

WHOLE = ("g6e-12xlarge", "local-cpu")
"""What CI runs whole; the others whole in `make test-all`."""
OTHERS = ("g5-12xlarge", "g6e-48xlarge", "p4d-24xlarge", "p5-48xlarge", "p5en-48xlarge")


@pytest.mark.parametrize("name", [*WHOLE, *(pytest.param(name, marks=pytest.mark.full) for name in OTHERS)])
def test_life(name: str, release: Callable[..., Release], layout_nodes: Callable[[str, int], list[str]]) -> None:
    hardware = layout(name)
    if hardware["gpus"]:
        layout_nodes(hardware["instanceType"], hardware["nodes"])
    one = release(name)

    one.prepare()
    assert one.gpus() == 0
    _trains(one, "sft", hardware)
    run = one.trained()
    _evaluates(one)
    one.judged(run)
    for engine in hardware["engines"]:
        _reinforces(one, engine, hardware)
    one.reinforced()
    _evaluates(one)
    _serves(one)
    one.stage("none")
    one.cluster.wait("the server to be gone", lambda: not world.pods(one.api, one.namespace, one.name))
    one.uninstall()
    one.gone()
    assert one.claim()["status"]["phase"] == "Bound"
