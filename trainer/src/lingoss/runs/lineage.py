# SPDX-License-Identifier: MIT-0
"""Which run came from which: the chain of parents, and the parent that a stage starts from."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lingoss.errors import LingossError
from lingoss.runs.ids import canonical_json, split_name
from lingoss.runs.read import RunInfo, find_run, list_runs, newest_finished, read_run

INPUTS = {"sft": ("prepare",), "grpo": ("sft",), "serve": ("sft", "grpo")}
"""The stages whose runs a stage can start from."""


def lineage(root: Path, run: RunInfo | str) -> tuple[RunInfo, ...]:
    """The run, its parents, their parents and so on, nearest first and each once.

    A parent whose folder is gone is there too, with that problem. Raises LingossError when `run` itself is unknown.
    """
    chain = [run if isinstance(run, RunInfo) else find_run(root, run)]
    for current in chain:  # grows while it is walked; a name already in it is not added, so circles end
        names = {known.name for known in chain}
        chain.extend(_read(root, parent) for parent in dict.fromkeys(current.parents) if parent not in names)
    return tuple(chain)


def inherited(root: Path, parents: Sequence[str]) -> dict[str, Any]:
    """What a run's lineage takes from its parents.

    `base` (the base model's hub id, revision and digest; None unless all parents agree), `parents` (names), `chain`
    (all ancestors, nearest first) and `parent_digests` ({parent: one sha256 over the digests of its files}).
    """
    found = [_read(root, parent) for parent in parents]
    chain = dict.fromkeys(ancestor.name for parent in found for ancestor in lineage(root, parent))
    bases = [_lineage_of(parent).get("base") for parent in found]
    return {
        "base": bases[0] if bases and all(base == bases[0] for base in bases) else None,
        "parents": list(parents),
        "chain": list(chain),
        "parent_digests": {parent.name: digest for parent in found if (digest := content_digest(parent))},
    }


def content_digest(run: RunInfo) -> str | None:
    """One sha256 over the file digests in a run's DONE.json; None when it has none."""
    digests = (run.record or {}).get("digests")
    return hashlib.sha256(canonical_json(digests).encode()).hexdigest() if isinstance(digests, dict) else None


def find_parent(root: Path, stage: str, ref: str = "auto") -> RunInfo:
    """The finished run that `stage` (sft, grpo or serve) starts from; `ref` is the config's `parent`.

    "auto" is the newest finished run of the stage before. For serve it is the newest SFT run, unless a GRPO run came
    of it: then a person has to say which. Raises LingossError when there is none, or when `ref` is unfinished or of a
    stage that cannot be the input.
    """
    if stage not in INPUTS:
        raise LingossError(f"stage {stage!r} has no parent to find: only {', '.join(INPUTS)} have")
    inputs = INPUTS[stage]
    if ref != "auto":
        run = find_run(root, ref)
        if run.stage not in inputs:
            raise LingossError(f"{run.name} cannot be the parent of {stage}: give a run of stage {' or '.join(inputs)}")
        if not run.done:
            raise LingossError(f"{run.name} is not finished ({run.state}): finish it first, or give another parent")
        return run
    runs = list_runs(root)
    newest = newest_finished(run for run in runs if run.stage == inputs[0])
    if newest is None:
        raise LingossError(
            f"{stage} needs a finished run of stage {inputs[0]} below {Path(root) / 'runs'}: run it first"
        )
    children = [run for run in runs if run.done and run.stage in inputs[1:] and newest.name in run.parents]
    if children:
        choices = " or ".join(f"parent={run.name}" for run in (newest, *children))
        raise LingossError(f"{stage} has a choice of runs, and `lingoss accept` says which is better: set {choices}")
    return newest


def _read(root: Path, name: str) -> RunInfo:
    path = Path(root) / "runs" / name
    parts = split_name(name)
    if parts and path.is_dir():
        return read_run(path)
    return RunInfo(path, name, *(parts or ("", "")), problems=("its folder is missing",))


def _lineage_of(run: RunInfo) -> dict[str, Any]:
    found = (run.record or {}).get("lineage")
    return found if isinstance(found, dict) else {}
