# SPDX-License-Identifier: MIT-0
"""Any checkpoint as a PEFT adapter, bit for bit; and what a checkpoint from elsewhere must not do."""

import json
import pickle
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file

from gloo_group import on_ranks
from lingoss.checkpoints import CheckpointStore, sharded
from lingoss.checkpoints.convert import convert
from lingoss.errors import LingossError
from sharded_runs import ALPHA, RANK, Run, State, lora, two_formats


class Written(NamedTuple):
    """What two ranks wrote of a GptOss with attention and experts: our checkpoint, and accelerate's."""

    ours: Path
    theirs: Path
    state: State


@pytest.fixture(scope="module")
def written(tiny_gpt_oss: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("formats")
    states = on_ranks(2, two_formats, tiny_gpt_oss, folder)
    return Written(folder / "checkpoint-2", folder / "theirs", states[0])


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    """PEFT's file of that adapter."""
    lora(experts=True).save_pretrained(tmp_path / "config")
    found: dict[str, Any] = json.loads((tmp_path / "config" / "adapter_config.json").read_text())
    return found


def in_file(folder: Path) -> State:
    """The tensors of an adapter's folder, as `Run.state` names and gives them."""
    found = load_file(folder / "adapter_model.safetensors")
    return {
        f"adapter/{n}": (sharded.KINDS[t.dtype], list(t.shape), sharded.as_bytes(t).tobytes()) for n, t in found.items()
    }


def held(state: State) -> State:
    return {name: one for name, one in state.items() if name.startswith("adapter/")}


def test_a_sharded_checkpoint_becomes_an_adapter_that_peft_loads(
    written: Written, tiny_gpt_oss: Path, tmp_path: Path
) -> None:
    from peft import PeftModel

    from lingoss.models import load_model

    made = convert(written.ours, tmp_path / "adapter")
    assert in_file(made.path) == held(written.state)
    assert (made.kind, made.tensors) == ("sharded", 2 * (4 + 2) * 2)
    described = json.loads((made.path / "adapter_config.json").read_text())
    assert (described["r"], described["lora_alpha"], described["base_model_name_or_path"]) == (RANK, ALPHA, "x/y")
    loaded: Any = PeftModel.from_pretrained(load_model(tiny_gpt_oss), made.path)
    weights = {name.replace(".default.", "."): weight for name, weight in loaded.named_parameters() if "lora_" in name}
    assert {f"adapter/{n}": sharded.as_bytes(w).tobytes() for n, w in weights.items()} == {
        name: content for name, (_, _, content) in held(written.state).items()
    }
    assert not list(tmp_path.glob(".*"))


def test_accelerates_folder_becomes_the_same_adapter(written: Written, config: dict[str, Any], tmp_path: Path) -> None:
    """By hand, with its configuration beside it, and from the folder itself."""
    made = convert(written.theirs, tmp_path / "a", config)
    assert made.kind == "accelerate"
    assert in_file(made.path) == held(written.state)
    (written.theirs / "adapter_config.json").write_text(json.dumps(config))
    again = convert(written.theirs / "pytorch_model_fsdp_0", tmp_path / "b")
    assert again.sha256 == made.sha256
    (written.theirs / "adapter_config.json").unlink()
    with pytest.raises(
        LingossError, match="its rank and alpha are not guessed: give PEFT's file with --adapter-config"
    ):
        convert(written.theirs, tmp_path / "c")


def test_a_checkpoint_of_one_process_becomes_an_adapter(tiny_llama: Path, tmp_path: Path) -> None:
    run = Run(tiny_llama).steps(0, 1)

    def fill(folder: Path) -> None:
        run.model.save_pretrained(folder)

    path = CheckpointStore(tmp_path, keep=1).write(1, fill)
    assert in_file(convert(path, tmp_path / "adapter").path) == held(run.state())
    with pytest.raises(LingossError, match="adapter exists, and nothing is overwritten: name a new folder"):
        convert(path, tmp_path / "adapter")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"r": 3}, r"A has 8 rows and B 8 columns, which is not the rank of adapter_config.json \(3\)"),
        ({"r": 1}, r"which is not the rank of adapter_config.json \(1\)"),
        ({"r": None}, "r=None: it must be a whole number above zero"),
        ({"use_dora": True}, "use_dora=True: only plain LoRA is supported"),
        ({"peft_type": "LOHA"}, "peft_type='LOHA': only plain LoRA is supported"),
        (
            {"target_parameters": ["mlp.experts.down_proj"]},
            "nested deeper than adapter_config.json has target_parameters",
        ),
        ({"target_parameters": None}, "which is not the rank"),
    ],
)
def test_another_adapters_configuration_is_refused(
    written: Written, config: dict[str, Any], tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(LingossError, match=words):
        convert(written.theirs, tmp_path / "out", {**config, **change})
    assert not (tmp_path / "out").exists()


def test_a_bad_checkpoint_is_not_converted(written: Written, config: dict[str, Any], tmp_path: Path) -> None:
    shutil.copytree(written.ours, tmp_path / "checkpoint-2")
    (tmp_path / "checkpoint-2" / "shard-00001-of-00002.safetensors").unlink()
    with pytest.raises(LingossError, match=r"shard-00001-of-00002\.safetensors is missing"):
        convert(tmp_path / "checkpoint-2", tmp_path / "out")
    theirs = tmp_path / "theirs"
    shutil.copytree(written.theirs / "pytorch_model_fsdp_0", theirs)
    (theirs / "__1_0.distcp").unlink()
    with pytest.raises(LingossError, match=r"__1_0\.distcp is missing"):
        convert(theirs, tmp_path / "out", config)
    (theirs / "__1_0.distcp").write_bytes(b"x")
    with pytest.raises(LingossError, match=r"__1_0\.distcp is cut short"):
        convert(theirs, tmp_path / "out", config)
    (theirs / ".metadata").unlink()
    with pytest.raises(LingossError, match="holds no checkpoint and no adapter"):
        convert(theirs, tmp_path / "out", config)
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".*"))


