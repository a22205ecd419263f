# SPDX-License-Identifier: MIT-0
"""What is computed before anything is loaded: how ranks share the batch, what a card must hold, how long a stop takes."""

import json
from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lingoss.config import SftConfig
from lingoss.errors import LingossError
from lingoss.sft import parallel
from lingoss.sft.memory import GIB, Model, Shape, need, require
from lingoss.sft.share import collect, deal, processes, share_out
from lingoss.sft.timing import Timing


@given(
    ranks=st.integers(1, 9), pieces=st.integers(1, 5), limit=st.integers(1, 6), steps=st.integers(1, 5), data=st.data()
)
def test_what_is_dealt_is_each_example_once_whatever_the_number_of_ranks(
    ranks: int, pieces: int, limit: int, steps: int, data: st.DataObject
) -> None:
    batch = ranks * pieces
    share = share_out(batch, limit, ranks)
    assert share.ranks * share.per_device * share.pieces == batch
    assert share.per_device <= limit
    last = data.draw(st.integers(1, batch))
    planned = [[100 * step + at for at in range(batch)] for step in range(steps - 1)] + [
        [100 * steps + at for at in range(last)]
    ]
    dealt = [deal(planned, share, rank) for rank in range(ranks)]
    assert len({len(one) for one in dealt}) == 1  # each rank has as many micro-batches as any other
    assert Counter(i for one in dealt for piece in one for i in piece if i >= 0) == Counter(chain(*planned))
    for step in range(steps):
        mine = [list(chain(*one[step * share.pieces : (step + 1) * share.pieces])) for one in dealt]
        assert collect(mine, share) == planned[step]


@given(batch=st.integers(1, 200), ranks=st.integers(1, 200))
def test_a_batch_is_shared_by_its_divisors_and_refused_otherwise(batch: int, ranks: int) -> None:
    if batch % ranks == 0:
        assert share_out(batch, 4, ranks).examples * ranks == batch
        return
    with pytest.raises(
        LingossError, match=f"global_batch={batch} cannot be shared evenly by {ranks} processes"
    ) as told:
        share_out(batch, 4, ranks)
    assert "start " + ", ".join(map(str, processes(batch))) in str(told.value)


def test_pieces_go_to_ranks_in_turn() -> None:
    steps = [[9, 8, 7, 6, 5, 4, 3, 2]]
    assert deal(steps, share_out(8, 2, 2), 0) == [[9, 8], [5, 4]]
    assert deal(steps, share_out(8, 2, 2), 1) == [[7, 6], [3, 2]]
    assert deal([[9, 8, 7]], share_out(8, 2, 4), 1) == [[7]]
    assert deal([[9, 8, 7]], share_out(8, 2, 4), 3) == [[~7]]  # nothing is left: it learns nothing of the last one


def gpt_oss_20b(folder: Path) -> Model:
    """The true shape, without its weights."""
    fields = {
        "model_type": "gpt_oss",
        "hidden_size": 2880,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "num_experts_per_tok": 4,
        "num_hidden_layers": 24,
        "vocab_size": 201_088,
        "intermediate_size": 2880,
    }
    (folder / "config.json").write_text(json.dumps(fields))
    return Model.of(folder, shapes_20b())


def shapes_20b() -> dict[str, tuple[int, ...]]:
    """Its tensors, but for norms, biases and routers."""
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (201_088, 2880),
        "lm_head.weight": (201_088, 2880),
    }
    for layer in range(24):
        stem = f"model.layers.{layer}"
        shapes |= {
            f"{stem}.mlp.experts.gate_up_proj": (32, 2880, 5760),
            f"{stem}.mlp.experts.down_proj": (32, 2880, 2880),
            f"{stem}.self_attn.q_proj.weight": (4096, 2880),
            f"{stem}.self_attn.k_proj.weight": (512, 2880),
            f"{stem}.self_attn.v_proj.weight": (512, 2880),
            f"{stem}.self_attn.o_proj.weight": (2880, 4096),
        }
    return shapes


ADAPTER = 3_981_312  # rank 8 on attention


def test_the_plan_agrees_with_measured_peaks(tmp_path: Path) -> None:
    """One H200, bfloat16: rows of research/gpu-throughput.md, whose attention held no whole matrix of scores."""
    model = replace(gpt_oss_20b(tmp_path), whole_scores=False)
    for length, checkpointing, measured in ((8192, True, 49), (32_768, True, 62), (8192, False, 94)):
        planned = need(model, ADAPTER, Shape("single", 1, 1, length, 2, checkpointing)).total / GIB
        assert measured * 0.9 < planned < measured * 1.15, (length, checkpointing, planned)


