# SPDX-License-Identifier: MIT-0
"""A root with a finished SFT run and a gate for it, a GRPO config that trains on it in seconds, and a reward for it."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conftest import prepared_root, tiny_sft
from lingoss import runs
from lingoss.config import EvaluateConfig, GrpoConfig
from lingoss.grpo.scoring import Scorer
from lingoss.sft import run as run_sft


def trained_root(model: Path, folder: Path, **changes: Any) -> Path:
    """A root below `folder` in which an adapter was trained on that model and judged viable."""
    root = prepared_root(model, folder)
    gate(root, run_sft(tiny_sft(root, **{"max_steps": 2, **changes})).name)
    return root


def gate(root: Path, sft: str, outcome: str = "viable", label: str = "1") -> None:
    """A finished evaluation whose gate says so of that run."""
    config = EvaluateConfig(root=root, run=label)
    with runs.open_run(root, "evaluate", config, (sft,)) as folder:
        folder.status("running", total=1)
        verdict = {"outcome": outcome, "languages": {}, "reasons": [f"it is {outcome}."], "runs": [sft]}
        (folder.path / "gate.json").write_text(json.dumps(verdict))
        folder.finish(1)


def tiny_grpo(root: Path, **changes: Any) -> GrpoConfig:
    """4 steps of 4 prompts with 4 completions of at most 12 tokens, a checkpoint a step, validation every 2 steps."""
    settings: dict[str, Any] = {
        "root": root,
        "data": {"languages": ["en", "fr"], "prompts_per_language": 6},
        "max_steps": 4,
        "prompts_per_step": 4,
        "num_generations": 4,
        "per_device_batch": 4,
        "max_completion_length": 12,
        "mask_truncated_completions": False,
        "optimizer": {"learning_rate": 1e-2, "warmup_ratio": 0.0},
        "rollout": {"mode": "transformers"},
        "validation": {"steps": 2, "prompts_per_language": 2},
        "checkpoint": {"save_steps": 1},
        "logging": {"completions_steps": 2, "completions": 3},
        "threads": 1,
    }
    return GrpoConfig(**{**settings, **changes})


class EvenScorer(Scorer):
    """The true verdicts with another reward: the share of even token ids. A random model never earns the true one."""

    def __call__(self, completions: Sequence[Any]) -> list[Any]:
        found = super().__call__(completions)
        return [
            dataclasses.replace(verdict, reward=sum(id % 2 == 0 for id in one.ids) / len(one.ids))
            for verdict, one in zip(found, completions, strict=True)
        ]

    def took(self, seconds: float) -> None:
        """Steps of a tiny model are so short that scoring would go to other processes, which take longer to start."""
