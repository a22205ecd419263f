# SPDX-License-Identifier: MIT-0
"""The real command, killed for real: whatever the signal and the moment, the end is the same adapter."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import prepared_root, tiny_sft
from lingoss import config, runs
from lingoss.sft import run
from test_sft_run import adapter, equal

Wait = Callable[["subprocess.Popen[str]", Path], None]


def until_step(step: int) -> Wait:
    """Waits for the log line of that step, which is written before its checkpoint."""

    def wait(process: "subprocess.Popen[str]", folder: Path) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("{") and (told := json.loads(line))["task"] == "sft" and told["done"] == step:
                return
        pytest.fail(f"the command ended before step {step}")

    return wait


def until_a_checkpoint_is_half_written(process: "subprocess.Popen[str]", folder: Path) -> None:
    """Watches the folder for the name that a checkpoint has until it is whole."""
    while process.poll() is None:
        if any(folder.glob("sft-*/checkpoints/.partial-*")):
            return
    pytest.fail("the command ended without a checkpoint")


@pytest.mark.slow
def test_signals_of_every_kind_at_any_moment_end_in_the_same_adapter(tiny_llama: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    undisturbed = run(tiny_sft(prepared_root(tiny_llama, tmp_path / "a"), max_steps=12, checkpoint={"save_steps": 3}))
    root = prepared_root(tiny_llama, tmp_path / "b")
    settings = tmp_path / "sft.yaml"
    settings.write_text(config.dump(tiny_sft(root, max_steps=12, checkpoint={"save_steps": 3})), encoding="utf-8")
    command = [sys.executable, "-m", "lingoss", "sft", "--config", str(settings)]
    source = str(Path(runs.__file__).parents[2])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": source}
    for wait, number, status in (
        (until_step(2), signal.SIGKILL, -signal.SIGKILL),
        (until_a_checkpoint_is_half_written, signal.SIGKILL, -signal.SIGKILL),
        (until_step(5), signal.SIGTERM, 0),
        (until_step(8), signal.SIGINT, 130),
        (until_step(11), signal.SIGKILL, -signal.SIGKILL),
    ):
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            wait(process, root / "runs")
            process.send_signal(number)
            _, errors = process.communicate(timeout=120)
        assert process.returncode == status, errors
    last = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    info = next(one for one in runs.list_runs(root) if one.stage == "sft")
    assert info.done
    assert equal(adapter(info), adapter(undisturbed))
    assert [row["step"] for row in runs.read_metrics(info.path / "metrics.jsonl")] == list(range(1, 13))
    started = next(
        told
        for line in last.stderr.splitlines()
        if line.startswith("{") and (told := json.loads(line))["task"] == "start"
    )
    assert started["step"] == 9  # the newest checkpoint: one every three steps, and those of the two graceful stops
    again = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert f"{info.name} is done" in again.stderr