class Evil:
    """A pickle that would write a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.path, "pwned")


@pytest.mark.parametrize("where", ["instead", "inside"])
def test_a_malicious_index_is_named_and_not_executed(
    written: Written, config: dict[str, Any], tmp_path: Path, where: str
) -> None:
    theirs, victim = tmp_path / "theirs", tmp_path / "victim"
    shutil.copytree(written.theirs / "pytorch_model_fsdp_0", theirs)
    evil: Any = Evil(victim)
    if where == "inside":
        found = pickle.loads((theirs / ".metadata").read_bytes())  # ours, made a moment ago
        found.planner_data = evil
        evil = found
    (theirs / ".metadata").write_bytes(pickle.dumps(evil))
    with pytest.raises(LingossError, match=r"\.metadata asks for \w+\.\w+.*: it may be malicious and was not loaded"):
        convert(theirs, tmp_path / "out", config)
    assert not victim.exists()


def test_malicious_numbers_are_not_executed(written: Written, config: dict[str, Any], tmp_path: Path) -> None:
    theirs, victim = tmp_path / "theirs", tmp_path / "victim"
    shutil.copytree(written.theirs / "pytorch_model_fsdp_0", theirs)
    index = pickle.loads((theirs / ".metadata").read_bytes())
    torch.save(Evil(victim), tmp_path / "evil.pt")
    for place in index.storage_data.values():
        place.offset, place.length = 0, (tmp_path / "evil.pt").stat().st_size
    (theirs / ".metadata").write_bytes(pickle.dumps(index))
    for file in theirs.glob("*.distcp"):
        shutil.copyfile(tmp_path / "evil.pt", file)
    with pytest.raises(LingossError, match=r"cannot be read: Weights only load failed"):
        convert(theirs, tmp_path / "out", config)
    assert not victim.exists()


def test_an_index_that_points_elsewhere_is_refused(written: Written, config: dict[str, Any], tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    shutil.copytree(written.theirs / "pytorch_model_fsdp_0", theirs)
    index = pickle.loads((theirs / ".metadata").read_bytes())
    for place in index.storage_data.values():
        place.relative_path = "../" + place.relative_path
    (theirs / ".metadata").write_bytes(pickle.dumps(index))
    with pytest.raises(
        LingossError, match=r"is said to lie in '\.\./__._0\.distcp', which is no file of the checkpoint"
    ):
        convert(theirs, tmp_path / "out", config)
