# SPDX-License-Identifier: MIT-0
"""One warm server, one prepared root and one undisturbed run for the session."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from elastic.training import Run, new_run, undisturbed
from elastic.warm import Server

# Ranks share two cores; more threads would wait for each other at every barrier. Read by torch at its import.
os.environ["OMP_NUM_THREADS"] = "1"

_spec = importlib.util.spec_from_file_location(
    "trainer_conftest", Path(__file__).parents[2] / "trainer" / "tests" / "conftest.py"
)
assert _spec is not None
assert _spec.loader is not None
_trainer = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_trainer)
tiny_llama = _trainer.tiny_llama

STEPS, MANY_STEPS = 30, 100


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """What starts agents and ranks without importing torch each time."""
    server = Server(tmp_path_factory.mktemp("warm"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def environment(server: Server) -> dict[str, str]:
    """The environment of a pod: the parts of ours that programs need, and what the chart sets."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {
        **kept,
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(server.folder),
        "HYPERPOD_SIGNAL_COORDINATION": "distributed",
    }


@pytest.fixture(scope="session")
def prepared(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root in which prepare has brought a random Llama of 60,000 parameters."""
    root: Path = _trainer.prepared_root(tiny_llama, tmp_path_factory.mktemp("prepared"))
    return root


@pytest.fixture(scope="session")
def reference(
    server: Server, prepared: Path, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Run:
    """The run of `STEPS` steps that nobody disturbs, in one process."""
    return undisturbed(server, new_run(prepared, tmp_path_factory.mktemp("reference"), STEPS), alone(environment))


@pytest.fixture(scope="session")
def long_reference(
    server: Server, prepared: Path, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Run:
    """The same with `MANY_STEPS` steps."""
    return undisturbed(server, new_run(prepared, tmp_path_factory.mktemp("long"), MANY_STEPS), alone(environment))


def alone(environment: dict[str, str]) -> dict[str, str]:
    """The environment of a process that no elastic agent starts."""
    return {name: value for name, value in environment.items() if name != "HYPERPOD_SIGNAL_COORDINATION"}
