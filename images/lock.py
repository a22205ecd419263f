# SPDX-License-Identifier: MIT-0
"""Resolve the images' locks again (`make lock-images`), or say which of them are stale.

Each is resolved from what it had before, so that nothing moves without a reason: a requirement that changed, or a version
that was withdrawn. `make lock-images` without one changes nothing.
"""

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = ROOT / ".venv" / "bin" / "uv"
PACKAGE = "trainer/pyproject.toml"
ANY = ("--universal", "--python-version", "3.11")
GPU = ("--python-version", "3.12", "--python-platform", "x86_64-unknown-linux-gnu")
PIN = re.compile(r"^([A-Za-z0-9][\w.-]*(?:\[[^\]]*\])?==[^\\\n]*?)\s*\\?$", re.MULTILINE)
HASH = re.compile(r"--hash=(\S+)")


class LockError(RuntimeError):
    """The requirements have no solution, or the index cannot be asked."""


@dataclass(frozen=True, slots=True)
class Lock:
    """One lock file and what it is resolved from; `within` is a lock whose versions it may not leave."""

    path: str
    title: str
    sources: tuple[str, ...]
    options: tuple[str, ...]
    within: str = ""


LOCKS = (
    Lock(
        "images/toolbox/train.lock",
        "Everything of the image toolbox-train: training, and serving by vLLM, on a CPU.",
        (PACKAGE, "images/toolbox/train.in"),
        (*ANY, "--override", "images/toolbox/overrides.txt", "--extra", "hub", "--extra", "train"),
    ),
    # Within train.lock, so that the layers of toolbox-train only add to those of the toolbox.
    Lock(
        "images/toolbox/requirements.lock",
        "Everything of the toolbox image, without torch.",
        (PACKAGE,),
        (*ANY, "--extra", "hub"),
        "images/toolbox/train.lock",
    ),
    Lock(
        "images/trainer/requirements.lock",
        "Everything of the trainer image, the one set for all that needs a GPU but OpenRLHF.",
        (PACKAGE, "images/trainer/requirements.in"),
        (*GPU, "--extra", "hub", "--extra", "train", "--extra", "hyperpod"),
    ),
    Lock(
        "images/openrlhf/requirements.lock",
        "Everything of the openrlhf image, with OpenRLHF's own pins.",
        (PACKAGE, "images/openrlhf/requirements.in"),
        (*GPU, "--extra", "hub"),
    ),
    Lock(
        "images/build.lock",
        "What builds our package, and what comes as source, for an image; never part of one.",
        ("images/build.in",),
        ANY,
        "trainer/requirements.lock",
    ),
)


def resolve(lock: Lock, root: Path = ROOT, uv: Path = UV) -> str:
    """The text that the lock should have, as near as can be to what it has. Raises LockError with uv's reason."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.lock"
        before = root / lock.path
        made.write_text(before.read_text(encoding="utf-8") if before.exists() else "", encoding="utf-8")
        command = [str(uv), "pip", "compile", "--quiet", "--no-header", "--generate-hashes", "--no-emit-index-url"]
        command += ["--no-annotate", *lock.options, *(["--constraints", lock.within] if lock.within else [])]
        done = subprocess.run(
            [*command, *lock.sources, "--output-file", str(made)], cwd=root, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LockError(f"{lock.path}: {' '.join(done.stderr.split())[:600]}")
        return f"# {lock.title} Made by `make lock-images`.\n{made.read_text(encoding='utf-8')}"


def stale(before: str, after: str) -> list[str]:
    """What resolving again would change: pins that are gone or new, and hashes that the index has no more.

    Hashes that are new are no change: projects add wheels to a release, and what was locked still installs.
    """
    old, new = set(PIN.findall(before)), set(PIN.findall(after))
    lost = set(HASH.findall(before)) - set(HASH.findall(after)) if old == new else set()
    return sorted(
        [f"{pin} would go" for pin in old - new]
        + [f"{pin} would come" for pin in new - old]
        + [f"{one} is withdrawn" for one in lost]
    )


def main() -> int:
    """Write all locks; 0 done, 1 a lock has no solution."""
    for lock in LOCKS:
        before = (ROOT / lock.path).read_text(encoding="utf-8") if (ROOT / lock.path).exists() else ""
        try:
            after = resolve(lock)
        except LockError as error:
            print(error, file=sys.stderr)
            return 1
        changes = stale(before, after)
        if changes:
            (ROOT / lock.path).write_text(after, encoding="utf-8")
        print(f"{lock.path}: {'; '.join(changes) if changes else 'as before'}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
