# SPDX-License-Identifier: MIT-0
"""From a step's verdicts to its row in metrics.jsonl, and to the advantages that the groups give.

Keys of `step_row`; a share or mean that nothing belongs to is left out rather than made up:

    reward  reward/<language>               mean reward of all completions; of those asked to answer in that language
    term/<name>  term/<name>/<language>     mean of each term of the reward; their sum is the reward
    informative  informative/<language>     share of groups whose rewards, those of compared completions, are not all equal
    informative_groups  groups              how many are not, of how many
    strict  strict/<language>               share that keeps form and languages (as in the report)
    correct  correct/<language>             share with the right answer, of prompts with a known one
    unparsed                                share without a readable answer, of the same prompts
    format_ok  truncated  abstained         shares: form kept; cut off; the detector would not name a language
    repetition  prompt_copy                 mean shares of repeated and of copied word groups
    tokens  tokens/max                      mean and largest length of a completion in tokens
    length/reasoning  length/answer         mean characters
    without_gold  without_gold/reward  without_gold/strict    share of completions without a known answer; theirs alone
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lingoss.evaluate.informative import is_informative
from lingoss.evaluate.metrics import METRICS
from lingoss.score import Request, Verdict

_SHARES = ("strict", "correct", "unparsed", "format_ok", "repetition", "prompt_copy")
_BY_LANGUAGE = ("strict", "correct")
EPSILON = 1e-4
"""What TRL adds to a group's standard deviation (trl 1.16, `GRPOTrainer._generate_and_score_completions`)."""


def step_row(
    verdicts: Sequence[Verdict],
    requests: Sequence[Request],
    group_size: int,
    finish: Sequence[str],
    *,
    format: str,
    tokens: Sequence[int],
    mask_truncated: bool = True,
) -> dict[str, float]:
    """The step's figures, keyed as above. The completions of one prompt are `group_size` neighbours.

    `finish`: the engine's reason for each ("length": cut off). `format` is the chat format: a plain text has no
    reasoning to judge. `tokens`: lengths of the completions. `mask_truncated`: what was cut off is left out of the loss
    and so of the comparison within its group; it counts in every other figure.

    Raises:
        ValueError: the sequences differ in length, or are no whole groups.
    """
    count = len(verdicts)
    if not count or {len(requests), len(finish), len(tokens)} != {count} or count % group_size:
        sizes = f"{count} verdicts, {len(requests)} requests, {len(finish)} reasons, {len(tokens)} token counts"
        raise ValueError(f"not whole groups of {group_size}: {sizes}")
    facts = [_facts(*each) for each in zip(verdicts, finish, tokens, (format,) * count, strict=True)]
    groups = np.array([verdict.reward for verdict in verdicts]).reshape(-1, group_size)
    compared = [not (mask_truncated and reason == "length") for reason in finish]
    informative = is_informative(groups, np.array(compared).reshape(-1, group_size))
    languages = [request.answer_language for request in requests]
    heads = languages[::group_size]
    row = {"reward": float(groups.mean()), "informative": float(informative.mean())}
    row |= {"informative_groups": float(informative.sum()), "groups": float(len(groups))}
    row |= _means(facts, lambda index: True)
    row["tokens/max"] = float(max(tokens))
    for code in sorted(set(languages)):
        mine = _means(facts, lambda index, code=code: languages[index] == code)  # type: ignore[misc]
        kept = ("reward", *_BY_LANGUAGE, *(key for key in mine if key.startswith("term/")))
        row |= {f"{key}/{code}": mine[key] for key in kept if key in mine}
        row[f"informative/{code}"] = float(informative[[head == code for head in heads]].mean())
    open_ended = [request.gold is None for request in requests]
    row["without_gold"] = sum(open_ended) / count
    if any(open_ended):
        alone = _means(facts, lambda index: open_ended[index])
        row |= {f"without_gold/{key}": alone[key] for key in ("reward", "strict")}
    return row


def advantages(rewards: Sequence[float], group_size: int, scaled: bool = True) -> list[float]:
    """Each reward against the mean of its group, divided by the group's deviation if `scaled` (loss dapo, not dr_grpo).

    As TRL's `scale_rewards` "group" and "none"; a group whose rewards are all equal gets zeros.
    """
    table = np.asarray(rewards, dtype=float).reshape(-1, group_size)
    centred = table - table.mean(axis=1, keepdims=True)
    if scaled:
        centred = centred / (table.std(axis=1, ddof=1, keepdims=True) + EPSILON)
    return [float(value) for value in centred.ravel()]


def _facts(verdict: Verdict, finish: str, tokens: int, format: str) -> Mapping[str, float]:
    """What one completion adds to each mean; NaN where it does not count."""
    row: dict[str, Any] = {"format": format, "verdict": verdict.to_dict()}
    lengths = verdict.lengths
    return {
        "reward": verdict.reward,
        **{f"term/{name}": value for name, value in verdict.terms.items()},
        **{name: METRICS[name].of(row) for name in _SHARES},
        "truncated": float(verdict.truncated or finish == "length"),
        "abstained": float(verdict.reasoning.abstained or verdict.answer.abstained),
        "tokens": float(tokens),
        "length/reasoning": float(lengths.get("reasoning_characters", 0)),
        "length/answer": float(lengths.get("answer_characters", 0)),
    }


def _means(facts: Sequence[Mapping[str, float]], chosen: Callable[[int], bool]) -> dict[str, float]:
    """Mean of every key over the chosen completions that count for it."""
    picked = [fact for index, fact in enumerate(facts) if chosen(index)]
    found = {key: [fact[key] for fact in picked if not np.isnan(fact[key])] for key in picked[0]}
    return {key: float(np.mean(values)) for key, values in found.items() if values}
