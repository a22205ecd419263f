# SPDX-License-Identifier: MIT-0
"""Trainings of several processes for tests, without paying for the imports of each: one process loads everything and
forks the ranks, with the environment that a launcher gives them.

Run as a program it is that process; a line of JSON on its standard input starts a training, and one comes back.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRACE = 30.0  # as torchrun: seconds between SIGTERM and SIGKILL for the ranks that are left when one has failed
AT_STEP = """
from lingoss.sft.trainer import Trainer
_step = Trainer.training_step
def _disturbed(self, *args, **kwargs):
    if self.state.global_step == {step}:
        {what}
    return _step(self, *args, **kwargs)
Trainer.training_step = _disturbed
import os, signal, time
from lingoss.errors import LingossError
"""


def at_step(step: int, what: str) -> str:
    """Code for a rank that does `what` (a statement) before each micro-batch of the step after that many."""
    return AT_STEP.format(step=step, what=what)


@dataclass(frozen=True)
class Ended:
    """How a training of several ranks ended: exit status of each (negative: a signal), and what each printed."""

    statuses: list[int]
    errors: list[str]
    outputs: list[str]
    seconds: float

    @property
    def told(self) -> list[str]:
        """The lines for people in which a command says why it ends, of all ranks."""
        return [line for text in self.errors for line in text.splitlines() if line.startswith("lingoss sft: ")]

    def log(self, task: str) -> list[dict[str, Any]]:
        """The lines of that task in rank 0's log."""
        lines = [json.loads(line) for line in self.errors[0].splitlines() if line.startswith("{")]
        return [line for line in lines if line["task"] == task]


class Ranks:
    """Starts trainings, one after the other. Use in a `with` statement."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def __enter__(self) -> "Ranks":
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        return self

    def __exit__(self, *given: object) -> None:
        self._process.communicate(timeout=60)

    def run(
        self, ranks: int, argv: Sequence[str], before: dict[int, str] | None = None, env: dict[str, str] | None = None
    ) -> Ended:
        """Run `lingoss ARGV` as that many ranks; 0 is one process without a launcher. `before` is code by rank."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._count += 1
        logs = self._folder / f"training-{self._count}"
        logs.mkdir()
        request = {"ranks": ranks, "argv": list(argv), "before": before or {}, "env": env or {}, "logs": str(logs)}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        texts = [
            [(logs / f"{rank}.{name}").read_text(errors="replace") for rank in range(max(1, ranks))]
            for name in ("err", "out")
        ]
        return Ended(answer["statuses"], *texts, answer["seconds"])


def _serve() -> None:
    import peft  # noqa: F401
    import torch.distributed
    import trl  # noqa: F401

    import lingoss.sft.trainer  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        began = time.monotonic()
        # As the agent of torchrun does: the store outlives the ranks.
        store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        pids = [_fork(rank, request, store.port) for rank in range(max(1, request["ranks"]))]
        statuses = _wait(pids)
        print(json.dumps({"statuses": statuses, "seconds": round(time.monotonic() - began, 3)}), flush=True)


def _fork(rank: int, request: dict[str, Any], port: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    for name, number in (("out", 1), ("err", 2)):
        file = os.open(Path(request["logs"]) / f"{rank}.{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(file, number)
    size = request["ranks"]
    if size:
        numbers = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size, "MASTER_PORT": port}
        os.environ.update(
            {name: str(value) for name, value in numbers.items()},
            MASTER_ADDR="127.0.0.1",
            TORCHELASTIC_USE_AGENT_STORE="True",
            TORCHELASTIC_RESTART_COUNT="0",
        )
    os.environ.update(request["env"])
    sys.argv = ["lingoss", *request["argv"]]
    status = 1
    try:
        exec(request["before"].get(str(rank), ""), {})
        from lingoss.cli import entry

        entry()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _wait(pids: list[int]) -> list[int]:
    """The statuses of all; when one failed, the others are ended as torchrun does it."""
    statuses: dict[int, int] = {}
    left, kill_at = set(pids), float("inf")
    while left:
        for pid in list(left):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                left.discard(pid)
                statuses[pid] = os.waitstatus_to_exitcode(status)
                if statuses[pid] != 0 and kill_at == float("inf"):
                    kill_at = time.monotonic() + GRACE
                    for other in left:
                        os.kill(other, signal.SIGTERM)
        if time.monotonic() > kill_at:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return [statuses[pid] for pid in pids]


if __name__ == "__main__":
    _serve()
