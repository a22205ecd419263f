# SPDX-License-Identifier: MIT-0
"""Checks of the machine or pod that this runs in: seconds, no torch, nothing changed. What cannot be checked is said.

One file an area; each check is a function of a `Machine` (and the shared folder), so that tests can show it another one.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from lingoss.doctor.check import Check
from lingoss.doctor.live import gpu, hub, limits, network, programs, timing, volume
from lingoss.doctor.live.machine import Machine


def checks(root: Path | None, machine: Machine | None = None) -> Iterator[Check]:
    """Every check, one after another. `root` is the shared folder; without it the volume is skipped."""
    machine = machine or Machine()
    made: list[tuple[str, Callable[[], Iterator[Check]]]] = [
        ("driver", partial(gpu.driver, machine)),
        ("GPU health", partial(gpu.health, machine)),
        ("EFA", partial(network.efa, machine)),
        ("NCCL interface", partial(network.interface, machine)),
        ("names", partial(network.names, machine)),
        ("/dev/shm", partial(limits.shared_memory, machine)),
        ("memory", partial(limits.memory, machine)),
        ("limits", partial(limits.ulimits, machine)),
        ("volume", partial(volume.volume, root)),
        ("Hub", partial(hub.hub, machine)),
        ("clock", partial(timing.clock, machine, root)),
        ("caches", partial(programs.writable, machine)),
        ("C compiler", partial(programs.c_compiler, machine)),
        ("MXFP4 kernels", partial(programs.mxfp4, machine)),
        ("vocabulary", partial(programs.vocabulary, machine)),
    ]
    for name, make in made:
        try:
            yield from make()
        except OSError as error:  # a file of /proc or /sys that this kernel, or this pod's rights, do not have
            yield Check(name, "skipped", f"cannot be checked here: {error}")
