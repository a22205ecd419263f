# SPDX-License-Identifier: MIT-0
"""Our trainer on a tiny model: its config, what its run folder tells, and what an undisturbed run tells instead."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import yaml
from safetensors.numpy import load_file

from elastic.warm import Server

GLOBAL_BATCH = 12  # 1, 2, 3, 4 and 6 ranks share it out
SETTINGS: Mapping[str, Any] = {
    "data": {"examples_per_language": 4},
    "global_batch": GLOBAL_BATCH,
    "per_device_batch": 3,
    "optimizer": {"learning_rate": 1e-2},
    "checkpoint": {"save_steps": 5},
    "threads": 1,
    "lock_wait": 300.0,  # a killed rank 0 of a changed host name is waited for until its lock is stale
}


@dataclass(frozen=True)
class Run:
    """One training run in a root of its own; `command` is what a rank executes."""

    root: Path
    config: Path

    @property
    def command(self) -> list[str]:
        """For `rank.py` and the warm server."""
        return ["lingoss", "sft", "--config", str(self.config)]

    @property
    def folder(self) -> Path:
        """The run's folder; there is one as soon as rank 0 has begun."""
        return next(iter(sorted((self.root / "runs").glob("sft-*"))), self.root / "runs" / "sft")

    @property
    def done(self) -> bool:
        """Whether it is finished."""
        return (self.folder / "DONE.json").exists()

    def examples(self) -> list[tuple[int, int, list[str]]]:
        """Step, processes and example ids of every step that counts."""
        rows = _rows(self.folder / "examples.jsonl")
        return [(row["step"], row["processes"], row["examples"]) for row in rows]

    def losses(self) -> dict[int, float]:
        """Loss of every step."""
        return {row["step"]: row["loss"] for row in _rows(self.folder / "metrics.jsonl")}

    def newest(self) -> int:
        """Step of the newest complete checkpoint, 0 without one."""
        steps = [int(path.name.rpartition("-")[2]) for path in self.folder.glob("checkpoints/checkpoint-*")]
        return max(steps, default=0)

    @property
    def saving(self) -> bool:
        """Whether a checkpoint is being written."""
        return any(self.folder.glob("checkpoints/.partial-*"))

    def last(self) -> int:
        """The last step that was taken and counts."""
        return max((step for step, _, _ in self.examples()), default=0)

    def at(self, step: int) -> Callable[[], bool]:
        """A condition: that step has been taken."""
        return lambda: self.last() >= step

    def adapter(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """The final weights."""
        found: dict[str, numpy.ndarray[Any, Any]] = load_file(self.folder / "adapter" / "adapter_model.safetensors")
        return found

    def require_equal(self, undisturbed: Run) -> None:
        """The same examples at every step, the same loss curve, the same weights: but for the order of float sums."""
        assert self.done
        assert [(step, ids) for step, _, ids in self.examples()] == [
            (step, ids) for step, _, ids in undisturbed.examples()
        ]
        curve, expected = self.losses(), undisturbed.losses()
        assert list(curve) == list(expected)
        numpy.testing.assert_allclose(list(curve.values()), list(expected.values()), rtol=2e-4, atol=2e-4)
        weights, wanted = self.adapter(), undisturbed.adapter()
        assert weights.keys() == wanted.keys()
        for name, tensor in weights.items():
            numpy.testing.assert_allclose(tensor, wanted[name], rtol=2e-3, atol=2e-4, err_msg=name)


def new_run(prepared: Path, folder: Path, steps: int, **changes: Any) -> Run:
    """A run of `steps` steps in a root that shares what prepare brought."""
    root = folder / "root"
    (root / "runs").mkdir(parents=True)
    for entry in prepared.iterdir():
        if entry.name != "runs":
            (root / entry.name).symlink_to(entry)
    for entry in (prepared / "runs").iterdir():
        if entry.name.startswith("prepare-"):
            (root / "runs" / entry.name).symlink_to(entry)
    config = folder / "sft.yaml"
    config.write_text(yaml.safe_dump({**SETTINGS, "root": str(root), "max_steps": steps, **changes}))
    return Run(root, config)


def undisturbed(server: Server, run: Run, environment: Mapping[str, str], seconds: float = 120) -> Run:
    """The run in one process, to its end."""
    log = run.config.with_suffix(".log")
    command = server.start(run.command, environment, log, log)
    deadline = time.monotonic() + seconds
    while command.poll() is None:
        assert time.monotonic() < deadline, f"no end in {seconds} s: {log.read_text()[-3000:]}"
        time.sleep(0.05)
    assert run.done, log.read_text()[-3000:]
    return run


def _rows(path: Path) -> list[dict[str, Any]]:
    """JSON lines; the last one may be half written."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
