# SPDX-License-Identifier: MIT-0
"""Shared memory, the memory limit of the container, and the limits of the process."""

import os
import resource
from collections.abc import Iterator

from lingoss.doctor.check import Check
from lingoss.doctor.live.machine import Machine, found, warned

_GIB = 1 << 30
LEAST_SHARED = _GIB
"""NCCL takes some 10 MiB a peer and data loaders their batches; the container runtimes' 64 MiB are known to be too small."""
LEAST_FILES = 65_536
_NEAR_LIMIT = 0.92


def shared_memory(machine: Machine) -> Iterator[Check]:
    """Size and free space of /dev/shm, which matter where GPUs work together."""
    folder = machine.path("/dev/shm")
    if not folder.is_dir():
        yield found("/dev/shm", "shared-memory-too-small", "there is no /dev/shm")
        return
    size = os.statvfs(folder)
    total, free = size.f_blocks * size.f_frsize, size.f_bavail * size.f_frsize
    text = f"{total / _GIB:.2f} GiB, {free / _GIB:.2f} GiB free"
    if total < LEAST_SHARED or free < LEAST_SHARED // 16:
        # Without a GPU only data loaders use it, and the project's have no worker processes.
        yield (found if machine.has_gpu() else warned)("/dev/shm", "shared-memory-too-small", text)
    else:
        yield Check("/dev/shm", "ok", text)


def memory(machine: Machine) -> Iterator[Check]:
    """The container's memory limit: how close it is, and whether the kernel has killed a process for it already."""
    base = "/sys/fs/cgroup"
    limit = machine.text(f"{base}/memory.max") or machine.text(f"{base}/memory/memory.limit_in_bytes")
    used = machine.text(f"{base}/memory.current") or machine.text(f"{base}/memory/memory.usage_in_bytes")
    events = machine.text(f"{base}/memory.events") or machine.text(f"{base}/memory/memory.oom_control")
    killed = next((int(line.split()[1]) for line in events.splitlines() if line.startswith("oom_kill ")), 0)
    if killed:
        yield found(
            "memory",
            "host-out-of-memory",
            f"the kernel killed {killed} processes of this container for its memory limit",
        )
        return
    if not limit.strip().isdigit() or int(limit) > 1 << 60:
        yield Check("memory", "ok", "no memory limit")
        return
    reclaimable = _reclaimable(machine.text(f"{base}/memory.stat") or machine.text(f"{base}/memory/memory.stat"))
    working = max(0, int(used or 0) - reclaimable)
    text = f"{working / _GIB:.1f} of {int(limit) / _GIB:.1f} GiB in use"
    if working > _NEAR_LIMIT * int(limit):
        yield warned("memory", "host-out-of-memory", text)
    else:
        yield Check("memory", "ok", text)


def _reclaimable(statistics: str) -> int:
    rows = dict(line.split() for line in statistics.splitlines() if len(line.split()) == 2)
    return int(rows.get("inactive_file", rows.get("total_inactive_file", 0)))


def ulimits(machine: Machine) -> Iterator[Check]:
    """Open files, and locked memory where EFA needs it."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files[1] != resource.RLIM_INFINITY and files[1] < LEAST_FILES:
        yield warned(
            "open files", "process-limit-too-low", f"at most {files[1]}, and many ranks and shards need {LEAST_FILES}"
        )
    else:
        yield Check("open files", "ok", f"{files[0]}, may be raised to {'any number' if files[1] < 0 else files[1]}")
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if not any(machine.path("/dev/infiniband").glob("uverbs*")):
        yield Check("locked memory", "skipped", "no EFA device, which alone needs it")
    elif locked != resource.RLIM_INFINITY and locked < 16 * _GIB:
        yield found("locked memory", "process-limit-too-low", f"{locked // 1024} KiB, and EFA registers GiBs")
    else:
        yield Check("locked memory", "ok", "unlimited" if locked < 0 else f"{locked // _GIB} GiB")
