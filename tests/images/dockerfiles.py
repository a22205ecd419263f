# SPDX-License-Identifier: MIT-0
"""Dockerfiles as stages and instructions, as far as the tests ask."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "images"
FILES = sorted(IMAGES.glob("*/Dockerfile"))


@dataclass(frozen=True)
class Stage:
    """One stage: its name, what it starts from, and its instructions as (word, rest) with lines joined."""

    name: str
    start: str
    instructions: list[tuple[str, str]]

    def all(self, word: str) -> list[str]:
        """What follows each instruction of this kind."""
        return [rest for found, rest in self.instructions if found == word]


def stages(file: Path) -> dict[str, Stage]:
    """The stages of a Dockerfile by name."""
    found: dict[str, Stage] = {}
    for word, rest in instructions(file):
        if word == "FROM":
            start, _, name = rest.partition(" AS ")
            current = found[name] = Stage(name, start, [])
        elif found:
            current.instructions.append((word, rest))
    return found


def instructions(file: Path) -> list[tuple[str, str]]:
    """Every instruction, comments left out, continued lines joined by one space."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line.strip()]


def defaults(file: Path) -> dict[str, str]:
    """Arguments with their defaults, of the whole file."""
    found: dict[str, str] = {}
    for word, rest in instructions(file):
        if word == "ARG":
            for pair in rest.split():
                name, _, value = pair.partition("=")
                found.setdefault(name, value)
    return found
