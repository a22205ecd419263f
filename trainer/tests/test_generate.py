# SPDX-License-Identifier: MIT-0
"""Rows of samples: complete, resumable, never mixed with another model's, and a bad prompt is a row too."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lingoss.data import Prompt, jsonl, prompt_digest, prompt_set
from lingoss.errors import LingossError
from lingoss.evaluate import decoding, engine
from lingoss.evaluate.batching import Task, batches
from lingoss.evaluate.generate import generate
from lingoss.evaluate.scoring import score_row
from lingoss.models import model_digest

PROMPTS = prompt_set("core-crossed", ("en", "fr"))[:6]


def draw(model: Path, folder: Path, prompts: list[Prompt] = PROMPTS, **changes: Any) -> list[dict[str, Any]]:
    settings: dict[str, Any] = {"format": "think", "k": 2, "max_new_tokens": 8, "seed": 3}
    generate(model, prompts, folder, **{**settings, **changes})
    return read(folder)


def read(folder: Path) -> list[dict[str, Any]]:
    return [row if isinstance(row, dict) else row.to_dict() for _, row in jsonl.read(folder / "samples.jsonl")]


def by_key(rows: list[dict[str, Any]]) -> dict[tuple[str, int], str]:
    return {(row["prompt_id"], row["sample"]): row["text"] for row in rows}


def test_rows_are_what_score_reads(tiny_llama: Path, tmp_path: Path) -> None:
    rows = draw(tiny_llama, tmp_path / "out")
    assert len(rows) == 12
    assert {(row["prompt_id"], row["sample"]) for row in rows} == {(p.id, s) for p in PROMPTS for s in (0, 1)}
    known = {prompt.id: prompt for prompt in PROMPTS}
    for row in rows:
        prompt = known[row["prompt_id"]]
        assert row["id"] == f"{prompt.id}:{row['sample']}"
        assert (row["item"], row["family"], row["format"], row["crossed"]) == (
            prompt.item,
            prompt.family,
            "think",
            True,
        )
        assert row["request"] == {
            "question": prompt.question,
            "question_language": prompt.question_language,
            "reasoning_language": prompt.reasoning_language,
            "answer_language": prompt.answer_language,
            "gold": prompt.gold,
        }
        assert row["finish_reason"] in ("stop", "length")
        assert 1 <= row["new_tokens"] <= 8
        assert row["seed"] == decoding.sample_seed(3, prompt.id, row["sample"])
        assert "<|im_end|>" not in row["text"]
        assert score_row(row)["verdict"]["truncated"] is True or row["finish_reason"] == "stop"


def test_the_card_says_what_made_them(tiny_llama: Path, tmp_path: Path) -> None:
    draw(tiny_llama, tmp_path / "out")
    card = json.loads((tmp_path / "out" / "run.json").read_text())
    assert card["model_digest"] == model_digest(tiny_llama)
    assert card["adapter_digest"] is None
    assert card["prompt_digest"] == prompt_digest(PROMPTS)
    assert (card["k"], card["temperature"], card["max_new_tokens"], card["seed"]) == (2, 1.0, 8, 3)
    assert (card["hub_id"], card["prompts"], card["prompt_set"]) == ("lingoss-tests/tiny-llama", 6, "core-crossed")
    assert card["new_tokens"] == sum(row["new_tokens"] for row in read(tmp_path / "out"))
    assert {"torch", "transformers", "peft", "lingoss"} == card["versions"].keys()
    assert card["finished"] >= card["started"]


def test_the_same_call_gives_the_same_texts_and_a_finished_one_does_nothing(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = draw(tiny_llama, tmp_path / "a")
    assert by_key(first) == by_key(draw(tiny_llama, tmp_path / "b"))
    assert by_key(first) != by_key(draw(tiny_llama, tmp_path / "c", seed=4))
    monkeypatch.setattr(engine, "load_model", lambda *a, **k: pytest.fail("it loaded the model"))
    assert draw(tiny_llama, tmp_path / "a") == first


def test_texts_do_not_depend_on_the_grouping(tiny_llama: Path, tmp_path: Path) -> None:
    whole = draw(tiny_llama, tmp_path / "a")
    pieces = draw(tiny_llama, tmp_path / "b", batch_tokens=1)
    assert by_key(whole) == by_key(pieces)


def test_it_goes_on_where_it_was_killed(tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = draw(tiny_llama, tmp_path / "whole")
    original = decoding.decode_batch
    calls: list[int] = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(len(args[2]))
        return original(*args, **kwargs)

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        calls.append(len(args[2]))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr(decoding, "decode_batch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        draw(tiny_llama, tmp_path / "out", batch_tokens=1)
    rows = read(tmp_path / "out")
    assert len(rows) == 2
    # a torn last line, as a kill in mid-write leaves it
    with (tmp_path / "out" / "samples.jsonl").open("a") as stream:
        stream.write('{"prompt_id": "x", "sam')
    calls.clear()
    monkeypatch.setattr(decoding, "decode_batch", counted)
    rows = draw(tiny_llama, tmp_path / "out", batch_tokens=1)
    assert sum(calls) == 10
    assert by_key(rows) == by_key(whole)
    assert len(rows) == 12


def test_another_model_prompt_set_or_sampling_is_refused(tiny_llama: Path, tmp_path: Path) -> None:
    draw(tiny_llama, tmp_path / "out")
    before = (tmp_path / "out" / "samples.jsonl").read_bytes()
    with pytest.raises(LingossError, match=r"holds samples with prompt_digest=\w{16}, not \w{16}; give another folder"):
        draw(tiny_llama, tmp_path / "out", PROMPTS[:5])
    with pytest.raises(LingossError, match=r"holds samples with temperature=1.0, not 0.5"):
        draw(tiny_llama, tmp_path / "out", temperature=0.5)
    with pytest.raises(LingossError, match=r"holds samples with k=2, not 3"):
        draw(tiny_llama, tmp_path / "out", k=3)
    (tmp_path / "out" / "run.json").unlink()
    with pytest.raises(LingossError, match=r"has no run.json that tells what made it"):
        draw(tiny_llama, tmp_path / "out")
    assert (tmp_path / "out" / "samples.jsonl").read_bytes() == before


def test_two_calls_at_once_do_not_mix(tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = decoding.decode_batch

    def meanwhile(*args: Any, **kwargs: Any) -> Any:
        with pytest.raises(LingossError, match=r"held by|holds"):
            draw(tiny_llama, tmp_path / "out")
        return original(*args, **kwargs)

    monkeypatch.setattr(decoding, "decode_batch", meanwhile)
    assert len(draw(tiny_llama, tmp_path / "out")) == 12


def test_a_bad_prompt_is_a_row_and_the_rest_goes_on(tiny_llama: Path, tmp_path: Path) -> None:
    long = replace(PROMPTS[0], id="long", question="mille " * 2000)
    rows = draw(tiny_llama, tmp_path / "out", [long, *PROMPTS[1:]])
    bad = [row for row in rows if "error" in row]
    assert [(row["prompt_id"], row["sample"]) for row in bad] == [("long", 0), ("long", 1)]
    assert "with max_new_tokens=8 that is more than the model's context of 1024" in bad[0]["error"]
    assert len(rows) == 12


def test_a_failing_batch_becomes_error_rows_that_are_tried_again(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = decoding.decode_batch

    def failing(*args: Any, **kwargs: Any) -> Any:
        if len(args[1]) == 1 and len(args[1][0]) == lengths[0]:
            raise RuntimeError("out of memory\nlong trace")
        return original(*args, **kwargs)

    def noted(*args: Any, **kwargs: Any) -> Any:
        lengths.append(len(args[1][0]))
        return original(*args, **kwargs)

    lengths: list[int] = []
    monkeypatch.setattr(decoding, "decode_batch", noted)
    whole = draw(tiny_llama, tmp_path / "whole", batch_tokens=1)
    monkeypatch.setattr(decoding, "decode_batch", failing)
    rows = draw(tiny_llama, tmp_path / "out", batch_tokens=1)
    bad = [row for row in rows if "error" in row]
    assert bad
    assert all(row["error"] == "generation failed: out of memory" for row in bad)
    assert len(rows) == 12
    monkeypatch.setattr(decoding, "decode_batch", original)
    assert by_key(draw(tiny_llama, tmp_path / "out", batch_tokens=1)) == by_key(whole)


def test_an_adapter_changes_the_texts_and_the_card(tiny_llama: Path, tmp_path: Path) -> None:
    import torch
    from peft import LoraConfig, get_peft_model

    from lingoss.models import load_model

    torch.manual_seed(1)
    model = get_peft_model(
        load_model(tiny_llama), LoraConfig(r=4, target_modules=["q_proj", "up_proj"], init_lora_weights=False)
    )
    model.save_pretrained(tmp_path / "adapter")
    base, adapted = draw(tiny_llama, tmp_path / "a"), draw(tiny_llama, tmp_path / "b", adapter=tmp_path / "adapter")
    assert by_key(base) != by_key(adapted)
    card = json.loads((tmp_path / "b" / "run.json").read_text())
    assert card["adapter_digest"] == model_digest(tmp_path / "adapter")
    with pytest.raises(LingossError, match="holds samples with adapter_digest=None"):
        draw(tiny_llama, tmp_path / "a", adapter=tmp_path / "adapter")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"temperature": 0.0}, "temperature 0 gives 2 times the same sample"),
        ({"k": 0}, "must be positive"),
        ({"prompts": []}, "no prompts"),
        ({"prompts": [PROMPTS[0], PROMPTS[0]]}, f"prompt ids repeat: {PROMPTS[0].id}"),
        ({"adapter": Path("nowhere")}, "holds no model"),
        ({"format": "xml"}, "unknown chat format"),
        ({"dtype": "int3"}, "unknown dtype 'int3'"),
    ],
)
def test_bad_calls_are_refused(tiny_llama: Path, tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(LingossError, match=reason):
        draw(tiny_llama, tmp_path / "out", **changes)


def test_batches_hold_similar_lengths_and_stay_within_the_budget() -> None:
    tasks = [Task(PROMPTS[0], [0] * length, (0, 1, 2)) for length in (10, 90, 30, 91, 12)]
    found = list(batches(tasks, max_new_tokens=10, batch_tokens=250))
    assert [[len(task.ids) for task in batch] for batch in found] == [[91], [91, 90], [90], [30, 12], [10]]
    assert [sum(len(task.samples) for task in batch) for batch in found] == [2, 2, 2, 6, 3]
    assert sorted(s for batch in found for task in batch for s in task.samples) == sorted([0, 1, 2] * 5)


@pytest.mark.slow
def test_harmony_keeps_its_special_tokens(tiny_gpt_oss: Path, tmp_path: Path) -> None:
    rows = draw(tiny_gpt_oss, tmp_path / "out", PROMPTS[:2], format="harmony", k=1, max_new_tokens=4)
    assert [row["format"] for row in rows] == ["harmony", "harmony"]
    assert all(score_row(row)["verdict"]["format_ok"] is False for row in rows)


@pytest.mark.parametrize("wrong", [{"format": "foo"}, {"dtype": "float8"}])
def test_a_refused_call_leaves_the_folder_free(tiny_llama: Path, tmp_path: Path, wrong: dict[str, str]) -> None:
    """Otherwise the corrected command would be refused: its folder would belong to the wrong one."""
    arguments = {"format": "think", "max_new_tokens": 4, "temperature": 0.0, "threads": 1, **wrong}
    with pytest.raises(LingossError, match=r"unknown (chat format|dtype)"):
        generate(tiny_llama, prompt_set("core")[:1], tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()
