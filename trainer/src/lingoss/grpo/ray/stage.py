# SPDX-License-Identifier: MIT-0
"""The stage with a framework on Ray: from a config to a finished run folder, or to one that goes on."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from lingoss import runs
from lingoss.config import GrpoConfig
from lingoss.data import language_table
from lingoss.errors import LingossError, StopError, TemporaryError
from lingoss.grpo import prompts as grpo_prompts
from lingoss.grpo.ray.child import follow
from lingoss.grpo.ray.disk import Guard, require_room
from lingoss.grpo.ray.engine import Engine, python
from lingoss.grpo.ray.layout import layout_of, require_enough
from lingoss.grpo.safety import Alarm, Watch
from lingoss.grpo.setting import Setting, resolve
from lingoss.models import offline
from lingoss.progress import Progress, note
from lingoss.runs.files import writing
from lingoss.sft.setting import require_tracker
from lingoss.sft.stage import carry_out
from lingoss.stopping import StopRequest

_TRAINED = "trained"
"""Marks that the framework ended well: what it left must not be trained on once more."""
_SHOWN = ("reward", "loss", "correct", "tokens")

Make = Callable[..., Engine]


def run(config: GrpoConfig, make: Make) -> runs.RunInfo:
    """Train with the framework of `make`, or resume, or find that it is done. The folder's lock is held meanwhile.

    Neither framework saves on a signal: a stopped, killed or lost run goes on from its last whole checkpoint, so that
    fewer than `checkpoint.save_steps` steps are lost.

    Raises:
        StopError: a safety stop.
        LingossError: bad input, a layout that does not fit, too little disk, or a result that is not right.
        TemporaryError: the framework or the cluster failed.
    """
    offline()
    setting = resolve(config)
    folder = setting.folder()
    if folder.done:
        return carry_out(folder, lambda stop: None)
    engine = make(setting, layout_of(), folder.path)
    require_start(engine)
    return carry_out(folder, lambda stop: _work(engine, folder, stop))


def require_start(engine: Engine) -> None:
    """Refuse what could not work or would not be worth it, before anything is written. Raises LingossError."""
    engine.require()
    require_tracker(engine.config.logging.report_to)
    engine.require_packages()
    engine.setting.require_gate()


def _work(engine: Engine, folder: runs.RunFolder, stop: StopRequest) -> None:
    setting, config = engine.setting, engine.config
    folder.status("running", total=setting.steps)
    _tell(engine)
    require_room(folder.path, engine.room, config.checkpoint)
    trained = engine.work / _TRAINED
    start = setting.steps if trained.exists() else engine.repair()
    folder.truncate_metrics(start)
    folder.status("running", step=start)
    note("start", {"run": folder.name, "step": start, "of": setting.steps, "gpus": engine.layout.gpus})
    if stop:
        return
    if trained.exists():  # only what follows the training was interrupted
        _finish(engine, folder)
        return
    engine.prepare()
    _require_cluster(engine)
    with (
        Progress("grpo", setting.steps, "steps", done=start) as progress,
        Guard(engine.work, engine.room.most, engine.prune) as guard,
    ):
        watcher = _Watcher(engine, folder, progress)
        try:
            ended = follow(
                engine.command_line(),
                engine.environment(),
                folder.path / f"{engine.name}.log",
                watcher.read,
                lambda: bool(stop) or watcher.stopped is not None,
                lambda: _tick(guard, watcher),
            )
        finally:
            watcher.read("")
    note("disk", {"peak": runs.gigabytes(max(guard.peak, runs.folder_size(engine.work)))})
    if watcher.stopped:
        kind = watcher.stopped.kind
        raise StopError(
            f"step {watcher.step}: {watcher.stopped.message}; what was saved stays, and the run goes on from there "
            f"with safety.override=[{kind}]"
        )
    if not ended:
        folder.status("stopped", step=watcher.step)
        return
    with writing(trained):
        trained.touch()
    _finish(engine, folder)


def _tick(guard: Guard, watcher: "_Watcher") -> None:
    guard.require()
    watcher.read("")


class _Watcher:
    """Reads the framework's log: a row for each step, the position, and whether something is wrong."""

    def __init__(self, engine: Engine, folder: runs.RunFolder, progress: Progress) -> None:
        self._engine, self._folder, self._progress = engine, folder, progress
        self._watch = Watch(engine.config.safety)
        self.step = progress.done
        self.stopped: Alarm | None = None
        for row in runs.read_metrics(folder.path / "metrics.jsonl"):  # what the runs before this one saw
            self._watch.step({key: value for key, value in row.items() if isinstance(value, int | float)})

    def read(self, line: str) -> None:
        for step, figures in self._engine.steps(line):
            self._one(step, figures)

    def _one(self, step: int, figures: dict[str, float]) -> None:
        row = {"step": step, **figures}
        if step == self.step and all(name.startswith("validation/") for name in figures):
            self._folder.metric(row)
            return
        if step <= self.step:
            return
        for alarm in self._watch.step(row):
            note(alarm.level, {"step": step, "kind": alarm.kind, "message": alarm.message})
            if alarm.level == "stop" and self.stopped is None:
                self.stopped = alarm
        self._folder.metric(row)
        self._folder.status(step=step)
        self._progress.advance(step - self.step, **{name: row[name] for name in _SHOWN if name in row})
        self.step = step


