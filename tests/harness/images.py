# SPDX-License-Identifier: MIT-0
"""Container images without a container engine: built by buildah, kept as archives in the cache of tools."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness import cache, programs
from harness.cache import HarnessError
from harness.components import PAUSE_IMAGE

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = Path(__file__).parent / "images"
TOOLBOX = "localhost/lingoss-toolbox:test"
SUITE = "bookworm"
BASE_PACKAGES = "python3,python3-venv,ca-certificates"
# What a base image of a registry has not either; apt's lists and archives are the largest part.
BASE_REMOVED = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale", "var/log")
SKIPPED = {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".venv"}


def pause() -> Path:
    """Archive of the image that holds each pod's namespaces."""
    return archive(PAUSE_IMAGE, FILES / "pause.Containerfile", programs.program("pause").parent, ["pause"])


def toolbox(reference: str) -> Path:
    """Archive of `images/toolbox`, on the base of this machine."""
    dockerfile = REPOSITORY / "images" / "toolbox" / "Dockerfile"
    locks = [f"images/toolbox/{name}.lock" for name in ("requirements", "build")]
    inputs = [*locks, "trainer/pyproject.toml", "trainer/src"]
    return archive(reference, dockerfile, REPOSITORY, inputs, {"BASE": base()})


def base() -> str:
    """Reference of a local Debian image with Python 3.11, for the BASE argument of a Dockerfile."""

    def make(folder: Path) -> None:
        programs.debian()
        with cache.step(f"debootstrap {SUITE}"):
            rootfs = folder / "rootfs"
            _run("debootstrap", "--variant=minbase", f"--include={BASE_PACKAGES}", SUITE, str(rootfs))
            for name in BASE_REMOVED:
                shutil.rmtree(rootfs / name)
                (rootfs / name).mkdir()
            _run(
                "tar",
                "--create",
                "--numeric-owner",
                "--directory",
                str(rootfs),
                "--file",
                str(folder / "rootfs.tar"),
                ".",
            )
            shutil.rmtree(rootfs)

    recipe = cache.key(SUITE, BASE_PACKAGES, *BASE_REMOVED)
    made = cache.entry("debian", recipe, make)
    reference = f"localhost/lingoss-base:{recipe}"
    with cache.lock(cache.root() / "debian" / ".image-lock", "another process that makes the base image"):
        if not _known(reference):
            _bud(reference, FILES / "base.Containerfile", made, {})
    return reference


def archive(
    reference: str,
    containerfile: Path,
    context: Path,
    inputs: Sequence[str] = (".",),
    arguments: Mapping[str, str] | None = None,
) -> Path:
    """Path of a tar that `ctr images import` takes, built if these inputs have not been built before.

    `inputs` are the files and folders below `context` that the build may see; they and nothing else are hashed and
    copied. `reference` is the image's name, `arguments` its build arguments. Raises `HarnessError` with the end of
    buildah's output.
    """
    arguments = arguments or {}
    files = sorted(file for name in inputs for file in _files(context / name))
    parts: list[str | bytes] = [reference, containerfile.read_bytes(), *(f"{k}={v}" for k, v in arguments.items())]
    for file in files:
        parts += [str(file.relative_to(context)), str(file.stat().st_mode & 0o111), file.read_bytes()]

    def make(folder: Path) -> None:
        programs.debian()
        with cache.step(f"building the image {reference}"):
            for file in files:
                place = folder / "context" / file.relative_to(context)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, place)
            _bud(reference, containerfile, folder / "context", arguments)
            shutil.rmtree(folder / "context")
            _buildah("push", "--quiet", reference, f"docker-archive:{folder / 'image.tar'}:{reference}")

    return cache.entry(f"image-{_plain(reference)}", cache.key(*parts), make, keep=2) / "image.tar"


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise HarnessError(f"an input of the image is not there: {place}")
    return [p for p in place.rglob("*") if p.is_file() and not SKIPPED.intersection(p.relative_to(place).parts)]


def _plain(reference: str) -> str:
    return reference.split(":")[0].removeprefix("localhost/").replace("/", "-")


def _known(reference: str) -> bool:
    return subprocess.run([*_store(), "inspect", reference], check=False, capture_output=True).returncode == 0


def _bud(reference: str, containerfile: Path, context: Path, arguments: Mapping[str, str]) -> None:
    settings = cache.root() / "buildah" / "pip.conf"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(_pip_settings())
    volumes = ["--volume", f"{settings}:/etc/pip.conf:ro"]
    if Path("/etc/ssl/certs").is_dir():
        volumes += ["--volume", "/etc/ssl/certs:/etc/ssl/certs:ro"]
    flags = ["--isolation", "chroot", "--layers", "--pull=never", *volumes]
    flags += [f"--build-arg={name}={value}" for name, value in arguments.items()]
    _buildah("bud", *flags, "--tag", reference, "--file", str(containerfile), str(context))


def _pip_settings() -> str:
    """How pip reaches its index here, for the builds: the index, its certificate and its patience."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    lines = ["[global]"]
    for line in listed.stdout.splitlines():
        name, _, value = line.partition("=")
        key = name.split(".")[-1]
        if name.startswith(("global.", ":env:.")) and key in ("index-url", "cert", "default-timeout", "timeout"):
            lines.append(f"{key.removeprefix('default-')} = {value.strip(chr(39))}")
    return "\n".join(dict.fromkeys(lines)) + "\n"


def _store() -> list[str]:
    store = cache.root() / "buildah"
    return ["buildah", "--storage-driver", "overlay", "--root", str(store / "root"), "--runroot", str(store / "run")]


def _buildah(*arguments: str) -> None:
    _run(*_store(), *arguments)


def _run(*command: str) -> None:
    done = subprocess.run(
        ["nice", "-n", "3", *command],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "BUILDAH_FORMAT": "docker"},
    )
    if done.returncode:
        end = "\n".join(done.stdout.splitlines()[-12:])
        raise HarnessError(f"{command[0]} failed:\n{end}")
