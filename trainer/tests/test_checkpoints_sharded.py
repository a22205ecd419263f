# SPDX-License-Identifier: MIT-0
"""Checkpoints of several ranks: real gloo groups and FSDP2, tiny models of both kinds, and what may go wrong."""

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gloo_group import on_ranks
from lingoss.checkpoints import CheckpointStore, verify
from lingoss.checkpoints.sharded import load, stored_reader
from lingoss.errors import LingossError
from sharded_runs import Run, State, both_kinds, go_on, loads, saves_badly


class Saved(NamedTuple):
    """Checkpoints of two ranks at step 2, and what the ranks held."""

    folder: Path
    llama: State
    gpt_oss: State


@pytest.fixture(scope="module")
def saved(tiny_llama: Path, tiny_gpt_oss: Path, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    folder = tmp_path_factory.mktemp("sharded")
    states = on_ranks(2, both_kinds, tiny_llama, tiny_gpt_oss, folder)
    assert states[0] == states[1]
    return Saved(folder, *states[0])


@pytest.fixture
def store(saved: Saved, tmp_path: Path) -> CheckpointStore:
    """A copy of the Llama's checkpoint as steps 2 and 4."""
    for step in (2, 4):
        shutil.copytree(saved.folder / "llama" / "checkpoint-2", tmp_path / f"checkpoint-{step}")
        manifest = tmp_path / f"checkpoint-{step}" / "manifest.json"
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "step": step}))
    found = CheckpointStore(tmp_path, keep=2)
    assert found.newest() == (tmp_path / "checkpoint-4", [])
    return found


def test_a_run_goes_on_with_any_number_of_ranks(saved: Saved, tiny_llama: Path, tmp_path: Path) -> None:
    """From two ranks to three, to one, to two: what is loaded is what was held, and the steps go on, bit for bit."""
    shutil.copytree(saved.folder / "llama" / "checkpoint-2", tmp_path / "checkpoint-2")
    before, first = saved.llama, 2
    for ranks, count in ((3, 2), (1, 1), (2, 2)):
        given: Any = (tiny_llama, tmp_path, first, count)
        for loaded, after, documents in on_ranks(ranks, go_on, *given) if ranks > 1 else [go_on(*given)]:
            assert loaded == before
            assert documents["trainer_state.json"] == {"step": first}
            assert after == Run(tiny_llama).steps(0, first + count).state()
        before, first = after, first + count
    files = sorted(path.name for path in (tmp_path / "checkpoint-4").glob("*.safetensors"))
    assert files == [f"shard-0000{n}-of-00003.safetensors" for n in range(3)]
    assert len(before) == 4 * 2 * 2 * 4  # 4 layers of attention in 2 blocks, A and B; weight, two moments and a count
    assert CheckpointStore(tmp_path, keep=9).newest() == (tmp_path / "checkpoint-7", [])


def test_experts_are_held_too_and_the_base_is_not(saved: Saved, tiny_gpt_oss: Path) -> None:
    checkpoint = saved.folder / "gpt-oss" / "checkpoint-2"
    assert loads(tiny_gpt_oss, checkpoint, experts=True) == saved.gpt_oss
    held = json.loads((checkpoint / "manifest.json").read_text())["sharded"]
    assert len(held) == 4 * 2 * (4 + 2) * 2
    assert all(".lora_A.weight" in name or ".lora_B.weight" in name for name in held)
    stem = "adapter/base_model.model.model.layers.1.mlp.experts.base_layer.lora_A.weight"
    assert [chunk[:3] for chunk in held[stem]["chunks"]] == [
        ["shard-00000-of-00002.safetensors", [0, 0], [4, 32]],
        ["shard-00001-of-00002.safetensors", [4, 0], [4, 32]],
    ]
    assert sum(path.stat().st_size for path in checkpoint.iterdir()) < 300_000  # the model has 50 MB


def test_a_checkpoint_of_one_process_is_taken_up_by_two(tiny_llama: Path, tmp_path: Path) -> None:
    import torch

    run = Run(tiny_llama).steps(0, 3)

    def fill(folder: Path) -> None:  # as transformers' trainer writes it
        run.model.save_pretrained(folder)
        torch.save(run.optimizer.state_dict(), folder / "optimizer.pt")
        (folder / "trainer_state.json").write_text('{"global_step": 3}')

    CheckpointStore(tmp_path, keep=1).write(3, fill)
    assert on_ranks(2, loads, tiny_llama, tmp_path / "checkpoint-3") == [run.state()] * 2
    fresh = Run(tiny_llama)
    documents = CheckpointStore(tmp_path, keep=1).load(tmp_path / "checkpoint-3", fresh.model, fresh.optimizer)
    assert documents["trainer_state.json"] == {"global_step": 3}
    assert fresh.optimizer.state_dict()["param_groups"] == run.optimizer.state_dict()["param_groups"]
    assert fresh.steps(3, 1).state() == run.steps(3, 1).state()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("nan", "checkpoint 4 could not be written to {folder}: rank 1: adapter/"),
        ("full", "checkpoint 4 could not be written to {folder}: the disk is full; the checkpoint of step 2 is whole"),
    ],
)
def test_one_ranks_fault_is_told_alike_on_every_rank(
    store: CheckpointStore, tiny_llama: Path, fault: str, words: str
) -> None:
    shutil.rmtree(store.path(4))
    results = on_ranks(2, saves_badly, tiny_llama, store.folder, fault)
    assert results[0] == results[1]
    told, files = results[0]
    assert told.startswith(words.format(folder=store.folder))
    assert told.endswith("start again when that is mended, and the run goes on from there")
    assert files == ["checkpoint-2"]
    assert store.newest() == (store.path(2), [])


