# SPDX-License-Identifier: MIT-0
"""Renders are kept in the session's temporary folder, which the workers of pytest-xdist share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "charts"))

import charts


@pytest.fixture(scope="session", autouse=True)
def _shared_renders(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    base = tmp_path_factory.getbasetemp()
    charts.CACHE = (base if worker_id == "master" else base.parent) / "renders"
