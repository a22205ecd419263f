# SPDX-License-Identifier: MIT-0
"""`lingoss grpo --part rollout`: become the vLLM server that rolls out for a run with rollout.mode=server.

The server starts from the base model; the trainer sends it the merged policy before it asks for anything. Arguments are
those of vLLM 0.26.0 (`vllm/entrypoints/openai/cli_args.py`, `vllm/engine/arg_utils.py`), and what TRL 1.16 needs of
them is told in `trl/generation/vllm_client.py`.
"""

import json
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from lingoss.config import GrpoConfig
from lingoss.errors import LingossError
from lingoss.grpo.arguments import VLLM_LOGPROBS
from lingoss.grpo.setting import resolve
from lingoss.models import load_tokenizer
from lingoss.runs.files import read_json
from lingoss.vllm_server import become

ENVIRONMENT = {"VLLM_SERVER_DEV_MODE": "1"}
"""TRL sends weights through the server's development endpoints, so nobody but the trainer may reach its port."""
_PORT = 8000


def serve_rollout(config: GrpoConfig) -> None:
    """Become `vllm serve` with the base model of the run that this config is for; does not return.

    Raises:
        LingossError: the config wants no server, there is no SFT run to go on with, or no vLLM (or pip) here.
    """
    if config.rollout.server_url is None:
        raise LingossError(
            f"rollout.mode={config.rollout.mode} asks no server: set rollout.mode=server and rollout.server_url"
        )
    if find_spec("pip") is None:  # vLLM lists its packages by it when TRL asks for its settings, and fails without
        raise LingossError("a rollout server needs pip in its environment: python -m ensurepip")
    setting = resolve(config)
    length = setting.encode(load_tokenizer(setting.base.model)).model_length
    arguments = command(config, setting.base.model, length)
    # TRL's client sends no key.
    become(arguments, f"rolling out for runs that go on with {setting.sft.name}", ENVIRONMENT, ["VLLM_API_KEY"])


def command(config: GrpoConfig, model: Path, length: int) -> list[str]:
    """The exact command line. `length`: tokens of the longest prompt with a whole completion.

    Raises:
        LingossError: the model's configuration cannot be read.
    """
    rollout = config.rollout
    made = ["vllm", "serve", str(model.absolute()), "--host", "0.0.0.0", "--port", str(_port(rollout.server_url))]
    made += ["--dtype", config.dtype, "--max-model-len", str(length), "--seed", str(config.seed)]
    made += ["--tensor-parallel-size", str(rollout.tensor_parallel)]
    made += ["--gpu-memory-utilization", str(rollout.gpu_memory_share)]
    made += ["--logprobs-mode", VLLM_LOGPROBS, "--weight-transfer-config", json.dumps({"backend": "nccl"})]
    if _has_experts(model):
        # Other backends rearrange expert weights when they load them, and then take new ones in the wrong order
        # (vllm#39545, #42821).
        made += ["--moe-backend", "triton"]
    return made


def _port(url: str | None) -> int:
    return (urlsplit(url).port if url else None) or _PORT


def _has_experts(model: Path) -> bool:
    found, problem = read_json(model / "config.json")
    if found is None:
        raise LingossError(f"{model / 'config.json'} cannot be read ({problem}): run `lingoss prepare` again")
    return any(key in found for key in ("num_local_experts", "num_experts", "n_routed_experts"))
