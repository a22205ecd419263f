# SPDX-License-Identifier: MIT-0
"""Process 1 of a sandbox, run as a file by `sandbox.py`: makes its mounts, then reaps orphans until it is told to end.

It holds the lock file of the sandbox all its life, so that a held lock means a living sandbox; when it ends, the
kernel kills every process of the sandbox and drops its mounts and network.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

# Host folders that containerd, CNI, the kubelet and Kueue write at fixed paths: inside, writes go to the sandbox.
SHADOWED = ("/etc", "/var/lib", "/var/log")
# The kubelet sets these for the whole machine: inside, plain files that say so already lie over them.
KERNEL_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def make_mounts(folder: Path) -> None:
    mount("-t", "tmpfs", "-o", "mode=755", "run", "/run")
    for place in SHADOWED:
        layers = folder / "shadow" / place.strip("/").replace("/", "-")
        for part in ("upper", "work"):
            (layers / part).mkdir(parents=True)
        mount("-t", "overlay", "-o", f"lowerdir={place},upperdir={layers}/upper,workdir={layers}/work", "shadow", place)
    for name, value in KERNEL_SETTINGS.items():
        file = folder / "shadow" / name.replace("/", "-")
        file.write_text(f"{value}\n")
        mount("--bind", str(file), f"/proc/sys/{name}")


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def main(folder: Path, bound: bool) -> None:
    """Serve as process 1; `bound` ends the sandbox when standard input closes, which is when its owner dies."""
    held = (folder / "lock").open("w")
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    make_mounts(folder)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("ready", flush=True)
    watched = [wake, 0] if bound else [wake]
    while True:
        readable, _, _ = select.select(watched, [], [])
        if 0 in readable and not os.read(0, 1):
            return
        if wake in readable:
            os.read(wake, 4096)
        reap()


def reap() -> None:
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "bound")
