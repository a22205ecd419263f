# SPDX-License-Identifier: MIT-0
"""veRL's own `validate_config` on what we generate: the fast tests see unknown keys, this one bad values too.

It imports vLLM for a LoRA adapter's rank, and so do we; nothing else of it needs a GPU or is replaced.
"""

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lingoss.config import GrpoConfig
from lingoss.grpo.ray.layout import Layout
from lingoss.grpo.verl import command
from lingoss.prepare import cache_folder

LOCK = Path(__file__).with_name("verl.lock")
PATHS = command.Paths(*(Path("/data/run") / name for name in ("m", "t", "a", "p", "v", "r", "rm", "c")))
ADAPTER = command.Adapter(8, 16, ["k_proj", "q_proj"])
CHECK = """
import importlib.util, json, pathlib, sys
from hydra import compose, initialize_config_dir
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.utils.config import omega_conf_to_dataclass, validate_config
root = pathlib.Path(importlib.util.find_spec("verl").submodule_search_locations[0])
found = []
with initialize_config_dir(str(root / "trainer" / "config"), version_base=None):
    for overrides in json.load(sys.stdin):
        config = compose("ppo_trainer", overrides=overrides)
        reference, critic = need_reference_policy(config), need_critic(config)
        try:
            validate_config(config=config, use_reference_policy=reference, use_critic=critic)
            for part in ("actor", "rollout"):
                omega_conf_to_dataclass(config.actor_rollout_ref[part])
            found.append([reference, critic])
        except Exception as problem:
            found.append(f"{type(problem).__name__}: {problem}")
print("FOUND", json.dumps(found))
"""


def packages() -> Path:
    """veRL and the rest of the lock, installed once."""
    place = Path(cache_folder()) / f"verl-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / "verl.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "ready").exists():
            uv = Path(__file__).parents[2] / ".venv" / "bin" / "uv"
            install = [
                str(uv),
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--require-hashes",
                "--python",
                sys.executable,
            ]
            subprocess.run([*install, "--target", str(place), "--requirement", str(LOCK)], check=True)
            (place / "ready").touch()
    return place


def checked(lists: list[list[str]]) -> list[Any]:
    """[has a reference model, has a critic] for each list of overrides, or why veRL refuses it."""
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        input=json.dumps(lists),
        env={**os.environ, "PYTHONPATH": str(packages())},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("FOUND "))
    return list(json.loads(line.removeprefix("FOUND ")))


@pytest.mark.timeout(900)  # most of it is imports: two minutes on a busy core
def test_verl_accepts_what_we_generate_and_refuses_bad_values() -> None:
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"beta": 0.05, "loss_type": "dr_grpo", "importance_sampling": {"mode": "none"}},
        {"optimizer": {"schedule": "cosine"}, "verl": {"offload": True}, "logging": {"report_to": "tensorboard"}},
    )
    lists, expected = [], []
    for change in changes:
        for adapter in (ADAPTER, None):
            weights = {"weights": "adapter" if adapter else "full"}
            config = GrpoConfig.model_validate({"engine": "verl", "dtype": "bfloat16", **weights, **change})
            command.require(config, Layout(4, 0, 4))
            lists.append(command.overrides(config, Layout(4, 0, 4), PATHS, (500, 1024), adapter))
            expected.append([config.beta > 0, False])
    wrong = (
        ("trainer.nnodes=3", r"(128) must be divisible by minimal possible batch size (12)"),
        ("actor_rollout_ref.actor.loss_agg_mode=bogus", "Invalid loss_agg_mode: bogus"),
        ("actor_rollout_ref.model.lora_rank=999", "999"),
    )
    found = checked([*lists, *([*lists[0], override] for override, _ in wrong)])
    assert found[: len(lists)] == expected
    for (override, told), refusal in zip(wrong, found[len(lists) :], strict=True):
        assert isinstance(refusal, str), override
        assert told in refusal
