# SPDX-License-Identifier: MIT-0
"""The stage grpo in one process, on a tiny random Llama: what it writes, how it stops, and how it goes on."""

import dataclasses
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from grpo_helpers import EvenScorer, gate, tiny_grpo, trained_root
from lingoss import runs
from lingoss.config import GrpoConfig
from lingoss.errors import LingossError, StopError
from lingoss.grpo import plan, run
from test_sft_run import Crash, OnStep, adapter, crash_at, equal

# What a step measures and a resumed run may measure differently.
MEASURED = ("time", "seconds", "tokens_per_s", "rollout_tokens_per_s", "peak_memory_gb")


@pytest.fixture(autouse=True)
def even_tokens_are_worth_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lingoss.grpo.stage.Scorer", EvenScorer)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path) -> Path:
    return trained_root(tiny_llama, tmp_path_factory.mktemp("grpo"))


@pytest.fixture
def on_step(monkeypatch: pytest.MonkeyPatch) -> Callable[[OnStep], None]:
    """Calls a function at the end of each training step, before it is told or saved, with the number of steps."""
    from lingoss.grpo.trainer import Trainer

    original = Trainer.log

    def install(what: OnStep) -> None:
        def log(self: Any, logs: dict[str, float], *args: Any) -> None:
            if "loss" in logs:
                what(self.state.global_step)
            original(self, logs, *args)

        monkeypatch.setattr(Trainer, "log", log)

    return install


@pytest.fixture(scope="module")
def undisturbed(root: Path) -> Callable[[GrpoConfig], runs.RunInfo]:
    """The run that nothing happens to, of the same settings; each is trained once."""
    known: dict[str, runs.RunInfo] = {}

    def trained(config: GrpoConfig) -> runs.RunInfo:
        key = json.dumps(config.identity(), sort_keys=True)
        if key not in known:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("lingoss.grpo.stage.Scorer", EvenScorer)
                known[key] = run(config.model_copy(update={"run": "undisturbed"}))
        return known[key]

    return trained


def figures(info: runs.RunInfo) -> list[dict[str, Any]]:
    """The rows without what is measured by a clock."""
    return [
        {key: value for key, value in row.items() if key.partition("/")[0] not in MEASURED}
        for row in runs.read_metrics(info.path)
    ]


def test_a_finished_run_has_everything(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    info = run(tiny_grpo(root))
    assert (info.state, info.step, info.total) == ("done", 4, 4)
    assert runs.verify(info.path) == []
    record = info.done_record()
    assert record["lineage"]["base"]["hub_id"] == "lingoss-tests/tiny-llama"
    assert record["lineage"]["chain"] == [*info.parents, *runs.find_run(root, info.parents[0]).parents]
    assert record["gate"] == "viable"
    assert record["prompts"] == {"families": 12, "files": 0, "without_gold": 0, "validation": 4, "passes": 1.333}
    assert [one["step"] for one in record["validation"]] == [0, 2, 4]
    # The adapter is the chosen checkpoint's, which rotation left alone.
    chosen = record["choice"]["step"]
    assert [one["step"] for one in record["choice"]["candidates"]] == [2, 4]
    assert {p.name for p in (info.path / "checkpoints").iterdir()} == {f"checkpoint-{n}" for n in {chosen, 3, 4}}
    kept = info.path / "checkpoints" / f"checkpoint-{chosen}" / "adapter_model.safetensors"
    assert (info.path / "adapter" / "adapter_model.safetensors").read_bytes() != b""
    from safetensors.torch import load_file

    assert equal(adapter(info), load_file(kept))
    described = json.loads((info.path / "adapter" / "adapter_config.json").read_text())
    assert described["base_model_name_or_path"] == "lingoss-tests/tiny-llama"
    assert str(root) not in json.dumps(described)

    rows = list(runs.read_metrics(info.path))
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4]
    assert [("validation/reward" in row) for row in rows] == [True, False, True, False, True]
    for row in rows[1:]:
        assert row["groups"] == 4
        assert 0 < row["informative"] <= 1
        assert row["informative_trained"] == row["informative_groups"]
        assert 0 < row["reward"] < 1
        assert row["reward"] == pytest.approx((row["reward/en"] + row["reward/fr"]) / 2)
        # Policy and rollout are the same weights, so their probabilities differ by rounding alone.
        assert row["importance_ratio/min"] == pytest.approx(1, abs=1e-3)
        assert row["importance_ratio/max"] == pytest.approx(1, abs=1e-3)
        assert 0 <= row["kl_rollout"] < 1e-6
        assert 0 < row["entropy"] < 7
        parts = sum(row[f"seconds/{name}"] for name in ("rollout", "reward", "sync", "train"))
        assert parts == pytest.approx(row["seconds"], abs=0.01)
        assert "kl" not in row  # beta is 0, so nothing is compared with the SFT policy
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    assert [line["done"] for line in told if line["task"] == "grpo"] == [1, 2, 3, 4]


