# SPDX-License-Identifier: MIT-0
"""The end of a run: DONE.json is written last, only when all is there, and then everything verifies."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import test_runs_helpers as helpers
from lingoss.errors import LingossError
from lingoss.runs import file_digest, open_run, verify
from test_runs_helpers import Config, add_weights, status


def test_finish_writes_digests_and_lineage(tmp_path: Path) -> None:
    base = {"hub_id": "owner/name", "revision": "abc", "digest": "d"}
    with open_run(tmp_path, "prepare", Config(), data_digest="source") as prepare:
        prepare.status("running", 0, 1)
        prepare.finish(1, lineage={"base": base}, prepared={"model": "x"})
    with open_run(tmp_path, "sft", Config(), [prepare.name], "rows") as sft:
        sft.status("running", 5, 5)
        add_weights(sft)
        assert not sft.done
        sft.finish(5, {"adapter/adapter_config.json": file_digest(sft.adapter / "adapter_config.json")}, rows=12)
        assert sft.done
        for write in (lambda: sft.status("running", 6, 6), lambda: sft.metric({}), lambda: sft.finish(5)):
            with pytest.raises(LingossError, match="it is done"):
                write()
    done = json.loads((sft.path / "DONE.json").read_bytes())
    assert sorted(done["digests"]) == ["adapter/adapter_config.json", "adapter/adapter_model.safetensors"]
    assert done["lineage"] == {
        "base": base,
        "parents": [prepare.name],
        "chain": [prepare.name],
        "parent_digests": done["lineage"]["parent_digests"],
        "data_digest": "rows",
    }
    assert list(done["lineage"]["parent_digests"]) == [prepare.name]
    assert (done["stage"], done["id"], done["final_step"], done["planned_steps"], done["rows"]) == (
        "sft",
        sft.id,
        5,
        5,
        12,
    )
    assert (status(sft)["state"], status(sft)["step"]) == ("done", 5)
    assert verify(sft.path) == []


def refuse_shapes(folder: Path) -> None:
    assert (folder / "adapter").is_dir()
    raise LingossError("lora_A has shape [8, 4], not [8, 16]")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"final_step": 4}, "at step 4 of 5"),
        ({"final_step": 6}, "at step 6 of 5"),
        ({"final_step": 5, "digests": {"adapter/adapter_config.json": "0" * 64}}, "has digest .*, not 000000000000"),
        ({"final_step": 5, "digests": {"samples.jsonl": "0"}}, "samples.jsonl cannot be read"),
        ({"final_step": 5, "check": refuse_shapes}, "has shape"),
    ],
)
def test_finish_refuses(tmp_path: Path, arguments: dict[str, Any], told: str) -> None:
    with open_run(tmp_path, "sft", Config()) as run:
        run.status("running", 5, 5)
        add_weights(run)
        with pytest.raises(LingossError, match=told):
            run.finish(**arguments)
        assert not run.done
        assert status(run)["state"] == "running"
    assert status(run)["state"] == "stopped"


@pytest.mark.parametrize("stage", ["sft", "grpo"])
def test_training_without_weights_is_not_done(tmp_path: Path, stage: str) -> None:
    with open_run(tmp_path, stage, Config()) as run:
        run.status("running", 5, 5)
        with pytest.raises(LingossError, match="there are no weights"):
            run.finish(5)
        run.adapter.mkdir()
        (run.adapter / "README.md").write_text("no tensors")
        with pytest.raises(LingossError, match="there are no weights"):
            run.finish(5)
        run.model.mkdir()
        (run.model / "model-00001-of-00002.safetensors").write_bytes(b"full")
        run.finish(5)
    assert run.done


def test_finish_needs_a_plan(tmp_path: Path) -> None:
    with (
        open_run(tmp_path, "evaluate", Config()) as run,
        pytest.raises(LingossError, match="planned steps were never told"),
    ):
        run.finish(5)


def test_a_done_run_is_not_locked_and_not_touched(tmp_path: Path) -> None:
    made = helpers.finish(tmp_path, "sft")
    before = {path: path.read_bytes() for path in made.path.rglob("*") if path.is_file()}
    with open_run(tmp_path, "sft", Config(settings={})) as run, open_run(tmp_path, "sft", Config(settings={})) as other:
        assert run.done
        assert other.done
        with pytest.raises(LingossError, match="it is done"):
            run.metric({"step": 1})
    assert {path: path.read_bytes() for path in made.path.rglob("*") if path.is_file()} == before


def test_an_unreadable_done_is_a_question_for_people(tmp_path: Path) -> None:
    made = helpers.finish(tmp_path, "sft")
    (made.path / "DONE.json").write_text("{")
    with pytest.raises(LingossError, match=r"DONE\.json is not valid JSON: restore it, or delete it"):
        open_run(tmp_path, "sft", Config(settings={})).__enter__()


def test_the_waiting_process_finds_done(tmp_path: Path) -> None:
    first = open_run(tmp_path, "sft", Config())
    entered, results = threading.Event(), []

    def wait() -> None:
        entered.set()
        with open_run(tmp_path, "sft", Config(), lock_wait=60) as run:
            results.append(run.done)

    with first as run:
        waiter = threading.Thread(target=wait)
        waiter.start()
        entered.wait()
        run.status("running", 1, 1)
        add_weights(run)
        run.finish(1)
    waiter.join(60)
    assert results == [True]
    assert status(first)["state"] == "done"  # the second process has not begun the run again


@settings(max_examples=15, deadline=None)
@given(
    files=st.dictionaries(
        st.text("abcé/ ", min_size=1, max_size=8).map(lambda name: name.strip("/ ") or "a"),
        st.binary(max_size=50),
        max_size=4,
    ),
    data=st.data(),
)
def test_done_implies_that_all_digests_verify(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], data: st.DataObject
) -> None:
    with open_run(tmp_path_factory.mktemp("root"), "sft", Config()) as run:
        add_weights(run)
        for name, content in files.items():
            path = run.adapter / "sub" / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            except OSError:  # "a" and "a/b" cannot both be
                continue
        run.status("running", 1, 1)
        run.finish(1)
    assert verify(run.path) == []
    names = sorted(json.loads((run.path / "DONE.json").read_bytes())["digests"])
    assert names == sorted(path.relative_to(run.path).as_posix() for path in run.adapter.rglob("*") if path.is_file())
    victim = data.draw(st.sampled_from(names))
    content = (run.path / victim).read_bytes()
    (run.path / victim).write_bytes(content + b"x")
    assert verify(run.path) == [f"{victim} has changed since the run finished"]
    (run.path / victim).unlink()
    assert verify(run.path) == [f"{victim} is missing"]
    (run.path / victim).write_bytes(content)
    (run.adapter / "new").write_bytes(b"")
    assert verify(run.path) == ["adapter/new was added after the run finished"]


def test_verify_of_what_is_not_done(tmp_path: Path) -> None:
    assert verify(tmp_path) == ["DONE.json is missing"]
    (tmp_path / "DONE.json").write_text("{")
    assert verify(tmp_path) == ["DONE.json is not valid JSON"]
    (tmp_path / "DONE.json").write_text("{}")
    assert verify(tmp_path) == ["DONE.json holds no digests"]
