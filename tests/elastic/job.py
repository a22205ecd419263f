# SPDX-License-Identifier: MIT-0
"""A HyperPod job on this machine: real `hyperpodrun` processes as its pods, the stand-in operator, and faults."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from elastic.warm import Command, Server
from harness.hyperpod.agents import Agent, Status
from harness.hyperpod.ranks import Memory, Policy, Ranks

RANK = (sys.executable, "-SE", str(Path(__file__).with_name("rank.py")))
LOOK = 0.05  # seconds between two looks of the operator


class HangError(AssertionError):
    """Something did not come in the time it has; carries the stacks of all ranks."""


class Pod:
    """A launcher (hyperpodrun, torchrun) in a folder of its own. What it starts dies with it, as in a container."""

    def __init__(self, server: Server, folder: Path, command: Sequence[str], env: Mapping[str, str]) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self._command: Command = server.start(
            command,
            {**env, "WARM_SOCKET": str(server.socket), "PYTHONUNBUFFERED": "1"},
            folder / "pod.out",
            folder / "pod.err",
        )

    @property
    def status(self) -> int | None:
        """Exit status of the launcher, None while it runs."""
        return self._command.poll()

    def ranks(self) -> list[psutil.Process]:
        """The launcher's children: doubles of the ranks (`rank.py`), to be signalled in their place."""
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(self._command.pid).children()
            return [one for one in children if one.status() != psutil.STATUS_ZOMBIE]
        return []

    def signal(self, number: int) -> None:
        """Send the launcher a signal, as the kubelet does."""
        self._command.signal(number)

    def kill(self) -> None:
        """What an eviction without grace, a lost node or the kernel's memory killer does to a pod."""
        family = self.ranks()
        self.signal(signal.SIGKILL)
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def log(self) -> str:
        """What launcher and ranks wrote, of every attempt. The agent's own files (`--log_dir`) keep less: an attempt that
        begins again with the same fault count, as after a change of size, removes the attempt's old ones."""
        return "".join((self.folder / name).read_text(errors="replace") for name in ("pod.out", "pod.err"))


def agent_command(folder: Path, port: int, command: Sequence[str]) -> list[str]:
    """hyperpodrun with the chart's flags, but for this machine: one rank, addresses, folders and shorter times."""
    return [
        "hyperpodrun",
        "--nnodes=1",
        "--nproc-per-node=1",
        "--server-host=127.0.0.1",
        f"--server-port={port}",
        "--server-log-level=warning",
        "--shutdown-signal=SIGKILL",
        "--shutdown-timeout=30",
        f"--rdzv-conf=resource_config_dir={folder / 'config'}",
        f"--log_dir={folder}",
        "--tee=3",
        "--no-python",
        *RANK,
        *command,
    ]


class Job:
    """Pods and their operator. `until` is where time passes: the operator looks, acts, and a condition is awaited."""

    def __init__(
        self,
        server: Server,
        folder: Path,
        command: Sequence[str],
        env: Mapping[str, str],
        policy: Policy,
        nodes: int,
        late: int = 0,  # pods that are wanted, but not started here
    ) -> None:
        self.operator, self.wanted = Ranks(policy), nodes
        self.pods: dict[str, Pod] = {}
        self.agents: dict[str, Agent] = {}
        self.seen: Mapping[str, Status] = {}
        self._server, self._folder, self._command, self._env = server, folder, list(command), dict(env)
        folder.mkdir(parents=True, exist_ok=True)
        for index in range(nodes - late):
            self.start_pod(index)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        for pod in self.pods.values():
            pod.kill()

    def start_pod(self, index: int) -> Pod:
        """Start pod `index`, for the first time or again: another port, as a new pod has another address."""
        name = f"pod-{index}"
        folder, port = self._folder / name, free_port()
        command = agent_command(folder, port, self._command)
        self.pods[name] = Pod(self._server, folder, command, {**self._env, "NNODES": "1"})
        self.agents[name] = Agent(f"127.0.0.1:{port}")
        return self.pods[name]

    def restart_operator(self, remembers: bool = True) -> None:
        """The operator is killed; another one reads its memory from the job's status, or finds none."""
        memory = self.operator.memory if remembers else Memory(faults=self.operator.memory.faults)
        self.operator = Ranks(self.operator.policy, memory)

    def replace_lost_pods(self) -> None:
        """What the operator does with a pod whose agent has ended before the job has."""
        for name, pod in list(self.pods.items()):
            if pod.status is not None:
                self.start_pod(int(name.rpartition("-")[2]))

    def until(self, what: str, condition: Callable[[], object], seconds: float = 60) -> None:
        """Let the operator work until the condition holds.

        Raises:
            HangError: it did not come within `seconds`; tells the stacks of every rank.
        """
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise HangError(f"{what}: not within {seconds:g} s\n{self.report()}")
            self.step()
            time.sleep(LOOK)

    def step(self) -> None:
        """The operator looks at all agents and acts, once."""
        self.seen = self.operator.step(self.agents, self.wanted, time.monotonic(), free_port)

    def spin(self, what: str, condition: Callable[[], object], seconds: float = 60) -> None:
        """Await a moment that is shorter than a look of the operator, which does nothing meanwhile.

        Raises:
            HangError: it did not come within `seconds`.
        """
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise HangError(f"{what}: not within {seconds:g} s\n{self.report()}")
            time.sleep(0.001)

    def phase(self, phase: str) -> Callable[[], bool]:
        """A condition: the operator is in that phase."""
        return lambda: self.operator.memory.phase == phase

    def member(self, rank: int) -> Pod:
        """The pod that has that rank now."""
        return self.pods[self.operator.memory.members[rank]]

    def report(self) -> str:
        """Where everything stands, with a stack dump of every rank."""
        dump_stacks(self.pods.values())
        told = "\n".join(self.operator.memory.told)
        tails = [f"--- {name}: {self.seen.get(name)}\n{pod.log()[-6000:]}" for name, pod in self.pods.items()]
        return "\n".join([f"operator: {self.operator.memory.phase}", told, *tails])


def dump_stacks(pods: Iterable[Pod]) -> None:
    """Have every rank print where each of its threads is, to its standard error."""
    living = [process for pod in pods for process in pod.ranks()]
    for process in living:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGUSR2)
    time.sleep(0.5 if living else 0)  # for the dumps to be written


def free_port() -> int:
    """A port that nobody listens on, of those that the kernel does not give out by itself; another one each time."""
    while True:
        port = next(_ports)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port


def _port_numbers() -> Iterator[int]:
    """Of the kernel's gap, the part of this worker of pytest-xdist, over and over."""
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    first, end = max([(1024, low), (high + 1, 65536)], key=lambda gap: gap[1] - gap[0])
    worker, workers = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]), 8
    size = (end - first) // workers
    return itertools.cycle(range(first + worker % workers * size, first + (worker % workers + 1) * size))


_ports = _port_numbers()
