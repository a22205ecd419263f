# SPDX-License-Identifier: MIT-0
"""From a config to a finished run folder with a framework that only pretends to train: its command, files and log are
those of the released one, which the other tests of the engines hold it to."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grpo_helpers import trained_root
from lingoss import grpo, runs
from lingoss.config import EvaluateConfig, GrpoConfig
from lingoss.errors import LingossError, StopError, TemporaryError
from lingoss.evaluate.setting import resolve as resolve_evaluation
from lingoss.grpo.openrlhf import log as openrlhf_log
from lingoss.grpo.ray.child import follow, plain, reason
from lingoss.grpo.ray.engine import Engine
from lingoss.grpo.verl.log import MetricsFile
from lingoss.rewards import VARIABLE, request_from_json

LAYOUT = {"LINGOSS_TRAINER_NODES": "1", "LINGOSS_ROLLOUT_NODES": "1", "LINGOSS_GPUS_PER_NODE": "2"}

RAY = """
import os
def init(**_): pass
def nodes(): return [{"Alive": True, "Resources": {"GPU": float(os.environ["FAKE_GPUS"])}}]
"""

OPENRLHF = '''
"""Trains nothing, and leaves what OpenRLHF 0.11.2 leaves."""
import json, os, pathlib, shutil, sys, zipfile
flags = dict(zip(sys.argv[1:], sys.argv[2:]))
model, path, out = (pathlib.Path(flags[n]) for n in ("--actor.model_name_or_path", "--ckpt.path", "--ckpt.output_dir"))
rows = [json.loads(line) for line in open(flags["--data.prompt_dataset"], encoding="utf-8")]
each, every = int(flags["--rollout.batch_size"]), int(flags["--ckpt.save_steps"])
assert len(rows) % each == 0 and json.loads(os.environ["LINGOSS_REWARD"])["format"] == "think"
workers = json.loads(os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"])["runtime_env"]["env_vars"]
assert workers["LINGOSS_REWARD"] == os.environ["LINGOSS_REWARD"] and workers["HF_HUB_OFFLINE"] == "1"
assert (model / "config.json").is_file() and pathlib.Path(flags["--reward.remote_url"]).is_file()
latest = path / "_actor" / "latest"
start = int(latest.read_text().removeprefix("global_step")) if latest.exists() else 0
print(f"started at step {start}")
die = int(os.environ.get("FAKE_DIE_AT", "0"))
def shard(file, whole=True):
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("archive/data.pkl", b"x" * 500)
    if not whole:
        file.write_bytes(file.read_bytes()[:100])
for step in range(start + 1, len(rows) // each + 1):
    loss = float("nan") if step == int(os.environ.get("FAKE_NAN_AT", "0")) else 0.25
    status = {"policy_loss": loss, "reward": 0.5, "correct": 0.3, "graded": 0.6, "term/correctness": 0.4,
              "actor_grad_norm": 0.1, "rollout/truncated_rate": 0.0, "response_length": 9.0}
    print(f"\\x1b[36m(PPOTrainer pid=7, ip=10.0.0.1)\\x1b[0m INFO 12:00:00 \\u2728 Global step {step}: {status}", flush=True)
    if step % every == 0:
        folder = path / "_actor" / f"global_step{step}"
        for rank in range(2):
            shard(folder / f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt")
            shard(folder / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt", whole=step != die)
        if step != die:
            latest.write_text(f"global_step{step}")
            (folder / "metric.json").write_text('{"metric_value": null}')
    if step == die:
        raise RuntimeError("NCCL watchdog: the other node is gone")
shutil.copytree(model, out)
'''

VERL = '''
"""Trains nothing, and leaves what veRL 0.9.1 leaves. Its shards were written by FSDP2 (tests/fsdp_shards.py)."""
import importlib, json, os, pathlib, shutil, sys, types, zipfile
flags = dict(word.split("=", 1) for word in sys.argv[1:])
folder, steps, every = pathlib.Path(flags["trainer.default_local_dir"]), *(
    int(flags[f"trainer.{name}"]) for name in ("total_training_steps", "save_freq"))
assert os.environ["LINGOSS_REWARD"] and pathlib.Path(flags["data.train_files"]).is_file()
name = flags["trainer.checkpoint_callback_class"]
callback = getattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2])(
    config=types.SimpleNamespace(trainer=types.SimpleNamespace(
        max_actor_ckpt_to_keep=int(flags["trainer.max_actor_ckpt_to_keep"]))))
tracker = folder / "latest_checkpointed_iteration.txt"
start = int(tracker.read_text()) if tracker.exists() else 0
print(f"started at step {start}", flush=True)
with open(os.environ["VERL_FILE_LOGGER_PATH"], "w") as metrics:
    for step in range(start, steps + 1):
        data = {"critic/score/mean": 0.5, "actor/pg_loss": 0.1, "actor/grad_norm": 0.2} if step > start else {}
        if step % 2 == 0:
            data |= {"val-core/lingoss/acc/mean@1": 0.25, "val-aux/lingoss/reward/mean@1": 0.3}
        if step > start and (step % every == 0 or step == steps):
            made = folder / f"global_step_{step}"
            shutil.copytree(os.environ["FAKE_SHARDS"], made / "actor")
            with zipfile.ZipFile(made / "data.pt", "w") as file:
                file.writestr("archive/data.pkl", b"x")
            tracker.write_text(str(step))
            callback.on_save(trainer=None, global_step=step, checkpoint_dir=str(made), async_save=False)
            kept = len(list(folder.glob("global_step_*")))
            assert kept < int(flags["trainer.max_actor_ckpt_to_keep"]), kept
        print(json.dumps({"step": step, "data": data}), file=metrics, flush=True)
        if step == int(os.environ.get("FAKE_DIE_AT", "-1")):
            raise RuntimeError("a worker is gone")
'''


@pytest.fixture(scope="module")
def trained(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with a finished SFT run."""
    return trained_root(tiny_llama, tmp_path_factory.mktemp("engines"))


