# SPDX-License-Identifier: MIT-0
"""What the real agents start in place of a rank: it has `warm.py` run the rank and is its double, signals included.

    python -SE rank.py COMMAND ARGUMENT...       the environment names the server's socket as WARM_SOCKET

A SIGKILL of this process closes its connection, by which the server kills the rank. It imports next to nothing.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Sequence

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def ask(path: str, argv: list[str], env: dict[str, str], cwd: str, files: Sequence[int]) -> tuple[socket.socket, int]:
    """Have the server at `path` start a command with these three standard files; the connection and the pid."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    text = json.dumps({"argv": argv, "env": env, "cwd": cwd}).encode() + b"\n"
    sent = socket.send_fds(connection, [text], list(files))
    connection.sendall(text[sent:])
    pid = b""
    while not pid.endswith(b"\n"):
        part = connection.recv(1)
        if not part:
            raise ConnectionError("the warm server has ended")
        pid += part
    return connection, int(pid)


def read_status(connection: socket.socket) -> int:
    """The exit status that the server sends, negative for a signal."""
    text = connection.recv(64)
    return int(text) if text else -signal.SIGKILL  # the server is gone, and has killed what it had started


def main() -> None:
    """Ask, pass signals on, end in the same way."""
    connection, _ = ask(os.environ["WARM_SOCKET"], sys.argv[1:], dict(os.environ), os.getcwd(), (0, 1, 2))
    for number in PASSED_ON:
        signal.signal(number, lambda given, _: connection.sendall(bytes([given])))
    # SIGSTOP cannot be noticed; tests that freeze a rank send this instead
    signal.signal(signal.SIGTSTP, lambda *_: connection.sendall(bytes([signal.SIGSTOP])))
    status = read_status(connection)
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main()
