# SPDX-License-Identifier: MIT-0
"""`lingoss checkpoints` as a user meets it: on a real run, on folders of others, and on what is broken."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from conftest import prepared_root, tiny_sft
from lingoss import runs
from lingoss.checkpoints import CheckpointStore
from lingoss.cli import main
from lingoss.models import load_model
from lingoss.runs.lock import Lock
from lingoss.sft import run
from sharded_runs import Run, peft_file


@pytest.fixture(scope="module")
def trained(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with a finished run of 3 steps and checkpoints at 1, 2 and 3."""
    root = prepared_root(tiny_llama, tmp_path_factory.mktemp("checkpoints-cli"))
    run(tiny_sft(root, max_steps=3, checkpoint={"save_steps": 1, "keep": 3}))
    return root


@pytest.fixture
def root(trained: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(trained, tmp_path / "root"))


def sft(root: Path) -> runs.RunInfo:
    return runs.find_run(root, "latest:sft")


def names(info: runs.RunInfo) -> list[str]:
    return sorted(path.name for path in (info.path / "checkpoints").iterdir())


def test_verify_looks_at_every_run(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checkpoints", "verify", "--root", str(root)]) == 0
    told = capsys.readouterr().out
    assert told.count("whole  single") == 3
    assert told.count("whole  adapter") == 1
    assert told.endswith("4 of 4 whole\n")
    folder = sft(root).path / "checkpoints"
    os.truncate(folder / "checkpoint-2" / "optimizer.pt", 10)
    (sft(root).path / "adapter" / "adapter_config.json").write_text("{}")
    assert main(["checkpoints", "verify", "latest:sft", "--root", str(root), "--json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["kind"], row["step"], row["whole"]) for row in rows] == [
        ("single", 1, True),
        ("single", 2, False),
        ("single", 3, True),
        ("adapter", 3, False),
    ]
    assert "optimizer.pt has 10 bytes instead of" in rows[1]["problem"]
    assert rows[3]["problem"] == "adapter/adapter_config.json has changed since the run finished"


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_verify_looks_at_folders_of_any_kind(
    root: Path, tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch.distributed.checkpoint as dcp

    state = Run(tiny_llama)
    CheckpointStore(tmp_path / "mine", keep=1).save_sharded(2, state.model, state.optimizer, {})
    dcp.save({"model": {"x": torch.ones(3)}}, storage_writer=dcp.FileSystemWriter(tmp_path / "dcp"), no_dist=True)
    where = [str(tmp_path / "mine"), str(tmp_path / "dcp"), str(tiny_llama), str(sft(root).path / "adapter")]
    assert main(["checkpoints", "verify", *where, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["kind"] for row in rows] == ["sharded", "accelerate", "model", "adapter"]
    dcp.save(
        {"model": {"x": torch.tensor([1, torch.nan])}},
        storage_writer=dcp.FileSystemWriter(tmp_path / "nan"),
        no_dist=True,
    )
    (tmp_path / "checkpoint-7").mkdir()
    assert main(["checkpoints", "verify", str(tmp_path / "nan"), str(tmp_path / "checkpoint-7")]) == 1
    told = capsys.readouterr().out
    assert "model.x is not finite" in told
    assert "checkpoint-7 has no manifest.json, so it was never finished" in told
    assert "0 of 2 whole" in told


def test_a_run_is_converted_and_merged_by_name(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    info = sft(root)
    adapter, model = tmp_path / "adapter", tmp_path / "model"
    assert main(["checkpoints", "convert", info.name, str(adapter), "--root", str(root)]) == 0
    assert f"from the single checkpoint {info.path}/checkpoints/checkpoint-3" in capsys.readouterr().out
    expected = load_file(info.path / "adapter" / "adapter_model.safetensors")
    found = load_file(adapter / "adapter_model.safetensors")
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert main(["checkpoints", "merge", info.name, str(model), "--root", str(root), "--dtype", "float32"]) == 0
    base = next((root / "models").iterdir())
    ids = torch.arange(3, 60)[None]
    with torch.inference_mode():
        assert torch.equal(load_model(model)(ids).logits, load_model(base, adapter)(ids).logits)
    record = json.loads((model / "lingoss.json").read_text())
    assert (record["kind"], record["adapter"]["name"]) == ("merged", info.name)
    assert record["base"]["hub_id"] == "lingoss-tests/tiny-llama"
    assert main(["checkpoints", "verify", str(model), str(adapter)]) == 0
    with (model / "model.safetensors").open("r+b") as file:
        file.seek(-5, os.SEEK_END)
        file.write(b"\x00")
    capsys.readouterr()
    assert main(["checkpoints", "verify", str(model)]) == 1
    assert "model.safetensors has changed since it was written" in capsys.readouterr().out
    assert main(["checkpoints", "merge", str(adapter), str(tmp_path / "m")]) == 2
    assert "is no run, so its base model is not known: give it with --base" in capsys.readouterr().err


def test_a_sharded_checkpoint_is_merged_directly(tiny_llama: Path, tmp_path: Path) -> None:
    state = Run(tiny_llama)
    store = CheckpointStore(tmp_path / "mine", keep=1)
    path = store.save_sharded(2, state.model, state.optimizer, {"adapter_config.json": peft_file(False)}).path
    assert main(["checkpoints", "merge", str(path), str(tmp_path / "a"), "--base", str(tiny_llama)]) == 0
    assert main(["checkpoints", "convert", str(path), str(tmp_path / "adapter")]) == 0
    assert (
        main(["checkpoints", "merge", str(tmp_path / "adapter"), str(tmp_path / "b"), "--base", str(tiny_llama)]) == 0
    )
    assert (tmp_path / "a" / "model.safetensors").read_bytes() == (tmp_path / "b" / "model.safetensors").read_bytes()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "adapter", "b", "mine"]


def test_convert_passes_over_a_bad_one_and_says_so(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    info = sft(root)
    (info.path / "checkpoints" / "checkpoint-3" / "manifest.json").unlink()
    assert main(["checkpoints", "convert", info.name, str(tmp_path / "out"), "--root", str(root)]) == 0
    told = capsys.readouterr()
    assert "passed over checkpoint-3: it has no manifest, so it was never finished" in told.err
    assert "checkpoint-2" in told.out
    assert main(["checkpoints", "convert", "nothing", str(tmp_path / "x"), "--root", str(root)]) == 2
    assert "nothing is no folder, and no run 'nothing' below" in capsys.readouterr().err


def test_prune_shows_a_plan_and_deletes_only_with_yes(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    info, command = sft(root), ["checkpoints", "prune", "--root", str(root)]
    (info.path / "checkpoints" / "checkpoint-2" / "manifest.json").unlink()
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "nothing was changed, --yes deletes" in told
    assert [line.split()[0] for line in told.splitlines()[:3]] == ["stays", "bad", "goes"]
    assert names(info) == ["checkpoint-1", "checkpoint-2", "checkpoint-3"]
    assert main([*command, "--keep", "2", "--yes"]) == 0
    assert names(info) == ["checkpoint-1", "checkpoint-3"]
    assert main([*command, "--yes", "--budget", "0"]) == 1  # the newest whole one stays
    assert "the budget of 0 B cannot be met" in capsys.readouterr().err
    assert names(info) == ["checkpoint-3"]
    assert main([*command, "--keep", "0"]) == 2
    assert runs.verify(info.path) == []


def test_prune_leaves_a_run_alone_that_is_at_work(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that says so, and one that has been taken up since the plan was made."""
    info, command = sft(root), ["checkpoints", "prune", "--root", str(root), "--yes"]
    done = (info.path / "DONE.json").read_text()
    status = json.loads((info.path / "status.json").read_text())
    (info.path / "DONE.json").unlink()
    runs.write_json(info.path / "status.json", {**status, "state": "running", "heartbeat": runs.lock.now_iso()})
    assert main(command) == 0
    assert capsys.readouterr().out.count("(the run is running)") == 3
    (info.path / "DONE.json").write_text(done)
    lock = Lock(info.path)
    lock.acquire(0)
    from lingoss.checkpoints import prune

    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(prune, "CONFIRM", 0.0)
    try:
        assert main(command) == 1
    finally:
        monkeypatch.undo()
        lock.release()
    assert f"run {info.name} is held by process {os.getpid()}" in capsys.readouterr().err
    assert len(names(info)) == 3


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    for part in ("verify", "convert", "merge", "prune"):
        with pytest.raises(SystemExit):
            main(["checkpoints", part, "--help"])
        assert f"lingoss checkpoints {part} " in capsys.readouterr().out
