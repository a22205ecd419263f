# SPDX-License-Identifier: MIT-0
"""`lingoss grpo --part rollout`: the command that it becomes. tests/engine gives it to vLLM's own parser and starts it."""

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import vllm_at
from grpo_helpers import trained_root
from lingoss.cli import main
from lingoss.config import GrpoConfig
from lingoss.errors import LingossError
from lingoss.grpo import serving


def asked(**rollout: Any) -> GrpoConfig:
    return GrpoConfig(rollout={"mode": "server", "server_url": "http://lingoss-grpo-rollout:8000", **rollout})


def model(folder: Path, **config: Any) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_the_command(tmp_path: Path) -> None:
    config = GrpoConfig(
        seed=7,
        dtype="bfloat16",
        rollout={
            "mode": "server",
            "server_url": "http://elsewhere:8123/",
            "tensor_parallel": 4,
            "gpu_memory_utilization": 0.85,
        },
    )
    assert serving.command(config, model(tmp_path, model_type="llama"), 640) == [
        "vllm",
        "serve",
        str(tmp_path),
        "--host",
        "0.0.0.0",
        "--port",
        "8123",
        "--dtype",
        "bfloat16",
        "--max-model-len",
        "640",
        "--seed",
        "7",
        "--tensor-parallel-size",
        "4",
        "--gpu-memory-utilization",
        "0.85",
        "--logprobs-mode",
        "processed_logprobs",
        "--weight-transfer-config",
        '{"backend": "nccl"}',
    ]


def test_a_server_of_its_own_takes_the_whole_gpu(tmp_path: Path) -> None:
    made = serving.command(asked(), model(tmp_path), 640)
    assert made[made.index("--gpu-memory-utilization") + 1] == "0.9"
    assert GrpoConfig().rollout.gpu_memory_share == 0.42
    assert asked(gpu_memory_utilization=0.3).rollout.gpu_memory_share == 0.3


@pytest.mark.parametrize("key", ["num_local_experts", "num_experts", "n_routed_experts"])
def test_experts_get_the_backend_that_takes_new_weights(key: str, tmp_path: Path) -> None:
    assert serving.command(asked(), model(tmp_path, **{key: 32}), 640)[-2:] == ["--moe-backend", "triton"]


def test_the_port_is_the_charts_when_the_address_names_none(tmp_path: Path) -> None:
    made = serving.command(asked(server_url="http://lingoss-grpo-rollout"), model(tmp_path), 640)
    assert made[made.index("--port") + 1] == "8000"


def test_a_model_without_a_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LingossError, match=r"config.json cannot be read .*: run `lingoss prepare` again"):
        serving.command(asked(), tmp_path, 640)


def test_another_mode_asks_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grpo", "--part", "rollout"]) == 2
    assert capsys.readouterr().err == (
        "lingoss grpo: rollout.mode=colocate asks no server: set rollout.mode=server and rollout.server_url\n"
    )


def test_without_pip_it_is_told_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "find_spec", lambda name: None)
    with pytest.raises(LingossError, match="a rollout server needs pip in its environment"):
        serving.serve_rollout(asked())


def test_it_becomes_vllm_for_the_base_of_the_sft_run(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = trained_root(tiny_llama, tmp_path)
    program, seen = vllm_at(tmp_path, monkeypatch)
    settings = [
        f"root={root}",
        "rollout.mode=server",
        "rollout.server_url=http://here:8000",
        "max_completion_length=40",
    ]
    settings += [
        "data.languages=[en]",
        "data.prompts_per_language=2",
        "prompts_per_step=2",
        "validation.prompts_per_language=1",
    ]
    assert main(["grpo", "--part", "rollout", *(part for one in settings for part in ("--set", one))]) == 0
    ((path, command, environment),) = seen
    assert path == str(program)
    base = Path(command[2])
    assert (base / "model.safetensors").is_file()
    assert base.is_relative_to(root / "models")
    length = int(command[command.index("--max-model-len") + 1])
    assert 40 < length < 1024  # a prompt and a completion, less than the model's context
    # TRL's client sends no key, and needs the development endpoints.
    assert {
        "VLLM_SERVER_DEV_MODE": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }.items() <= environment.items()
    assert not {"HF_TOKEN", "VLLM_API_KEY"} & set(environment)
    printed = capsys.readouterr()
    assert "rolling out for runs that go on with sft-" in printed.out
    assert "secret" not in printed.out + printed.err
