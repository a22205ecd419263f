# SPDX-License-Identifier: MIT-0
"""What an engine on Ray is: checks, inputs, one command, how its log reads, and how its result becomes ours."""

import importlib.util
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from lingoss.config import GrpoConfig
from lingoss.errors import LingossError
from lingoss.grpo.ray.disk import Room
from lingoss.grpo.ray.layout import Layout
from lingoss.grpo.setting import Setting
from lingoss.rewards import VARIABLE, Settings
from lingoss.runs.files import read_json
from lingoss.score import Rules

_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"  # Ray's own name; what it holds is merged with the framework's ray.init
_WORKERS = {
    # Whatever a library would fetch lies on the volume; these are read by workers that see no config of ours.
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
}

Row = tuple[int, dict[str, float]]
"""A step that was finished and its figures; those of its validation, `validation/…`, may come after them."""


class Engine(ABC):
    """One framework for one run. `run` is the run's folder; nothing is written before `prepare`."""

    name: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]

    def __init__(self, setting: Setting, layout: Layout, run: Path) -> None:
        self.setting, self.layout, self.run = setting, layout, run.absolute()

    @property
    def config(self) -> GrpoConfig:
        """The run's config."""
        return self.setting.config

    @property
    def work(self) -> Path:
        """Where everything lies that the run does not leave behind: inputs, checkpoints, what becomes the result."""
        return self.run / "checkpoints"

    @property
    @abstractmethod
    def room(self) -> Room:
        """Bytes on the disk."""

    @property
    @abstractmethod
    def remarks(self) -> list[str]:
        """In what this engine does otherwise than the config says of TRL; told in the plan and at the start."""

    @abstractmethod
    def require(self) -> None:
        """Refuse a config or a layout that cannot work. Raises LingossError."""

    @abstractmethod
    def repair(self) -> int:
        """Make the checkpoints such that the framework resumes from the newest whole one; its step, 0 for none.

        Raises:
            LingossError: the newest is of another cluster or of a later step than the run has.
        """

    @abstractmethod
    def prepare(self) -> None:
        """Write the inputs: prompts, and what the framework starts from. Raises LingossError."""

    @abstractmethod
    def command_line(self) -> list[str]:
        """The command line that trains."""

    @abstractmethod
    def steps(self, line: str) -> Iterable[Row]:
        """Steps that a line of the log tells of; asked with an empty line about once a second."""

    def prune(self) -> None:  # noqa: B027 (an engine may have nothing to prune)
        """Delete what the framework leaves behind and nobody needs. Called while it runs."""

    @abstractmethod
    def collect(self) -> None:
        """Turn what was trained into `adapter/` or `model/` of the run folder. Raises LingossError."""

    @abstractmethod
    def check(self, path: Path) -> None:
        """Check the result's tensors. Raises LingossError."""

    def require_packages(self) -> None:
        """Raise LingossError when the framework is not installed here."""
        if missing := [name for name in ("ray", *self.packages) if importlib.util.find_spec(name) is None]:
            image = "openrlhf" if self.name == "openrlhf" else "trainer"
            raise LingossError(
                f"engine {self.name} needs {', '.join(missing)}, not installed here: use the {image} image, or "
                "engine=trl"
            )

    def require_no_code(self, model: Path) -> None:
        """Raise LingossError when a model folder brings Python, unless `trust_remote_code`.

        OpenRLHF 0.11.2 loads every model with trust_remote_code=True, which is without effect on a folder without code.
        """
        if self.config.trust_remote_code:
            return
        found = sorted(path.name for path in model.glob("*.py"))
        for path in sorted(model.glob("*.json")):
            if path.name.endswith("config.json") and "auto_map" in (read_json(path)[0] or {}):
                found.append(f"{path.name} (auto_map)")
        if found:
            raise LingossError(
                f"the model in {model} brings code of its own ({', '.join(found)}), which would run with all rights of "
                "the training: read it, then set trust_remote_code=true"
            )

    @property
    def reward(self) -> Settings:
        """What the reward needs to know in Ray's workers."""
        weights: Any = self.config.reward
        return Settings(self.config.format, Rules(**weights))

    def variables(self) -> dict[str, str]:
        """Variables of all Ray workers."""
        return {VARIABLE: self.reward.to_json(), **_WORKERS}

    def environment(self) -> dict[str, str]:
        """Variables of the command itself, among them those for the workers in the form that Ray reads."""
        variables = self.variables()
        return {
            **variables,
            _JOB: job_config(os.environ.get(_JOB), variables),
            "RAY_DEDUP_LOGS": "0",  # else lines of steps that look alike may be left out
            "PYTHONUNBUFFERED": "1",
        }


def job_config(given: str | None, variables: Mapping[str, str]) -> str:
    """Ray's job configuration with these variables for all workers; what a job submission has put there stays.

    Raises:
        LingossError: what is there is no JSON object.
    """
    try:
        found = json.loads(given) if given else {}
        environment = found.setdefault("runtime_env", {}).setdefault("env_vars", {})
        environment.update(variables)
    except (ValueError, AttributeError) as error:
        raise LingossError(f"{_JOB} cannot be read ({error}): was this started by a Ray job?") from error
    return json.dumps(found, sort_keys=True)


def python(*arguments: str) -> list[str]:
    """A command of this environment's Python."""
    return [sys.executable, *arguments]
