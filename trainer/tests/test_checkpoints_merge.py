# SPDX-License-Identifier: MIT-0
"""Merging file by file: the very numbers that PEFT has in float32, rounded once; never half, never over anything."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from lingoss.checkpoints import merge as merging
from lingoss.checkpoints import tensor_shapes
from lingoss.checkpoints.adapter import EXPERTS
from lingoss.checkpoints.lora import changes
from lingoss.checkpoints.merge import STATE, merge, merge_folder, merged_size
from lingoss.errors import LingossError
from lingoss.models import load_model

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]


def adapter(base: Path, folder: Path, **changes: Any) -> Path:
    """A random adapter that PEFT wrote."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(3)
    settings = {"r": 4, "lora_alpha": 10, "target_modules": ATTENTION, "task_type": "CAUSAL_LM", **changes}
    model: Any = get_peft_model(load_model(base), LoraConfig(**settings))
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.2)
    model.save_pretrained(folder)
    return folder


def by_peft(base: Path, folder: Path) -> dict[str, torch.Tensor]:
    """What PEFT merges in float32."""
    return dict(load_model(base, folder).state_dict())


def merged(folder: Path) -> dict[str, torch.Tensor]:
    return {name: tensor for path in folder.glob("*.safetensors") for name, tensor in load_file(path).items()}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"use_rslora": True},
        {"target_modules": ["gate_proj", "down_proj", "k_proj"]},
        {"rank_pattern": {"k_proj": 2}, "alpha_pattern": {r"layers\.1\.self_attn\.q_proj": 3}},
    ],
)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_a_dense_model_is_merged_as_peft_does_in_float32(
    tiny_llama: Path, tmp_path: Path, changes: dict[str, Any], dtype: str
) -> None:
    folder = adapter(tiny_llama, tmp_path / "adapter", **changes)
    merge(tiny_llama, folder, tmp_path / "out", dtype)
    expected, found = by_peft(tiny_llama, folder), merged(tmp_path / "out")
    stored = tensor_shapes(tiny_llama)
    assert found.keys() == stored.keys()
    base = load_file(tiny_llama / "model.safetensors")
    assert sum(not torch.equal(expected[name], base[name]) for name in found) >= 4
    for name, tensor in found.items():
        assert torch.equal(tensor, expected[name].to(getattr(torch, dtype))), name
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == dtype
    assert (tmp_path / "out" / "tokenizer.json").read_bytes() == (tiny_llama / "tokenizer.json").read_bytes()


@pytest.mark.parametrize(
    "targets",
    [list(EXPERTS), [EXPERTS[1]], ["experts.down_proj", "experts.gate_up_proj"]],
)
def test_experts_are_merged_as_peft_does_in_float32(tiny_gpt_oss: Path, tmp_path: Path, targets: list[str]) -> None:
    folder = adapter(tiny_gpt_oss, tmp_path / "adapter", target_parameters=targets)
    files = merge(tiny_gpt_oss, folder, tmp_path / "out", shard=10_000_000)
    expected, found = by_peft(tiny_gpt_oss, folder), merged(tmp_path / "out")
    assert found.keys() == tensor_shapes(tiny_gpt_oss).keys()
    for name, tensor in found.items():
        assert torch.equal(tensor, expected[name].to(torch.bfloat16)), name
    assert len(files) == 3  # embedding, layers, head
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"].values()) == set(files)
    assert merged_size(tiny_gpt_oss, "bfloat16") == index["metadata"]["total_size"]
    assert load_model(tmp_path / "out", dtype="bfloat16") is not None


