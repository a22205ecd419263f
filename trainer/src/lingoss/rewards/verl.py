# SPDX-License-Identifier: MIT-0
"""The reward as veRL (0.9.1) calls it: `custom_reward_function.path` is this file, its `name` is `compute_score`.

veRL decodes completions without special tokens. That hides the channels of Harmony, so these settings are refused when
veRL loads the file; `think` and `plain` are read from their text. Nor does veRL say whether a completion stopped by
itself. Engine verl brings a reward manager that does, and gives the text as it was written (`extra_info`); without it
an unclosed reasoning block shows a cut, a cut within the answer does not show. The settings come from LINGOSS_REWARD
(see `settings`), the request is the row's ground truth as JSON (`label.request_to_json`).
"""

from collections.abc import Mapping
from typing import Any

from lingoss.errors import LingossError
from lingoss.rewards.label import request_from_json
from lingoss.rewards.safe import attempt, numbers, verdict
from lingoss.rewards.settings import Settings, from_environment
from lingoss.transcript import parse


def check(settings: Settings) -> Settings:
    """The settings themselves, when veRL can be used with them.

    Raises:
        LingossError: the format cannot be read without its special tokens.
    """
    if settings.format == "harmony":
        raise LingossError(
            "veRL hands the reward texts without special tokens, which hides the channels of Harmony: "
            "use engine trl or openrlhf, or a model with format think or plain"
        )
    return settings


def _settings() -> Settings:
    return check(from_environment())


if __name__ != "lingoss.rewards.verl":  # loaded by its path, so by veRL: fail now, not at the first reward
    _settings()


def compute_score(
    data_source: Any = None, solution_str: Any = None, ground_truth: Any = None, extra_info: Any = None, **_: Any
) -> dict[str, float]:
    """`{"score": reward, "acc": right or not, ...}` with the same keys for every sample, as veRL needs.

    Never raises: veRL would end the run.
    """
    settings = attempt(_settings)
    if isinstance(settings, Exception):
        found = verdict(settings, settings)
    else:
        told = extra_info if isinstance(extra_info, Mapping) else {}
        text, reason = told.get("text", solution_str), told.get("finish_reason")
        given = (text, settings.format, reason if reason in ("stop", "length") else None)
        found = verdict(attempt(parse, *given), attempt(request_from_json, ground_truth), settings.rules)
    shown = numbers(found)
    return {"score": found.reward, "acc": shown["correct"], **shown}
