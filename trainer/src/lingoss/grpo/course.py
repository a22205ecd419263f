# SPDX-License-Identifier: MIT-0
"""What a run has found out so far: figures of its validation slice, what the safety watch remembers, the probe's rows.

Checkpoints carry it, so that a resumed run goes on with what an undisturbed one would know.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lingoss.config.grpo import Safety
from lingoss.data import Prompt
from lingoss.errors import LingossError
from lingoss.grpo.choose import choose, record
from lingoss.grpo.safety import Alarm, Watch
from lingoss.score import Verdict

FILE = "lingoss.json"
"""Its name in a checkpoint."""


class Course:
    """`records`: the validation of each candidate and of step 0, as `choose` wants them. `probe`: what the parity probe
    of the first start measured of the trainer, for those of later starts."""

    def __init__(self, safety: Safety) -> None:
        self.records: list[dict[str, Any]] = []
        self.probe: Any = None
        self._watch = Watch(safety)

    @property
    def best(self) -> frozenset[int]:
        """The step whose checkpoint would become the adapter now; empty while there is none, or none is good."""
        step = choose(self.records).step if len(self.records) > 1 else 0
        return frozenset({step} if step else ())

    def validated(
        self, step: int, prompts: Sequence[Prompt], verdicts: Sequence[Verdict], format: str
    ) -> dict[str, float]:
        """Note the validation of `step`; returns its figures for the step's row."""
        found = record(step, prompts, verdicts, format)
        self.records.append(found)
        return {f"validation/{name}": value for name, value in found["figures"].items()}

    def alarms(self, row: Mapping[str, Any]) -> list[Alarm]:
        """What the safety watch says to a step's row."""
        return self._watch.step(row)

    def dump(self) -> str:
        """The text of the file."""
        state = {"records": self.records, "watch": self._watch.state_dict(), "probe": self.probe}
        return json.dumps(state, ensure_ascii=True, sort_keys=True)

    def load(self, checkpoint: Path) -> None:
        """Go on from a checkpoint.

        Raises:
            LingossError: its file is missing or damaged.
        """
        path = checkpoint / FILE
        try:
            state = json.loads(path.read_bytes())
            self.records, self.probe = state["records"], state["probe"]
            self._watch.load_state_dict(state["watch"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise LingossError(
                f"{path} cannot be read ({error!r}): remove {checkpoint.name}, and the run goes on from the one before"
            ) from error
