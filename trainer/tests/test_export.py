# SPDX-License-Identifier: MIT-0
"""Taking a model out of a run: nothing is overwritten, everything is compared, and the card says what was measured."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from conftest import prepared_root, tiny_sft
from lingoss import runs
from lingoss.data import chat
from lingoss.errors import LingossError
from lingoss.export import export_run, model_card_text
from lingoss.models import load_model, load_tokenizer
from lingoss.sft import run


@pytest.fixture(scope="module")
def trained(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, runs.RunInfo]:
    root = prepared_root(tiny_llama, tmp_path_factory.mktemp("export"))
    return root, run(tiny_sft(root, max_steps=2))


def summary(run: str, k: int) -> dict[str, Any]:
    rate = {"k": k, "n": 50, "rate": k / 50, "low": 0.661, "high": 0.849, "method": "Wilson"}
    cell = {
        "prompts": 50,
        "samples": 50,
        "items": 10,
        "rates": {"strict": rate, "reasoning": rate},
        "means": {},
        "medians": {},
    }
    few = {**cell, "rates": {"strict": {**rate, "k": 1, "n": 10}}}
    return {
        "run": run,
        "prompt_set": "core-crossed",
        "samples_per_prompt": 1,
        "errors": 0,
        "cells": {"all": {"all": cell}, "de": {"all": few}},
    }


def test_an_adapter_comes_out_as_it_was_trained(trained: tuple[Path, runs.RunInfo], tmp_path: Path) -> None:
    root, info = trained
    files = export_run(root, info.name, tmp_path / "out")
    assert [path.name for path in files] == [
        "README.md",
        "adapter_config.json",
        "adapter_model.safetensors",
        "chat_template.jinja",
        "lingoss.json",
    ]
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        assert (tmp_path / "out" / name).read_bytes() == (info.path / "adapter" / name).read_bytes()
    assert (tmp_path / "out" / "chat_template.jinja").read_text() == chat.template("chatml")
    record = json.loads((tmp_path / "out" / "lingoss.json").read_text())
    assert record["run"] == info.name
    assert record["lineage"]["base"]["hub_id"] == "lingoss-tests/tiny-llama"
    assert (
        record["digests"]["adapter_model.safetensors"]
        == info.done_record()["digests"]["adapter/adapter_model.safetensors"]
    )
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith("---\nbase_model: lingoss-tests/tiny-llama\nlibrary_name: peft\n")
    assert "Not measured: no finished evaluation has this run." in card
    assert record["digests"]["adapter_model.safetensors"] in card
    assert str(root) not in card + (tmp_path / "out" / "lingoss.json").read_text()
    assert load_model(info.path.parents[1] / "models" / _model_name(root), tmp_path / "out") is not None


def _model_name(root: Path) -> str:
    return next((root / "models").iterdir()).name


def test_a_merged_model_answers_like_base_and_adapter(trained: tuple[Path, runs.RunInfo], tmp_path: Path) -> None:
    import torch

    root, info = trained
    export_run(root, info.name, tmp_path / "out", merged=True)
    ids = torch.arange(3, 60)[None]
    with torch.inference_mode():
        merged: Any = load_model(tmp_path / "out")
        expected: Any = load_model(root / "models" / _model_name(root), info.path / "adapter")
        assert torch.equal(merged(ids).logits, expected(ids).logits)
    tokenizer: Any = load_tokenizer(tmp_path / "out")
    assert tokenizer.chat_template == chat.template("chatml")
    assert json.loads((tmp_path / "out" / "lingoss.json").read_text())["kind"] == "merged"
    assert "library_name: transformers" in (tmp_path / "out" / "README.md").read_text()


def test_a_folder_that_is_not_empty_is_never_touched(trained: tuple[Path, runs.RunInfo], tmp_path: Path) -> None:
    root, info = trained
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(LingossError, match="is not empty, and export never overwrites"):
        export_run(root, info.name, tmp_path / "out")
    with pytest.raises(LingossError, match=r"thesis\.txt is a file: name a new folder"):
        export_run(root, info.name, tmp_path / "out" / "thesis.txt")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]
    (tmp_path / "empty").mkdir()
    assert export_run(root, info.name, tmp_path / "empty")


def test_a_run_that_changed_or_has_no_adapter_is_refused(tiny_llama: Path, tmp_path: Path) -> None:
    root = prepared_root(tiny_llama, tmp_path)
    with pytest.raises(LingossError, match="has no adapter to export"):
        export_run(root, "latest:prepare", tmp_path / "out")
    info = run(tiny_sft(root, max_steps=1))
    weights = info.path / "adapter" / "adapter_model.safetensors"
    os.truncate(weights, weights.stat().st_size - 1)
    with pytest.raises(
        LingossError, match=r"is not what it was when it finished: adapter/adapter_model.safetensors has changed"
    ):
        export_run(root, info.name, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))


def test_the_card_shows_what_was_measured(trained: tuple[Path, runs.RunInfo]) -> None:
    _, info = trained
    text = model_card_text(
        info,
        info.done_record(),
        ["de", "fr"],
        {"a": "0" * 64},
        [summary("base", 0), summary(info.name, 38)],
        merged=False,
    )
    assert "Prompt set `core-crossed`, 50 prompts, 1 sample(s) each" in text
    assert f"| | base | {info.name} |" in text
    assert "| all three | 0/50 (66 to 85 %) | 38/50 (66 to 85 %) |" in text
    assert "| all three, de | 1/10 (66 to 85 %) | 1/10 (66 to 85 %) |" in text
    assert "| right answer | none counted | none counted |" in text
    assert "language:\n- de\n- fr\n" in text
