# SPDX-License-Identifier: MIT-0
"""What the hook runs: ask the cluster and the volume, decide, and answer with one line and an exit status."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from lingoss.config import load
from lingoss.errors import LingossError
from lingoss.guard import api, volume
from lingoss.guard.decide import NEEDS_INPUT, Facts, Refusal, Workload, refusals, replaced
from lingoss.guard.workloads import list_workloads

T = TypeVar("T")


def check(
    release: str, namespace: str, stage: str, names: Sequence[str], config: Path | None = None, force: bool = False
) -> int:
    """Print whether `release` may change to `stage`, whose workloads will be `names`; 0: yes, 1: no.

    What cannot be found out is a refusal too. `force` turns every refusal into a warning.
    """
    problems: list[Refusal] = []
    workloads: list[Workload] = _ask(lambda: list_workloads(api.in_cluster(), namespace, release), problems) or []
    facts = _ask(lambda: _facts(stage, config), problems)
    against = [*problems, *refusals(stage, workloads, facts)]
    if against and not force:
        print(against[0].line, flush=True)
        return 1
    for one in against:
        print(f"warning, overridden by force: {' '.join(one.text.split())}", flush=True)
    for line in replaced(stage, names, workloads):
        print(line, flush=True)
    print(f"release {release} may go on with stage {stage}", flush=True)
    return 0


def _facts(stage: str, config: Path | None) -> Facts:
    if stage not in NEEDS_INPUT:
        return Facts()
    if config is None:
        raise LingossError(f"stage {stage} needs --config FILE, the guard cannot know its input without")
    return volume.facts(stage, load(stage, config))


def _ask(question: Callable[[], T], problems: list[Refusal]) -> T | None:
    """The answer, or None and one problem more: no exception may end in a traceback, nor in leave to go on."""
    try:
        return question()
    except LingossError as error:
        problems.append(Refusal(f"the guard cannot decide, {error}"))
    except Exception as error:
        problems.append(Refusal(f"the guard cannot decide, it failed with {type(error).__name__}: {error}"))
    return None