SHARD = "shard-00001-of-00002.safetensors"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: (path / SHARD).unlink(), f"{SHARD} is missing"),
        (lambda path: os.truncate(path / SHARD, 900), f"{SHARD} has 900 bytes instead of"),
        (lambda path: flip(path / SHARD, -7), f"{SHARD} has changed since it was written"),
        (lambda path: flip(path / "trainer_state.json", 3), "trainer_state.json has changed since it was written"),
        (lambda path: (path / "manifest.json").unlink(), "it has no manifest, so it was never finished"),
        (lambda path: change(path, lambda one: one["chunks"].pop()), "its 1 parts do not fill shape"),
        (
            lambda path: change(path, lambda one: one["chunks"][1].__setitem__(1, [0, 0])),
            "its 2 parts do not fill shape",
        ),
        (lambda path: change(path, lambda one: one.update(shape=[1, 32])), "sticks out of shape"),
        (
            lambda path: change(path, lambda one: one["chunks"][0].__setitem__(0, "../x")),
            "is no file of the checkpoint",
        ),
        (lambda path: change(path, lambda one: one["chunks"][0].__setitem__(0, "x")), "says nothing of the file x"),
    ],
)
def test_the_newest_whole_one_is_used_and_the_bad_one_named(
    store: CheckpointStore, damage: Callable[[Path], object], reason: str
) -> None:
    damage(store.path(4))
    newest, bad = store.newest()
    assert newest == store.path(2)
    assert [one.path for one in bad] == [store.path(4)]
    assert reason in bad[0].reason


def test_any_changed_byte_is_found(saved: Saved) -> None:
    """In any file, the manifest too: what passes the check can be loaded."""
    checkpoint = saved.folder / "llama" / "checkpoint-2"
    draw = random.Random(0)
    for path in sorted(checkpoint.iterdir()):
        content = path.read_bytes()
        for at in draw.sample(range(len(content)), min(25, len(content))):
            path.write_bytes(content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :])
            with pytest.raises(LingossError):
                verify(checkpoint)
        path.write_bytes(content)
    assert verify(checkpoint)["step"] == 2


def flip(path: Path, at: int) -> None:
    """Change one byte."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def change(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Edit what the manifest says of the first A of a layer."""
    manifest = json.loads((path / "manifest.json").read_text())
    name = "adapter/base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
    edit(manifest["sharded"][name])
    (path / "manifest.json").write_text(json.dumps(manifest))


def test_a_part_that_changes_after_the_check_is_not_loaded(store: CheckpointStore, tiny_llama: Path) -> None:
    """Another node may see another file than the one that rank 0 has verified."""
    run = Run(tiny_llama)
    flip(store.path(2) / SHARD, -7)
    with pytest.raises(LingossError, match=r"shard-00001-of-00002.safetensors: .* is not what was saved"):
        store.load(store.path(2), run.model, run.optimizer)


def test_a_checkpoint_of_another_adapter_is_refused(saved: Saved, tiny_llama: Path, tiny_gpt_oss: Path) -> None:
    import torch

    with pytest.raises(LingossError, match=r"holds other weights than the model: base_model.*experts.* does not train"):
        loads(tiny_gpt_oss, saved.folder / "gpt-oss" / "checkpoint-2", experts=False)
    checkpoint = saved.folder / "llama" / "checkpoint-2"
    layout = verify(checkpoint)
    from lingoss.checkpoints.manifest import layout_of

    name = "adapter/base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
    found = layout_of(layout)
    assert found is not None
    for tensor, words in (
        (torch.zeros(4, 32), r"is F32 \[2, 32\] in the checkpoint and F32 \[4, 32\]"),
        (torch.zeros(2, 32, dtype=torch.bfloat16), r"and BF16 \[2, 32\] in the model"),
    ):
        with pytest.raises(LingossError, match=words):
            load({name: tensor}, found, stored_reader(checkpoint))
    with pytest.raises(LingossError, match="does not hold adapter/x"):
        load({"adapter/x": torch.zeros(1)}, found, stored_reader(checkpoint))


def test_a_whole_checkpoint_is_not_written_again(store: CheckpointStore, tiny_llama: Path) -> None:
    before = (store.path(4) / "manifest.json").stat().st_mtime_ns
    run = Run(tiny_llama)
    assert store.save_sharded(4, run.model, run.optimizer, {}).path == store.path(4)
    assert (store.path(4) / "manifest.json").stat().st_mtime_ns == before


def test_a_bad_one_is_replaced(store: CheckpointStore, tiny_llama: Path) -> None:
    flip(store.path(4) / SHARD, -7)
    run = Run(tiny_llama)
    saved = store.save_sharded(4, run.model, run.optimizer, {"trainer_state.json": {"step": 4}})
    assert store.newest() == (store.path(4), [])
    assert saved.bytes == sum(path.stat().st_size for path in store.path(4).iterdir())
    assert 0 < saved.seconds < 60
    assert sorted(path.name for path in store.path(4).iterdir()) == [
        "manifest.json",
        "optimizer.json",
        "shard-00000-of-00001.safetensors",
        "trainer_state.json",
    ]