def _require_cluster(engine: Engine) -> None:
    """Wait for the layout's GPUs. Raises LingossError when they do not come, TemporaryError without a cluster."""
    seconds = engine.config.cluster_wait
    command = python("-m", "lingoss.grpo.ray.wait", str(engine.layout.gpus), str(seconds))
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=seconds + 300, check=True)
        there = int(done.stdout.split()[-1])
    except (subprocess.SubprocessError, ValueError, IndexError) as error:
        raise TemporaryError(f"the Ray cluster cannot be asked for its GPUs ({error})") from error
    require_enough(engine.layout, there)


def _finish(engine: Engine, folder: runs.RunFolder) -> None:
    setting = engine.setting
    engine.collect()
    base, prompts = setting.base, setting.prompts
    folder.finish(
        setting.steps,
        lineage={"base": {"hub_id": base.hub_id, "revision": base.revision, "digest": base.model_digest}},
        check=engine.check,
        engine={"name": engine.name, "gpus": engine.layout.gpus, "remarks": engine.remarks},
        language_table=language_table(prompts.rows).to_rows(),
        prompts={**prompts.counts, "passes": round(prompts.passes(setting.steps), 3)},
        completion_length=setting.completion_length,
        gate=setting.gate.outcome if setting.gate else None,
    )
    shutil.rmtree(engine.work, ignore_errors=True)  # hundreds of gigabytes that nobody needs any more
    print(f"The policy of step {setting.steps} is the result; evaluation decides on it.", file=sys.stderr, flush=True)


def _tell(engine: Engine) -> None:
    setting: Setting = engine.setting
    for difference in setting.gate_differences:
        note("gate", {"remark": f"the gate was measured with {difference}"})
    for remark in [*setting.prompts.remarks, *engine.remarks]:
        note("data", {"remark": remark})
    grpo_prompts.tell(setting.prompts)


def plan(config: GrpoConfig, setting: Setting, make: Make) -> dict[str, Any]:
    """The part of the plan that only an engine on Ray has: layout, disk, remarks, whether it starts, the command."""
    try:
        layout = layout_of()
    except LingossError as refusal:
        return {"starts": f"no: {refusal}"}
    engine = make(setting, layout, setting.folder().path)
    room = engine.room
    found: dict[str, Any] = {
        "layout": {"trainer_gpus": layout.trainer_gpus, "rollout_gpus": layout.rollout_gpus, "gpus": layout.gpus},
        "disk": {
            "needed": runs.gigabytes(room.most),
            "one_checkpoint": runs.gigabytes(room.checkpoint),
            "checkpoints": room.kept,
            "free": runs.gigabytes(runs.free_bytes(config.root)),
        },
        "remarks": engine.remarks,
    }
    try:
        engine.require()
        found["command"] = shlex.join(engine.command_line())
        require_start(engine)
    except LingossError as refusal:
        return {"starts": f"no: {refusal}", **found}
    return {"starts": "yes", **found}
