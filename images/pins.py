# SPDX-License-Identifier: MIT-0
"""Pin what docker-bake.hcl names but this repository cannot hold: base images by digest, EFA's archive by sha256.

Part of `make lock-images`. Only what a tool prints here and now is written: a registry asked by docker buildx or skopeo,
and the archive itself. What cannot be reached stays as it is, which is told.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

FILE = Path(__file__).parent / "docker-bake.hcl"
BASES = ("PYTHON_BASE", "CUDA_BASE", "CUDA_COMPILER")
ARCHIVE = "https://efa-installer.amazonaws.com/aws-efa-installer-{}.tar.gz"
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def pinned(
    text: str, digest_of: Callable[[str], str | None], sum_of: Callable[[str], str | None]
) -> tuple[str, list[str]]:
    """The bake file with digests, and a line for each variable. `digest_of` asks for a tag, `sum_of` for EFA's version."""
    told = []
    for name in BASES:
        tag = _default(text, name).partition("@")[0]
        digest = digest_of(tag)
        if digest is not None and not DIGEST.fullmatch(digest):
            raise ValueError(f"{tag}: {digest!r} is no digest")
        if digest:
            text = _with_default(text, name, f"{tag}@{digest}")
        told.append(f"{name}: {tag} is {digest or 'not reachable from here; left as it is'}")
    version = _default(text, "EFA")
    found = sum_of(version)
    if found:
        text = _with_default(text, "EFA_SHA256", found)
    told.append(f"EFA_SHA256: version {version} is {found or 'not reachable from here; left as it is'}")
    return text, told


def registry_digest(tag: str) -> str | None:
    """The digest of a tag as its registry has it now; None when no tool can ask, or none gets an answer."""
    for command in (
        ["docker", "buildx", "imagetools", "inspect", tag, "--format", "{{.Manifest.Digest}}"],
        ["skopeo", "inspect", "--format", "{{.Digest}}", f"docker://{tag}"],
    ):
        if shutil.which(command[0]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0 and DIGEST.fullmatch(done.stdout.strip()):
                return done.stdout.strip()
    return None


def archive_sum(version: str) -> str | None:
    """sha256 of EFA's installer, which is downloaded for it (0.2 GB); None when it cannot be had."""
    digest = hashlib.sha256()
    try:
        with urllib.request.urlopen(ARCHIVE.format(version), timeout=20) as answer:
            while block := answer.read(1 << 20):
                digest.update(block)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return None
    return digest.hexdigest()


def _default(text: str, name: str) -> str:
    found = re.search(rf'^variable "{name}" {{ default = "([^"]*)"', text, re.MULTILINE)
    if found is None:
        raise ValueError(f"docker-bake.hcl has no variable {name}")
    return found[1]


def _with_default(text: str, name: str, value: str) -> str:
    return re.sub(rf'(?m)^(variable "{name}" {{ default = ")[^"]*', rf"\g<1>{value}", text)


if __name__ == "__main__":
    made, lines = pinned(FILE.read_text(encoding="utf-8"), registry_digest, archive_sum)
    FILE.write_text(made, encoding="utf-8")
    print(*lines, sep="\n", file=sys.stderr)