def test_twenty_billion_parameters_fit_small_cards_only_shared_out(tmp_path: Path) -> None:
    model = gpt_oss_20b(tmp_path)
    assert 20.8e9 < model.parameters < 21e9
    whole, shared = Shape("ddp", 4, 1, 1500, 2, True), Shape("fsdp", 4, 1, 1500, 2, True)
    needed = {shape.layout: need(model, ADAPTER, shape).total for shape in (whole, shared)}
    assert needed["ddp"] > 44 * GIB > 22 * GIB > needed["fsdp"]  # an L40S and an A10G by their drivers
    ways = {"parallelism=fsdp on 4 cards": need(model, ADAPTER, shared)}
    with pytest.raises(
        LingossError, match=r"ddp needs about 4\d\.\d GiB of a card \(weights 3[89]\.\d GiB.*which has 44\.0 GiB: "
    ) as told:
        require(need(model, ADAPTER, whole), whole, 44 * GIB, ways)
    assert "parallelism=fsdp on 4 cards needs 1" in str(told.value)
    require(need(model, ADAPTER, shared), shared, 22 * GIB, {})
    with pytest.raises(LingossError, match="nothing else that was tried fits either"):
        require(need(model, ADAPTER, whole), whole, 8 * GIB, ways)


def test_auto_shares_out_where_a_card_cannot_hold_it_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpt_oss_20b(tmp_path)
    monkeypatch.setattr(parallel, "base_shapes", lambda folder: shapes_20b())

    def room(card: float | None, **changes: Any) -> parallel.Room:
        settings = {"dtype": "bfloat16", "gradient_checkpointing": True, "per_device_batch": 2, **changes}
        setting = SimpleNamespace(
            config=SftConfig.model_validate(settings),
            size=SimpleNamespace(parameters=ADAPTER),
            base=SimpleNamespace(model=tmp_path),
        )
        return parallel.Room(cast(Any, setting), 1500, None if card is None else int(card * GIB))

    assert room(22).choose(4, launched=True) == room(44).choose(4, launched=True) == "fsdp"
    assert room(79).choose(4, launched=True) == room(None).choose(4, launched=True) == "ddp"
    assert room(79).choose(1, launched=False) == room(79).choose(1, launched=True) == "single"
    assert room(79, parallelism="fsdp").choose(4, launched=True) == "fsdp"
    with pytest.raises(
        LingossError, match=r"single needs about .* which has 22\.0 GiB: parallelism=fsdp on 4 cards with"
    ):
        room(22).choose(1, launched=True)
    with pytest.raises(LingossError, match=r"ddp needs about .* nothing else that was tried fits either"):
        room(4).choose(4, launched=True)
    with pytest.raises(LingossError, match="parallelism=fsdp needs a launcher"):
        room(79, parallelism="fsdp").choose(1, launched=False)
    table = room(22).table()
    assert list(table) == [
        "single, ddp", "fsdp on 2", "fsdp on 4", "fsdp on 8", "fsdp on 16", "page cache of a node, while loading"
    ]  # fmt: skip
    assert table["single, ddp"]["weights"] == "38.9 GiB"
    assert table["fsdp on 4"]["weights"] == "9.7 GiB"


def test_a_stop_is_measured_and_a_limit_below_it_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCHELASTIC_RUN_ID", "HYPERPOD_SIGNAL_COORDINATION", "LINGOSS_STOP_SECONDS"):
        monkeypatch.delenv(name, raising=False)
    first = Timing(tmp_path, 4, 100.0, 10**9)
    first.require()  # by its size, a save takes 21 s
    assert first.needed == pytest.approx(21.0)
    first.save(3, 6.0)
    assert first.needed == 12.0
    assert json.loads((tmp_path / "timing.json").read_text()) == {"save_seconds": 6.0, "step_seconds": {}}
    (tmp_path / "timing.json").write_text('{"save_seconds": 6.0, "step_seconds": {"4": 9.0, "2": 30.0}}')
    with pytest.raises(
        LingossError,
        match=r"up to 21\.0 s \(9\.0 s for a step and 12\.0 s for a save, twice the slowest so far\), but has "
        r"stop_seconds=20: grant more, or set stop_seconds=null",
    ):
        Timing(tmp_path, 4, 20.0, 10**9).require()
    Timing(tmp_path, 4, None, 10**9).require()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    with pytest.raises(
        LingossError, match=r"the 30 s after which torchrun kills.*: start it by python -m lingoss.torch"
    ):
        Timing(tmp_path, 2, 600.0, 10**9).require()
    monkeypatch.setenv("LINGOSS_STOP_SECONDS", "600")
    Timing(tmp_path, 2, 600.0, 10**9).require()
