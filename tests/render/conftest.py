# SPDX-License-Identifier: MIT-0
"""Makes the modules beside the tests and the generator of the values files importable."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "charts"))

import charts


@pytest.fixture(scope="session", autouse=True)
def _tidy_renders(worker_id: str) -> None:
    if worker_id in ("master", "gw0"):
        charts.forget()
