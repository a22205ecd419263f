# SPDX-License-Identifier: MIT-0
"""Where the programs of an image keep their caches, by their own rules, and whether they can be written."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cache:
    """One folder that a program writes; `variable` moves it, and `module` is the package that uses it, if one."""

    name: str
    variable: str
    folder: Path
    module: str


def folders(environment: Mapping[str, str] = os.environ) -> list[Cache]:
    """The caches in force. Sources: huggingface_hub's constants, Triton's knobs, vLLM's envs, torch's cpp_builder."""
    home = Path(environment.get("HOME") or os.path.expanduser("~"))
    general = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    scratch = Path(tempfile.gettempdir())

    def at(variable: str, default: Path) -> Path:
        return Path(environment.get(variable) or default)

    return [
        Cache("scratch", "TMPDIR", scratch, ""),
        Cache("lingoss", "LINGOSS_CACHE", at("LINGOSS_CACHE", general / "lingoss"), ""),
        Cache("Hugging Face", "HF_HOME", at("HF_HOME", general / "huggingface"), "huggingface_hub"),
        Cache(
            "Triton",
            "TRITON_CACHE_DIR",
            at("TRITON_CACHE_DIR", at("TRITON_HOME", home) / ".triton" / "cache"),
            "triton",
        ),
        Cache(
            "torch.compile",
            "TORCHINDUCTOR_CACHE_DIR",
            at("TORCHINDUCTOR_CACHE_DIR", scratch),
            "torch",
        ),
        Cache("vLLM", "VLLM_CACHE_ROOT", at("VLLM_CACHE_ROOT", general / "vllm"), "vllm"),
    ]


def refusal(folder: Path) -> str:
    """Why no file can be made in `folder`, or an empty string. What is missing of it counts as makeable, and is not made."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        return f"{there} is no folder"
    try:
        with tempfile.TemporaryFile(dir=there) as probe:
            probe.write(b"lingoss")
            probe.flush()
    except OSError as error:
        return f"{error.strerror or error} in {there}"
    return ""
