# SPDX-License-Identifier: MIT-0
"""What the tests of this folder share beside their fixtures."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lingoss.config import GrpoConfig
from lingoss.grpo.scoring import Scorer

# What makes a server start quickly on a CPU, beside its command.
ON_A_CPU = ["--enforce-eager", "--max-num-batched-tokens", "256"]


@dataclass(frozen=True)
class Trained:
    """A finished run of stage grpo, and the engine that TRL made for it."""

    run: Any
    generation: Any
    tokenizer: Any


class EvenScorer(Scorer):
    """The true verdicts with another reward, the share of even token ids: so small a model never earns the true one."""

    def __call__(self, completions: Sequence[Any]) -> list[Any]:
        found = super().__call__(completions)
        return [
            dataclasses.replace(verdict, reward=sum(id % 2 == 0 for id in one.ids) / len(one.ids))
            for verdict, one in zip(found, completions, strict=True)
        ]


def server_run(root: Path, port: int) -> GrpoConfig:
    """Two steps that draw from a server on this machine."""
    return GrpoConfig.model_validate(
        {
            "root": root,
            "data": {"languages": ["en", "fr"], "prompts_per_language": 4},
            "max_steps": 2,
            "prompts_per_step": 2,
            "num_generations": 4,
            "per_device_batch": 4,
            "max_completion_length": 16,
            "mask_truncated_completions": False,
            "optimizer": {"learning_rate": 1e-2, "warmup_ratio": 0.0},
            "validation": {"steps": 2, "prompts_per_language": 1},
            "gate": {"force": True},
            "rollout": {"mode": "server", "server_url": f"http://127.0.0.1:{port}", "server_timeout": 400.0},
            "threads": 1,
        }
    )
