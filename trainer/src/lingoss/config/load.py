# SPDX-License-Identifier: MIT-0
"""From a YAML file and `--set a.b=c` to a frozen config, and back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, overload

from pydantic import ValidationError

from lingoss.config import yaml_text
from lingoss.config.choices import nearest
from lingoss.config.common import StageConfig
from lingoss.config.evaluate import EvaluateConfig
from lingoss.config.explain import explain, shown
from lingoss.config.grpo import GrpoConfig
from lingoss.config.prepare import PrepareConfig
from lingoss.config.serve import ServeConfig
from lingoss.config.sft import SftConfig
from lingoss.errors import LingossError

STAGES: dict[str, type[StageConfig]] = {
    "prepare": PrepareConfig,
    "sft": SftConfig,
    "grpo": GrpoConfig,
    "evaluate": EvaluateConfig,
    "serve": ServeConfig,
}


@overload
def load(stage: Literal["prepare"], path: Path | None = None, sets: Sequence[str] = ()) -> PrepareConfig: ...
@overload
def load(stage: Literal["sft"], path: Path | None = None, sets: Sequence[str] = ()) -> SftConfig: ...
@overload
def load(stage: Literal["grpo"], path: Path | None = None, sets: Sequence[str] = ()) -> GrpoConfig: ...
@overload
def load(stage: Literal["evaluate"], path: Path | None = None, sets: Sequence[str] = ()) -> EvaluateConfig: ...
@overload
def load(stage: Literal["serve"], path: Path | None = None, sets: Sequence[str] = ()) -> ServeConfig: ...
@overload
def load(stage: str, path: Path | None = None, sets: Sequence[str] = ()) -> StageConfig: ...
def load(stage: str, path: Path | None = None, sets: Sequence[str] = ()) -> StageConfig:
    """The config of a stage: defaults, then the YAML file, then each `key.path=value` of `sets` in order.

    Returns the stage's config type (`SftConfig` for "sft", ...). Raises LingossError, in one line, with file and line,
    key, value, what is allowed and the nearest key.
    """
    config_type = stage_type(stage)
    values: dict[str, Any] = {}
    lines: yaml_text.Lines = {}
    source = "--set" if sets else "the defaults"
    if path is not None:
        file = shown(str(path), width=400)
        source = f"{file} with --set" if sets else file
        values, lines = _read_file(path, file)
    origins = {key: f"{file} line {line}" for key, line in lines.items()}
    for setting in sets:
        _apply(setting, values, origins)
    named = values.get("stage", stage)
    if named != stage:
        where = origins.get(("stage",), source)
        advice = f"run `lingoss {named}` with it, or" if isinstance(named, str) and named in STAGES else "please"
        raise LingossError(
            f"{where}: this config is for stage {shown(named)}, not {stage}: {advice} give {stage} its own file"
        )
    try:
        return config_type.model_validate(values)
    except ValidationError as error:
        raise LingossError(explain(error, stage, origins, source, STAGES)) from None


def dump(config: StageConfig) -> str:
    """YAML that `load` reads back to an equal config. Every field is written, defaults too."""
    return yaml_text.write(config.resolved())


def identity(config: StageConfig) -> dict[str, Any]:
    """The fields of `config` that change the result, as nested JSON values; the run id is a digest of them."""
    return config.identity()


def stage_type(stage: str) -> type[StageConfig]:
    """The config type of a stage. Raises LingossError on an unknown name."""
    if stage not in STAGES:
        close = nearest(stage, tuple(STAGES))
        raise LingossError(
            f"unknown stage {shown(stage)}: stages are {', '.join(STAGES)}" + (f"; nearest: {close}" if close else "")
        )
    return STAGES[stage]


def _read_file(path: Path, source: str) -> tuple[dict[str, Any], yaml_text.Lines]:
    try:
        with path.open("rb") as file:
            data = file.read(yaml_text.MAX_BYTES + 1)
    except IsADirectoryError:
        raise LingossError(f"{source}: is a folder: name the YAML file in it") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise LingossError(f"{source}: cannot be read ({reason}): check the path given to --config") from None
    values, lines = yaml_text.read(yaml_text.decode(data, source), source)
    if values is None:
        raise LingossError(f"{source}: holds no settings: write {{}} if every default is meant, or leave --config out")
    if not isinstance(values, dict):
        what = "a list" if isinstance(values, list) else f"only {shown(values)}"
        raise LingossError(f"{source}: must be a mapping (lines of `key: value`), but it is {what}")
    return values, lines


def _apply(setting: str, values: dict[str, Any], origins: dict[tuple[str, ...], str]) -> None:
    """Put one `key.path=value` into `values`, in place, and note where the key came from."""
    name, equals, text = setting.partition("=")
    origin = f"--set {shown(setting)}"
    keys = tuple(part.strip() for part in name.split("."))
    if not equals or not all(keys):
        raise LingossError(f"{origin}: write --set key.path=value, for example --set lora.rank=16")
    value, _ = yaml_text.read(yaml_text.decode(text.encode("utf-8", "surrogatepass"), origin), origin)
    section = values
    for depth, key in enumerate(keys[:-1], start=1):
        inner = section.get(key)
        if inner is not None and not isinstance(inner, dict):
            what = "a list; write the whole list, as in [a, b]" if isinstance(inner, list) else f"set to {shown(inner)}"
            raise LingossError(f"{origin}: {shown('.'.join(keys[:depth]))} has no keys below it, it is {what}")
        # A copy per level, so that a mapping that came from the file is never shared with another setting.
        section[key] = dict(inner or {})
        section = section[key]
    section[keys[-1]] = value
    for known in [known for known in origins if known[: len(keys)] == keys]:
        del origins[known]
    origins[keys] = origin
