# SPDX-License-Identifier: MIT-0
"""What the run folders tell the guard about the stage to come. Only reads: the volume is mounted read-only."""

import re
from collections.abc import Sequence

from lingoss import runs
from lingoss.config import GrpoConfig, ServeConfig, SftConfig
from lingoss.config.common import StageConfig
from lingoss.errors import LingossError
from lingoss.evaluate.last_gate import last_gate
from lingoss.guard.decide import EVALUATE, GRPO, PREPARE, SERVE, SFT, Facts

_INPUTS = {SFT: (PREPARE,), GRPO: (SFT,), EVALUATE: (PREPARE,), SERVE: (SFT, GRPO)}
_VALUES = {
    SFT: "sft.config",
    GRPO: "grpo.config",
    EVALUATE: "inference.evaluate.config",
    SERVE: "inference.serve.config",
}
"""Where the chart's values hold the settings of a stage."""


def facts(stage: str, config: StageConfig) -> Facts:
    """What is known about `stage` with this config. Raises LingossError when the runs cannot be listed."""
    if stage not in _INPUTS:
        return Facts()
    every = runs.list_runs(config.root)
    try:
        source, problem = _source(stage, config), ""
    except LingossError as error:
        source, problem = None, f"{_in_chart(stage, str(error))}{_unfinished(every, stage)}"
    if source and (newer := _newer(every, stage, config, source)):
        # An owner who has just changed a setting means the newer one; taking the older in silence wastes a whole run.
        source, problem = None, newer
    return Facts(
        own=_own(every, stage, config, source),
        source=source,
        problem=problem,
        gate=last_gate(config.root, source) if source and stage == GRPO else None,
        gate_forced=isinstance(config, GrpoConfig) and config.gate.force,
    )


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


def _newer(every: Sequence[runs.RunInfo], stage: str, config: StageConfig, source: str) -> str:
    """What is wrong when `parent: auto` would take `source` although a run of the same stage began later; or nothing."""
    if config.parent != "auto":
        return ""
    taken = next(run for run in every if run.name == source)
    later = [
        run
        for run in every
        if run.stage == taken.stage and not run.done and run.started and run.started > (taken.started or "")
    ]
    if not later:
        return ""
    newest = max(later, key=lambda run: run.started or "")
    return (
        f"{newest.name} began after {source}, and is {newest.state}{f' ({newest.reason})' if newest.reason else ''}: run "
        f"stage {newest.stage} to its end, or start from the older one with --set {_VALUES[stage]}.parent={source}"
    )


def _in_chart(stage: str, text: str) -> str:
    """A remedy for the command line in the words of the chart: its values and its stages."""
    text = re.sub(r"\bparent=", f"--set {_VALUES[stage]}.parent=", text)
    return re.sub(r"`lingoss (prepare|sft|grpo|evaluate)`", r"stage \1", text)


def _unfinished(every: Sequence[runs.RunInfo], stage: str) -> str:
    """The runs that could become the input, with what stops them."""
    found = [one for one in every if one.stage in _INPUTS[stage] and not one.done]
    told = [f"{one.name} is {one.state}{f' ({one.reason})' if one.reason else ''}" for one in found]
    return f"; unfinished: {', '.join(told)}" if told else ""


def _own(every: Sequence[runs.RunInfo], stage: str, config: StageConfig, source: str | None) -> str | None:
    """A finished run of the stage with these settings (and this input, if there is one), which would be found again."""
    for run in every:
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
