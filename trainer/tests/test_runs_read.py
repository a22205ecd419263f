# SPDX-License-Identifier: MIT-0
"""Reading runs: every folder is listed with its problems, references are resolved or refused with candidates."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lingoss.errors import LingossError
from lingoss.runs import HEADERS, find_parent, find_run, lineage, list_runs, open_run, read_run, run_rows
from lingoss.runs.table import duration
from test_runs_helpers import Config, finish


def unfinished(root: Path, stage: str, **settings: Any) -> str:
    with open_run(root, stage, Config(settings=settings)) as run:
        run.status("running", 2, 9)
    return run.name


def plant(root: Path, name: str, **files: Any) -> Path:
    """A run folder with given contents of config, status and DONE; bytes are written as they are."""
    folder = root / "runs" / name
    folder.mkdir(parents=True)
    for file, content in files.items():
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        (folder / f"{file}.json").write_bytes(data)
    return folder


def test_no_runs(tmp_path: Path) -> None:
    assert list_runs(tmp_path) == []
    assert list_runs(tmp_path / "missing") == []
    (tmp_path / "runs").write_text("")
    with pytest.raises(LingossError, match="cannot be listed"):
        list_runs(tmp_path)


def test_a_finished_and_a_stopped_run(tmp_path: Path) -> None:
    done = finish(tmp_path, "sft", ("prepare-0123456789ab",))
    stopped = unfinished(tmp_path, "grpo")
    first, second = list_runs(tmp_path)
    assert (first.name, first.stage, first.id, first.state, first.step, first.total) == (
        done.name,
        "sft",
        done.id,
        "done",
        3,
        3,
    )
    assert first.done
    assert first.parents == ("prepare-0123456789ab",)
    assert first.done_record()["final_step"] == 3
    assert first.problems == ()
    assert not first.is_alive
    assert (second.name, second.state, second.step, second.total, second.done) == (stopped, "stopped", 2, 9, False)
    with pytest.raises(LingossError, match=f"run {stopped} is not finished"):
        second.done_record()
    assert second.config == {"run": "1", "lock_wait": 0.0}


def test_a_live_run_and_a_lost_one(tmp_path: Path) -> None:
    with open_run(tmp_path, "sft", Config()) as run:
        (info,) = list_runs(tmp_path)
        assert info.state == "running"
        assert info.is_alive
        assert info.age is not None
        assert info.age < 30
        assert run_rows(tmp_path)[0].state == "running"
    status = json.loads((run.path / "status.json").read_bytes())
    status.update(state="running", heartbeat="2020-01-01T00:00:00+00:00")
    (run.path / "status.json").write_text(json.dumps(status))
    (info,) = list_runs(tmp_path)
    assert (info.state, info.is_alive, run_rows(tmp_path)[0].state) == ("running", False, "lost")
    assert "out of memory?" in run_rows(tmp_path)[0].note


@pytest.mark.parametrize(
    ("files", "state", "problems"),
    [
        ({}, "unknown", ["config.json is missing", "status.json is missing"]),
        ({"config": {}}, "pending", ["status.json is missing"]),
        ({"config": {}, "status": b"{"}, "unknown", ["status.json is not valid JSON"]),
        ({"config": b"", "status": {"state": "failed"}}, "failed", ["config.json is not valid JSON"]),
        ({"config": [], "status": {"state": "failed"}}, "failed", ["config.json is not a JSON object"]),
        ({"config": {}, "status": {"state": 5}}, "unknown", []),
        ({"config": {}, "status": {"state": ["x"]}}, "unknown", []),
        ({"config": {}, "status": {"state": "running"}, "DONE": b"\0"}, "running", ["DONE.json is not valid JSON"]),
        (
            {"config": {}, "status": {"state": "done"}},
            "stopped",
            ["status.json says done, but DONE.json is missing: start the run again"],
        ),
        ({"config": {}, "status": {"state": "running"}, "DONE": {"digests": {}}}, "done", []),
        ({"config": {}, "status": {}, "DONE": {"digests": {"adapter/a": "0"}}}, "done", ["adapter/a is missing"]),
        ({"config": {}, "status": {}, "DONE": {"digests": 5, "lineage": 6}}, "done", []),
    ],
)
def test_damaged_folders_are_listed_with_their_problem(
    tmp_path: Path, files: dict[str, Any], state: str, problems: list[str]
) -> None:
    plant(tmp_path, "sft-0123456789ab", **files)
    (info,) = list_runs(tmp_path)
    assert (info.state, list(info.problems)) == (state, problems)
    assert len(run_rows(tmp_path)[0].cells()) == len(HEADERS)


def test_foreign_folders_come_last_and_files_not_at_all(tmp_path: Path) -> None:
    for name in ("lost+found", "AAA", "sft-123"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    (tmp_path / "runs" / ".DS_Store").write_text("")
    (tmp_path / "runs" / "broken-link").symlink_to("nowhere")
    done = finish(tmp_path, "sft")
    found = list_runs(tmp_path)
    assert [run.name for run in found] == [done.name, "AAA", "lost+found", "sft-123"]
    assert all("no run folder" in run.problems[0] for run in found[1:])
    with pytest.raises(LingossError, match="no run 'lost"):
        find_run(tmp_path, "lost+found")


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
KEYS = st.sampled_from(
    [
        "state",
        "step",
        "total",
        "heartbeat",
        "host",
        "pid",
        "started",
        "parents",
        "data_digest",
        "reason",
        "lineage",
        "digests",
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(KEYS, ANY) | st.binary(max_size=20), st.dictionaries(KEYS, ANY) | st.binary(max_size=20))
def test_nothing_in_a_folder_raises(tmp_path_factory: pytest.TempPathFactory, status: Any, done: Any) -> None:
    root = tmp_path_factory.mktemp("root")
    plant(root, "sft-0123456789ab", config={}, status=status, DONE=done)
    (info,) = list_runs(root)
    assert info.state in ("pending", "running", "done", "failed", "stopped", "unknown")
    assert len(run_rows(root)[0].cells()) == len(HEADERS)
    assert lineage(root, info)[0] == info
    assert info.age is None or info.age >= 0


def test_find_run(tmp_path: Path) -> None:
    plant(tmp_path, "sft-0123456789ab", config={}, status={"state": "failed"})
    plant(tmp_path, "sft-01ffffffffff", config={}, status={"state": "running"})
    plant(tmp_path, "grpo-a00000000000", config={}, status={"state": "running"})
    for ref in ("sft-0123456789ab", "0123456789ab", "sft-012", "012", " 012 "):
        assert find_run(tmp_path, ref).name == "sft-0123456789ab"
    for ref in ("grpo", "g", "a"):
        assert find_run(tmp_path, ref).name == "grpo-a00000000000"
    for ref in ("sft", "01", "sft-01"):
        with pytest.raises(LingossError, match=r"means 2 runs: .*sft-0123456789ab.*sft-01ffffffffff"):
            find_run(tmp_path, ref)
    with pytest.raises(LingossError, match=r"no run 'sft-0123456789ac' .* there are .*; nearest: sft-0123456789ab"):
        find_run(tmp_path, "sft-0123456789ac")
    for ref in ("", "x" * 1_000_000):
        with pytest.raises(LingossError, match=r"no run '.{0,80}' below"):
            find_run(tmp_path, ref)


def test_an_exact_name_wins_over_a_beginning(tmp_path: Path) -> None:
    plant(tmp_path, "a-0123456789ab", config={}, status={"state": "failed"})
    plant(tmp_path, "b-a00000000000", config={}, status={"state": "failed"})
    assert find_run(tmp_path, "a-0123456789ab").stage == "a"
    with pytest.raises(LingossError, match="means 2 runs"):
        find_run(tmp_path, "a")


def test_latest_is_the_newest_finished(tmp_path: Path) -> None:
    with pytest.raises(LingossError, match=r"no finished run of stage 'sft' .*: there are none"):
        find_run(tmp_path, "latest:sft")
    unfinished(tmp_path, "sft", a=1)
    with pytest.raises(LingossError, match=r"unfinished are sft-.* \(stopped\)"):
        find_run(tmp_path, "latest:sft")
    first = finish(tmp_path, "sft", run="1")
    second = finish(tmp_path, "sft", run="2")
    unfinished(tmp_path, "sft", a=2)
    assert find_run(tmp_path, "latest:sft").name == second.name != first.name


def test_lineage_walks_to_the_first_ancestor(tmp_path: Path) -> None:
    prepare = finish(tmp_path, "prepare")
    sft = finish(tmp_path, "sft", (prepare.name,))
    grpo = finish(tmp_path, "grpo", (sft.name,))
    evaluate = finish(tmp_path, "evaluate", (sft.name, grpo.name))
    assert [run.name for run in lineage(tmp_path, grpo.name)] == [grpo.name, sft.name, prepare.name]
    chain = [evaluate.name, sft.name, grpo.name, prepare.name]
    assert [run.name for run in lineage(tmp_path, evaluate.id)] == chain
    assert read_run(evaluate.path).done_record()["lineage"]["chain"] == [sft.name, prepare.name, grpo.name]


def test_lineage_with_missing_parents_and_circles(tmp_path: Path) -> None:
    names = ("sft-000000000001", "sft-000000000002")
    plant(tmp_path, names[0], config={}, status={"parents": [names[1], "sft-ffffffffffff", "../../etc", names[1]]})
    plant(tmp_path, names[1], config={}, status={"parents": [names[0]]})
    chain = lineage(tmp_path, names[0])
    assert [run.name for run in chain] == [*names, "sft-ffffffffffff", "../../etc"]
    assert [run.problems for run in chain[2:]] == [("its folder is missing",)] * 2
    with pytest.raises(LingossError, match="no run 'sft-9"):
        lineage(tmp_path, "sft-9")


def test_find_parent(tmp_path: Path) -> None:
    with pytest.raises(LingossError, match=r"sft needs a finished run of stage prepare below .*: run it first"):
        find_parent(tmp_path, "sft")
    prepare = finish(tmp_path, "prepare")
    assert find_parent(tmp_path, "sft").name == prepare.name
    sft = finish(tmp_path, "sft", (prepare.name,))
    running = unfinished(tmp_path, "sft", other=1)
    assert find_parent(tmp_path, "grpo").name == find_parent(tmp_path, "serve").name == sft.name
    assert find_parent(tmp_path, "grpo", "latest:sft").name == sft.name
    with pytest.raises(LingossError, match="cannot be the parent of grpo: give a run of stage sft"):
        find_parent(tmp_path, "grpo", prepare.name)
    with pytest.raises(LingossError, match="is not finished"):
        find_parent(tmp_path, "grpo", running)
    with pytest.raises(LingossError, match="has no parent to find"):
        find_parent(tmp_path, "evaluate")
    grpo = finish(tmp_path, "grpo", (sft.name,))
    with pytest.raises(LingossError, match=f"set parent={sft.name} or parent={grpo.name}"):
        find_parent(tmp_path, "serve")
    assert find_parent(tmp_path, "serve", "latest:grpo").name == grpo.name
    newer = finish(tmp_path, "sft", (prepare.name,), run="2")
    assert find_parent(tmp_path, "serve").name == newer.name


def test_the_rows_of_the_table(tmp_path: Path) -> None:
    prepare = finish(tmp_path, "prepare")
    sft = finish(tmp_path, "sft", (prepare.name,))
    with pytest.raises(RuntimeError), open_run(tmp_path, "sft", Config(run="2")) as failed:
        raise RuntimeError("out of memory")
    (tmp_path / "runs" / "other").mkdir()
    rows = run_rows(tmp_path)
    assert [row.name for row in rows] == [prepare.name, sft.name, failed.name, "other"]
    assert [row.state for row in rows] == ["done", "done", "failed", "unknown"]
    assert rows[1].parents == (prepare.name,)
    assert rows[1].size == sum(path.stat().st_size for path in sft.path.rglob("*") if path.is_file())
    assert rows[2].note == "RuntimeError: out of memory"
    assert "no run folder" in rows[3].note
    cells = dict(zip(HEADERS, rows[1].cells(), strict=True))
    assert (cells["run"], cells["state"], cells["step"], cells["parent"]) == (sft.name, "done", "3/3", prepare.name)
    assert cells["heartbeat"].endswith(" s ago")
    assert len(cells["started"]) == 16
    assert dict(zip(HEADERS, rows[2].cells(), strict=True))["step"] == "0/?"


@pytest.mark.parametrize(
    ("seconds", "told"), [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "60 min"), (7200, "2 h"), (90_000, "1 d")]
)
def test_time_spans_for_people(seconds: float, told: str) -> None:
    assert duration(seconds) == told
