# SPDX-License-Identifier: MIT-0
"""Number formats: MXFP4 against transformers' own reading, rounding against torch's, and conversions that go on."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GptOssConfig, GptOssForCausalLM, Mxfp4Config

from lingoss.errors import LingossError
from lingoss.models import convert, convert_folder, shards
from lingoss.models.mxfp4 import dequantise
from lingoss.models.shards import Spec


def ignore(_: int) -> None:
    """Nobody asks for the progress."""


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random GptOss of two layers as openai publishes it: experts in MXFP4, all else in bfloat16, two files."""
    folder = tmp_path_factory.mktemp("mxfp4")
    torch.manual_seed(1)
    hidden, inner, experts = 64, 96, 4
    config = GptOssConfig(
        vocab_size=50,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        num_local_experts=experts,
        num_experts_per_tok=2,
        layer_types=["sliding_attention", "full_attention"],
        pad_token_id=0,
        eos_token_id=1,
    )
    tensors = {
        name: tensor.to(torch.bfloat16)
        for name, tensor in GptOssForCausalLM(config).state_dict().items()
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj"))
    }
    for layer in range(2):
        for name, out, width in (("gate_up_proj", 2 * inner, hidden), ("down_proj", hidden, inner)):
            stem = f"model.layers.{layer}.mlp.experts.{name}"
            shape = (experts, out, width // 32)
            tensors[f"{stem}_blocks"] = torch.randint(0, 256, (*shape, 16), dtype=torch.uint8)
            tensors[f"{stem}_scales"] = torch.randint(110, 140, shape, dtype=torch.uint8)
    names = sorted(tensors)
    # Blocks and scales of one tensor in different files, as a large checkpoint may have them.
    halves = {"model-00000-of-00001.safetensors": names[0::2], "model-00001-of-00001.safetensors": names[1::2]}
    for file, held in halves.items():
        save_file({name: tensors[name].contiguous() for name in held}, folder / file, {"format": "pt"})
    index = {"metadata": {}, "weight_map": {name: file for file, held in halves.items() for name in held}}
    (folder / convert.INDEX).write_text(json.dumps(index))
    written = {**config.to_dict(), "torch_dtype": "bfloat16", "architectures": ["GptOssForCausalLM"]}
    written["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}
    (folder / "config.json").write_text(json.dumps(written))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    return folder


@pytest.mark.parametrize("most", [convert.SHARD, 20_000])
def test_mxfp4_is_what_transformers_reads(
    packed: Path, tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert, "SHARD", most)
    told: list[int] = []
    convert_folder(packed, tmp_path, "bfloat16", told.append)
    reference: Any = AutoModelForCausalLM.from_pretrained(
        packed, quantization_config=Mxfp4Config(dequantize=True), dtype=torch.bfloat16
    )
    ours: Any = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16)
    expected, found = reference.state_dict(), ours.state_dict()
    assert found.keys() == expected.keys()
    assert [name for name in expected if not torch.equal(found[name], expected[name])] == []
    assert found["model.layers.1.mlp.experts.gate_up_proj"].shape == (4, 64, 192)
    assert found["model.layers.1.mlp.experts.gate_up_proj"].std() > 0
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["dtype"], "torch_dtype" in config, "quantization_config" in config) == ("bfloat16", False, False)
    stored = {name: one.spec for name, one in shards.stored_tensors(tmp_path).items()}
    assert sum(told) == shards.total_size(stored) == 2 * sum(tensor.numel() for tensor in expected.values())
    weights = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert (len(weights) > 5) == (tmp_path / convert.INDEX).exists() == (most == 20_000)
    assert not (tmp_path / "pytorch_model.bin").exists()
    assert (tmp_path / "tokenizer.json").read_text() == "{}"


