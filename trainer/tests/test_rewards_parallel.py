# SPDX-License-Identifier: MIT-0
"""Scoring in worker processes: the same verdicts in the same order, whatever happens to the workers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lingoss.rewards import estimate, parallel, verdicts
from lingoss.score import DEFAULT, Request, Rules
from lingoss.transcript import Transcript, parse

ASKED = Request("How much is 6 times 7?", "en", "fr", "fr", "42")
TRACE = "Six fois sept font {}, car six fois cinq font trente et il reste deux fois six, donc douze."
BATCH: list[Transcript | Exception] = [parse(f"<think>{TRACE.format(n)}</think>{n}", "think") for n in range(90)]
BATCH[5] = ValueError("unreadable")
REQUESTS = [ASKED] * len(BATCH)


@pytest.fixture(autouse=True)
def two_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(parallel, "_size", lambda: 2)
    yield
    parallel.stop()


def test_a_dead_worker_changes_nothing_but_the_time() -> None:
    expected = verdicts(BATCH, REQUESTS)
    assert not parallel._pool, "without the time of a step everything is scored in-line"
    assert expected[42].reward == pytest.approx(1.0)
    assert [row for row, verdict in enumerate(expected) if verdict.grade_rule == "failed"] == [5]

    assert verdicts(BATCH, REQUESTS, step_seconds=0.1) == expected
    first, second = parallel._pool
    loaded = Path(f"/proc/{first.process.pid}/maps").read_text()
    assert "numpy" in loaded
    assert "libtorch" not in loaded

    first.process.kill()
    first.process.wait()
    work = list(zip(BATCH, REQUESTS, strict=True))
    assert parallel._shared(work, DEFAULT, [first, second]) == expected, "its share is scored in-line"
    assert verdicts(BATCH, REQUESTS, step_seconds=0.1) == expected
    assert len(parallel._pool) == 2, "and another one takes its place"
    assert second in parallel._pool
    assert first not in parallel._pool

    rules = Rules(language=0.1)
    assert verdicts(BATCH, REQUESTS, rules, step_seconds=0.1)[42].reward == pytest.approx(0.5)

    assert second.process.stdin
    second.process.stdin.close()  # as when the trainer is killed
    assert second.process.wait(timeout=60) == 0


@pytest.mark.parametrize(
    ("count", "step_seconds"), [(90, None), (90, 1000.0), (parallel._LEAST - 1, 0.001)], ids=["unknown", "long", "few"]
)
def test_workers_are_not_started_for_little(count: int, step_seconds: float | None) -> None:
    found = verdicts(BATCH[:count], REQUESTS[:count], step_seconds=step_seconds)
    assert len(found) == count
    assert not parallel._pool


def test_workers_that_keep_dying_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel.sys, "executable", "/bin/false")
    monkeypatch.setattr(parallel, "_RESTARTS", 2)
    monkeypatch.setattr(parallel, "_owner", 0)
    expected = verdicts(BATCH, REQUESTS)
    for _ in range(4):
        assert verdicts(BATCH, REQUESTS, step_seconds=0.1) == expected
    assert parallel._started == 4
    monkeypatch.setattr(parallel, "_owner", 0)


def test_estimate_grows_with_the_text() -> None:
    assert estimate([]) == 0.0
    short, long = (estimate([Transcript("think", "x" * size, "42", True, False)]) for size in (600, 2000))
    assert (short, long) == (pytest.approx(0.0009, rel=0.1), pytest.approx(0.002, rel=0.1))