@pytest.fixture
def root(trained: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copytree(trained, tmp_path / "root"))


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Ray cluster of four GPUs and the frameworks, all pretended."""
    place = tmp_path / "packages"
    for name, text in {
        "ray/__init__.py": RAY,
        "openrlhf/__init__.py": "",
        "openrlhf/cli/__init__.py": "",
        "openrlhf/cli/train_ppo_ray.py": OPENRLHF,
        "verl/__init__.py": "",
        "verl/trainer/__init__.py": "",
        "verl/trainer/main_ppo.py": VERL,
    }.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("FAKE_GPUS", "4")
    monkeypatch.delenv(VARIABLE, raising=False)
    for name, value in LAYOUT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Engine, "require_packages", lambda self: None)
    return place


def config(root: Path, **changes: Any) -> GrpoConfig:
    """Six steps of four prompts with four completions, saved every second step."""
    settings: dict[str, Any] = {
        "root": root,
        "engine": "openrlhf",
        "dtype": "bfloat16",
        "data": {"languages": ["en", "fr"], "prompts_per_language": 6},
        "max_steps": 6,
        "prompts_per_step": 4,
        "num_generations": 4,
        "per_device_batch": 4,
        "max_completion_length": 12,
        "rollout": {"mode": "server", "tensor_parallel": 2},
        "validation": {"steps": 2, "prompts_per_language": 2},
        "checkpoint": {"save_steps": 2},
        "cluster_wait": 30.0,
    }
    return GrpoConfig(**{**settings, **changes})


def test_a_run_ends_as_one_of_trl_does(root: Path, cluster: Path) -> None:
    made = config(root)
    info = grpo.run(made)
    assert info is not None
    assert (info.state, info.step, info.total) == ("done", 6, 6)
    assert not runs.verify(info.path)
    record = info.done_record()
    assert any(name.startswith("model/") and name.endswith(".safetensors") for name in record["digests"])
    assert record["lineage"]["parents"] == list(info.parents)
    assert record["lineage"]["base"]["hub_id"] == "lingoss-tests/tiny-llama"
    assert record["engine"]["gpus"] == 4
    rows = list(runs.read_metrics(info.path))
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert (rows[0]["loss"], rows[0]["reward"], rows[0]["correct"]) == (0.25, 0.5, 0.5)  # 0.3 of 0.6 with an answer
    assert rows[0]["term/correctness"] == 0.4
    assert not (info.path / "checkpoints").exists()
    assert (info.path / "model" / "chat_template.jinja").read_text(encoding="utf-8").startswith("{")
    assert grpo.run(made) == runs.read_run(info.path)  # done: nothing is begun again
    subjects = {
        one.name: one for one in resolve_evaluation(EvaluateConfig(root=root, prompts={"sets": ["core"]})).subjects
    }
    assert subjects[info.name].model == info.path / "model"
    assert subjects[info.name].adapter is None


def test_the_merged_model_is_the_sft_policy(root: Path, cluster: Path) -> None:
    import torch
    from safetensors.torch import load_file

    from lingoss.models import load_model

    info = grpo.run(config(root))
    assert info is not None
    sft = runs.find_run(root, info.parents[0])
    found = load_file(next((info.path / "model").glob("*.safetensors")))
    adapter: Any = load_model(_base(root, sft), sft.path / "adapter")
    expected = {name: tensor for name, tensor in adapter.state_dict().items() if name in found}
    assert expected.keys() == found.keys()
    assert all(torch.allclose(found[name].float(), expected[name].float(), atol=1e-6) for name in found)


def _base(root: Path, sft: runs.RunInfo) -> Path:
    from lingoss.prepare import base_of

    return base_of(root, sft).model


def test_after_a_lost_cluster_at_most_one_interval_is_lost(
    root: Path, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_DIE_AT", "4")  # in the middle of its second save
    with pytest.raises(TemporaryError, match=r"RuntimeError: NCCL watchdog: the other node is gone .*openrlhf\.log"):
        grpo.run(config(root))
    run = next(one for one in runs.list_runs(root) if one.stage == "grpo")
    assert (run.state, run.step) == ("failed", 4)
    monkeypatch.delenv("FAKE_DIE_AT")
    info = grpo.run(config(root))
    assert info is not None
    assert (info.name, info.state) == (run.name, "done")
    log = (info.path / "openrlhf.log").read_text(encoding="utf-8")
    assert [line for line in log.splitlines() if line.startswith("started")] == [
        "started at step 0",
        "started at step 2",
    ]
    assert [row["step"] for row in runs.read_metrics(info.path)] == [1, 2, 3, 4, 5, 6]


def test_what_was_trained_is_not_trained_on_once_more(
    root: Path, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr("lingoss.grpo.openrlhf.engine.OpenRlhf.collect", _no_space)
        with pytest.raises(LingossError, match="no space"):
            grpo.run(config(root))
    info = grpo.run(config(root))
    assert info is not None
    assert (info.state, info.step) == ("done", 6)
    assert (info.path / "openrlhf.log").read_text(encoding="utf-8").count("started at step") == 1


def _no_space(_: Any) -> None:
    raise LingossError("no space")


def test_a_safety_stop_ends_the_framework(root: Path, cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NAN_AT", "3")
    with pytest.raises(StopError, match=r"step \d: .*safety\.override=\[non-finite\]"):
        grpo.run(config(root))
    run = next(one for one in runs.list_runs(root) if one.stage == "grpo")
    assert run.state == "stopped"


def test_what_stops_a_start_before_anything_is_written(
    root: Path, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        LingossError, match=r"16 completions do not divide among 2 GPUs in pieces of per_device_batch=16"
    ):
        grpo.run(config(root, per_device_batch=16))
    with pytest.raises(LingossError, match=r"more than checkpoint\.disk_budget_gb=1e-06"):
        grpo.run(config(root, checkpoint={"disk_budget_gb": 1e-6}))
    monkeypatch.setenv("FAKE_GPUS", "3")
    with pytest.raises(LingossError, match=r"4 GPUs are asked for .* and the Ray cluster has 3"):
        grpo.run(config(root, cluster_wait=0.1))
    assert not any((one.path / "model").exists() for one in runs.list_runs(root))


def test_a_model_that_brings_code_is_refused(root: Path, cluster: Path) -> None:
    sft = next(one for one in runs.list_runs(root) if one.stage == "sft")
    (_base(root, sft) / "modeling_tiny.py").write_text("import os\n")
    with pytest.raises(
        LingossError, match=r"brings code of its own \(modeling_tiny\.py\), .* set trust_remote_code=true"
    ):
        grpo.run(config(root))


def test_an_export_that_is_not_the_model_is_no_result(
    root: Path, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = cluster / "openrlhf" / "cli" / "train_ppo_ray.py"
    script.write_text(script.read_text() + "next(out.glob('*.safetensors')).unlink()\n")
    with pytest.raises(LingossError, match="holds no"):
        grpo.run(config(root))


def test_the_plan_tells_layout_disk_and_command(root: Path, cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = grpo.plan(config(root))
    assert found["starts"] == "yes"
    assert found["layout"] == {"trainer_gpus": 2, "rollout_gpus": 2, "gpus": 4}
    assert "-m openrlhf.cli.train_ppo_ray" in found["command"]
    assert "--vllm.num_engines 1" in found["command"]
    assert any("mask_truncated_completions" in remark for remark in found["remarks"])
    assert not [one for one in runs.list_runs(root) if one.stage == "grpo"]
    monkeypatch.delenv("LINGOSS_TRAINER_NODES")
    assert grpo.plan(config(root))["starts"].startswith("no: LINGOSS_TRAINER_NODES is not set")


def test_the_prompts_are_those_of_the_plan(root: Path, cluster: Path, tmp_path: Path) -> None:
    from lingoss.data import chat
    from lingoss.grpo.openrlhf.engine import write_rows
    from lingoss.grpo.ray.prompts import all_steps
    from lingoss.grpo.setting import resolve

    plan = resolve(config(root)).prompts
    prompts = all_steps(plan, 6)
    assert [row.id for row in prompts[4:8]] == [plan.rows[index].id for index in plan.step(2)]
    write_rows(tmp_path / "rows.jsonl", prompts, "think")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 24
    assert rows[5]["input"] == chat.prompt_text(prompts[5], "think")
    assert request_from_json(rows[5]["label"]) == prompts[5].request()


@pytest.fixture(scope="module")
def shards(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`actor` folders of two processes on the root's SFT run: `adapter` and `full`."""
    sft = next(one for one in runs.list_runs(trained) if one.stage == "sft")
    target = tmp_path_factory.mktemp("shards")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    given = [Path(__file__).with_name("fsdp_shards.py"), _base(trained, sft), sft.path / "adapter", target]
    subprocess.run([*command, *map(str, given)], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return target


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["adapter", "full"])
def test_verls_shards_become_an_adapter_or_a_model(
    weights: str, root: Path, cluster: Path, shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from safetensors.torch import load_file

    monkeypatch.setenv("FAKE_SHARDS", str(shards / weights))
    saves = {"save_steps": 2, "keep": 1}
    made = config(root, engine="verl", weights=weights, rollout={"mode": "colocate"}, checkpoint=saves)
    monkeypatch.setenv("LINGOSS_ROLLOUT_NODES", "0")
    monkeypatch.setenv("FAKE_DIE_AT", "3")
    with pytest.raises(TemporaryError, match="RuntimeError: a worker is gone"):
        grpo.run(made)
    monkeypatch.delenv("FAKE_DIE_AT")
    info = grpo.run(made)
    assert info is not None
    assert (info.state, info.step) == ("done", 6)
    log = (info.path / "verl.log").read_text(encoding="utf-8")
    assert [line for line in log.splitlines() if line.startswith("started")] == [
        "started at step 0",
        "started at step 2",
    ]
    rows = list(runs.read_metrics(info.path))
    assert [row["step"] for row in rows] == [0, 1, 2, 2, 3, 4, 5, 6]
    assert rows[0]["validation/acc"] == rows[3]["validation/acc"] == 0.25
    assert rows[5]["reward"] == 0.5
    sft = runs.find_run(root, info.parents[0])
    if weights == "adapter":
        found = load_file(info.path / "adapter" / "adapter_model.safetensors")
        before = load_file(sft.path / "adapter" / "adapter_model.safetensors")
        assert found.keys() == before.keys()
        for name, tensor in found.items():
            assert torch.equal(tensor, before[name] + 1 if "lora_A" in name else before[name]), name
        config_of = [json.loads((one / "adapter" / "adapter_config.json").read_text()) for one in (info.path, sft.path)]
        assert config_of[0] == config_of[1]
    else:
        found = load_file(next((info.path / "model").glob("*.safetensors")))
        before = load_file(next(_base(root, sft).glob("*.safetensors")))
        for name, tensor in before.items():
            assert torch.equal(found[name], (tensor * 2).to(torch.bfloat16)), name
        from lingoss.models import load_model

        load_model(info.path / "model")


def test_verl_is_given_the_same_prompts(trained: Path, tmp_path: Path) -> None:
    """Its rendering of our messages with the tokenizer that we give it makes the token ids that TRL and evaluation use."""
    from pyarrow import parquet
    from transformers import AutoTokenizer

    from lingoss.evaluate.engine import prompt_ids
    from lingoss.grpo.setting import resolve
    from lingoss.grpo.verl.data import write_parquet, write_tokenizer

    setting = resolve(config(trained, engine="verl", rollout={"mode": "colocate"}))
    write_tokenizer(setting.base.model, tmp_path / "tokenizer", "chatml")
    write_parquet(tmp_path / "rows.parquet", setting.prompts.rows, "think")
    tokenizer: Any = AutoTokenizer.from_pretrained(tmp_path / "tokenizer")
    rows = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert len(rows) == len(setting.prompts.rows)
    for row, prompt in zip(rows, setting.prompts.rows, strict=True):
        ids = tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True, return_dict=False)
        assert list(ids) == prompt_ids(prompt, "think", tokenizer)
        assert request_from_json(row["reward_model"]["ground_truth"]) == prompt.request()
        assert row["data_source"] == "lingoss"


