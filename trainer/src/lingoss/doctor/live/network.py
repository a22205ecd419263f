# SPDX-License-Identifier: MIT-0
"""EFA, the interface for NCCL and Gloo, and the names of the other pods."""

import queue
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from lingoss.doctor.check import Check
from lingoss.doctor.live.machine import Machine, found, warned

_PLUGIN_FOLDERS = (
    "/opt/amazon/ofi-nccl/lib",
    "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu",
    "/opt/aws-ofi-nccl/lib",
    "/opt/aws-ofi-nccl/install/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/local/lib",
)
_PLUGINS = ("libnccl-net.so", "libnccl-net-ofi.so", "libnccl-net-aws-ofi.so")
_LINK_LOCAL = ("lo", "docker", "veth", "pod-id-link", "virbr", "cni", "dummy")
_SECONDS = 5.0


def efa(machine: Machine) -> Iterator[Check]:
    """EFA devices against the variables that ask for them, and the plugin by which NCCL uses them."""
    devices = sorted(entry.name for entry in machine.path("/sys/class/infiniband").glob("*") if _is_efa(entry))
    verbs = sorted(entry.name for entry in machine.path("/dev/infiniband").glob("uverbs*"))
    variables = sorted(name for name in machine.environment if name.startswith("FI_EFA_"))
    if machine.environment.get("FI_PROVIDER") == "efa":
        variables.insert(0, "FI_PROVIDER=efa")
    if not verbs:  # devices of the node show in /sys of every pod; usable ones have a device file
        if variables:
            yield found("EFA", "efa-unavailable", f"{', '.join(variables)} set, but this container has no EFA device")
        elif devices:
            yield Check("EFA", "skipped", f"the node has {', '.join(devices)}, this container asked for none")
        else:
            yield Check("EFA", "skipped", "no EFA device here")
        return
    yield Check("EFA", "ok", f"{len(verbs)} device files for {', '.join(devices) or 'unknown devices'}")
    plugin = _plugin(machine)
    if plugin is None:
        yield found("OFI plugin", "ofi-plugin-missing", "no libnccl-net*.so in LD_LIBRARY_PATH or its usual folders")
    else:
        yield Check("OFI plugin", "ok", str(plugin))


def _is_efa(device: Path) -> bool:
    try:
        return (device / "device" / "driver").resolve().name == "efa" or device.name.startswith(("efa", "rdmap"))
    except OSError:
        return False


def _plugin(machine: Machine) -> Path | None:
    folders = [folder for folder in machine.environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    for folder in (*folders, *_PLUGIN_FOLDERS):
        for name in _PLUGINS:
            if (path := machine.path(f"{folder}/{name}")).exists():
                return path
    return None


def interface(machine: Machine) -> Iterator[Check]:
    """NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME against the interfaces of this pod."""
    there = sorted(entry.name for entry in machine.path("/sys/class/net").glob("*"))
    for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        value = machine.environment.get(name, "")
        if not value:
            continue
        if name.startswith("GLOO") and value.startswith(("^", "=")):
            yield found(name, "network-interface-wrong", f"{name}={value}: Gloo takes one name, no exclusions")
            continue
        left = chosen(value, there)
        if not left:
            yield found(name, "network-interface-wrong", f"{name}={value} leaves none of {', '.join(there)}")
        elif all(one.startswith(_LINK_LOCAL) for one in left):
            yield found(
                name,
                "network-interface-wrong",
                f"{name}={value} chooses {', '.join(left)}, which no other node reaches",
            )
        elif local := [one for one in left if one.startswith(_LINK_LOCAL)]:
            yield warned(name, "network-interface-wrong", f"{name}={value} lets NCCL use {', '.join(local)} too")
        else:
            yield Check(name, "ok", f"{value} chooses {', '.join(left)}")
    if not any(machine.environment.get(name) for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")):
        yield Check("NCCL interface", "ok", f"not set, NCCL chooses among {', '.join(there)}")


def chosen(value: str, interfaces: list[str]) -> list[str]:
    """The interfaces that a value of NCCL_SOCKET_IFNAME leaves: prefixes, `^` excludes, `=` means the whole name."""
    exclude, exact = value.startswith("^"), "=" in value[:2]
    names = [name for name in value.lstrip("^=").split(",") if name]

    def listed(interface: str) -> bool:
        return any(interface == name if exact else interface.startswith(name) for name in names)

    return [interface for interface in interfaces if listed(interface) != exclude]


def names(machine: Machine) -> Iterator[Check]:
    """Can the name of the first rank, and of this pod, be resolved?"""
    wanted = [
        machine.environment.get("MASTER_ADDR", ""),
        machine.environment.get("PET_RDZV_ENDPOINT", "").split(":")[0],
    ]
    asked = [name for name in dict.fromkeys(wanted) if name and not re.fullmatch(r"[\d.]+|\[?[\da-f:]+\]?", name)]
    if not asked:
        yield Check("names", "skipped", "MASTER_ADDR is not set or is an address")
    for name in asked:
        yield _resolved(name)


def _resolved(name: str) -> Check:
    answers: queue.Queue[str | OSError] = queue.Queue()

    def ask() -> None:
        try:
            answers.put(str(socket.getaddrinfo(name, None)[0][4][0]))
        except OSError as error:
            answers.put(error)

    # The library's own time-out is a minute and more when the DNS server is silent; the thread is left to it.
    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=_SECONDS)
    except queue.Empty:
        answer = TimeoutError(f"no answer within {_SECONDS:.0f} s")
    if isinstance(answer, OSError):
        return found("names", "name-resolution-failed", f"{name} cannot be resolved: {answer}")
    return Check("names", "ok", f"{name} is {answer}")
