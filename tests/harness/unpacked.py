# SPDX-License-Identifier: MIT-0
"""Large images as containerd holds them: imported and unpacked once, then hard-linked into the folder of each cluster.

The import of an image with torch takes minutes and twice its size on disk. What containerd keeps of an image (blobs and
committed snapshots) never changes, so clusters can share the files; only its two databases are copied.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import cache, images, programs
from harness.api import wait
from harness.cache import HarnessError
from harness.images import Recipe

_BLOBS = Path("io.containerd.content.v1.content", "blobs", "sha256")
_NAMESPACE = "k8s.io"  # of the kubelet's images
_CONFIGURATION = 'version = 2\nroot = "{0}/root"\nstate = "{0}/state"\ndisabled_plugins = [{1}]\n'
_NOT_NEEDED = ("grpc.v1.cri", "snapshotter.v1.btrfs", "snapshotter.v1.native", "snapshotter.v1.devmapper")


def root(recipe: Recipe) -> Path:
    """A root folder of containerd that holds this image, built and imported if it has not been before.

    The folder of the recipe before, if there is one, is where it starts: then only the layers that changed are moved.
    Raises `HarnessError` with the end of what buildah or containerd said.
    """
    name = f"unpacked-{images.plain(recipe.reference)}"

    def make(folder: Path) -> None:
        programs.debian()
        images.build(recipe)
        made = folder / "root"
        before = _newest(cache.root() / name)
        with cache.step(f"unpacking the image {recipe.reference}"):
            if before:
                clone(before / "root", made)
            else:
                (made / _BLOBS).mkdir(parents=True)
            layout = _pushed(recipe.reference, folder, made / _BLOBS)
            with _containerd(folder):
                _import(layout, folder, made / _BLOBS)
                # Its garbage collection: the layers of the image before, which this name no longer means.
                _ctr(folder, "images", "tag", recipe.reference, "localhost/collected:1")
                _ctr(folder, "images", "remove", "--sync", "localhost/collected:1")
            for left in ("layout", "state", "containerd.log", "config.toml"):
                place = folder / left
                shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)

    return cache.entry(name, images.key(recipe), make, keep=1) / "root"


def clone(source: Path, target: Path) -> None:
    """Make `target` a copy of a root folder in seconds: hard links to all but containerd's databases."""
    done = subprocess.run(["cp", "-al", str(source), str(target)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise HarnessError(f"{target} cannot share the files of {source}: {done.stderr.strip().splitlines()[-1]}")
    for database in source.glob("*/*.db"):
        place = target / database.relative_to(source)
        place.unlink()
        shutil.copy2(database, place)


def _newest(place: Path) -> Path | None:
    entries = [p for p in place.iterdir() if p.is_dir() and not p.name.startswith(".")] if place.is_dir() else []
    return max(entries, key=lambda p: p.stat().st_mtime, default=None)


def _pushed(reference: str, folder: Path, known: Path) -> Path:
    """The image as an OCI layout. What containerd has already is not written again: layers are not compressed, so their
    digests are those that buildah knows."""
    layout = folder / "layout"
    blobs = layout / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    for blob in known.iterdir():
        os.link(blob, blobs / blob.name)
    images.copy(reference, f"oci:{layout}:{reference}")
    index = json.loads((layout / "index.json").read_text())
    for manifest in index["manifests"]:  # as containerd, and so the kubelet, will call it
        manifest.setdefault("annotations", {})["io.containerd.image.name"] = reference
    (layout / "index.json").write_text(json.dumps(index))
    return layout


def _import(layout: Path, folder: Path, known: Path) -> None:
    """Hand containerd what it does not know of the layout, as a stream: no third copy on disk."""
    names = {blob.name for blob in known.iterdir()}
    command = [*_client(folder), "images", "import", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        with tarfile.open(fileobj=running.stdin, mode="w|", format=tarfile.PAX_FORMAT) as stream:
            for file in [
                layout / "oci-layout",
                layout / "index.json",
                *sorted((layout / "blobs" / "sha256").iterdir()),
            ]:
                if file.name not in names:
                    stream.add(file, str(file.relative_to(layout)))
        running.stdin.close()
        said = running.stdout.read().decode(errors="replace")
    if running.returncode:
        raise HarnessError("containerd cannot take the image:\n" + "\n".join(said.splitlines()[-5:]))


@contextmanager
def _containerd(folder: Path) -> Iterator[None]:
    """A containerd without the kubelet's part, on `folder/root`; its mounts end with it."""
    disabled = ", ".join(f'"io.containerd.{name}"' for name in _NOT_NEEDED)
    (folder / "config.toml").write_text(_CONFIGURATION.format(folder, disabled))
    command = ["unshare", "--mount", "--propagation", "private", "containerd", "--config", str(folder / "config.toml")]
    with (folder / "containerd.log").open("wb") as log:
        running = subprocess.Popen([*command, "--address", str(_socket(folder))], stdout=log, stderr=log)
    try:

        def answers() -> bool:
            if running.poll() is not None:
                raise HarnessError(f"containerd ended: {(folder / 'containerd.log').read_text().splitlines()[-1]}")
            version = [*_client(folder), "version"]
            return subprocess.run(version, capture_output=True, check=False).returncode == 0

        wait("containerd to answer", 30, answers)
        yield
    finally:
        running.terminate()
        running.wait(30)


def _socket(folder: Path) -> Path:
    return folder / "state" / "socket"


def _client(folder: Path) -> list[str]:
    return ["ctr", "--address", str(_socket(folder)), "--namespace", _NAMESPACE]


def _ctr(folder: Path, *arguments: str) -> None:
    done = subprocess.run([*_client(folder), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise HarnessError(f"ctr {' '.join(arguments)}: {done.stderr.strip()}")
