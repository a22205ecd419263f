# SPDX-License-Identifier: MIT-0
"""Verdicts on a whole batch, in-line or, where that would hold up a step, in worker processes.

Measured on a busy core of a 2-core machine: 0.9 ms a verdict on traces of 600 characters, 2.0 ms on 2,000 (`make bench`
prints both). So the 256 verdicts of a step on traces of 2,000 characters take half a second in-line, which is 1 % of a
step of 50 s. A worker takes 2 s to start, once, and 90 MB.
"""

import atexit
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from select import select
from typing import BinaryIO, cast

import lingoss
from lingoss.rewards.safe import verdict
from lingoss.rewards.worker import receive, send
from lingoss.score import DEFAULT, Request, Rules, Verdict
from lingoss.transcript import Transcript

MOST_WORKERS = 8  # a step of 1,024 verdicts of 2,000 characters then takes about half a second
_LEAST = 64  # verdicts; fewer are scored before the workers have their share
_PATIENCE = 120.0  # seconds; a worker that has not answered by then is taken for dead
_RESTARTS = 8  # dead workers replaced in the life of a process; where they keep dying (out of memory) we stay in-line

_EACH, _CHARACTER = 0.0004, 0.8e-6  # seconds, from the measurement above

log = logging.getLogger(__name__)


def estimate(transcripts: Sequence[Transcript | Exception]) -> float:
    """Seconds that one core needs for these transcripts."""
    texts = (t for t in transcripts if isinstance(t, Transcript))
    return sum(_EACH + _CHARACTER * (len(t.reasoning) + len(t.answer)) for t in texts)


def verdicts(
    transcripts: Sequence[Transcript | Exception],
    requests: Sequence[Request | Exception],
    rules: Rules = DEFAULT,
    step_seconds: float | None = None,
) -> list[Verdict]:
    """The verdict on each transcript, in order. Never raises on any text or request; see `safe.verdict`.

    `step_seconds`: how long a training step takes. When scoring in-line would take over 1 % of it, worker processes
    share the work; they are started once and kept. Without it everything is scored in-line.
    """
    work = list(zip(transcripts, requests, strict=True))
    slow = step_seconds is not None and estimate(transcripts) > step_seconds / 100
    if slow and len(work) >= _LEAST and (workers := _workers()):
        return _shared(work, rules, workers)
    return [verdict(transcript, request, rules) for transcript, request in work]


Work = Sequence[tuple[Transcript | Exception, Request | Exception]]


def _shared(work: Work, rules: Rules, workers: "list[_Worker]") -> list[Verdict]:
    """Every n-th item to one worker; what a dead worker leaves is scored here."""
    shares = [work[start :: len(workers)] for start in range(len(workers))]
    with ThreadPoolExecutor(len(workers)) as threads:
        answers = list(threads.map(lambda worker, share: worker.ask(share, rules), workers, shares))
    found: list[Verdict | None] = [None] * len(work)
    for start, (share, answer) in enumerate(zip(shares, answers, strict=True)):
        found[start :: len(workers)] = answer or [verdict(*item, rules) for item in share]
    return cast("list[Verdict]", found)


class _Worker:
    """One scoring process and the two pipes to it."""

    def __init__(self) -> None:
        folder = str(Path(lingoss.__file__).parent.parent)
        paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "CUDA_VISIBLE_DEVICES": ""}
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from lingoss.rewards import worker; worker.main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    def ask(self, share: Work, rules: Rules) -> list[Verdict] | None:
        """The verdicts on these, or None when the process died over them."""
        assert self.process.stdin
        assert self.process.stdout
        try:
            send(cast("BinaryIO", self.process.stdin), (share, rules))
            if not select([self.process.stdout], [], [], _PATIENCE)[0]:
                raise TimeoutError(f"no answer in {_PATIENCE:.0f} s")
            answer = cast("list[Verdict]", receive(cast("BinaryIO", self.process.stdout)))
        except Exception as problem:
            log.warning("a scoring process is lost (%s), its share is scored in-line", ascii(str(problem)))
            self.end()
            return None
        return answer if len(answer) == len(share) else None

    def end(self) -> None:
        """Kill the process, whatever it is doing."""
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                try:
                    pipe.close()
                except OSError:  # what was buffered for the dead process cannot be flushed
                    pass
        self.process.wait()


_lock = threading.Lock()
_pool: list[_Worker] = []
_owner = 0  # the process that started the pool: a forked child must not share its pipes
_started = 0


def _workers() -> list[_Worker]:
    """The living workers, started on the first call; empty where there is no second core to run on."""
    global _owner, _started
    with _lock:
        if _owner != os.getpid():
            _pool.clear()
            _owner, _started = os.getpid(), 0
        _pool[:] = [worker for worker in _pool if worker.process.poll() is None]
        size = _size()
        while len(_pool) < size and _started < size + _RESTARTS:
            _pool.append(_Worker())
            _started += 1
        return list(_pool)


def _size() -> int:
    """Cores of this process that no other rank of the host will use, at most `MOST_WORKERS`."""
    cores = len(os.sched_getaffinity(0)) // max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    return min(MOST_WORKERS, cores) if cores > 1 else 0


@atexit.register
def stop() -> None:
    """End the workers; the next batch that needs them starts new ones."""
    with _lock:
        if _owner == os.getpid():
            for worker in _pool:
                worker.end()
            _pool.clear()
