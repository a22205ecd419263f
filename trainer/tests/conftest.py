# SPDX-License-Identifier: MIT-0
"""Shared fixtures: tiny random models of the two kinds that we train, and a root with a finished prepare run.

Models are made once per test session; nothing here needs a network except the gpt-oss vocabulary (PyPI).
"""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from lingoss.config import SftConfig

# Test workers share two cores; more threads would wait for each other at every barrier. Read by torch at its import.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The first call of a property loads word lists and models; CI machines stall. Time is asserted where it matters.
# The same code meets the same examples, so that a failure is the change's; `make search` looks for new ones.
settings.register_profile("lingoss", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "lingoss"))


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama of 60,000 parameters with a ChatML tokenizer that was trained on the problem families."""
    from lingoss.models import ModelCard, offline, write_model_card

    offline()
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from lingoss.data import chat, sft_examples

    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    texts = [chat.messages(row, "think")[-1]["content"] for row in sft_examples(8)]
    bpe.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=600, special_tokens=special, initial_alphabet=alphabet)
    )
    folder = tmp_path_factory.mktemp("tiny-llama")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = chat.template("chatml")
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        tie_word_embeddings=True,
        initializer_range=0.3,  # with the usual 0.02 such a small model says the same whatever it reads
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    write_model_card(folder, ModelCard("lingoss-tests/tiny-llama", "0" * 40, "random", "MIT-0"))
    return folder


@pytest.fixture(scope="session")
def gpt_oss_tokenizer_folder() -> Path:
    """The true gpt-oss tokenizer, from the user's cache."""
    from lingoss.models import convert_o200k
    from lingoss.prepare import cache_folder

    return convert_o200k(cache_folder())


@pytest.fixture(scope="session")
def tiny_gpt_oss(tmp_path_factory: pytest.TempPathFactory, gpt_oss_tokenizer_folder: Path) -> Path:
    """A random GptOss of 2 layers (one with a sliding window), 4 experts, top 2, and the true vocabulary."""
    import torch
    from transformers import GptOssConfig, GptOssForCausalLM

    from lingoss.models import ModelCard, write_model_card

    folder = tmp_path_factory.mktemp("tiny-gpt-oss")
    shutil.copytree(gpt_oss_tokenizer_folder, folder, dirs_exist_ok=True)
    torch.manual_seed(0)
    config = GptOssConfig(
        vocab_size=201_088,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        layer_types=["sliding_attention", "full_attention"],
        sliding_window=16,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        num_local_experts=4,
        num_experts_per_tok=2,
        max_position_embeddings=1024,
        rope_parameters={"rope_type": "default", "rope_theta": 150_000.0},
        initializer_range=0.3,
        pad_token_id=199_999,
        eos_token_id=200_002,
    )
    GptOssForCausalLM(config).save_pretrained(folder)
    write_model_card(folder, ModelCard("lingoss-tests/tiny-gpt-oss", "1" * 40, "random", "MIT-0"))
    return folder


def prepared_root(model: Path, folder: Path) -> Path:
    """A root below `folder` in which prepare has brought that model and the core prompts."""
    from lingoss import prepare
    from lingoss.config import PrepareConfig

    root = folder / "root"
    root.mkdir()
    source = {"source": str(model), "dtype": "float32"}  # as it is: tests compare numbers
    prepare.run(PrepareConfig.model_validate({"root": root, "model": source, "prompt_sets": ["core"]}))
    return root


def tiny_sft(root: Path, **changes: Any) -> "SftConfig":
    """A config that trains a tiny model in seconds: 10 examples, 6 steps of 4, a checkpoint every 2 steps."""
    from lingoss.config import SftConfig

    settings: dict[str, Any] = {
        "root": root,
        "data": {"examples_per_language": 2},
        "max_steps": 6,
        "global_batch": 4,
        "per_device_batch": 2,
        "optimizer": {"learning_rate": 1e-2},
        "checkpoint": {"save_steps": 2},
        "threads": 1,
    }
    return SftConfig(**{**settings, **changes})


def vllm_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[Any]]:
    """A program vllm in this environment, which is not run: the list gets what `os.execve` was given. Secrets are set."""
    program = folder / "vllm"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    seen: list[Any] = []
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setattr(os, "execve", lambda *given: seen.append(given))
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("VLLM_API_KEY", "key_secret")
    return program, seen
