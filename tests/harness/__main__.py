# SPDX-License-Identifier: MIT-0
"""`python tests/harness …`: build the tools, start a cluster by hand, look at it, end it."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

if not __package__:  # run as a folder
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from harness import cache, helm, images, operators, programs
from harness.cache import HarnessError
from harness.cluster import LocalCluster
from harness.sandbox import Sandbox, clusters


def build(names: list[str], fresh: bool) -> None:
    """Build everything or the named programs; `fresh` with Go caches of its own that are dropped afterwards."""
    unknown = sorted(set(names) - set(programs.PROGRAMS))
    if unknown:
        raise HarnessError(f"no such program: {' '.join(unknown)}; there are {' '.join(programs.PROGRAMS)}")
    caches = Path(tempfile.mkdtemp(prefix="lingoss-go-")) if fresh else None
    try:
        if caches:
            os.environ |= {"GOCACHE": str(caches / "build"), "GOMODCACHE": str(caches / "modules")}
        seconds = programs.build(names)
        if not names:
            programs.debian()
            helm.helm4(), helm.kubectl()
            images.pause()
    finally:
        if caches:
            subprocess.run(["chmod", "-R", "u+w", caches], check=False)  # Go makes its modules read-only
            shutil.rmtree(caches, ignore_errors=True)
    for name, took in seconds:
        print(f"{name:26}{took:6.0f} s")


def up() -> None:
    """Start a furnished cluster that stays until `down`, and print how to use it."""
    cluster = LocalCluster.boot(bound=False)
    try:
        operators.furnish(cluster)
        cluster.load(images.toolbox(images.TOOLBOX))
    except BaseException:
        cluster.stop()
        raise
    volumes = cluster.folder / "volumes"
    volumes.mkdir()
    print(f"export KUBECONFIG={cluster.kubeconfig} LINGOSS_TEST_VOLUMES={volumes}")
    cache.say(f"logs: {cluster.folder}/logs; the end: python tests/harness down {cluster.sandbox.number}")


def down(numbers: list[int]) -> None:
    """End the clusters of these numbers, or all, and remove what dead ones left."""
    known = {sandbox.number for sandbox in Sandbox.all()}
    if missing := [number for number in numbers if number not in known]:
        raise HarnessError(
            f"no cluster {' '.join(map(str, missing))}; there are {' '.join(map(str, sorted(known))) or 'none'}"
        )
    with cache.lock(clusters() / ".lock", "a cluster that starts"):
        for sandbox in [Sandbox.existing(n) for n in numbers] or Sandbox.all():
            sandbox.stop()
            cache.say(f"cluster {sandbox.number} is gone")


def show() -> None:
    """One line a cluster: number, process 1 or `dead`, kubeconfig."""
    for sandbox in Sandbox.all():
        state = f"pid {sandbox.pid}" if sandbox.alive() else "dead"
        print(f"{sandbox.number:2}  {state:12}  {sandbox.folder}/pki/admin.kubeconfig")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python tests/harness", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("build", help="build what is missing of the tools, or the programs named")
    command.add_argument("programs", nargs="*", metavar="PROGRAM")
    command.add_argument("--drop-caches", action="store_true", help="use Go caches of its own and drop them afterwards")
    commands.add_parser("up", help="start a cluster that stays, and print its KUBECONFIG")
    command = commands.add_parser("down", help="end the clusters of these numbers, or all")
    command.add_argument("numbers", nargs="*", type=int, metavar="NUMBER")
    commands.add_parser("list", help="the clusters of this user")
    chosen = parser.parse_args()
    try:
        match chosen.command:
            case "build":
                build(chosen.programs, chosen.drop_caches)
            case "up":
                up()
            case "down":
                down(chosen.numbers)
            case "list":
                show()
    except HarnessError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
