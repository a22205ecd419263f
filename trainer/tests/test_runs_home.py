# SPDX-License-Identifier: MIT-0
"""Runs of stage evaluate lie below evaluations/ and are found through a link below runs/."""

import contextlib
import errno
import json
import os
from pathlib import Path

import pytest

from lingoss.errors import LingossError
from lingoss.runs import find_run, folder_size, lineage, list_runs, open_run, run_rows
from test_runs_helpers import Config, finish, status


def test_the_folder_is_a_link_that_survives_another_mount_point(tmp_path: Path) -> None:
    root = tmp_path / "root"
    prepare = finish(root, "prepare")
    made = finish(root, "evaluate", (prepare.name,))
    assert made.path == root / "runs" / made.name
    assert made.path.readlink() == Path("..") / "evaluations" / made.name
    assert sorted(path.name for path in (root / "evaluations" / made.name).iterdir()) == [
        "DONE.json",
        "config.json",
        "lock",
        "status.json",
    ]
    moved = root.rename(tmp_path / "elsewhere")
    assert [run.name for run in list_runs(moved)] == [prepare.name, made.name]
    found = find_run(moved, "latest:evaluate")
    assert (found.name, found.done, found.problems) == (made.name, True, ())
    assert [run.name for run in lineage(moved, found)] == [made.name, prepare.name]
    rows = [row for row in run_rows(moved) if row.name == made.name]
    assert [row.size for row in rows] == [folder_size(moved / "evaluations" / made.name)]
    assert rows[0].size > 500


def test_an_announced_run_is_pending_until_a_process_opens_it(tmp_path: Path) -> None:
    run = open_run(tmp_path, "evaluate", Config(), ("prepare-0123456789ab",))
    run.announce()
    found = find_run(tmp_path, run.name)
    assert (found.state, found.problems, found.heartbeat, found.is_alive) == ("pending", (), None, False)
    assert found.parents == ("prepare-0123456789ab",)
    assert run_rows(tmp_path)[0].state == "pending"
    assert not (run.path / "lock").exists()
    with run:
        assert status(run)["state"] == "running"
        run.announce()  # by another pod, meanwhile
        assert status(run)["state"] == "running"
        run.status("pending", 2, 3)
    assert (status(run)["state"], status(run)["step"], status(run)["reason"]) == ("pending", 2, None)
    with contextlib.suppress(RuntimeError), run:
        run.status("pending")
        raise RuntimeError("broken")
    assert (status(run)["state"], status(run)["reason"]) == ("failed", "RuntimeError: broken")


def test_a_folder_of_an_older_version_stays_where_it_is(tmp_path: Path) -> None:
    run = open_run(tmp_path, "evaluate", Config())
    run.path.mkdir(parents=True)
    with run:
        assert status(run)["state"] == "running"
    assert not run.path.is_symlink()
    assert not (tmp_path / "evaluations").exists()


def test_a_link_whose_folder_is_gone_gets_it_back(tmp_path: Path) -> None:
    run = open_run(tmp_path, "evaluate", Config())
    run.path.parent.mkdir()
    run.path.symlink_to(Path("..") / "evaluations" / run.name)
    run.announce()
    assert json.loads((tmp_path / "evaluations" / run.name / "status.json").read_bytes())["state"] == "pending"


def test_something_in_the_way(tmp_path: Path) -> None:
    run = open_run(tmp_path, "evaluate", Config())
    run.path.parent.mkdir()
    run.path.write_text("")
    with pytest.raises(LingossError, match="is in the way, it should be a link to"):
        run.announce()


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.EPERM, "choose a root on a file system with symbolic links"),
        (errno.ENOTSUP, "choose a root on a file system with symbolic links"),
        (errno.EROFS, "run `lingoss evaluate --part open` where .*runs is writable"),
        (errno.EACCES, "run `lingoss evaluate --part open` where .*runs is writable"),
    ],
)
def test_a_link_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, message: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "symlink", refuse)
    with pytest.raises(LingossError, match=message) as refusal:
        open_run(tmp_path, "evaluate", Config()).announce()
    assert "\n" not in str(refusal.value)
