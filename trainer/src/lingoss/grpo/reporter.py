# SPDX-License-Identifier: MIT-0
"""What happens at the end of each step, in this order: validation, safety, the step's row, and then the checkpoint."""

from collections.abc import Mapping
from typing import Any

from transformers import TrainerCallback

from lingoss import runs
from lingoss.checkpoints import CheckpointStore
from lingoss.grpo.course import Course
from lingoss.grpo.draws import Clock
from lingoss.grpo.safety import Alarm
from lingoss.grpo.setting import Setting
from lingoss.progress import Progress, note
from lingoss.runs.metrics import Metrics
from lingoss.stopping import StopRequest

_SHOWN = ("reward", "informative", "loss", "tokens_per_s", "seconds")


class Reporter(TrainerCallback):  # type: ignore[misc]
    """`trainer` is set before training begins. `stopped` is the alarm that ended the run, if one did."""

    trainer: Any

    def __init__(
        self,
        setting: Setting,
        folder: runs.RunFolder,
        store: CheckpointStore,
        course: Course,
        completions: Metrics,
        progress: Progress,
        stop: StopRequest,
    ) -> None:
        self._setting, self._folder, self._store, self._course = setting, folder, store, course
        self._completions, self._progress, self._stop = completions, progress, stop
        self.stopped: Alarm | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Save as often as is asked for now, not before a resume; and look at the SFT policy before it changes."""
        state.compute_steps(args, state.max_steps)
        if not self._course.records:
            row = {"step": 0, **self._validation(0)}
            for alarm in self._course.alarms(row):
                note(alarm.level, {"kind": alarm.kind, "message": alarm.message})
            self._folder.metric(row)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Save and leave when a signal came; otherwise only tell the position."""
        self._folder.status(step=state.global_step)
        if self._stop:
            control.should_save = control.should_training_stop = True
        return control

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Mapping[str, float] | None = None, **kwargs: Any
    ) -> Any:
        """One row for the step, and a checkpoint where one is due by validation or by an alarm."""
        row, step = self.trainer.row, state.global_step
        if not row:
            return control  # the summary at the end of training
        logging = self._setting.config.logging
        row = {"step": step, **row}
        if self._setting.is_candidate(step):
            row |= self._validation(step)
            control.should_save = True
            self._store.pinned = self._course.best
        for alarm in self._course.alarms(row):
            note(alarm.level, {"step": step, "kind": alarm.kind, "message": alarm.message})
            if alarm.level == "stop" and self.stopped is None:
                self.stopped = alarm
                control.should_save = control.should_training_stop = True
        if step % logging.log_steps == 0 or step == self._setting.steps or self.stopped:
            self._folder.metric(row)
        if step % logging.completions_steps == 0:
            for shown in self.trainer.shown(logging.completions):
                self._completions.append(shown)
        self._progress.advance(step - self._progress.done, **{name: row[name] for name in _SHOWN})
        return control

    def _validation(self, step: int) -> dict[str, float]:
        """The validation slice under the policy as it is now: figures for the row, and a record for the choice."""
        prompts, clock = self._setting.prompts.validation, Clock()
        with clock("validation"):
            groups = self.trainer.validate(prompts)
        verdicts = [one.verdict for group in groups for one in group]
        figures = self._course.validated(step, prompts, verdicts, self._setting.config.format)
        return {**figures, "seconds/validation": round(clock.take()["validation"], 3)}
