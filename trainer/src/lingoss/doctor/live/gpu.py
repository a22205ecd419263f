# SPDX-License-Identifier: MIT-0
"""Driver and GPUs: is the driver new enough for the CUDA of the installed torch, and do the GPUs answer?"""

import re
import subprocess
from collections.abc import Iterator

from lingoss.doctor.check import Check
from lingoss.doctor.live.machine import Machine, found, package

LEAST_DRIVER = {12: 525, 13: 580}
"""CUDA major version -> first driver branch that runs it (CUDA's release notes, minor version compatibility)."""
_NVIDIA_SMI = ["nvidia-smi", "--query-gpu=index,name,memory.used,memory.total,ecc.errors.uncorrected.volatile.total"]
_SECONDS = 20


def cuda_wanted() -> int | None:
    """The CUDA major version that torch here was built for, or None: its wheels depend on the runtime of that version."""
    for name in ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu13", "nvidia-cuda-runtime-cu12"):
        if installed := package(name):
            return int(installed.split(".")[0])
    return None


def driver(machine: Machine) -> Iterator[Check]:
    """The kernel's driver against the CUDA of this environment."""
    told = machine.text("/proc/driver/nvidia/version")
    match = re.search(r"Kernel Module(?: for \S+)? +(\d+)\.(\d+)", told)
    if not match:
        yield Check("driver", "skipped", "no NVIDIA driver here")
        return
    wanted = cuda_wanted()
    text = f"driver {match[1]}.{match[2]}"
    if wanted is None:
        yield Check("driver", "ok", f"{text}; no CUDA packages here to compare it with")
        return
    least = LEAST_DRIVER.get(wanted)
    if least is None:
        yield Check("driver", "skipped", f"{text}; what CUDA {wanted} needs is not known here")
    elif int(match[1]) < least:
        yield found(
            "driver", "driver-too-old", f"{text}, but CUDA {wanted} of the installed packages needs {least} or newer"
        )
    else:
        yield Check("driver", "ok", f"{text} runs CUDA {wanted}")


def health(machine: Machine) -> Iterator[Check]:
    """What nvidia-smi says of each GPU."""
    if not machine.has_gpu():
        yield Check(
            "GPU health",
            "skipped",
            "no GPU here (no /dev/nvidia0): it was not asked for, or its device plugin is missing",
        )
        return
    try:
        command = [*_NVIDIA_SMI, "--format=csv,noheader,nounits"]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=_SECONDS)
    except FileNotFoundError:
        yield Check("GPU health", "skipped", "nvidia-smi is not in this image")
        return
    except subprocess.TimeoutExpired:
        yield found("GPU health", "gpu-fault", f"nvidia-smi gave no answer within {_SECONDS} s")
        return
    yield read_health(done.returncode, done.stdout, done.stderr)


def read_health(status: int, output: str, errors: str) -> Check:
    """The answer of nvidia-smi as a check."""
    if status:
        told = " ".join((output + errors).split())[:300]
        cause = "driver-too-old" if "mismatch" in told.lower() else "gpu-fault"
        return found("GPU health", cause, f"nvidia-smi ended with {status}: {told}")
    rows = [[cell.strip() for cell in line.split(",")] for line in output.splitlines() if line.count(",") >= 4]
    if not rows:
        return Check("GPU health", "skipped", "nvidia-smi lists no GPU")
    damaged = [row[0] for row in rows if row[4].isdigit() and int(row[4])]
    if damaged:
        return found("GPU health", "gpu-fault", f"uncorrectable ECC errors on GPU {', '.join(damaged)}")
    used = "; ".join(f"GPU {row[0]} {row[1]}, {row[2]} of {row[3]} MiB used" for row in rows)
    return Check("GPU health", "ok", used)
