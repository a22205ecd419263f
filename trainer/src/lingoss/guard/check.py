# SPDX-License-Identifier: MIT-0
"""What the hooks run: ask the cluster or the volume, decide, and answer with one line and an exit status."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from lingoss.config import load
from lingoss.errors import LingossError
from lingoss.guard import api, volume
from lingoss.guard.claim import find_claim
from lingoss.guard.decide import Refusal, Workload, entering, leaving, mounting, remarks
from lingoss.guard.workloads import list_workloads

T = TypeVar("T")


def check_cluster(
    release: str,
    namespace: str,
    stage: str,
    names: Sequence[str],
    claim: str | None = None,
    force: bool = False,
    kinds: Sequence[str] | None = None,
) -> int:
    """Print whether the cluster lets `release` change to `stage`, whose workloads will be `names`; 0: yes, 1: no.

    `claim` is looked at where the stage reads it, and workloads of `kinds` only (default: of all). What cannot be found
    out is a refusal too. `force` turns every refusal into a warning.
    """
    against: list[Refusal] = []
    workloads: list[Workload] = _ask(lambda: list_workloads(api.in_cluster(), namespace, release, kinds), against) or []
    against += leaving(stage, workloads)
    if claim is not None:
        against += _ask(lambda: mounting(stage, find_claim(api.in_cluster(), namespace, claim)), against) or []
    if against and not force:
        return _refuse(against)
    for one in against:
        print(f"warning, overridden by force: {' '.join(one.text.split())}", flush=True)
    for line in remarks(stage, names, workloads):
        print(line, flush=True)
    print(f"release {release} may go on with stage {stage}", flush=True)
    return 0


def check_volume(stage: str, config: Path) -> int:
    """Print whether the volume holds what `stage` with this config starts from; 0: yes, 1: no or not to be found out."""
    against: list[Refusal] = []
    facts = _ask(lambda: volume.facts(stage, load(stage, config)), against)
    if facts is None or (against := entering(stage, facts)):
        return _refuse(against)
    told = f"has been done: {facts.own}" if facts.own else f"starts from {facts.source or 'nothing'}"
    print(f"stage {stage} {told}", flush=True)
    return 0


def _refuse(against: Sequence[Refusal]) -> int:
    print(against[0].line, flush=True)
    return 1


def _ask(question: Callable[[], T], problems: list[Refusal]) -> T | None:
    """The answer, or None and one problem more: no exception may end in a traceback, nor in leave to go on."""
    try:
        return question()
    except LingossError as error:
        problems.append(Refusal(f"the guard cannot decide, {error}"))
    except Exception as error:
        problems.append(Refusal(f"the guard cannot decide, it failed with {type(error).__name__}: {error}"))
    return None
