# SPDX-License-Identifier: MIT-0
"""The real vLLM on a CPU. Starting it costs more than all else here, so there is one engine in this process, made by
TRL inside a run of `lingoss grpo`, which every test asks, and one server for the one test of mode server.

Run by `make test-engine`, in the environment that env.sh makes.
"""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from engine.helpers import ON_A_CPU, EvenScorer, Trained, server_run
from lingoss.config import GrpoConfig
from lingoss.grpo import serving

if find_spec("vllm") is None:
    raise pytest.UsageError("tests/engine needs the real vLLM: run `make test-engine`")

# Read by vLLM and torch when they are imported.
os.environ.update(
    OMP_NUM_THREADS="1",  # more threads than idle cores wait for each other at every barrier
    VLLM_CPU_KVCACHE_SPACE="1",
    VLLM_CPU_OMP_THREADS_BIND="nobind",
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_LOGGING_LEVEL="ERROR",
    VLLM_CACHE_ROOT=str(Path(sys.prefix) / "vllm-cache"),
)


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with SmolLM2 and an adapter that two steps of SFT moved well away from it."""
    from lingoss import prepare, sft
    from lingoss.config import PrepareConfig, SftConfig

    folder = tmp_path_factory.mktemp("root")
    prepare.run(PrepareConfig(root=folder, prompt_sets=("core",)))
    settings: dict[str, Any] = {
        "data": {"examples_per_language": 1},
        "max_steps": 2,
        "global_batch": 2,
        "per_device_batch": 2,
    }
    settings |= {"optimizer": {"learning_rate": 5e-3, "warmup_ratio": 0.0}, "dtype": "bfloat16", "threads": 1}
    sft.run(SftConfig.model_validate({"root": folder, **settings}))
    return folder


@pytest.fixture(scope="session")
def eager_engine() -> Iterator[list[Any]]:
    """TRL's engines, as they are made: without compilation, which TRL gives no way to say, and able to take weights.

    vLLM's CPU kernels pack linear weights into oneDNN's own layout and leave nothing to load into; tests alone may
    switch that off.
    """
    from trl.generation import vllm_generation
    from vllm import _custom_ops

    made: list[Any] = []
    real, start = vllm_generation.LLM, vllm_generation.VLLMGeneration.__init__

    def eager(**given: Any) -> Any:
        return real(**{**given, "enforce_eager": True, "max_num_batched_tokens": 512})

    def recorded(self: Any, *args: Any, **given: Any) -> None:
        start(self, *args, **given)
        made.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_custom_ops, "_supports_onednn", False)
        patch.setattr(vllm_generation, "LLM", eager)
        patch.setattr(vllm_generation.VLLMGeneration, "__init__", recorded)
        yield made


@pytest.fixture(scope="session")
def trained(root: Path, eager_engine: list[Any], request: pytest.FixtureRequest) -> Trained:
    """Two steps of GRPO with vLLM colocated."""
    if any("server" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("server")  # comes up meanwhile, on the other core
    from lingoss import grpo
    from lingoss.models import load_tokenizer

    settings = {
        "data": {"languages": ["en", "fr"], "prompts_per_language": 4},
        "max_steps": 2,
        "prompts_per_step": 2,
        "num_generations": 4,
        "per_device_batch": 4,
        "max_completion_length": 48,
        "mask_truncated_completions": False,
        "validation": {"steps": 2, "prompts_per_language": 1},
        "gate": {"force": True},
        "dtype": "bfloat16",
        "threads": 1,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lingoss.grpo.stage.Scorer", EvenScorer)
        run = grpo.run(GrpoConfig.model_validate({"root": root, **settings}))
    (generation,) = eager_engine
    return Trained(run, generation, load_tokenizer(generation.llm.llm_engine.model_config.model))


@pytest.fixture(scope="session")
def tiny_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with a random Llama of two layers that reads SmolLM2's tokens, and an adapter trained on it."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from lingoss import prepare, sft
    from lingoss.config import PrepareConfig, SftConfig
    from lingoss.models import ModelCard, convert_smollm2, write_model_card

    folder = tmp_path_factory.mktemp("tiny")
    model = folder / "model"
    model.mkdir()
    for file in convert_smollm2(prepare.cache_folder()).glob("*token*"):
        shutil.copy(file, model)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=1024,
        eos_token_id=2,
        pad_token_id=2,
        tie_word_embeddings=True,
        initializer_range=0.15,
    )
    LlamaForCausalLM(config).save_pretrained(model)
    write_model_card(model, ModelCard("lingoss-tests/tiny", "0" * 40, "random", "MIT-0"))
    source = {"source": str(model), "dtype": "float32"}
    prepare.run(PrepareConfig.model_validate({"root": folder, "model": source, "prompt_sets": ["core"]}))
    settings: dict[str, Any] = {
        "data": {"examples_per_language": 1},
        "max_steps": 2,
        "global_batch": 2,
        "per_device_batch": 2,
    }
    settings |= {"optimizer": {"learning_rate": 5e-2, "warmup_ratio": 0.0}, "threads": 1}
    sft.run(SftConfig.model_validate({"root": folder, **settings}))
    return folder


@pytest.fixture(scope="session")
def server(tiny_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrpoConfig]:
    """The config of a run whose server is up, or on its way up: TRL waits for it."""
    from lingoss.grpo.setting import resolve
    from lingoss.models import load_tokenizer

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    config = server_run(tiny_root, port)
    setting = resolve(config)
    length = setting.encode(load_tokenizer(setting.base.model)).model_length
    command = [*serving.command(config, setting.base.model, length), *ON_A_CPU]
    environment = {**os.environ, **serving.ENVIRONMENT}
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("vllm")), *command[1:]],
            env=environment,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
        try:
            yield config
        except BaseException:
            print(log.read_text(errors="replace")[-4000:])
            raise
        finally:
            process.terminate()
            process.wait(timeout=60)
