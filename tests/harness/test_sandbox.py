# SPDX-License-Identifier: MIT-0
"""A sandbox keeps what it does to itself, and nothing of it outlives its owner. Needs root."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cache import HarnessError
from harness.sandbox import Sandbox, hierarchies, poll

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes namespaces")
KERNEL = [Path("/proc/sys/kernel/panic"), Path("/proc/sys/vm/overcommit_memory"), Path("/proc/sys/net/ipv4/ip_forward")]


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """One below a tools folder of the test's own."""
    monkeypatch.setenv("LINGOSS_TOOLS", str(tmp_path / "tools"))
    sandbox = Sandbox.start()
    yield sandbox
    sandbox.stop()


def traces(sandbox: Sandbox) -> list[Path]:
    """What can be seen of it from outside."""
    seen = [sandbox.folder, Path("/sys/class/net", sandbox.veth), *(p / sandbox.cgroup for p in hierarchies())]
    return [place for place in seen if place.exists()]


def test_what_it_changes_stays_inside(sandbox: Sandbox) -> None:
    before = [file.read_text() for file in KERNEL]
    write = "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 7 > /proc/sys/kernel/panic; cat /proc/sys/kernel/panic"
    assert sandbox.run(["sh", "-c", f"touch /etc/x-lingoss /var/lib/x-lingoss /run/x-lingoss; {write}"]) == "7\n"
    assert [file.read_text() for file in KERNEL] == before
    assert not [p for p in ("/etc/x-lingoss", "/var/lib/x-lingoss", "/run/x-lingoss") if Path(p).exists()]


def test_its_end_takes_orphans_and_every_trace(sandbox: Sandbox) -> None:
    process = sandbox.process("parent", ["sh", "-c", "setsid sleep 987654 & exec sleep 987653"])
    for _ in poll(10, "the orphan starts"):
        if "987654" in sandbox.run(["ps", "ax"]):
            break
    assert process.running()
    assert len(traces(sandbox)) == 2 + len(hierarchies())
    sandbox.stop()
    assert traces(sandbox) == []
    assert "98765" not in subprocess.run(["ps", "ax"], capture_output=True, text=True, check=True).stdout
    sandbox.stop()  # again: nothing to do


def test_a_program_that_ends_is_told_with_its_last_words(sandbox: Sandbox) -> None:
    process = sandbox.process("loser", ["sh", "-c", "echo out of luck; exit 3"])
    process.popen.wait(10)
    with pytest.raises(HarnessError, match=r"(?s)loser ended with status 3.*out of luck"):
        sandbox.check()


def test_a_stopped_program_is_no_failure(sandbox: Sandbox) -> None:
    process = sandbox.process("sleeper", ["sleep", "987652"])
    process.stop()
    sandbox.check()
    assert "987652" not in sandbox.run(["ps", "ax"])


def test_a_program_that_ignores_sigterm_is_killed(sandbox: Sandbox) -> None:
    process = sandbox.process("stubborn", ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"])
    for _ in poll(10, "it says ready"):
        if "ready" in process.tail():
            break
    process.stop(0.5)
    assert not process.running()
    assert process.popen.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)


def test_two_do_not_meet(sandbox: Sandbox) -> None:
    other = Sandbox.start()
    try:
        assert other.number != sandbox.number
        for one in (sandbox, other):
            one.run(["ip", "link", "add", "pods0", "type", "bridge"])
    finally:
        other.stop()
    assert "pods0" in sandbox.run(["ip", "link"])


def test_it_dies_with_its_owner_and_the_next_start_cleans_up(sandbox: Sandbox) -> None:
    code = "from harness.sandbox import Sandbox; import time\ns = Sandbox.start(); print(s.number, flush=True); time.sleep(600)"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
    assert owner.stdout is not None
    orphan = Sandbox.existing(int(owner.stdout.readline()))
    assert orphan.alive()
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    for _ in poll(10, "the sandbox ends after its owner"):
        if not orphan.alive():
            break
    assert orphan.folder.exists()
    third = Sandbox.start()
    try:
        assert third.number == orphan.number
    finally:
        third.stop()
    assert traces(orphan) == []
