# SPDX-License-Identifier: MIT-0
"""A run of stage grpo whose completions the real vLLM draws, through TRL."""

import math

import pytest

from engine.helpers import Trained
from lingoss import runs


def test_two_steps(trained: Trained) -> None:
    assert (trained.run.state, trained.run.step) == ("done", 2)
    rows = [row for row in runs.read_metrics(trained.run.path) if "loss" in row]
    assert [row["step"] for row in rows] == [1, 2]
    for row in rows:
        assert math.isfinite(row["loss"])
        assert row["informative"] > 0
        assert row["grad_norm"] > 0
        # The engine has the policy that is trained: its probabilities are the trainer's but for rounding.
        assert row["importance_ratio/mean"] == pytest.approx(1, abs=0.05)
        assert 0 <= row["kl_rollout"] < 0.02
        assert row["seconds/sync"] > 0
