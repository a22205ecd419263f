# SPDX-License-Identifier: MIT-0
"""Namespaces (processes, mounts, network) in which a whole cluster lives, so that none of it touches the host.

Ports, bridges, iptables rules, mounts and /run are the sandbox's own: two clusters cannot meet, and killing process 1
takes everything away. Only the veth pair, the cgroups and the folder are visible outside; `stop` removes them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from harness import cache, init
from harness.cache import HarnessError

COUNT = 64  # numbers 0..63: each has its folder, its cgroup, its veth pair and its /30 network


def clusters() -> Path:
    """The folder that holds one folder per sandbox, beside the tools."""
    return cache.root().parent / "clusters"


class Process:
    """A program inside the sandbox, with its log; `stop` ends it."""

    def __init__(self, name: str, argv: Sequence[str | Path], popen: subprocess.Popen[bytes], log: Path) -> None:
        self.name, self.argv, self.popen, self.log = name, argv, popen, log
        self.stopped = False

    def running(self) -> bool:
        """Whether it has not ended."""
        return self.popen.poll() is None

    def tail(self, lines: int = 15) -> str:
        """The last lines of its log, indented."""
        text = self.log.read_text(errors="replace").splitlines()[-lines:] if self.log.exists() else []
        return "\n".join(f"    {line}" for line in text) or "    (it printed nothing)"

    def check(self) -> None:
        """Raise `HarnessError` with the end of the log if it has ended by itself."""
        if not self.stopped and not self.running():
            raise HarnessError(f"{self.name} ended with status {self.popen.returncode}; {self.log}:\n{self.tail()}")

    def stop(self, seconds: float = 10) -> None:
        """End it, by SIGKILL if SIGTERM has not done so after `seconds`."""
        self.stopped = True
        for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, None)):
            # The program itself, not nsenter, which ends with it: then nothing of it runs when this returns.
            children = Path(f"/proc/{self.popen.pid}/task/{self.popen.pid}/children")
            with contextlib.suppress(OSError):
                for pid in children.read_text().split() or [str(self.popen.pid)]:
                    os.kill(int(pid), number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(patience)
                return


class Sandbox:
    """One sandbox; made by `start`, found again by `existing`."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.folder = clusters() / str(number)
        self.last_logs = clusters() / f"{number}.logs"  # where the logs go at the end, until the next of this number
        self.cgroup = f"lingoss-{number}"
        self.veth = f"lingoss{number}"
        self.host_address = f"10.213.{number}.1"
        self.address = f"10.213.{number}.2"  # by which the host reaches the cluster
        self.pid = 0
        self.connected = False  # from then on the veth pair and the cgroups of this number are ours
        self.processes: list[Process] = []
        self._init: subprocess.Popen[bytes] | None = None  # of the process that started it

    # -- life ---------------------------------------------------------------------------------------------------

    @classmethod
    def start(cls, bound: bool = True) -> Sandbox:
        """A new sandbox under the lowest free number, after the remains of dead ones are removed.

        `bound`: it ends with this process, however that ends. Raises `HarnessError`: not root, or nothing free.
        """
        if os.geteuid() != 0:
            raise HarnessError("a local cluster needs root: it makes namespaces, mounts and cgroups")
        for shadowed in init.SHADOWED:
            if clusters().is_relative_to(shadowed):
                raise HarnessError(f"the tools folder lies in {shadowed}, which a cluster shadows: set LINGOSS_TOOLS")
        clusters().mkdir(parents=True, exist_ok=True)
        with cache.lock(clusters() / ".lock", "another cluster that starts"):
            for dead in cls.all():
                if not dead.alive():
                    cache.say(f"removing what is left of cluster {dead.number}")
                    dead.stop()
            remove_files()  # what an interrupted removal left
            taken = {sandbox.number for sandbox in cls.all()}
            taken |= {n for n in range(COUNT) if Path(f"/sys/class/net/lingoss{n}").exists()}  # of another tools folder
            number = next((n for n in range(COUNT) if n not in taken), None)
            if number is None:
                raise HarnessError(f"{COUNT} clusters run already: `python -m harness down` ends them")
            sandbox = cls(number)
            sandbox._boot(bound)
        return sandbox

    @classmethod
    def all(cls) -> list[Sandbox]:
        """Every sandbox that has a folder, alive or not."""
        numbers = sorted(int(p.name) for p in clusters().glob("*") if p.name.isdigit())
        return [cls.existing(number) for number in numbers]

    @classmethod
    def existing(cls, number: int) -> Sandbox:
        """The sandbox of that number, as another process started it."""
        sandbox = cls(number)
        with contextlib.suppress(OSError, ValueError, KeyError):
            sandbox.pid = json.loads((sandbox.folder / "sandbox.json").read_text())["pid"]
            sandbox.connected = True
        return sandbox

    def alive(self) -> bool:
        """Whether its process 1 runs: it holds the lock."""
        try:
            with (self.folder / "lock").open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def _boot(self, bound: bool) -> None:
        self.folder.mkdir(mode=0o700)
        (self.folder / "logs").mkdir()
        python = [sys.executable, "-I", "-S"]
        try:
            flags = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
            with (self.folder / "logs" / "init.log").open("wb") as log:
                starter = self._init = subprocess.Popen(
                    ["unshare", *flags, *python, init.__file__, str(self.folder), "bound" if bound else "free"],
                    stdin=subprocess.PIPE if bound else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                )
            assert starter.stdout is not None
            if starter.stdout.readline() != b"ready\n":
                raise HarnessError((self.folder / "logs" / "init.log").read_text().strip() or "unshare failed")
            self.pid = int(Path(f"/proc/{starter.pid}/task/{starter.pid}/children").read_text())
            self._connect()
            (self.folder / "sandbox.json").write_text(json.dumps({"pid": self.pid}))
            self._make_cgroups()
        except BaseException:
            self.stop()
            raise

    def _connect(self) -> None:
        peer = ["peer", "name", "eth0", "netns", str(self.pid)]
        host("ip", "link", "add", self.veth, "type", "veth", *peer)
        self.connected = True
        host("ip", "address", "add", f"{self.host_address}/30", "dev", self.veth)
        host("ip", "link", "set", self.veth, "up")
        for command in ("link set lo up", f"address add {self.address}/30 dev eth0", "link set eth0 up"):
            self.run(["ip", *command.split()])

    def _make_cgroups(self) -> None:
        for place in hierarchies():
            group = place / self.cgroup
            group.mkdir(exist_ok=True)
            for setting in ("cpuset.cpus", "cpuset.mems"):  # a v1 cpuset starts empty and then takes no process
                if (place / setting).exists():
                    (group / setting).write_text((place / setting).read_text())

    def stop(self) -> None:
        """Kill everything inside and remove every trace but the logs; safe to call again, or on one that died."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            with (self.folder / "lock").open() as file:
                for _ in poll(30, f"process 1 of cluster {self.number} ends"):
                    with contextlib.suppress(BlockingIOError):
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
        for process in self.processes:
            process.popen.wait(30)
        if self._init:
            self._init.communicate(timeout=30)
        if self.connected:
            for place in hierarchies():
                self._remove_cgroup(place / self.cgroup)
            for _ in poll(30, f"the network of cluster {self.number} goes with its last process"):
                if not Path("/sys/class/net", self.veth).exists():
                    break
        if self.folder.exists():
            shutil.rmtree(self.last_logs, ignore_errors=True)
            (self.folder / "logs").rename(self.last_logs)
            self.folder.rename(clusters() / f".removed-{self.number}-{time.time_ns()}")
            remove_files()

    def _remove_cgroup(self, group: Path) -> None:
        for _ in poll(30, f"the processes in {group} end"):
            for child, _folders, _files in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):  # busy until the kernel has finished its dead processes
                    os.rmdir(child)
            if not group.exists():
                return

    # -- programs -----------------------------------------------------------------------------------------------

    def _enter(self, argv: Sequence[str | Path]) -> list[str]:
        # pdeathsig: nsenter waits outside for the program inside; ending the one must end the other.
        inside = ["nsenter", "-t", str(self.pid), "-m", "-n", "-p", "--", "setpriv", "--pdeathsig", "TERM", "--"]
        return [*inside, *map(str, argv)]

    def run(self, argv: Sequence[str | Path], seconds: float = 120) -> str:
        """Run a short command inside and return its stdout; raises `HarnessError` with its stderr if it fails."""
        done = subprocess.run(self._enter(argv), capture_output=True, text=True, check=False, timeout=seconds)
        if done.returncode:
            raise HarnessError(f"{argv[0]} failed in cluster {self.number}: {done.stderr.strip() or done.stdout}")
        return done.stdout

    def process(self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None) -> Process:
        """Start a long-running program inside; its log is `logs/<name>.log` of the folder, it ends with the sandbox."""
        log = self.folder / "logs" / f"{name}.log"
        with log.open("ab") as output:
            popen = subprocess.Popen(
                self._enter(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                start_new_session=True,  # Ctrl-C is for pytest: the cluster must live until its teardown
            )
        process = Process(name, argv, popen, log)
        self.processes.append(process)
        return process

    def stop_program(self, name: str) -> Callable[[], Process]:
        """End the running program of that name; answers what starts it again."""
        process = next(process for process in self.processes if process.name == name and not process.stopped)
        process.stop()
        return lambda: self.process(name, process.argv)

    def check(self) -> None:
        """Raise `HarnessError` if a program that should run has ended."""
        for process in self.processes:
            process.check()


def remove_files() -> None:
    """Delete the folders of ended sandboxes, in the background: unpacked images take seconds."""
    if removed := [str(place) for place in clusters().glob(".removed-*")]:
        subprocess.run(["sh", "-c", 'nice rm -rf "$@" > /dev/null 2>&1 &', "sh", *removed], check=True)


def hierarchies() -> list[Path]:
    """The mount points of every cgroup hierarchy: one a controller with version 1."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [Path(fields[1]) for line in lines if (fields := line.split())[2] in ("cgroup", "cgroup2")]


def host(*argv: str) -> None:
    """Run a short command on the host; raises `HarnessError` with its stderr if it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HarnessError(f"{' '.join(argv)}: {done.stderr.strip()}")


def poll(seconds: float, what: str, every: float = 0.1) -> Iterator[float]:
    """Yield the seconds passed until the caller stops asking; raises `HarnessError` after `seconds`."""
    start = time.monotonic()
    while (passed := time.monotonic() - start) < seconds:
        yield passed
        time.sleep(every)
    raise HarnessError(f"waited {seconds:.0f} s in vain: {what}")