def test_a_merge_that_was_stopped_goes_on(tiny_gpt_oss: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full at the second file: the first stays and is not computed again. Another adapter starts anew."""
    folder = adapter(tiny_gpt_oss, tmp_path / "adapter")
    whole = merge(tiny_gpt_oss, folder, tmp_path / "whole", shard=10_000_000)
    real = merging.shards.write
    written: list[str] = []

    def stop(path: Path, *given: Any) -> None:
        if len(written) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(path.name)
        real(path, *given)

    monkeypatch.setattr(merging.shards, "write", stop)
    with pytest.raises(LingossError, match=r"no space left .* while writing .*aside"):
        merge(tiny_gpt_oss, folder, tmp_path / "aside", shard=10_000_000)
    first = written[0]
    written.clear()
    monkeypatch.setattr(merging.shards, "write", lambda path, *given: (written.append(path.name), real(path, *given)))
    assert merge(tiny_gpt_oss, folder, tmp_path / "aside", shard=10_000_000) == whole
    assert first not in written
    assert len(written) == len(whole) - 1
    assert not (tmp_path / "aside" / STATE).exists()
    assert {p.name for p in (tmp_path / "aside").iterdir()} == {p.name for p in (tmp_path / "whole").iterdir()}

    merge(tiny_gpt_oss, folder, tmp_path / "other", shard=10_000_000)
    (tmp_path / "other" / STATE).write_text(json.dumps({"inputs": "of another adapter", "files": whole}))
    written.clear()
    assert merge(tiny_gpt_oss, folder, tmp_path / "other", shard=10_000_000) == whole
    assert len(written) == len(whole)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rank_pattern": {"q_proj": 3}}, r"A has 4 rows .* is not the rank of adapter_config.json \(3\)"),
        ({"lora_alpha": None}, "lora_alpha=None: it must be a number"),
        ({"bias": "all"}, "bias='all': only plain LoRA is supported"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(
    tiny_llama: Path, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    folder = adapter(tiny_llama, tmp_path / "adapter")
    file = folder / "adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(LingossError, match=words):
        merge_folder(tiny_llama, folder, tmp_path / "out", "bfloat16", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["adapter"]


def test_a_base_that_does_not_fit_is_refused(tiny_llama: Path, tiny_gpt_oss: Path, tmp_path: Path) -> None:
    folder = adapter(tiny_gpt_oss, tmp_path / "adapter", target_parameters=list(EXPERTS))
    with pytest.raises(
        LingossError, match=r"the adapter does not fit the base, which has no model\.layers\.0\.mlp\.experts"
    ):
        merge(tiny_llama, folder, tmp_path / "out")
    dense = adapter(tiny_llama, tmp_path / "dense", target_modules=["up_proj"])
    with pytest.raises(
        LingossError, match=r"does not fit the base, which has no model\.layers\.0\.mlp\.up_proj\.weight"
    ):
        merge(tiny_gpt_oss, dense, tmp_path / "out")
    pair = {f"base_model.model.x.lora_{one}.weight": shape for one, shape in (("A", (2, 8)), ("B", (6, 2)))}
    config = {"r": 2, "lora_alpha": 4}
    assert changes(config, pair, {"x.weight": (6, 8)}, "llama")[0].scaling == 2.0
    with pytest.raises(LingossError, match=r"x\.weight is \[8, 6\], and the adapter is of \[6, 8\]"):
        changes(config, pair, {"x.weight": (8, 6)}, "llama")
    with pytest.raises(LingossError, match="a merged model cannot be float16: use one of bfloat16, float32"):
        merge(tiny_llama, dense, tmp_path / "out", "float16")
    with pytest.raises(LingossError, match="holds no adapter"):
        merge(tiny_llama, tmp_path, tmp_path / "out")


def test_values_that_overflow_are_refused(tiny_llama: Path, tmp_path: Path) -> None:
    folder = adapter(tiny_llama, tmp_path / "adapter")
    weights = load_file(folder / "adapter_model.safetensors")
    name = next(name for name in weights if "lora_B" in name)
    huge = {one: torch.full_like(weights[one], 3e38) for one in (name, name.replace("lora_B", "lora_A"))}
    save_file({**weights, **huge}, folder / "adapter_model.safetensors")
    with pytest.raises(LingossError, match=r"is not finite with the adapter merged in: the adapter is broken"):
        merge(tiny_llama, folder, tmp_path / "out")