def test_what_the_logs_tell(tmp_path: Path) -> None:
    line = (
        "INFO \u2728 Global step 7: {'policy_loss': nan, 'vllm_kl': -inf, 'reward': 0.5, 'correct': 0.1, 'graded': 0.0}"
    )
    found = openrlhf_log.step(line)
    assert found is not None
    assert (found[0], sorted(found[1])) == (7, ["kl_rollout", "loss", "reward"])  # nothing had a known answer
    assert found[1]["loss"] == float("inf")
    assert openrlhf_log.step("INFO Global step 7: {'policy_loss': open('x')}") == (7, {})
    evaluated = "Evaluation completed in 0:01:00, global_step 50, eval_metrics: {'eval_default_pass1': 0.25}"
    assert openrlhf_log.validation(evaluated) == (50, {"validation/reward": 0.25})
    assert openrlhf_log.step(evaluated) is None
    reader = MetricsFile(tmp_path / "metrics.jsonl")
    assert list(reader.rows()) == []
    with (tmp_path / "metrics.jsonl").open("w") as file:
        file.write('{"step": 1, "data": {"critic/score/mean": 0.5, "perf/mfu": 0.1}}\n{"step": 2, "da')
        file.flush()
        assert list(reader.rows()) == [(1, {"reward": 0.5})]
        file.write('ta": {"actor/pg_loss": 0.25}}\nnot json\n')
    assert list(reader.rows()) == [(2, {"loss": 0.25})]


def test_a_child_is_read_and_ended_with_all_that_it_started(tmp_path: Path) -> None:
    lines: list[str] = []
    script = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import threading; threading.Event().wait(600)'])\n"
        "print('\\x1b[32mchild', child.pid, flush=True)\n"
        "child.wait()\n"
    )
    done = follow([sys.executable, "-c", script], {}, tmp_path / "log", lines.append, lambda: bool(lines))
    assert done is False
    pid = int(lines[0].removeprefix("child "))
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    assert not state.strip() or state.startswith("Z")
    assert (tmp_path / "log").read_bytes().startswith(b"\x1b[32mchild")


def test_the_reason_of_a_failure() -> None:
    line = "\x1b[36m(RayActor pid=12, ip=10.1.2.3)\x1b[0m   torch.OutOfMemoryError: CUDA out of memory.\n"
    assert reason(["Traceback", plain(line), "(later)"]) == "torch.OutOfMemoryError: CUDA out of memory."
    assert reason(["one", "two", ""]) == "two"
    assert reason([]) == "it said nothing"
