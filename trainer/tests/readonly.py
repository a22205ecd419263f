# SPDX-License-Identifier: MIT-0
"""A root that is read-only but for `evaluations/`, as evaluation pods see it, for a command in a process of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

# The package as a torch-free image has it: what it lacks cannot be found.
NO_TORCH = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "peft", "trl", "accelerate", "safetensors", "tokenizers"):
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, Refuse())
"""

_MOUNT = """set -e
mount --bind "$1" "$1"
mount --bind "$1/evaluations" "$1/evaluations"
mount -o remount,bind,ro "$1"
shift
exec "$@"
"""


def by_mount(root: Path) -> list[str] | None:
    """What to put before a command so that it runs with `root` mounted read-only; None where this is not allowed."""
    asked = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    if not shutil.which("unshare") or subprocess.run([*asked, "true"], capture_output=True, check=False).returncode:
        return None
    return [*asked, "sh", "-c", _MOUNT, "sh", str(root)]


def by_permission(root: Path) -> list[str]:
    """The same with folders that may not be written; root first has to give up the right to do so nevertheless."""
    for folder in (root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())):
        if "evaluations" not in folder.relative_to(root).parts:
            folder.chmod(0o555)
    return ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []


def prefix(root: Path) -> list[str]:
    """What to put before a command so that `root` is read-only for it but for `evaluations/`, the real way if allowed."""
    return by_mount(root) or by_permission(root)


def start(before: list[str], code: str, log: Path) -> subprocess.Popen[str]:
    """Python code in a process of its own; its standard error goes to `log`."""
    with log.open("w") as errors:
        return subprocess.Popen([*before, sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=errors, text=True)
