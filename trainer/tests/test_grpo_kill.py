# SPDX-License-Identifier: MIT-0
"""The real command, killed for real between two checkpoints: the end is the same adapter."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grpo_helpers import EvenScorer, tiny_grpo, trained_root
from lingoss import config, runs
from lingoss.grpo import run
from test_sft_run import adapter, equal

# The command with the tests' reward, which a random model can earn.
COMMAND = """
import sys
from grpo_helpers import EvenScorer
from lingoss.cli import main
from lingoss.grpo import stage
stage.Scorer = EvenScorer
sys.exit(main(sys.argv[1:]))
"""


def wait_for_step(process: "subprocess.Popen[str]", step: int) -> None:
    """Reads the log up to the line of the step before, so a signal finds that step drawing or training."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("{") and (told := json.loads(line))["task"] == "grpo" and told["done"] == step - 1:
            return
    pytest.fail(f"the command ended before step {step}")


@pytest.mark.slow
def test_killed_in_a_step_it_ends_in_the_same_adapter(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lingoss.grpo.stage.Scorer", EvenScorer)
    root = trained_root(tiny_llama, tmp_path)
    changes = {"max_steps": 7, "beta": 0.05, "dynamic_sampling": True, "checkpoint": {"save_steps": 2}}
    undisturbed = run(tiny_grpo(root, run="undisturbed", **changes))
    settings = tmp_path / "grpo.yaml"
    settings.write_text(config.dump(tiny_grpo(root, run="killed", **changes)), encoding="utf-8")
    command = [sys.executable, "-c", COMMAND, "grpo", "--config", str(settings)]
    paths = [str(Path(__file__).parent), str(Path(runs.__file__).parents[2])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for_step(process, 6)
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, errors
    last = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    told = [json.loads(line) for line in last.stderr.splitlines() if line.startswith("{")]
    assert next(line for line in told if line["task"] == "start")["step"] == 4
    info = next(one for one in runs.list_runs(root) if one.stage == "grpo" and one.name != undisturbed.name)
    assert info.done
    assert equal(adapter(info), adapter(undisturbed))
    assert [row["step"] for row in runs.read_metrics(info.path)] == list(range(8))
    assert (info.path / "completions.jsonl").read_text() == (undisturbed.path / "completions.jsonl").read_text()
    assert info.done_record()["choice"] == undisturbed.done_record()["choice"]
