# SPDX-License-Identifier: MIT-0
"""Stage sft in several processes (gloo on a CPU): the number of them, stops and faults change nothing in the result."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from conftest import prepared_root, tiny_sft
from lingoss import config, runs
from ranks import Ranks, at_step
from test_sft_run import adapter

pytestmark = pytest.mark.slow

TERM, USR1, KILL = (f"os.kill(os.getpid(), signal.{name})" for name in ("SIGTERM", "SIGUSR1", "SIGKILL"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path) -> Path:
    return prepared_root(tiny_llama, tmp_path_factory.mktemp("distributed"))


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    with Ranks(tmp_path_factory.mktemp("logs")) as started:
        yield started


def command(root: Path, run: str, **changes: Any) -> list[str]:
    """A training of 40 examples in 10 steps of 12, the last one short, with dropout."""
    settings: dict[str, Any] = {
        "run": run,
        "data": {"examples_per_language": 8},
        "epochs": 2.9,
        "max_steps": None,
        "global_batch": 12,
        "per_device_batch": 1,  # divides the share of any number of ranks, so that dropout is the same too
        "lora": {"dropout": 0.2},
        "checkpoint": {"save_steps": 3},
    }
    file = root / f"{run}.yaml"
    file.write_text(config.dump(tiny_sft(root, **{**settings, **changes})), encoding="utf-8")
    return ["sft", "--config", str(file)]


def folder(root: Path, run: str) -> runs.RunInfo:
    return next(one for one in runs.list_runs(root) if one.stage == "sft" and one.config["run"] == run)


def examples(info: runs.RunInfo) -> list[list[str]]:
    rows = [json.loads(line) for line in (info.path / "examples.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(1, len(rows) + 1))
    return [row["examples"] for row in rows]


def figures(info: runs.RunInfo, *names: str) -> list[float]:
    return [row[name] for row in runs.read_metrics(info.path / "metrics.jsonl") for name in names]


def same(one: runs.RunInfo, other: runs.RunInfo, tolerance: float = 1e-4) -> None:
    """Both saw the same examples in the same order, with the same losses, and have the same adapter but for rounding."""
    assert examples(one) == examples(other)
    assert figures(one, "step", "lr", "tokens", "epoch") == figures(other, "step", "lr", "tokens", "epoch")
    assert figures(one, "loss", "grad_norm") == pytest.approx(figures(other, "loss", "grad_norm"), rel=1e-5)
    found, expected = adapter(one), adapter(other)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.allclose(found[name], tensor, atol=tolerance), (name, (found[name] - tensor).abs().max())


@pytest.fixture(scope="module")
def alone(root: Path, ranks: Ranks) -> runs.RunInfo:
    """An undisturbed run in one process."""
    assert ranks.run(0, command(root, "alone")).statuses == [0]
    return folder(root, "alone")


def test_four_then_two_then_three_processes_end_as_one_alone(root: Path, ranks: Ranks, alone: runs.RunInfo) -> None:
    training = command(root, "elastic")
    # One rank is told to stop: all stop after the same step, and only that rank looks finished to its launcher.
    ended = ranks.run(4, training, {2: at_step(2, USR1)})
    assert ended.statuses == [1, 1, 0, 1]
    assert len(ended.told) == 1
    assert "another node was told to stop, so all is saved" in ended.told[0]
    assert ended.log("start")[0]["processes"] == 4
    assert (folder(root, "elastic").state, folder(root, "elastic").step) == ("stopped", 3)
    # All are, twice, also while they save.
    saving = (
        "from lingoss.checkpoints import store\nwhole = store.write_manifest\ndef disturbed(*a, **k):\n"
        f"    {TERM}; {USR1}\n    return whole(*a, **k)\nstore.write_manifest = disturbed\n"
    )
    ended = ranks.run(2, training, {0: at_step(4, TERM) + saving, 1: at_step(4, TERM)})
    assert (ended.statuses, ended.told) == ([0, 0], [])
    assert ended.log("start")[0]["step"] == 3
    assert [(row["step"], row["stop_seconds"]) for row in ended.log("save")] == [(5, None)]
    # One is killed: the others end too, and the last checkpoint is gone on from.
    ended = ranks.run(3, training, {1: at_step(7, KILL)})
    assert ended.statuses == [1, -9, 1]
    assert len(ended.told) == 1
    assert "another rank has gone or does not answer" in ended.told[0]
    assert folder(root, "elastic").state == "failed"
    ended = ranks.run(3, training)
    assert (ended.statuses, ended.told) == ([0, 0, 0], [])
    assert ended.log("start")[0]["step"] == 6
    assert [text for text in (*ended.outputs[1:], *ended.errors[1:]) if text] == []  # rank 0 alone prints
    info = folder(root, "elastic")
    assert info.done
    assert sum(map(len, examples(info))) == 116
    same(info, alone)
    # Done is done, for every rank.
    ended = ranks.run(2, training)
    assert ended.statuses == [0, 0]
    assert f"{info.name} is done" in ended.errors[0]


def test_a_batch_that_cannot_be_shared_is_refused_once(root: Path, ranks: Ranks) -> None:
    ended = ranks.run(5, command(root, "five"))
    assert ended.statuses == [2] * 5
    assert ended.told == [
        "lingoss sft: global_batch=12 cannot be shared evenly by 5 processes: start 1, 2, 3, 4, 6, 12 of them "
        "(nodes x processes per node), or start another run with a global_batch that they divide"
    ]
    assert [text for text in ended.errors if "Traceback" in text] == []


def test_an_error_of_one_rank_ends_all_with_one_message(root: Path, ranks: Ranks) -> None:
    ended = ranks.run(3, command(root, "error"), {1: at_step(1, "raise LingossError('the fan is on fire')")})
    assert ended.statuses == [2, 2, 2]
    assert len(ended.told) == 1
    assert ended.told[0].endswith("the fan is on fire")
    assert ended.told[0].startswith("lingoss sft: rank 1 of 3 on ")
    reason = folder(root, "error").reason
    assert reason is not None
    assert reason.endswith("the fan is on fire")
    assert [text for text in ended.errors if "Traceback" in text] == []


def test_numbers_that_are_not_finite_on_one_rank_stop_all_before_the_weights(root: Path, ranks: Ranks) -> None:
    poison = "whole = type(self).compute_loss; self.compute_loss = lambda *a, **k: whole(self, *a, **k) * float('nan')"
    ended = ranks.run(2, command(root, "poison"), {1: at_step(1, poison)})
    assert ended.statuses == [2, 2]
    assert len(ended.told) == 1
    assert "the gradient of step 2 is nan, so the run stops before it reaches the weights" in ended.told[0]
    assert folder(root, "poison").step == 1


def test_a_hang_becomes_an_error_that_says_where(root: Path, ranks: Ranks) -> None:
    ended = ranks.run(2, command(root, "hang", hang_seconds=15.0), {1: at_step(1, "time.sleep(600)")})
    assert 1 in ended.statuses
    assert 0 not in ended.statuses
    assert ended.seconds < 60
    said = next(line for line in ended.told if "made no progress" in line)
    assert "for 15 s (hang_seconds) while training step 2" in said
    assert "in _disturbed" in ended.errors[1]  # the stack of the rank that hangs


def test_a_full_disk_ends_all_ranks_with_its_message(root: Path, ranks: Ranks) -> None:
    full = (
        "from lingoss.checkpoints import store\nimport errno\n"
        "def _w(*a, **k): raise OSError(errno.ENOSPC, 'No space left on device')\nstore.verify = _w\n"
    )
    ended = ranks.run(2, command(root, "full"), {0: full})
    assert ended.statuses == [2, 2]
    assert len(ended.told) == 1
    assert "checkpoint 3 could not be written" in ended.told[0]
    assert "the disk is full; there is no earlier one" in ended.told[0]


def test_a_limit_that_is_too_short_is_refused(root: Path, ranks: Ranks) -> None:
    ended = ranks.run(2, command(root, "short", stop_seconds=0.5))
    assert ended.statuses == [2, 2]
    assert len(ended.told) == 1
    assert "a graceful stop needs up to 1.0 s (0.0 s for a step and 1.0 s for a save, an estimate" in ended.told[0]
    assert "but has stop_seconds=0.5" in ended.told[0]
