# SPDX-License-Identifier: MIT-0
"""The reward as OpenRLHF (0.11.2) loads it from this file: `reward_func(queries, prompts, labels)`.

Give OpenRLHF the path of this file (`--reward.remote_url`) and LINGOSS_REWARD (see `settings`) to its Ray workers. It
calls with one sample at a time, in a thread: `queries` holds prompt and completion, special tokens included, `labels`
what the data set's label column holds, for us a request as JSON (`label.request_to_json`).
"""

from collections.abc import Sequence
from typing import Any

from lingoss.errors import LingossError
from lingoss.rewards.finish import from_text
from lingoss.rewards.label import request_from_json
from lingoss.rewards.safe import at, attempt, numbers, verdict
from lingoss.rewards.settings import Settings, from_environment
from lingoss.transcript import Transcript, parse

if __name__ != "lingoss.rewards.openrlhf":  # loaded by its path, so by OpenRLHF: fail now, not at the first reward
    from_environment()

_TAIL = 200  # characters; the end of a prompt by which it is found again


def reward_func(queries: Any, prompts: Any, labels: Any, **_: Any) -> dict[str, Any]:
    """`{"rewards": r, "scores": r, "extra_logs": {name: number}}` for one sample, lists of them for several.

    `scores` (0..1) is what OpenRLHF's dynamic filtering reads; our reward is in 0..1 already. Never raises: OpenRLHF
    would log the exception and train on without a reward.
    """
    settings = attempt(from_environment)
    count = len(queries) if isinstance(queries, Sequence) and not isinstance(queries, str) else 0
    found = []
    for row in range(count):
        given = (queries[row], at(prompts, row), at(labels, row))
        found.append(_verdict(settings, *given))
    rewards = [one.reward for one in found]
    shown = [numbers(one) for one in found]
    if count == 1:
        return {"rewards": rewards[0], "scores": rewards[0], "extra_logs": shown[0]}
    names = shown[0] if shown else ()
    logs = {name: [row[name] for row in shown] for name in names}
    return {"rewards": rewards, "scores": list(rewards), "extra_logs": logs}


def _verdict(settings: Settings | Exception, query: Any, prompt: Any, label: Any) -> Any:
    if isinstance(settings, Exception):
        return verdict(settings, settings)
    return verdict(attempt(_read, query, prompt, settings.format), attempt(request_from_json, label), settings.rules)


def _read(query: str, prompt: str, format: str) -> Transcript:
    text = completion(query, prompt)
    return parse(text, format, from_text(text, format))


def completion(query: str, prompt: str) -> str:
    """What follows the prompt in a query.

    A prompt that was too long for the engine lost its beginning, and a tokenizer may decode its first token with
    another space before it: then its end is looked for, the last of its occurrences *in the prompt*, because a model
    may repeat it.

    Raises:
        LingossError: the prompt is not in the query.
    """
    if query.startswith(prompt):
        return query[len(prompt) :]
    tail = prompt[-_TAIL:]
    end = 0
    for _ in range(max(1, prompt.count(tail))):
        at = query.find(tail, end)
        if at < 0:
            break
        end = at + len(tail)
    if not tail or not end:
        raise LingossError("the query does not hold its prompt, so the completion cannot be told from it")
    return query[end:]
