# SPDX-License-Identifier: MIT-0
"""`helm test`: the volume takes and gives back what this user writes, its runs can be listed, the server answers.

Arguments: the mounted folder of the release and, in stage serve, the address of the server's health check.
Exit status 1 with one line that says what is wrong.
"""

import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

LIMIT = 240.0  # seconds; below the five minutes that Helm waits


def main(root: str, health: str | None = None) -> str | None:
    """What is wrong, or None."""
    user = f"{os.geteuid()}:{os.getegid()}"
    try:
        with tempfile.NamedTemporaryFile(dir=root, prefix=".helm-test-") as probe:
            probe.write(b"lingoss")
            probe.flush()
            os.fsync(probe.fileno())
            with open(probe.name, "rb") as again:
                if again.read() != b"lingoss":
                    return f"{root} gave back other bytes than were written: check the file system"
    except OSError as error:
        return (
            f"user {user} cannot write to {root}: {error.strerror}; on a fresh file system let stage prepare make the "
            "folder: --set global.stage=prepare,storage.owner.create=true"
        )
    print(f"{root} is writable for {user}", flush=True)
    if subprocess.run(["lingoss", "runs", "--root", root], check=False).returncode:
        return f"the runs in {root} cannot be listed: see the line above"
    return answers(health) if health else None


def answers(health: str) -> str | None:
    """Ask until the server answers or the time is up; a model of many GB loads for minutes."""
    end = time.monotonic() + LIMIT
    # No proxy: a pod's proxy variables are for the world outside, and the address is the chart's own Service.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        try:
            with opener.open(health, timeout=5) as reply:
                print(f"{health} answers {reply.status}", flush=True)
                return None
        except (urllib.error.URLError, OSError) as error:
            if time.monotonic() > end:
                return f"{health} did not answer within {LIMIT:.0f} s ({error}): is the model still loading?"
        time.sleep(2)


if __name__ == "__main__":
    if problem := main(*sys.argv[1:]):
        sys.exit(problem)
