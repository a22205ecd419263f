# SPDX-License-Identifier: MIT-0
"""The machine as the checks see it: its files, its variables, and the packages of this environment."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lingoss.doctor.cause import causes
from lingoss.doctor.check import Check


@dataclass(frozen=True)
class Machine:
    """`top` is the folder that stands for /; tests make another one."""

    top: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def path(self, absolute: str) -> Path:
        """The file of this machine that is known by that absolute path."""
        return self.top / absolute.lstrip("/")

    def text(self, absolute: str) -> str:
        """Its content, or an empty string where there is no such file."""
        try:
            return self.path(absolute).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def has_gpu(self) -> bool:
        """Is there a device file of an NVIDIA GPU?"""
        return any(re.fullmatch(r"nvidia\d+", entry.name) for entry in self.path("/dev").glob("nvidia*"))


def package(name: str) -> str:
    """The version of an installed package, or an empty string."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def found(name: str, cause: str, evidence: str) -> Check:
    """A failed check with the remedy of its cause."""
    return Check(name, "failed", evidence, causes()[cause].remedy, cause)


def warned(name: str, cause: str, evidence: str) -> Check:
    """A check that points to a cause without proof that it does harm here."""
    return Check(name, "warning", evidence, causes()[cause].remedy, cause)
