# SPDX-License-Identifier: MIT-0
"""Run folders that simulated pods do not write: made through the package's own API, from the config the chart rendered."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lingoss import prepare as preparing
from lingoss import runs
from lingoss.config import load
from lingoss.sft.setting import resolve

USER = 1000
MODEL_CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "max_position_embeddings": 1024}


def model(folder: Path) -> None:
    """A bf16 model of one tensor: what prepare copies without torch."""
    folder.mkdir(parents=True)
    header = {"model.norm.weight": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}
    _safetensors(folder / "model.safetensors", header, bytes(8))
    (folder / "config.json").write_text(json.dumps(MODEL_CONFIG))
    (folder / "tokenizer.json").write_text(
        json.dumps({"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}})
    )
    (folder / "tokenizer_config.json").write_text("{}")
    card = {"hub_id": "lingoss-tests/one-tensor", "revision": "0" * 40, "source": "made", "license": "MIT-0"}
    (folder / "lingoss.json").write_text(json.dumps(card))
    give(folder)


def prepare(root: Path) -> str:
    """A finished prepare run of the settings in simulated.yaml, made here instead of in a pod; answers its name."""
    values = yaml.safe_load((Path(__file__).parent / "simulated.yaml").read_text(encoding="utf-8"))
    config = yaml.safe_dump({"stage": "prepare", **values["storage"]["prepare"]["config"]})
    model = root / "incoming" / "tiny"
    settings = load("prepare", _written(root, "prepare", config), [f"root={root}", f"model.source={model}"])
    done = preparing.run(settings, None)
    assert done is not None
    give(root)
    return done.run


def sft(root: Path, config: str) -> str:
    """A finished SFT run of this config, under the name that a real pod would give it; answers its name."""
    settings = load("sft", _written(root, "sft", config), [f"root={root}"])
    return _trained(root, "sft", config, runs.find_parent(root, "sft", "auto").name, resolve(settings).data_digest)


def grpo(root: Path, config: str) -> str:
    """A finished GRPO run of this config; answers its name."""
    return _trained(root, "grpo", config, runs.find_parent(root, "grpo", "auto").name)


def evaluation(root: Path, config: str, judged: str, outcome: str = "viable", accepted: str | None = None) -> str:
    """A finished evaluation that judged the run `judged`; answers its name."""
    settings = load("evaluate", _written(root, "evaluate", config), [f"root={root}"])
    prepared = runs.find_run(root, "latest:prepare").name
    with runs.open_run(root, "evaluate", settings, (prepared, judged), "planted") as folder:
        folder.status("running", 1, 1)
        gate = {"outcome": outcome, "languages": {}, "reasons": [f"planted as {outcome}"], "runs": [judged]}
        runs.write_json(folder.path / "gate.json", gate)
        found = {"gate.json": runs.file_digest(folder.path / "gate.json")}
        extra: dict[str, Any] = {"gate": outcome}
        if accepted:
            accept = {"decision": accepted, "failed": [], "metrics": {}, "runs": [judged]}
            runs.write_json(folder.path / "accept.json", accept)
            found["accept.json"] = runs.file_digest(folder.path / "accept.json")
            extra["accept"] = accepted
        folder.finish(1, found, **extra)
    give(root)
    return folder.name


def _trained(root: Path, stage: str, config: str, parent: str, data: str = "planted") -> str:
    settings = load(stage, _written(root, stage, config), [f"root={root}"])
    with runs.open_run(root, stage, settings, (parent,), data) as folder:
        folder.status("running", 1, 1)
        folder.adapter.mkdir()
        header = {"base_model.model.lora_A.weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
        _safetensors(folder.adapter / "adapter_model.safetensors", header, bytes(4))
        (folder.adapter / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 8}))
        folder.finish(1)
    give(root)
    return folder.name


def _written(root: Path, stage: str, config: str) -> Path:
    path = root.parent / f"{root.name}-{stage}.yaml"
    path.write_text(config, encoding="utf-8")
    return path


def _safetensors(path: Path, header: Mapping[str, object], data: bytes) -> None:
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def give(folder: Path) -> None:
    """Let the pods' user own a folder with all that is in it."""
    for place in (folder, *folder.rglob("*")):
        os.chown(place, USER, USER, follow_symlinks=False)
