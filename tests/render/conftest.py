# SPDX-License-Identifier: MIT-0
"""Makes the modules beside the tests and the generator of the values files importable."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "charts"))

import charts


@pytest.fixture(scope="session", autouse=True)
def _tidy_renders() -> None:
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":
        charts.forget()
