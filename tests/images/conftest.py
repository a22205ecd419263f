# SPDX-License-Identifier: MIT-0
"""Makes images/*.py importable, which `make` runs as programs, and the marker of what builds images."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "images"))


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "full: builds images or whole environments: minutes and gigabytes")
