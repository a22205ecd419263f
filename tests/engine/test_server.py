# SPDX-License-Identifier: MIT-0
"""`lingoss grpo --part rollout` as vLLM's own parser reads it, and as a server that a run in mode server draws from."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from engine.helpers import EvenScorer
from lingoss import grpo, runs
from lingoss.config import GrpoConfig
from lingoss.errors import LingossError
from lingoss.grpo import serving


def test_the_released_parser_takes_the_command(tmp_path: Path) -> None:
    from vllm.entrypoints.openai.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt_oss", "num_local_experts": 32}))
    rollout = {"mode": "server", "server_url": "http://here:8123", "tensor_parallel": 4, "gpu_memory_utilization": 0.85}
    config = GrpoConfig.model_validate({"dtype": "bfloat16", "seed": 5, "rollout": rollout})
    parser = make_arg_parser(FlexibleArgumentParser())
    read = parser.parse_args(serving.command(config, tmp_path, 640)[2:])
    validate_parsed_serve_args(read)
    assert read.model_tag == str(tmp_path)
    assert (read.host, read.port, read.seed) == ("0.0.0.0", 8123, 5)
    assert (read.dtype, read.max_model_len, read.moe_backend) == ("bfloat16", 640, "triton")
    assert (read.tensor_parallel_size, read.gpu_memory_utilization) == (4, 0.85)
    assert read.logprobs_mode == "processed_logprobs"
    assert read.weight_transfer_config.backend == "nccl"


@pytest.fixture
def by_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """TRL sends weights by NCCL, which needs a GPU; here the server reads them from a file. All else, and which tensors
    under which names, is the real path."""
    from safetensors.torch import save_file
    from trl.generation import vllm_client, vllm_generation

    def joined(self: Any, device: Any = 0) -> None:
        assert self.get_server_info()["weight_transfer_config"]["backend"] == "nccl"
        assert self.get_world_size() == 1

    def synced(self: Any) -> None:
        tensors = {name: tensor.detach().clone() for name, tensor in self._iter_named_params()}
        save_file(tensors, tmp_path / "model.safetensors")
        body = {"method": "reload_weights", "kwargs": {"weights_path": str(tmp_path)}}
        request = urllib.request.Request(
            f"{self.vllm_client.base_url}/collective_rpc",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=60).close()
        self.vllm_client.reset_prefix_cache()

    monkeypatch.setattr(vllm_client.VLLMClient, "init_communicator", joined)
    monkeypatch.setattr(vllm_generation.VLLMGeneration, "sync_weights", synced)
    monkeypatch.setattr("lingoss.grpo.stage.Scorer", EvenScorer)


def test_a_server_that_never_gets_the_policy_stops_the_run(
    server: GrpoConfig, by_file: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trl.generation.vllm_generation import VLLMGeneration

    monkeypatch.setattr(VLLMGeneration, "sync_weights", lambda self: None)
    with pytest.raises(LingossError, match="the engine still runs the base model: the trained adapter has not arrived"):
        grpo.run(server.model_copy(update={"run": "2"}))


def test_a_run_in_mode_server(server: GrpoConfig, by_file: None) -> None:
    run = grpo.run(server)
    assert run is not None
    assert (run.state, run.step) == ("done", 2)
    rows = [row for row in runs.read_metrics(run.path) if "loss" in row]
    assert [row["step"] for row in rows] == [1, 2]
    for row in rows:
        assert row["informative"] > 0
        assert row["grad_norm"] > 0
        # The server has the policy that is trained, after the first step too, which moves it far. Both compute in
        # float32 here, so that nothing but the last digits differs.
        assert row["importance_ratio/mean"] == pytest.approx(1, abs=1e-3)
        assert 0 <= row["kl_rollout"] < 1e-5
