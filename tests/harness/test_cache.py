# SPDX-License-Identifier: MIT-0
"""The cache makes each entry once and shows only whole ones; recipes tell things apart."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import cache, images, programs, unpacked
from harness.cache import HarnessError


@pytest.fixture(autouse=True)
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("LINGOSS_TOOLS", str(tmp_path / "tools"))
    return tmp_path / "tools"


def write(text: str) -> Callable[[Path], None]:
    """A maker that writes one file."""

    def make(folder: Path) -> None:
        (folder / "file").write_text(text)

    return make


def test_an_entry_is_made_once(tools: Path) -> None:
    assert cache.entry("tool", "one", write("first")) == tools / "tool" / "one"
    assert (cache.entry("tool", "one", write("second")) / "file").read_text() == "first"


def test_what_fails_leaves_nothing(tools: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "file").write_text("half")
        raise HarnessError("no compiler")

    with pytest.raises(HarnessError, match="no compiler"):
        cache.entry("tool", "one", fail)
    assert [p.name for p in (tools / "tool").iterdir()] == [".lock"]
    assert (cache.entry("tool", "one", write("whole")) / "file").read_text() == "whole"


def test_the_entries_used_last_stay(tools: Path) -> None:
    for hour, name in enumerate("abc"):
        place = cache.entry("tool", name, write(name), keep=3)
        os.utime(place, (hour * 3600, hour * 3600))
    cache.entry("tool", "a", write("a"), keep=3)  # used again: now the newest
    cache.entry("tool", "d", write("d"), keep=3)
    assert {p.name for p in (tools / "tool").iterdir() if p.is_dir()} == {"a", "c", "d"}


def test_two_processes_make_it_once(tools: Path) -> None:
    code = """
import os, sys, time
from harness import cache
def make(folder):
    with open(sys.argv[1], "a") as log:
        log.write(f"{os.getpid()}\\n")
    (folder / "file").write_text("x")
cache.entry("tool", "one", make)
"""
    log = tools.parent / "log"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code, log], env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        )
        for _ in range(4)
    ]
    assert [run.wait(60) for run in runs] == [0, 0, 0, 0]
    assert len(log.read_text().splitlines()) == 1


def test_the_borders_of_a_recipes_parts_count() -> None:
    assert cache.key("ab", "c") != cache.key("a", "bc")
    assert cache.key("ab", b"c") == cache.key("ab", "c")
    assert len(cache.key("x")) == 12


def test_an_image_is_keyed_by_its_inputs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[list[str]] = []

    def bud(recipe: images.Recipe, context: Path) -> None:
        built.append(sorted(str(p.relative_to(context)) for p in context.rglob("*") if p.is_file()))

    monkeypatch.setattr(images, "_bud", bud)
    monkeypatch.setattr(images, "buildah", lambda *arguments: None)
    monkeypatch.setattr(programs, "debian", lambda: None)
    context = tmp_path / "context"
    (context / "code" / "__pycache__").mkdir(parents=True)
    for name in ("Containerfile", "code/a.py", "code/__pycache__/a.pyc", "notes.txt"):
        (context / name).write_text(name)

    def archive() -> Path:
        return images.archive(images.Recipe("localhost/x:1", context / "Containerfile", context, ("code",)))

    first = archive()
    (context / "notes.txt").write_text("changed: not an input")
    assert archive() == first
    assert built == [["code/a.py"]]
    (context / "code" / "a.py").write_text("changed")
    assert archive() != first


def test_a_missing_input_is_named(tmp_path: Path) -> None:
    (tmp_path / "Containerfile").write_text("FROM scratch")
    with pytest.raises(HarnessError, match="nowhere"):
        images.archive(images.Recipe("localhost/x:1", tmp_path / "Containerfile", tmp_path, ("nowhere",)))


def test_a_clone_shares_files_but_no_database(tmp_path: Path) -> None:
    layer, database = Path("io.containerd.snapshotter", "1", "fs", "file"), Path("io.containerd.metadata", "meta.db")
    for name in (layer, database):
        (tmp_path / "source" / name).parent.mkdir(parents=True)
        (tmp_path / "source" / name).write_text("made")
    unpacked.clone(tmp_path / "source", tmp_path / "target")
    assert (tmp_path / "target" / layer).samefile(tmp_path / "source" / layer)
    (tmp_path / "target" / database).write_text("changed")
    assert (tmp_path / "source" / database).read_text() == "made"


def test_every_program_has_its_pin() -> None:
    for program in programs.PROGRAMS.values():
        assert (programs.MODULES / program.module / "go.sum").is_file()
        if program.package.startswith("./"):
            assert (programs.MODULES / program.module / program.package / "main.go").is_file()
        else:
            roots = [path for path in programs.pins(program.module) if program.package.startswith(path)]
            assert roots, f"{program.package} is not pinned"


def test_a_dead_holder_frees_its_lock(tools: Path) -> None:
    code = """
import time
from harness import cache
with cache.lock(cache.root() / "l", "x"):
    print("held", flush=True)
    time.sleep(600)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    holder.kill()
    start = time.monotonic()
    with cache.lock(tools / "l", "the holder"):
        assert time.monotonic() - start < 10
    holder.wait()
