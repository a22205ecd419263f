# SPDX-License-Identifier: MIT-0
"""What veRL's file logger tells of a step: lines `{"step": 12, "data": {"critic/score/mean": …}}` (0.9.1, `tracking.py`)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from lingoss.grpo.ray.engine import Row
from lingoss.grpo.ray.prompts import figures

_NAMES = {
    "critic/score/mean": "reward",
    "actor/pg_loss": "loss",
    "actor/grad_norm": "grad_norm",
    "actor/lr": "lr",
    "actor/kl_loss": "kl",
    "rollout_corr/kl": "kl_rollout",
    "response_length/mean": "tokens",
    "response_length/max": "tokens/max",
    "response_length/clip_ratio": "truncated",
    "timing_s/gen": "seconds/rollout",
    "timing_s/update_actor": "seconds/train",
    "timing_s/step": "seconds",
}
_VALIDATION = re.compile(r"val-(?:core|aux)/lingoss/([\w/]+)/mean@1")


class MetricsFile:
    """Reads a growing file of veRL's; a line is read once it is whole."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, 0

    def rows(self) -> Iterator[Row]:
        """The steps that were added since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                added = file.read()
        except OSError:  # not there yet
            return
        whole = added[: added.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            if (found := row(line)) is not None:
                yield found


def row(line: bytes) -> Row | None:
    """Step and figures of a line, in our names; None where it is none."""
    try:
        found = json.loads(line)
        step, data = int(found["step"]), dict(found["data"])
    except (ValueError, LookupError, TypeError):
        return None
    asked = {name: f"validation/{match[1]}" for name in data if (match := _VALIDATION.fullmatch(name))}
    return step, figures(data, _NAMES | asked)
