# SPDX-License-Identifier: MIT-0
"""metrics.jsonl: whole rows, whatever was torn, and none from after the step that a run resumes at."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lingoss.errors import LingossError
from lingoss.runs.metrics import Metrics, read_metrics


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def written(path: Path, *steps: int) -> Metrics:
    metrics = Metrics(path)
    for step in steps:
        metrics.append({"step": step})
    metrics.close()
    return metrics


def steps(path: Path) -> list[Any]:
    return [row.get("step") for row in read_metrics(path)]


def test_rows_are_visible_at_once(path: Path) -> None:
    metrics = Metrics(path)
    metrics.append({"step": 1, "loss": 0.5, "by": {"fr": [1, None, True]}})
    assert list(read_metrics(path)) == [{"step": 1, "loss": 0.5, "by": {"fr": [1, None, True]}}]
    metrics.close()
    metrics.append({"step": 2})
    assert steps(path) == [1, 2]


def test_numbers_of_other_libraries_and_non_finite_ones(path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    Metrics(path).append(
        {
            "a": numpy.float32(0.5),
            "b": numpy.int64(3),
            "c": float("nan"),
            "d": numpy.float64("-inf"),
            "e": {1: Path("x")},
        }
    )
    text = path.read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {"a": 0.5, "b": 3, "c": "nan", "d": "-inf", "e": {"1": "x"}}


@pytest.mark.parametrize("torn", [b'{"step": 4', b"\0\0\0", b"x" * 200_000, b"\xff"])
def test_a_torn_end_is_dropped_before_the_next_row(path: Path, torn: bytes) -> None:
    written(path, 1, 2)
    with path.open("ab") as file:
        file.write(torn)
    assert steps(path) == [1, 2]
    written(path, 3)
    assert path.read_bytes() == b'{"step": 1}\n{"step": 2}\n{"step": 3}\n'


def test_a_file_that_is_one_torn_row(path: Path) -> None:
    path.write_bytes(b'{"step": 4')
    written(path, 1)
    assert path.read_bytes() == b'{"step": 1}\n'


def test_truncate_removes_what_came_after(path: Path) -> None:
    metrics = written(path, 1, 2, 3, 4, 5, 6)
    with path.open("ab") as file:
        file.write(b'{"note": "kept"}\nnot json, kept\n{"step": 4.5}\n{"step": "9"}\n{"step": 7')
    metrics.truncate(3)
    assert path.read_bytes() == (
        b'{"step": 1}\n{"step": 2}\n{"step": 3}\n{"note": "kept"}\nnot json, kept\n{"step": "9"}\n'
    )
    metrics.append({"step": 4})
    assert steps(path) == [1, 2, 3, None, "9", 4]
    metrics.truncate(0)
    assert steps(path) == [None, "9"]
    assert [entry.name for entry in path.parent.iterdir()] == ["metrics.jsonl"]


def test_truncate_without_a_file_or_a_reason(path: Path) -> None:
    metrics = Metrics(path)
    metrics.truncate(3)
    assert not path.exists()
    written(path, 1)
    before = path.stat().st_ino
    metrics.truncate(3)
    assert path.stat().st_ino == before  # nothing to remove: the file is not rewritten


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(0, 50), st.binary(max_size=20))
def test_truncate_keeps_exactly_the_earlier_steps(
    tmp_path_factory: pytest.TempPathFactory, given_steps: list[int], step: int, torn: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "property.jsonl"
    path.unlink(missing_ok=True)
    metrics = written(path, *given_steps)
    with path.open("ab") as file:
        file.write(torn.replace(b"\n", b""))
    metrics.truncate(step)
    assert steps(path) == [kept for kept in given_steps if kept <= step]


def test_a_full_disk_leaves_whole_rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics(path)
    metrics.append({"step": 1})
    real = os.write

    def half(descriptor: int, data: bytes) -> int:
        if len(data) > 5:
            return real(descriptor, bytes(data)[:5])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(LingossError, match=r"no space left.*metrics\.jsonl.*checkpoints/ of finished runs"):
        metrics.append({"step": 2, "l": 1})
    monkeypatch.undo()
    assert path.read_bytes() == b'{"step": 1}\n'
    metrics.append({"step": 2})
    assert steps(path) == [1, 2]


def test_reading_what_is_not_there(path: Path) -> None:
    assert list(read_metrics(path)) == []
    assert list(read_metrics(path.parent)) == []
    path.mkdir()
    assert list(read_metrics(path)) == []
    path.rmdir()
    path.write_bytes(b"[1]\n\n" + b"[" * 100_000 + b'\n{"step": 1}\r\n')
    assert steps(path) == steps(path.parent) == [1]
