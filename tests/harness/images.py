# SPDX-License-Identifier: MIT-0
"""Container images without a container engine: built by buildah, kept as archives in the cache of tools."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness import cache, programs
from harness.cache import HarnessError
from harness.components import PAUSE_IMAGE

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = Path(__file__).parent / "images"
TOOLBOX = "localhost/lingoss-toolbox:test"
TOOLBOX_TRAIN = "localhost/lingoss-toolbox-train:test"
SUITE = "bookworm"
BASE_PACKAGES = "python3,python3-venv,ca-certificates"
# What a base image of a registry has not either; apt's lists and archives are the largest part.
BASE_REMOVED = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale", "var/log")
SKIPPED = {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".venv"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """What an image is made from. `inputs` are the files and folders below `context` that the build may see: they and
    nothing else are hashed and copied. `arguments` are the build's, `target` one of its stages (default: the last)."""

    reference: str
    containerfile: Path
    context: Path
    inputs: Sequence[str] = (".",)
    arguments: Mapping[str, str] = field(default_factory=dict)
    target: str = ""


def pause() -> Path:
    """Archive of the image that holds each pod's namespaces."""
    return archive(Recipe(PAUSE_IMAGE, FILES / "pause.Containerfile", programs.program("pause").parent, ("pause",)))


def toolbox(reference: str) -> Path:
    """Archive of `images/toolbox`, on the base of this machine."""
    return archive(_toolbox(reference, "toolbox"))


def toolbox_train(reference: str) -> Recipe:
    """The same with torch and vLLM for a CPU; with 5 GB it is for `unpacked.root` and not for an archive."""
    return _toolbox(reference, "toolbox-train")


def _toolbox(reference: str, target: str) -> Recipe:
    inputs = ("images/toolbox", "images/build.lock", "trainer/bootstrap.lock", "trainer/pyproject.toml", "trainer/src")
    dockerfile = REPOSITORY / "images" / "toolbox" / "Dockerfile"
    return Recipe(reference, dockerfile, REPOSITORY, inputs, {"BASE": base()}, target)


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
            _bud(Recipe(reference, FILES / "base.Containerfile", made), made)
    return reference


def archive(recipe: Recipe) -> Path:
    """Path of a tar that `ctr images import` takes, built if this has not been built before. Raises as `build`."""

    def make(folder: Path) -> None:
        build(recipe)
        buildah("push", "--quiet", recipe.reference, f"docker-archive:{folder / 'image.tar'}:{recipe.reference}")

    return cache.entry(f"image-{plain(recipe.reference)}", key(recipe), make, keep=2) / "image.tar"


def build(recipe: Recipe) -> None:
    """Build the image into buildah's store, from nothing but the recipe's inputs.

    Raises `HarnessError` with the end of buildah's output.
    """
    programs.debian()
    with cache.step(f"building the image {recipe.reference}"), tempfile.TemporaryDirectory() as folder:
        for file in _inputs(recipe):
            place = Path(folder) / file.relative_to(recipe.context)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, place)
        # One at a time: the containers of failed builds and the layers that no image's name leads to are removed, and
        # those of another build look the same. Before it too: buildah 1.28 mounts nothing from a stage that it has cached.
        with cache.lock(cache.root() / "buildah" / ".lock", "another process that builds an image"):
            _prune()
            _bud(recipe, Path(folder))
            _prune()


def _prune() -> None:
    buildah("rm", "--all")
    buildah("rmi", "--prune", "--force")


def key(recipe: Recipe) -> str:
    """12 hex digits that stand for all that the image is made from."""
    parts: list[str | bytes] = [recipe.reference, recipe.target, recipe.containerfile.read_bytes()]
    parts += [f"{name}={value}" for name, value in recipe.arguments.items()]
    for file in _inputs(recipe):
        parts += [str(file.relative_to(recipe.context)), str(file.stat().st_mode & 0o111), file.read_bytes()]
    return cache.key(*parts)


def _inputs(recipe: Recipe) -> list[Path]:
    return sorted(file for name in recipe.inputs for file in _files(recipe.context / name))


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise HarnessError(f"an input of the image is not there: {place}")
    return [p for p in place.rglob("*") if p.is_file() and not SKIPPED.intersection(p.relative_to(place).parts)]


def plain(reference: str) -> str:
    """The name in a reference, as a folder may be called."""
    return reference.split(":")[0].removeprefix("localhost/").replace("/", "-")


def _known(reference: str) -> bool:
    return subprocess.run([*_command(), "inspect", reference], check=False, capture_output=True).returncode == 0


def _bud(recipe: Recipe, context: Path) -> None:
    settings = cache.root() / "buildah" / "pip.conf"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(_pip_settings())
    volumes = ["--volume", f"{settings}:/etc/pip.conf:ro"]
    if Path("/etc/ssl/certs").is_dir():
        volumes += ["--volume", "/etc/ssl/certs:/etc/ssl/certs:ro"]
    flags = ["--isolation", "chroot", "--layers", "--pull=never", *volumes]
    flags += [f"--build-arg={name}={value}" for name, value in recipe.arguments.items()]
    flags += ["--target", recipe.target] if recipe.target else []
    buildah("bud", *flags, "--tag", recipe.reference, "--file", str(recipe.containerfile), str(context))


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


def _store() -> tuple[Path, Path]:
    """Buildah's folders: of images and layers, and of what runs."""
    return cache.root() / "buildah" / "root", cache.root() / "buildah" / "run"


def _command() -> list[str]:
    root, run = _store()
    return ["buildah", "--storage-driver", "overlay", "--root", str(root), "--runroot", str(run)]


def buildah(*arguments: str) -> None:
    """Run buildah on its store in the cache. Raises `HarnessError` with the end of its output."""
    _run(*_command(), *arguments)


def copy(reference: str, target: str) -> None:
    """Copy an image out of buildah's store without compressing its layers, which `buildah push` always does here."""
    root, run = _store()
    source = f"containers-storage:[overlay@{root}+{run}]{reference}"
    _run("skopeo", "copy", "--quiet", "--dest-oci-accept-uncompressed-layers", source, target)


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