def test_every_block_and_scale_means_what_transformers_says() -> None:
    from transformers.integrations.mxfp4 import _convert_moe_packed_tensors

    byte = torch.arange(256, dtype=torch.uint8).reshape(1, 16, 16)
    for scale in range(255):  # 255 is no number
        scales = torch.full((1, 16), scale, dtype=torch.uint8)
        reference = _convert_moe_packed_tensors(byte[None].clone(), scales[None].clone())[0]
        ours = torch.from_numpy(dequantise(byte.numpy(), scales.numpy())).view(torch.bfloat16)
        assert torch.equal(ours, reference), scale


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_rounding_is_that_of_torch(kind: torch.dtype, dtype: str, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    edges = torch.tensor([0.0, -0.0, 1 + 2**-8, 1 + 2**-8 + 2**-20, 1 + 3 * 2**-8, 3.4e38, -3.4e38, 1e-40, torch.inf])
    bits = torch.randint(-(2**31), 2**31 - 1, (1 << 16,), dtype=torch.int32).view(torch.float32)
    values = torch.cat([edges, bits[bits.isfinite()]]).to(kind)
    mask = torch.tensor([1, 2, 3], dtype=torch.int64)
    save_file({"values": values, "mask": mask}, tmp_path / "source" / "model.safetensors")
    (tmp_path / "source" / "config.json").write_text('{"model_type": "x"}')
    convert_folder(tmp_path / "source", tmp_path / "made", dtype, ignore)
    found = load_file(tmp_path / "made" / "model.safetensors")
    assert torch.equal(found["values"], values.to(getattr(torch, dtype)))
    assert torch.equal(found["mask"], mask)


def test_not_a_number_stays_none(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    bits = torch.tensor([0x7F800001, 0x7FFFFFFF, -1], dtype=torch.int32).view(torch.float32)
    save_file({"values": bits}, tmp_path / "source" / "model.safetensors")
    (tmp_path / "source" / "config.json").write_text("{}")
    convert_folder(tmp_path / "source", tmp_path / "made", "bfloat16", ignore)
    assert load_file(tmp_path / "made" / "model.safetensors")["values"].isnan().tolist() == [True, True, True]


def test_a_stopped_conversion_goes_on(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "SHARD", 20_000)
    whole, target = tmp_path / "whole", tmp_path / "target"
    convert_folder(packed, whole, "bfloat16", ignore)

    def stop(_: int) -> None:
        if len(list(target.glob("model-*.safetensors"))) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert_folder(packed, target, "bfloat16", stop)
    kept = sorted(target.glob("model-*.safetensors"))
    assert not (target / convert.INDEX).exists()
    with kept[1].open("r+b") as stream:
        stream.truncate(kept[1].stat().st_size - 1)  # as after a power cut
    inodes = [path.stat().st_ino for path in kept]
    convert_folder(packed, target, "bfloat16", ignore)
    assert [old == path.stat().st_ino for old, path in zip(inodes, kept, strict=True)] == [True, False, True]
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {
        path.name: path.read_bytes() for path in whole.iterdir()
    }


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"w": Spec("F8_E4M3", (4, 4))}, "w is stored as F8_E4M3, which cannot be converted"),
        ({"w_blocks": Spec("U8", (2, 4, 1, 16))}, "w_blocks is stored as U8"),
        (
            {"w_blocks": Spec("U8", (2, 4, 1, 16)), "w_scales": Spec("U8", (2, 4, 2))},
            r"w_blocks is U8 \[2, 4, 1, 16\] with scales U8 \[2, 4, 2\], which is not the MXFP4 of gpt-oss",
        ),
    ],
)
def test_what_cannot_be_converted_is_named(tensors: dict[str, Spec], message: str) -> None:
    with pytest.raises(LingossError, match=message):
        convert.converted(tensors, "bfloat16")


