# SPDX-License-Identifier: MIT-0
"""What the tests of `runs` share, and what they do in other processes. No tests in here.

Kept apart so that a spawned child imports nothing but `lingoss.runs`.
"""

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from lingoss.errors import LingossError
from lingoss.runs import open_run
from lingoss.runs.folder import RunFolder
from lingoss.runs.lock import Lock


@dataclass(frozen=True)
class Config:
    run: str = "1"
    lock_wait: float = 0.0
    settings: dict[str, Any] = field(default_factory=lambda: {"learning_rate": 1e-4})

    def identity(self) -> dict[str, Any]:
        return self.settings

    def resolved(self) -> dict[str, Any]:
        return {"run": self.run, "lock_wait": self.lock_wait, **self.settings}


SPAWN = multiprocessing.get_context("spawn")


def start_child(target: Any, *arguments: Any) -> tuple[Any, Any]:
    """A child process and the end of the pipe that it answers on."""
    here, there = SPAWN.Pipe()
    process = SPAWN.Process(target=target, args=(*arguments, there), daemon=True)
    process.start()
    there.close()
    return process, here


def status(run: RunFolder) -> dict[str, Any]:
    found = json.loads((run.path / "status.json").read_bytes())
    assert isinstance(found, dict)
    return found


def until(condition: Callable[[], bool], pause: float = 0.002) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(pause)


def add_weights(run: RunFolder, content: bytes = b"weights") -> None:
    run.adapter.mkdir(exist_ok=True)
    (run.adapter / "adapter_model.safetensors").write_bytes(content)
    (run.adapter / "adapter_config.json").write_text("{}")


def finish(root: Path, stage: str, parents: tuple[str, ...] = (), run: str = "1", **settings: Any) -> RunFolder:
    """A finished run of a stage, made through the package itself."""
    with open_run(root, stage, Config(run=run, settings=settings), parents) as made:
        made.status("running", 3, 3)
        if stage in ("sft", "grpo"):
            made.adapter.mkdir()
            (made.adapter / "adapter_model.safetensors").write_bytes(f"{stage} {run} {settings}".encode())
        made.finish(3)
    return made


def contend(folder: Path, rounds: int, oracle: Any, start: Any, answer: Connection) -> None:
    """Take and release the lock `rounds` times; the oracle, a lock of the system, must then always be free."""
    start.wait()
    clashes = 0
    for _ in range(rounds):
        lock = Lock(folder, poll=0.001)
        lock.acquire(wait=60)
        if not oracle.acquire(block=False):
            clashes += 1
        else:
            lock.check()
            oracle.release()
        lock.release()
    answer.send(clashes)


def grab(folder: Path, rounds: int, barrier: Any, answer: Connection) -> None:
    """In each round all try at once to take over from a dead holder; the winner keeps it until all have tried."""
    won = []
    for number in range(rounds):
        lock = Lock(folder / str(number), poll=0.001)
        barrier.wait()
        try:
            lock.acquire(wait=0)
            won.append(number)
        except LingossError:
            pass
        barrier.wait()
    answer.send(won)


def die_holding(folder: Path, rounds: int) -> None:
    """Leave `rounds` locks held by a process that is gone."""
    for number in range(rounds):
        Lock(folder / str(number)).acquire(wait=0)
    os.kill(os.getpid(), signal.SIGKILL)


def train(root: Path, interval: float, answer: Connection) -> None:
    """Work in a run for ever, writing as fast as it goes; tells when it has begun."""
    import lingoss.runs.folder

    lingoss.runs.folder.STATUS_INTERVAL = interval
    with open_run(root, "sft", Config()) as run:
        step = 0
        while True:
            step += 1
            run.status("running", step, 10**9)
            run.metric({"step": step, "loss": 1 / step})
            if step == 20:
                answer.send(step)


def idle(root: Path, answer: Connection) -> None:
    """Hold a run and wait for a signal."""
    # A shell starts what it puts into the background with SIGINT ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open_run(root, "sft", Config()) as run:
        run.status("running", 5, 10)
        answer.send(os.getpid())
        while True:
            time.sleep(60)  # a signal ends it


def enter_and_return(root: Path) -> None:
    """Begin a run and forget to leave it: the heartbeat must not keep the process alive."""
    open_run(root, "sft", Config()).__enter__()
