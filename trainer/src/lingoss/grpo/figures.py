# SPDX-License-Identifier: MIT-0
"""What the trainer adds to a step's row in metrics.jsonl, beside the keys of `groups.step_row`:

loss  lr  grad_norm                     TRL's loss of the step, the learning rate, the gradient's norm before clipping
entropy                                 mean entropy in nats of the tokens trained on
kl                                      mean KL from the SFT policy in nats a token; only with beta above 0
kl_rollout                              KL between rollout and trainer in nats a token: 0 if the engine is exact
importance_ratio/mean /min /max         trainer's to rollout's probability of a token, before truncation
informative_trained                     informative groups among those trained on (more with dynamic sampling)
new_tokens                              tokens drawn in the step
seconds  seconds/rollout /reward /sync /train    time of the step, and its parts
tokens_per_s  rollout_tokens_per_s      tokens drawn, by the step's time and by the rollout's
peak_memory_gb                          the device's in the step; without one, the process's so far
validation/<key>  seconds/validation    on steps that are candidates: see `choose.record`; not part of `seconds`
"""

import resource
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch

from lingoss.config import GrpoConfig
from lingoss.evaluate.engine import completion_text
from lingoss.grpo.draws import Drawn, informative
from lingoss.grpo.groups import step_row

_TRL = {"loss": "loss", "learning_rate": "lr", "grad_norm": "grad_norm", "entropy": "entropy", "kl": "kl"}


def of_training(logs: Mapping[str, float], metrics: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """TRL's part: what it is about to log, and the micro-batches' values that it averages."""
    means = {name: sum(values) / len(values) for name, values in metrics.items() if name in _TRL and values}
    return {_TRL[name]: value for name, value in {**logs, **means}.items() if name in _TRL}


def of_groups(drawn: Drawn, config: GrpoConfig) -> dict[str, float]:
    """What was drawn, whether or not it was trained on."""
    every = drawn.every
    return {
        **step_row(
            [one.verdict for one in every],
            [one.completion.prompt.request() for one in every],
            len(drawn.all[0]),
            [one.completion.finish_reason for one in every],
            format=config.format,
            tokens=[len(one.completion.ids) for one in every],
            mask_truncated=config.mask_truncated_completions,
        ),
        "informative_trained": sum(map(informative, drawn.kept)),
    }


def of_time(drawn: Drawn, spent: Mapping[str, float], total: float) -> dict[str, float]:
    """Where the step's `total` seconds went; `spent` is what was clocked, the rest is training."""
    parts = {name: spent.get(name, 0.0) for name in ("rollout", "reward", "sync")}
    parts["train"] = total - sum(spent.values())
    tokens = sum(len(one.completion.ids) for one in drawn.every)
    return {
        **{f"seconds/{name}": round(value, 3) for name, value in parts.items()},
        "seconds": round(total, 3),
        "new_tokens": tokens,
        "tokens_per_s": round(tokens / total, 1),
        "rollout_tokens_per_s": round(tokens / max(parts["rollout"], 1e-9), 1),
        "peak_memory_gb": round(_peak_memory() / 1e9, 3),
    }


def of_ratios(differences: Sequence[torch.Tensor]) -> dict[str, float]:
    """How far the trainer's probabilities are from those that the rollout drew by, over the tokens trained on.

    `differences`: log-probabilities, trainer's less rollout's. KL(rollout || trainer) is estimated by the mean of
    r - 1 - log r, which is never negative (J. Schulman, "Approximating KL divergence", k3). Empty when nothing was
    trained on.
    """
    if not differences or not (log_ratio := torch.cat(list(differences))).numel():
        return {}
    ratio = log_ratio.exp()
    return {
        "importance_ratio/mean": float(ratio.mean()),
        "importance_ratio/min": float(ratio.min()),
        "importance_ratio/max": float(ratio.max()),
        "kl_rollout": float((ratio - 1 - log_ratio).mean()),
    }


def shown(
    drawn: Drawn, advantages: Sequence[float], count: int, step: int, format: str, tokenizer: Any
) -> list[dict[str, Any]]:
    """The first completion of each of the first `count` groups: rows that `lingoss score` reads.

    `advantages`: one for each of `drawn.rows`.
    """
    group, rows = len(drawn.kept[0]), []
    for place in range(0, min(count, len(drawn.kept)) * group, group):
        one = drawn.rows[place]
        completion, prompt = one.completion, one.completion.prompt
        rows.append(
            {
                "id": f"{step}:{prompt.id}:{completion.sample}",
                "step": step,
                "prompt_id": prompt.id,
                "item": prompt.item,
                "family": prompt.family,
                "sample": completion.sample,
                "format": format,
                "crossed": prompt.crossed,
                "request": asdict(prompt.request()),
                "text": completion_text(completion.ids, format, tokenizer),
                "finish_reason": completion.finish_reason,
                "new_tokens": len(completion.ids),
                "reward": one.verdict.reward,
                "advantage": advantages[place],
            }
        )
    return rows


def _peak_memory() -> int:
    """Bytes: the device's since the last call, or the process's so far on a CPU."""
    if torch.cuda.is_available():
        peak = torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        return int(peak)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
