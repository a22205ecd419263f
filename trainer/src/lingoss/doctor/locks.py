# SPDX-License-Identifier: MIT-0
"""Lock files of pip (name==version, hashes) against what is installed."""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from packaging.markers import InvalidMarker, Marker
from packaging.version import InvalidVersion, Version

from lingoss.errors import LingossError

_PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==(?P<version>[^\s;\\]+)(?:\s*;(?P<marker>[^\\]*))?")


def baked() -> list[Path]:
    """The lock files that an image keeps for the doctor, in share/lingoss of its environment."""
    return sorted((Path(sys.prefix) / "share" / "lingoss").glob("*.lock"))


def pins(files: list[Path]) -> dict[str, str]:
    """Canonical name -> version of every line that applies to this Python and system.

    Raises LingossError on a file that cannot be read or holds no pin.
    """
    found: dict[str, str] = {}
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise LingossError(
                f"lock {file} cannot be read ({error}): give the requirements.lock of the image"
            ) from error
        rows = list(_rows(text, file))
        if not rows:
            raise LingossError(f"lock {file} holds no line like name==1.2.3: give the requirements.lock of the image")
        found.update((name, pinned) for name, pinned, applies in rows if applies)
    return found


def _rows(text: str, file: Path) -> Iterator[tuple[str, str, bool]]:
    for line in text.splitlines():
        match = _PIN.match(line)
        if not match:
            continue
        name = re.sub(r"[-_.]+", "-", match["name"]).lower()
        marker = (match["marker"] or "").split("#")[0].strip()
        try:
            applies = not marker or Marker(marker).evaluate()
        except InvalidMarker as error:
            raise LingossError(f"lock {file}: {name} has a marker that cannot be read: {marker}") from error
        yield name, match["version"], applies


def differences(pinned: dict[str, str]) -> Iterator[str]:
    """A phrase for each package that is missing or has another version. A local part (`+cpu`) counts as no difference."""
    for name, wanted in pinned.items():
        try:
            installed = version(name)
        except PackageNotFoundError:
            yield f"{name} {wanted} is missing"
            continue
        try:
            same = Version(installed).public == Version(wanted).public
        except InvalidVersion:
            same = installed == wanted
        if not same:
            yield f"{name} is {installed}, locked {wanted}"
