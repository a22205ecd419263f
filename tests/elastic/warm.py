# SPDX-License-Identifier: MIT-0
"""Starts Python commands from a process that has imported what is heavy: 0.1 CPU seconds each instead of 13.

    python -m elastic.warm SOCKET MODULE...      the server; it ends, and all that it started, when its stdin closes

A command is a fork of the server that runs the same code in the same way; only the imports are shared. Its process is
the server's child, so whoever asked for it gets its pid and its end over the connection, and closing the connection
kills it. `rank.py` is such an asker, which hyperpodrun and torchrun can start and signal as if it were the command.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from elastic.rank import ask, read_status

MODULES = {
    "hyperpodrun": "hyperpod_elastic_agent.run",
    "lingoss.torchrun": "lingoss.torchrun",
    "lingoss": "lingoss.cli",
}
# Not the agent itself: it opens a selector when it is imported, which processes must not share.
HEAVY = ("torch.distributed.run", "fastapi", "uvicorn", "trl.trainer.sft_trainer", "peft", "datasets")


class Server:
    """The warm process, started by a test session; `socket` is where commands are asked for."""

    def __init__(self, folder: Path, modules: Sequence[str] = HEAVY) -> None:
        self.socket = folder / "warm.sock"
        self.log = folder / "warm.log"
        self.folder = folder  # short enough for the names of the agents' sockets, unlike those of single tests
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "elastic.warm", str(self.socket), *modules],
                cwd=Path(__file__).parents[1],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"the warm server did not start: {self.log.read_text()[-3000:]}")

    def start(self, argv: Sequence[str], env: Mapping[str, str], stdout: Path, stderr: Path) -> Command:
        """Run a command: the name of one in `MODULES` or a script, then its arguments. Output is appended to files."""
        with stdout.open("ab") as out, stderr.open("ab") as err, open(os.devnull, "rb") as none:
            connection, pid = ask(
                str(self.socket), list(argv), dict(env), os.getcwd(), (none.fileno(), out.fileno(), err.fileno())
            )
        return Command(connection, pid)

    def close(self) -> None:
        """End the server and all that it started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=20)


class Command:
    """A started command, as `subprocess.Popen` is one."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self._connection, self.pid = connection, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        if self.returncode is None:
            self._connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                self.returncode = read_status(self._connection)
        return self.returncode

    def signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            self._connection.sendall(bytes([number]))


def main(path: str, modules: Sequence[str]) -> None:
    """The server's loop, in one thread, since a fork of several would lose all but one."""
    for name in modules:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # else the first collection in each child copies the pages of everything imported
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ, None)
    selector.register(0, selectors.EVENT_READ, None)
    running: dict[int, tuple[socket.socket, int]] = {}  # pid: connection, pidfd
    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            if key.fileobj == 0:
                for pid in running:
                    os.kill(pid, signal.SIGKILL)
                return
            if key.fileobj is listener:
                connection, _ = listener.accept()
                started = _start(connection)
                if started is not None:
                    running[started] = connection, os.pidfd_open(started)
                    for file in running[started]:
                        selector.register(file, selectors.EVENT_READ, started)
            elif (pid := key.data) not in running:
                continue  # its end came in this very round
            elif key.fileobj == running[pid][1]:
                _end(selector, running, pid)
            else:
                _pass_on(selector, running[pid][0], pid)


def _pass_on(selector: selectors.BaseSelector, connection: socket.socket, pid: int) -> None:
    """Signals that the asker sends; its own end, which a SIGKILL may be, ends the command too."""
    try:
        numbers = connection.recv(64)
    except ConnectionError:
        numbers = b""
    if not numbers:
        selector.unregister(connection)
    for number in numbers or [signal.SIGKILL]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _end(selector: selectors.BaseSelector, running: dict[int, tuple[socket.socket, int]], pid: int) -> None:
    connection, watch = running.pop(pid)
    _, status = os.waitpid(pid, 0)
    selector.unregister(watch)
    os.close(watch)
    with contextlib.suppress(KeyError):
        selector.unregister(connection)
    with contextlib.suppress(OSError):
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    connection.close()


def _start(connection: socket.socket) -> int | None:
    """The child that becomes what is asked for; None when the asker was killed before it had said so."""
    text, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not text.endswith(b"\n"):
        part = connection.recv(1 << 20)
        if not part:
            for file in files:
                os.close(file)
            connection.close()
            return None
        text += part
    order = json.loads(text)
    pid = os.fork()
    if pid == 0:
        _become(order, files)
    for file in files:
        os.close(file)
    with contextlib.suppress(OSError):  # its end is noticed as that of any other asker
        connection.sendall(f"{pid}\n".encode())
    return pid


def _become(order: dict[str, Any], files: Sequence[int]) -> NoReturn:
    """In the child: be the command."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it does not outlive the server, however that ends
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, 4096)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    if host := os.environ.get("WARM_HOST"):  # a pod's own name, as a container has one
        socket.gethostname = lambda: host
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR2, all_threads=True)  # the watchdog of the tests asks where it hangs
    code = 1
    try:
        sys.argv = order["argv"]
        module = MODULES.get(sys.argv[0])
        if module:
            program: Any = importlib.import_module(module)
            code = (program.entry if module == "lingoss.cli" else program.main)() or 0
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
            code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
