# SPDX-License-Identifier: MIT-0
"""What the reward needs to know in a process that a framework started: the chat format and the rules.

OpenRLHF and veRL import the reward by its path in Ray workers, which see neither our config nor our run folder. What
reaches every worker is the environment (Ray's `runtime_env: {env_vars: ...}`), so the settings travel there, as one
line of JSON in LINGOSS_REWARD: `{"format": "think", "rules": {"language": 0.6, ...}}`. They are the same for all rows,
so they do not belong into the label, whose content enters the data's digest.
"""

import functools
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from lingoss import languages
from lingoss.errors import LingossError
from lingoss.score import DEFAULT, Rules
from lingoss.transcript import chat_format

VARIABLE = "LINGOSS_REWARD"


@dataclass(frozen=True, slots=True)
class Settings:
    """The chat format of the completions and the rules of the reward."""

    format: str
    rules: Rules = DEFAULT

    def to_json(self) -> str:
        """The value of LINGOSS_REWARD: one line of ASCII."""
        return json.dumps({"format": self.format, "rules": asdict(self.rules)}, sort_keys=True)


@functools.cache
def read(text: str) -> Settings:
    """Settings from their JSON; rules that are left out keep their defaults.

    Raises:
        LingossError: no JSON object, an unknown key or format, or a value of the wrong type.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LingossError(f"{VARIABLE} is not valid JSON: {error}") from None
    if not isinstance(found, dict) or set(found) - {"format", "rules"} or not isinstance(found.get("format"), str):
        raise LingossError(f'{VARIABLE} must be an object {{"format": ..., "rules": {{...}}}}, found {text[:80]!r}')
    chat_format(found["format"])
    given = found.get("rules", {})
    if not isinstance(given, Mapping):
        raise LingossError(f"{VARIABLE}: rules must be an object, found {type(given).__name__}")
    return Settings(found["format"], Rules(**{name: _rule(name, value) for name, value in given.items()}))


def _rule(name: str, value: Any) -> Any:
    kinds = {field.name: field.type for field in fields(Rules)}
    if name not in kinds:
        raise LingossError(f"{VARIABLE}: {name!r} is no rule of the reward: known are {', '.join(kinds)}")
    if name == "languages":
        if not isinstance(value, list) or not all(isinstance(code, str) for code in value):
            raise LingossError(f"{VARIABLE}: languages must be a list of codes, found {value!r}")
        return tuple(languages.get(code).code for code in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LingossError(f"{VARIABLE}: {name} must be a number, found {value!r}")
    return value


def from_environment() -> Settings:
    """The settings of this process.

    Raises:
        LingossError: LINGOSS_REWARD is not set or cannot be read.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        raise LingossError(f"{VARIABLE} is not set: the engine must hand it to its workers (Ray: runtime_env.env_vars)")
    return read(text)