def test_another_quantisation_is_refused(packed: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    save_file({"w": torch.zeros(2)}, source / "model.safetensors")
    (source / "config.json").write_text('{"quantization_config": {"quant_method": "gptq"}}')
    with pytest.raises(LingossError, match="quantised by gptq, which cannot be converted"):
        convert_folder(source, tmp_path / "made", "bfloat16", ignore)


def test_layers_are_stored_in_their_order() -> None:
    found = {name: Spec("BF16", (1,)) for name in ("model.layers.10.w", "model.layers.9.w", "lm_head.weight")}
    assert list(convert.converted(found, "bfloat16")) == ["lm_head.weight", "model.layers.9.w", "model.layers.10.w"]


def test_the_sizes_of_gpt_oss_20b() -> None:
    """Its published files hold 13.76 GB; the copy that is trained holds its 20.9 billion parameters twice in bytes."""
    hidden, experts, attention = 2880, 32, {"q_proj": 4096, "k_proj": 512, "v_proj": 512}
    found = {"model.embed_tokens.weight": (201_088, hidden), "lm_head.weight": (201_088, hidden)}
    found["model.norm.weight"] = (hidden,)
    packed: dict[str, Spec] = {}
    for layer in range(24):
        stem = f"model.layers.{layer}."
        for name, out in attention.items():
            found |= {f"{stem}self_attn.{name}.weight": (out, hidden), f"{stem}self_attn.{name}.bias": (out,)}
        found |= {f"{stem}self_attn.o_proj.weight": (hidden, 4096), f"{stem}self_attn.o_proj.bias": (hidden,)}
        found |= {f"{stem}self_attn.sinks": (64,), f"{stem}input_layernorm.weight": (hidden,)}
        found |= {f"{stem}post_attention_layernorm.weight": (hidden,), f"{stem}mlp.router.bias": (experts,)}
        found |= {f"{stem}mlp.router.weight": (experts, hidden)}
        for name, out in {"gate_up_proj": 2 * hidden, "down_proj": hidden}.items():
            found[f"{stem}mlp.experts.{name}_bias"] = (experts, out)
            packed[f"{stem}mlp.experts.{name}_blocks"] = Spec("U8", (experts, out, 90, 16))
            packed[f"{stem}mlp.experts.{name}_scales"] = Spec("U8", (experts, out, 90))
    published = {**{name: Spec("BF16", shape) for name, shape in found.items()}, **packed}
    assert not convert.is_plain(published, "bfloat16")
    copy = convert.converted(published, "bfloat16")
    assert shards.total_size(published) == 13_761_264_768
    assert shards.total_size(copy) == 2 * 20_914_757_184
    assert len(shards.in_shards(copy, convert.SHARD)) == 13


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "its header promises .*: it was cut short"),
        (lambda path: path.write_bytes(b"\xff" * 64), "header is damaged"),
        (lambda path: path.write_bytes(b""), "header is damaged"),
        (lambda path: path.with_name("b.safetensors").write_bytes(path.read_bytes()), "w is in a.* and in b"),
        (lambda path: path.unlink(), "holds no weights"),
    ],
)
def test_damaged_weights_are_told(damage: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"w": torch.zeros(2)}, path)
    damage(path)
    with pytest.raises(LingossError, match=message):
        shards.stored_tensors(tmp_path)


def test_memory_stays_at_a_few_experts(tmp_path: Path) -> None:
    """A layer of 168 MB in bfloat16 is unpacked with far less than that."""
    source = tmp_path / "source"
    source.mkdir()
    specs = {"e_blocks": Spec("U8", (40, 1024, 64, 16)), "e_scales": Spec("U8", (40, 1024, 64))}
    pieces = (np.zeros((1024, 64, 16), np.uint8) for _ in range(40))
    shards.write(source / "model.safetensors", specs, [*pieces, np.full((40, 1024, 64), 127, np.uint8)])
    (source / "config.json").write_text("{}")
    code = (
        "import resource, sys; from pathlib import Path; from lingoss.models import convert_folder\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "convert_folder(Path(sys.argv[1]), Path(sys.argv[2]), 'bfloat16', lambda _: None)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    command = [sys.executable, "-c", code, str(source), str(tmp_path / "made")]
    grown = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert (tmp_path / "made" / "model.safetensors").stat().st_size > 160e6
    assert grown < 60_000  # kB
