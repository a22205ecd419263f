# SPDX-License-Identifier: MIT-0
"""Stage sft with the model shared out among processes (FSDP2, gloo on a CPU): the same result, also across layouts."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import prepared_root, tiny_sft
from lingoss import config
from ranks import Ranks, at_step
from test_sft_distributed import command, folder, same
from test_sft_gpt_oss import settings

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    with Ranks(tmp_path_factory.mktemp("logs")) as started:
        yield started


def test_shared_out_resharded_and_whole_again_it_ends_as_one_alone(
    tiny_llama: Path, tmp_path: Path, ranks: Ranks
) -> None:
    root = prepared_root(tiny_llama, tmp_path)
    assert ranks.run(0, command(root, "alone")).statuses == [0]
    stop = "os.kill(os.getpid(), signal.SIGTERM)"
    # Its layer's weights lie on two ranks, then on three, then whole on each of two, then on one.
    for count, layout, step in ((2, "fsdp", 3), (3, "fsdp", 5), (2, "ddp", 7)):
        ended = ranks.run(
            count, command(root, "shared", parallelism=layout), {rank: at_step(step - 1, stop) for rank in range(count)}
        )
        assert (ended.statuses, ended.told) == ([0] * count, [])
        assert ended.log("start")[0]["parallelism"] == layout
        assert folder(root, "shared").step == step
        files = {path.name for path in (folder(root, "shared").path / "checkpoints" / f"checkpoint-{step}").iterdir()}
        assert ("optimizer.pt" in files) == (layout == "ddp")
        assert (f"shard-00000-of-0000{count}.safetensors" in files) == (layout == "fsdp")
    ended = ranks.run(0, command(root, "shared"))
    assert ended.statuses == [0]
    assert ended.log("start")[0]["step"] == 7
    same(folder(root, "shared"), folder(root, "alone"))


def test_a_mixture_of_experts_shared_out_ends_as_one_alone(tiny_gpt_oss: Path, tmp_path: Path, ranks: Ranks) -> None:
    root = prepared_root(tiny_gpt_oss, tmp_path)
    for run, count, layout in (("alone", 0, "auto"), ("ddp", 2, "ddp"), ("fsdp", 2, "fsdp")):
        file = root / f"{run}.yaml"
        changes = settings(run=run, parallelism=layout, max_steps=3, checkpoint={"save_steps": 3})
        file.write_text(config.dump(tiny_sft(root, **changes)), encoding="utf-8")
        ended = ranks.run(count, ["sft", "--config", str(file)])
        assert (ended.statuses, ended.told) == ([0] * max(1, count), [])
    same(folder(root, "ddp"), folder(root, "alone"))
    same(folder(root, "fsdp"), folder(root, "alone"))
    described = json.loads((folder(root, "fsdp").path / "adapter" / "adapter_config.json").read_text())
    assert described == json.loads((folder(root, "alone").path / "adapter" / "adapter_config.json").read_text())


def test_what_a_layout_cannot_do_is_refused(tiny_llama: Path, tmp_path: Path, ranks: Ranks) -> None:
    root = prepared_root(tiny_llama, tmp_path)
    ended = ranks.run(2, command(root, "single", parallelism="single"))
    assert ended.statuses == [2, 2]
    assert ended.told == ["lingoss sft: parallelism=single, but 2 processes were started: start one, or set it to auto"]
    ended = ranks.run(2, command(root, "small", card_gib=1.0))
    assert ended.statuses == [2, 2]
    assert len(ended.told) == 1
    assert ended.told[0].startswith("lingoss sft: ddp needs about 1.6 GiB of a card (weights 0.1 MiB")
    assert "which has 1.0 GiB: nothing else that was tried fits either" in ended.told[0]
