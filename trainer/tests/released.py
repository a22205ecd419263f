# SPDX-License-Identifier: MIT-0
"""The released OpenRLHF and veRL, as far as they can be called without a GPU and without what they depend on.

Both import ray, deepspeed or flash-attn almost everywhere. So a module is loaded with its packages as bare folders
(their `__init__` is not run), and what is not installed is replaced by an object that stands for anything. What is
called then is the released code itself, to the last line.
"""

import argparse
import ast
import contextlib
import fcntl
import functools
import hashlib
import importlib
import importlib.machinery
import json
import os
import subprocess
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from lingoss.prepare import cache_folder

LOCK = Path(__file__).with_suffix(".lock")


@functools.cache
def folder() -> Path:
    """Where the packages lie; installed on the first call on a machine (3 s, from the package index)."""
    if sys.version_info >= (3, 13):
        pytest.skip("openrlhf 0.11.2 has wheels for Python 3.11 and 3.12 alone")
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    place = Path(cache_folder()) / f"released-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]}-{version}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / "released.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test workers come at once
        if not (place / "ready").exists():
            uv = Path(sys.executable).with_name("uv")
            command = [uv, "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--python", sys.executable]
            subprocess.run([*command, "--target", place, "--requirement", LOCK], check=True)
            (place / "ready").touch()
    return place


@contextlib.contextmanager
def importable() -> Iterator[Path]:
    """The packages on the path, and nothing of them left behind."""
    place, before = folder(), set(sys.modules)
    with mock.patch.object(sys, "path", [*sys.path, str(place)]):
        try:
            yield place
        finally:
            for name in set(sys.modules) - before:
                if name.partition(".")[0] in (
                    "openrlhf",
                    "verl",
                    "ray",
                    "tensordict",
                    "vllm",
                    "deepspeed",
                    "flash_attn",
                ):
                    del sys.modules[name]


class Anything(types.ModuleType):
    """Stands for a package that is not installed: every attribute is another one of it, and calling it decorates."""

    __path__: list[str] = []  # noqa: RUF012 (what makes it a package to the import system)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = Anything(f"{self.__name__}.{name}")
        setattr(self, name, made)
        return made

    def __call__(self, *given: Any, **named: Any) -> Any:
        return given[0] if len(given) == 1 and callable(given[0]) and not named else self

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__

    def __getitem__(self, item: Any) -> Any:
        return self


class _Absent:
    """Finds `Anything` for the named packages and all below them."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = set(names)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] in self._names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        return None

    def create_module(self, spec: Any) -> Any:
        return Anything(spec.name)

    def exec_module(self, module: Any) -> None:
        return None


@contextlib.contextmanager
def bare(packages: Sequence[str], absent: Sequence[str] = ()) -> Iterator[None]:
    """Inside `importable`: these packages without their `__init__`, and `Anything` for the absent ones."""
    place, finder = folder(), _Absent(absent)
    for name in packages:
        made = types.ModuleType(name)
        made.__path__ = [str(place.joinpath(*name.split(".")))]
        sys.modules[name] = made
    sys.meta_path.insert(0, finder)  # type: ignore[arg-type]
    try:
        yield
    finally:
        sys.meta_path.remove(finder)  # type: ignore[arg-type]


def openrlhf_arguments(command: Sequence[str]) -> Any:
    """The arguments as OpenRLHF's own parser and checks leave them for `train`.

    Raises:
        SystemExit: the parser refuses the command.
        AssertionError: a check of OpenRLHF does.
    """
    captured: list[Any] = []
    with importable(), bare(["openrlhf", "openrlhf.utils"]):
        words = list(command)[list(command).index("-m") + 2 :]
        with mock.patch.object(sys, "argv", ["train_ppo_ray", *words]):
            exec(_parser(), {"__name__": "__main__", "train": captured.append})
    return captured[0]


@functools.cache
def _parser() -> types.CodeType:
    source = (folder() / "openrlhf" / "cli" / "train_ppo_ray.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not _is_heavy(node)]
    return compile(tree, "train_ppo_ray.py", "exec")


def _is_heavy(node: ast.stmt) -> bool:
    """The function that trains, and imports of what is not in Python itself."""
    if isinstance(node, ast.FunctionDef):
        return node.name == "train"
    if isinstance(node, ast.Import | ast.ImportFrom):
        module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        return str(module).partition(".")[0] not in sys.stdlib_module_names
    return False


def method(path: str, owner: str | None, name: str, names: dict[str, Any]) -> Any:
    """One method of a released class, or with `owner` None a function of the module, as a function, with `names` for
    what its module imports."""
    exec(_function(path, owner, name), names)
    return names[name]


@functools.cache
def _function(path: str, owner: str | None, name: str) -> types.CodeType:
    body = ast.parse((folder() / path).read_text(encoding="utf-8")).body
    if owner is not None:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == owner)
    found = next(node for node in body if isinstance(node, ast.FunctionDef) and node.name == name)
    found.decorator_list = []
    return compile(ast.Module([found], []), path, "exec")


_COMPOSE = """
import json, sys
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
with initialize_config_dir(sys.argv[1], version_base=None):
    for overrides in json.load(sys.stdin):
        try:
            composed = compose("ppo_trainer", overrides=overrides)
            print(json.dumps(OmegaConf.to_container(composed, resolve=True)))
        except Exception as problem:
            print(json.dumps(f"{type(problem).__name__}: {problem}"))
"""


def verl_configs(lists: Sequence[Sequence[str]]) -> list[Any]:
    """What Hydra makes of veRL's own configuration with each list of overrides, everything resolved; a text where it
    refuses them.

    In a process of its own: Hydra wants an older antlr4 than math-verify has loaded here.
    """
    config = folder() / "verl" / "trainer" / "config"
    done = subprocess.run(
        [sys.executable, "-c", _COMPOSE, config],
        input=json.dumps([list(one) for one in lists]),
        env={**os.environ, "PYTHONPATH": str(folder())},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def arguments(**values: Any) -> argparse.Namespace:
    """Nested arguments as the frameworks carry them: `arguments(train={"seed": 1}).train.seed`."""
    return argparse.Namespace(
        **{name: arguments(**value) if isinstance(value, dict) else value for name, value in values.items()}
    )
