# SPDX-License-Identifier: MIT-0
"""The stage sft in one process, on a tiny random Llama: what it writes, how it stops, and how it goes on."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from conftest import prepared_root, tiny_sft
from lingoss import runs
from lingoss.config import SftConfig
from lingoss.errors import LingossError
from lingoss.sft import plan, run

Tensors = dict[str, torch.Tensor]
OnStep = Callable[[int], None]


def adapter(info: runs.RunInfo) -> Tensors:
    tensors: Tensors = load_file(info.path / "adapter" / "adapter_model.safetensors")
    return tensors


def equal(one: Tensors, other: Tensors) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture
def root(tmp_path: Path, tiny_llama: Path) -> Path:
    return prepared_root(tiny_llama, tmp_path)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path) -> runs.RunInfo:
    """What every run of `tiny_sft` must end with, whatever happens to it on the way."""
    return run(tiny_sft(prepared_root(tiny_llama, tmp_path_factory.mktemp("undisturbed"))))


@pytest.fixture
def on_step(monkeypatch: pytest.MonkeyPatch) -> Callable[[OnStep], None]:
    """Calls a function at the beginning of each training step, with the number of steps that are complete."""
    from lingoss.sft.trainer import Trainer

    original = Trainer.training_step

    def install(what: OnStep) -> None:
        def step(self: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
            what(self.state.global_step)
            return original(self, *args, **kwargs)

        monkeypatch.setattr(Trainer, "training_step", step)

    return install


class Crash(Exception):
    """Stands for a process that dies: no handler of ours knows it."""


def crash_at(step: int) -> OnStep:
    def what(done: int) -> None:
        if done == step:
            raise Crash

    return what


def test_a_finished_run_has_everything(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tiny_sft(root)
    info = run(config)
    assert (info.state, info.step, info.total) == ("done", 6, 6)
    assert sorted(p.name for p in (info.path / "checkpoints").iterdir()) == ["checkpoint-4", "checkpoint-6"]
    record = info.done_record()
    assert record["lineage"]["base"]["hub_id"] == "lingoss-tests/tiny-llama"
    assert record["lineage"]["base"]["revision"] == "0" * 40
    assert record["examples"] == {"rows": 10, "seen": 24, "families": 10}
    assert sum(row["rows"] for row in record["language_table"]) == 10
    assert runs.verify(info.path) == []
    described = json.loads((info.path / "adapter" / "adapter_config.json").read_text())
    assert described["base_model_name_or_path"] == "lingoss-tests/tiny-llama"
    assert described["revision"] == "0" * 40
    assert (described["r"], described["lora_alpha"], described["lora_dropout"]) == (8, 16.0, 0.0)
    assert str(root) not in (info.path / "adapter" / "adapter_config.json").read_text()
    rows = list(runs.read_metrics(info.path / "metrics.jsonl"))
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    wanted = {"time", "step", "loss", "lr", "tokens", "tokens_per_s", "grad_norm", "epoch", "seconds"}
    assert all(row.keys() == wanted for row in rows)
    assert rows[-1]["epoch"] == 2.4
    assert rows[-1]["tokens"] > rows[0]["tokens"] > 0
    assert all(0 < row["loss"] < 10 for row in rows)
    output = capsys.readouterr()
    assert "10 rows, 70% crossed" in output.out  # the language table comes before training
    lines = [json.loads(line) for line in output.err.splitlines() if line.startswith("{")]
    assert [line["done"] for line in lines if line["task"] == "sft"] == [1, 2, 3, 4, 5, 6]


def test_the_adapter_changes_the_model_and_has_a_loss_that_falls(root: Path) -> None:
    config = tiny_sft(
        root,
        max_steps=30,
        lora={
            "rank": 16,
            "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
        },
        checkpoint={"save_steps": 30},
        optimizer={"learning_rate": 0.03},
    )
    info = run(config)
    losses = [row["loss"] for row in runs.read_metrics(info.path / "metrics.jsonl")]
    print(losses)
    assert sum(losses[-5:]) / 5 < sum(losses[:5]) / 5 - 0.3


def test_a_done_run_exits_at_once(root: Path, on_step: Callable[[OnStep], None]) -> None:
    config = tiny_sft(root)
    first = run(config)
    on_step(lambda done: pytest.fail("it trained again"))
    assert run(config).finished == first.finished


def test_the_seed_decides_the_adapter(root: Path, undisturbed: runs.RunInfo) -> None:
    """So that the equality of resumed runs below means something."""
    same, other = run(tiny_sft(root)), run(tiny_sft(root, seed=1))
    assert equal(adapter(undisturbed), adapter(same))
    for name, tensor in adapter(undisturbed).items():
        assert not torch.equal(tensor, adapter(other)[name]), name


@pytest.mark.parametrize("step", [0, 1, 3, 4, 5])
def test_a_crash_at_any_step_changes_nothing(
    root: Path, on_step: Callable[[OnStep], None], undisturbed: runs.RunInfo, step: int
) -> None:
    on_step(crash_at(step))
    with pytest.raises(Crash):
        run(tiny_sft(root))
    on_step(lambda done: None)
    info = run(tiny_sft(root))
    assert equal(adapter(undisturbed), adapter(info))
    rows = list(runs.read_metrics(info.path / "metrics.jsonl"))
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    expected = list(runs.read_metrics(undisturbed.path / "metrics.jsonl"))
    for key in ("loss", "lr", "grad_norm", "tokens", "epoch"):
        assert [row[key] for row in rows] == [row[key] for row in expected]


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(
    root: Path, on_step: Callable[[OnStep], None], undisturbed: runs.RunInfo, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tiny_sft(root)
    on_step(crash_at(5))
    with pytest.raises(Crash):
        run(config)
    folder = next(p for p in (root / "runs").glob("sft-*") if not (p / "DONE.json").exists())
    os.truncate(folder / "checkpoints" / "checkpoint-4" / "optimizer.pt", 100)
    on_step(lambda done: None)
    capsys.readouterr()
    info = run(config)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    bad = next(line for line in lines if line["task"] == "bad checkpoint")
    assert bad["checkpoint"] == "checkpoint-4"
    assert "has 100 bytes instead of" in bad["reason"]
    assert next(line for line in lines if line["task"] == "start")["step"] == 2
    assert equal(adapter(undisturbed), adapter(info))


def test_free_settings_may_change_when_a_run_goes_on(
    root: Path, on_step: Callable[[OnStep], None], undisturbed: runs.RunInfo
) -> None:
    on_step(crash_at(5))
    with pytest.raises(Crash):
        run(tiny_sft(root))
    saved = []
    on_step(lambda done: saved.append(sorted(p.name for p in (root / "runs").glob("sft-*/checkpoints/checkpoint-*"))))
    info = run(tiny_sft(root, per_device_batch=4, checkpoint={"save_steps": 1, "keep": 1}))
    assert saved == [["checkpoint-2", "checkpoint-4"], ["checkpoint-5"]]
    assert info.name == run(tiny_sft(root)).name
    for name, tensor in adapter(info).items():
        assert torch.allclose(tensor, adapter(undisturbed)[name], atol=1e-3), name


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGTERM, None), (signal.SIGINT, KeyboardInterrupt)])
def test_a_signal_saves_and_stops_and_the_run_goes_on(
    root: Path,
    on_step: Callable[[OnStep], None],
    undisturbed: runs.RunInfo,
    number: int,
    raised: type[BaseException] | None,
) -> None:
    config = tiny_sft(root, checkpoint={"save_steps": 100})
    before = signal.getsignal(number)
    sent: list[int] = []

    def send_once(done: int) -> None:
        if done == 2 and not sent:
            sent.append(number)
            os.kill(os.getpid(), number)

    on_step(send_once)
    if raised:
        with pytest.raises(raised):
            run(config)
    else:
        assert run(config).state == "stopped"
    assert signal.getsignal(number) is before
    stopped = next(one for one in runs.list_runs(root) if one.stage == "sft" and not one.done)
    assert (stopped.state, stopped.step, stopped.reason) == ("stopped", 3, None)
    assert [p.name for p in (stopped.path / "checkpoints").iterdir()] == ["checkpoint-3"]
    on_step(lambda done: None)
    assert equal(adapter(undisturbed), adapter(run(config)))


def test_a_loss_that_is_not_finite_stops_the_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trl import SFTTrainer

    original = SFTTrainer.compute_loss

    def poisoned(self: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        loss: torch.Tensor = original(self, *args, **kwargs)
        return loss * torch.nan if self.state.global_step == 4 else loss

    monkeypatch.setattr(SFTTrainer, "compute_loss", poisoned)
    with pytest.raises(
        LingossError, match=r"the loss of step 5 is nan, so the run stops before it reaches the weights"
    ):
        run(tiny_sft(root))
    failed = next(one for one in runs.list_runs(root) if one.stage == "sft")
    assert failed.state == "failed"
    assert failed.reason is not None
    assert failed.reason.startswith("the loss of step 5 is nan")
    assert sorted(p.name for p in (failed.path / "checkpoints").iterdir()) == ["checkpoint-2", "checkpoint-4"]
    assert [row["step"] for row in runs.read_metrics(failed.path / "metrics.jsonl")] == [1, 2, 3, 4]


def test_a_gradient_that_is_not_finite_stops_the_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trl import SFTTrainer

    monkeypatch.setattr(SFTTrainer, "_get_grad_norm", lambda self, model, grad_norm=None: torch.tensor(torch.inf))
    with pytest.raises(LingossError, match="the gradient of step 1 is inf"):
        run(tiny_sft(root))


def test_a_full_disk_at_a_checkpoint_keeps_the_last_one(
    root: Path, undisturbed: runs.RunInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    from lingoss.checkpoints import manifest, store

    original = manifest.write_manifest

    def write(folder: Path, step: int, *given: Any) -> None:
        if step == 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(folder, step, *given)

    monkeypatch.setattr(store, "write_manifest", write)
    config = tiny_sft(root)
    with pytest.raises(LingossError, match=r"checkpoint 4 could not be written.*the disk is full.*step 2 is whole"):
        run(config)
    monkeypatch.undo()
    assert equal(adapter(run(config)), adapter(undisturbed))


def test_a_run_that_cannot_fit_is_refused_before_it_starts(root: Path, on_step: Callable[[OnStep], None]) -> None:
    on_step(lambda done: pytest.fail("it trained"))
    with pytest.raises(
        LingossError, match=r"more than checkpoint.disk_budget_gb=1e-06: lower checkpoint.keep \(now 2\)"
    ):
        run(tiny_sft(root, checkpoint={"disk_budget_gb": 1e-6}))
    with pytest.raises(LingossError, match="c_attn, which the model does not have"):
        run(tiny_sft(root, lora={"target_modules": ["c_attn"]}))
    with pytest.raises(LingossError, match="rows are longer than max_length=100"):
        run(tiny_sft(root, max_length=100))
    with pytest.raises(LingossError, match=r"logging.report_to is trackio, which is not installed"):
        run(tiny_sft(root, logging={"report_to": "trackio"}))


def test_without_prepare_there_is_nothing_to_train(tmp_path: Path) -> None:
    with pytest.raises(LingossError, match="sft needs a finished run of stage prepare"):
        run(SftConfig(root=tmp_path))


def test_the_micro_batch_does_not_change_the_result(root: Path, undisturbed: runs.RunInfo) -> None:
    """Only its rounding: the loss is summed over all learned tokens of a step, not averaged over micro-batches."""
    one, other = undisturbed, run(tiny_sft(root, per_device_batch=4))
    losses = [[row["loss"] for row in runs.read_metrics(info.path / "metrics.jsonl")] for info in (one, other)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for name, tensor in adapter(one).items():
        assert torch.allclose(tensor, adapter(other)[name], atol=1e-3), name


def test_plan_says_what_run_does(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoModelForCausalLM

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", lambda *a, **k: pytest.fail("it loaded a model"))
    config = tiny_sft(root)
    planned = plan(config)
    assert planned["state"] == "new"
    assert planned["rows"] == {"all": 10, "families": 10, "crossed": 7, "two_languages": 0}
    assert (planned["steps"], planned["epochs"], planned["examples_seen"]) == (6, 2.4, 24)
    assert planned["adapter_parameters"] == 2 * 8 * (4 * 32 + 32 + 16 + 16 + 32)
    assert list((root / "runs").glob("sft-*")) == []
    monkeypatch.undo()
    info = run(config)
    record = info.done_record()
    assert planned["run"] == info.name
    assert planned["data"] == {**record["tokens"], "max_length": record["tokens"]["longest"]}
    assert plan(config)["state"] == "done"


def test_plan_before_prepare_estimates(tmp_path: Path) -> None:
    planned = plan(
        SftConfig.model_validate(
            {"root": tmp_path, "data": {"examples_per_language": 4}, "epochs": 2.0, "global_batch": 8}
        )
    )
    assert "needs a finished run of stage prepare" in planned["parent"]
    assert (planned["rows"]["all"], planned["steps"], planned["examples_seen"]) == (20, 5, 40)
    assert planned["data"]["counted"] == "estimate, before prepare"
    assert 2_000 < planned["data"]["tokens"] < 8_000
