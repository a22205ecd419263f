# SPDX-License-Identifier: MIT-0
"""What the run folders tell the guard about the stage to come. Only reads: the volume is mounted read-only."""

import json
from pathlib import Path

from lingoss import runs
from lingoss.config import GrpoConfig, ServeConfig, SftConfig
from lingoss.config.common import StageConfig
from lingoss.errors import LingossError
from lingoss.guard.decide import EVALUATE, GRPO, PREPARE, SERVE, SFT, Facts, GateResult

_INPUTS = {SFT: (PREPARE,), GRPO: (SFT,), EVALUATE: (PREPARE,), SERVE: (SFT, GRPO)}


def facts(stage: str, config: StageConfig) -> Facts:
    """What is known about `stage` with this config. Raises LingossError when the runs cannot be listed."""
    if stage not in _INPUTS:
        return Facts()
    try:
        source, problem = _source(stage, config), ""
    except LingossError as error:
        source, problem = None, f"{error}{_unfinished(config.root, stage)}"
    return Facts(
        own=_own(stage, config, source),
        source=source,
        problem=problem,
        gate=last_gate(config.root, source) if source and stage == GRPO else None,
        gate_forced=isinstance(config, GrpoConfig) and config.gate.force,
    )


def last_gate(root: Path, run: str) -> GateResult | None:
    """What the newest finished evaluation that judged `run` says; None when there is none.

    A newer one whose gate.json cannot be read counts as one that says `unreadable`: an older answer might be wrong.
    """
    done = [one for one in runs.list_runs(root) if one.stage == EVALUATE and one.done]
    for one in sorted(done, key=lambda one: one.finished or "", reverse=True):
        try:
            found = json.loads((one.path / "gate.json").read_bytes())
            judged, outcome, reasons = found["runs"][0], str(found["outcome"]), found.get("reasons") or [""]
            reason = " ".join(str(reasons[0]).split()).rstrip(".")
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            return GateResult(one.name, "unreadable", f"{one.path / 'gate.json'}: {type(error).__name__}")
        if judged == run:
            return GateResult(one.name, outcome, reason)
    return None


def _source(stage: str, config: StageConfig) -> str:
    """The finished run that the stage starts from. Raises LingossError when there is none."""
    if isinstance(config, ServeConfig):
        from lingoss.serve import choose

        return choose(config).run.name
    if stage != EVALUATE:
        return runs.find_parent(config.root, stage, config.parent).name
    run = runs.find_run(config.root, "latest:prepare" if config.parent == "auto" else config.parent)
    if not run.done:
        raise LingossError(f"{run.name} is not finished ({run.state}): run stage prepare to its end first")
    if run.stage != PREPARE:
        raise LingossError(f"{run.name} cannot be the parent of evaluate: give a run of stage prepare")
    return run.name


def _unfinished(root: Path, stage: str) -> str:
    """The runs that could become the input, with what stops them."""
    found = [one for one in runs.list_runs(root) if one.stage in _INPUTS[stage] and not one.done]
    told = [f"{one.name} is {one.state}{f' ({one.reason})' if one.reason else ''}" for one in found]
    return f"; unfinished: {', '.join(told)}" if told else ""


def _own(stage: str, config: StageConfig, source: str | None) -> str | None:
    """A finished run of the stage with these settings (and this input, if there is one), which would be found again."""
    for run in runs.list_runs(config.root):
        if run.done and run.stage == stage and (source is None or source in run.parents):
            try:
                earlier = type(config).model_validate(run.config)
            except ValueError:  # written by a version with other settings
                continue
            if _name(earlier) == _name(config):
                return run.name
    return None


def _name(config: StageConfig) -> tuple[object, ...]:
    """What of a config enters the run id, and the files whose content does."""
    files = config.data.files if isinstance(config, GrpoConfig | SftConfig) else ()
    return config.identity(), config.run, files