def test_kept_completions_can_be_scored_again(root: Path) -> None:
    from lingoss.evaluate.scoring import score_row

    info = run(tiny_grpo(root))
    rows = [json.loads(line) for line in (info.path / "completions.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [2] * 3 + [4] * 3
    assert len({row["id"] for row in rows}) == 6
    for row in rows:
        assert score_row(row)["verdict"]["truncated"] == (row["finish_reason"] == "length")


def test_the_reward_rises(root: Path) -> None:
    """The whole loop learns: what is rewarded becomes more frequent."""
    changes = {"max_steps": 12, "num_generations": 8, "validation": {"steps": 50, "prompts_per_language": 1}}
    info = run(tiny_grpo(root, optimizer={"learning_rate": 0.3, "warmup_ratio": 0.0}, **changes))
    rewards = [row["reward"] for row in list(runs.read_metrics(info.path))[1:]]
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.1


@pytest.mark.parametrize(
    ("changes", "step"),
    [({}, 4), ({"beta": 0.1, "dynamic_sampling": True, "loss_type": "dr_grpo"}, 1)],
    ids=["beta 0", "beta 0.1"],
)
def test_a_crash_changes_nothing(
    root: Path,
    on_step: Callable[[OnStep], None],
    undisturbed: Callable[[GrpoConfig], runs.RunInfo],
    changes: dict[str, Any],
    step: int,
) -> None:
    config = tiny_grpo(root, run=f"crash {step}", **changes)
    expected = undisturbed(config)
    on_step(crash_at(step))
    with pytest.raises(Crash):
        run(config)
    on_step(lambda done: None)
    info = run(config)
    assert equal(adapter(info), adapter(expected))
    assert figures(info) == figures(expected)
    assert (info.path / "completions.jsonl").read_text() == (expected.path / "completions.jsonl").read_text()
    assert info.done_record()["choice"] == expected.done_record()["choice"]


def test_a_signal_saves_and_stops_and_the_run_goes_on(
    root: Path, on_step: Callable[[OnStep], None], undisturbed: Callable[[GrpoConfig], runs.RunInfo]
) -> None:
    config = tiny_grpo(root, run="signal", checkpoint={"save_steps": 100})
    sent: list[int] = []

    def send_once(done: int) -> None:
        if done == 2 and not sent:
            sent.append(done)
            os.kill(os.getpid(), signal.SIGTERM)

    on_step(send_once)
    info = run(config)  # the signal comes when step 2 has ended, so step 3 is finished too
    assert (info.state, info.step, info.reason) == ("stopped", 3, None)
    assert sorted(p.name for p in (info.path / "checkpoints").iterdir()) == ["checkpoint-2", "checkpoint-3"]
    on_step(lambda done: None)
    assert equal(adapter(run(config)), adapter(undisturbed(config)))


def test_a_safety_stop_saves_first_and_says_why(
    root: Path, undisturbed: Callable[[GrpoConfig], runs.RunInfo], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lingoss.grpo.safety import Alarm, Watch

    def alarm(self: Watch, row: dict[str, Any]) -> list[Alarm]:
        return [Alarm("length", "stop", "completions shrank: do this")] if row["step"] == 3 else []

    config = tiny_grpo(root, run="alarm", checkpoint={"save_steps": 100})
    with monkeypatch.context() as patch:
        patch.setattr(Watch, "step", alarm)
        with pytest.raises(StopError, match=r"^step 3: completions shrank: do this; .*safety\.override=\[length\]$"):
            run(config)
    stopped = next(one for one in runs.list_runs(root) if one.state == "stopped")
    assert (stopped.step, stopped.reason) == (
        3,
        "step 3: completions shrank: do this; the run is saved, and goes on with safety.override=[length]",
    )
    assert (stopped.path / "checkpoints" / "checkpoint-3").is_dir()
    assert [row["step"] for row in runs.read_metrics(stopped.path)] == [0, 1, 2, 3]
    assert equal(adapter(run(config)), adapter(undisturbed(config)))


def test_a_loss_that_is_not_finite_never_reaches_the_weights(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trl import GRPOTrainer

    original = GRPOTrainer.compute_loss

    def poisoned(self: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        loss: torch.Tensor = original(self, *args, **kwargs)
        return loss * torch.nan if self.state.global_step == 1 else loss

    monkeypatch.setattr(GRPOTrainer, "compute_loss", poisoned)
    with pytest.raises(LingossError, match=r"the loss of step 2 is nan, so the run stops before it reaches"):
        run(tiny_grpo(root, run="poisoned"))
    failed = next(one for one in runs.list_runs(root) if one.state == "failed")
    assert [p.name for p in (failed.path / "checkpoints").iterdir()] == ["checkpoint-1"]


class HalfScorer(EvenScorer):
    """All answers in English are worth the same."""

    def __call__(self, completions: Any) -> list[Any]:
        return [
            dataclasses.replace(verdict, reward=0.3) if one.prompt.answer_language == "en" else verdict
            for one, verdict in zip(completions, super().__call__(completions), strict=True)
        ]


def test_leaving_out_what_teaches_nothing_changes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lingoss.grpo import trainer
    from lingoss.grpo.batches import Batch

    monkeypatch.setattr("lingoss.grpo.stage.Scorer", HalfScorer)
    scored: list[int] = []
    original = trainer.Trainer._get_per_token_logps_and_entropies

    def counted(self: Any, model: Any, ids: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        scored[-1] += len(ids)
        return original(self, model, ids, *args, **kwargs)

    monkeypatch.setattr(trainer.Trainer, "_get_per_token_logps_and_entropies", counted)

    def gradient(label: str) -> dict[int, torch.Tensor]:
        scored.append(0)
        info = run(tiny_grpo(root, run=label, max_steps=1))
        state = torch.load(info.path / "checkpoints" / "checkpoint-1" / "optimizer.pt", weights_only=True)["state"]
        return {key: value["exp_avg"] for key, value in state.items()}

    skipped = gradient("skipped")
    everything: Callable[[Batch], torch.Tensor] = lambda batch: torch.ones(1, dtype=torch.bool)  # noqa: E731
    monkeypatch.setattr(trainer, "has_signal", everything)
    whole = gradient("whole")
    assert scored == [8, 16]
    assert all(torch.allclose(skipped[key], whole[key], rtol=1e-4, atol=1e-8) for key in whole)
    assert any(bool(moment.any()) for moment in whole.values())


class BlindScorer(EvenScorer):
    """Greedy validation earns nothing, so all candidates are equal and the first is chosen."""

    def __call__(self, completions: Any) -> list[Any]:
        validation = all(not one.logprobs for one in completions)
        return [dataclasses.replace(one, reward=one.reward * (not validation)) for one in super().__call__(completions)]


def test_a_damaged_choice_is_named_and_the_next_best_taken(
    root: Path,
    on_step: Callable[[OnStep], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is trained again: the last checkpoint is whole."""
    monkeypatch.setattr("lingoss.grpo.stage.Scorer", BlindScorer)
    config = tiny_grpo(root, run="damaged")
    chosen = run(config)
    assert chosen.done_record()["choice"]["step"] == 2
    (chosen.path / "DONE.json").unlink()
    os.truncate(chosen.path / "checkpoints" / "checkpoint-2" / "adapter_model.safetensors", 100)
    on_step(lambda done: pytest.fail("it trained again"))
    capsys.readouterr()
    assert run(config).done_record()["choice"]["step"] == 4
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    bad = next(line for line in told if line["task"] == "bad checkpoint")
    assert bad["checkpoint"] == "checkpoint-2"
    assert "has 100 bytes instead of" in bad["reason"]


def test_the_gate_decides_whether_it_starts(root: Path) -> None:
    sft = runs.find_run(root, "latest:sft").name
    try:
        gate(root, sft, "saturated", label="2")
        with pytest.raises(LingossError, match=rf"says saturated for {sft} .*, or set gate\.force=true$"):
            run(tiny_grpo(root, run="gate"))
        assert plan(tiny_grpo(root, run="gate"))["starts"].startswith("no: stage grpo is not worth starting")
        assert run(tiny_grpo(root)).done  # what is finished stays finished
        forced = tiny_grpo(root, run="gate", max_steps=1, gate={"force": True})
        assert run(forced).done_record()["gate"] == "saturated"
    finally:
        gate(root, sft, "viable", label="3")


def test_a_missing_gate_is_told_with_the_command(tiny_llama: Path, tmp_path: Path) -> None:
    from conftest import prepared_root, tiny_sft
    from lingoss.sft import run as run_sft

    root = prepared_root(tiny_llama, tmp_path)
    with pytest.raises(LingossError, match=r"grpo needs a finished run of stage sft"):
        run(tiny_grpo(root))
    assert "grpo needs a finished run of stage sft" in plan(tiny_grpo(root))["parent"]
    run_sft(tiny_sft(root, max_steps=1))
    with pytest.raises(LingossError, match=rf"run stage evaluate first \(lingoss evaluate --set root={root}\)"):
        run(tiny_grpo(root))


@pytest.mark.parametrize(
    ("changes", "environment", "told"),
    [
        ({"format": "plain"}, {}, r"was trained with format=think, not plain: set format=think"),
        ({"engine": "verl", "rollout": {"mode": "colocate"}}, {}, r"LINGOSS_TRAINER_NODES is not set"),
        ({}, {"WORLD_SIZE": "4"}, r"trains in one process for now, and 4 were started"),
        ({"rollout": {"mode": "colocate"}}, {}, r"rollout\.mode=colocate needs vLLM, which is not installed"),
        ({"max_completion_length": 1000}, {}, r"more than the model's context of 1024: lower max_completion_length"),
    ],
)
def test_what_cannot_work_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], environment: dict[str, str], told: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(LingossError, match=told):
        run(tiny_grpo(root, run="refused", **changes))


def test_a_damaged_adapter_is_named_with_its_run(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root, tmp_path / "root", symlinks=True)
    (sft,) = (tmp_path / "root/runs").glob("sft-*")
    (sft / "adapter/adapter_model.safetensors").write_bytes(b"")
    with pytest.raises(LingossError, match=f"the adapter of {sft.name} is damaged .* take another SFT run"):
        run(tiny_grpo(tmp_path / "root", run="damaged-parent"))


def test_the_plan_tells_what_a_run_will_do(root: Path) -> None:
    found = plan(tiny_grpo(root, run="planned", max_completion_length=None, rollout={"mode": "transformers"}))
    sft = runs.find_run(root, "latest:sft")
    assert (found["parent"], found["base"], found["state"]) == (sft.name, "lingoss-tests/tiny-llama", "new")
    assert found["gate"]["outcome"] == "viable"
    assert found["starts"] == "yes"
    assert found["adapter"] == {"tensors": 16, "parameters": 3584, "experts": False}
    assert found["prompts"]["all"] == 12
    assert (found["steps"], found["prompts_a_step"], found["completions_a_step"]) == (4, 4, 16)
    assert found["validation"] == {"prompts": 4, "every_steps": 2}
    # p99 of the SFT rows is 309 tokens, a mean prompt has (2884 - 948) / 10; half as much again, in eights
    assert found["completion_length"] == 176
    assert sum(row["rows"] for row in found["languages"]) == 12
