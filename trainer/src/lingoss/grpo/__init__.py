# SPDX-License-Identifier: MIT-0
"""Stage grpo: reinforcement learning on the score that evaluation uses. Killed anywhere, the same command goes on.

Reading order: `stage` (run), `setting` (inputs and the gate), `prompts` (which prompt when), `rollout` (how completions
are drawn), `draws` (drawn, scored, drawn again), `trainer` (TRL's loop with these), `groups` and `safety` (what a step
tells and when to stop), `choose` (which checkpoint becomes the adapter), `planning` (the same without training).
Engines openrlhf and verl train with their own commands on a Ray cluster: `ray/` is what they share, docs/engines.md
says which is for what.
"""

from lingoss.config import GrpoConfig
from lingoss.errors import LingossError
from lingoss.grpo.planning import plan
from lingoss.runs import RunInfo

__all__ = ["PARTS", "plan", "run"]

PARTS = {"rollout": "serve the base to a run with rollout.mode=server by vLLM, until it is stopped"}


def run(config: GrpoConfig, part: str | None = None) -> RunInfo | None:
    """Train with the configured engine, or do only a `part` (of PARTS), which has no run of its own.

    Raises:
        LingossError: as `stage.run`; an engine that is not there; an unknown part.
    """
    if config.engine != "trl":
        if part is not None:
            raise LingossError(f"--part {part}: engine {config.engine} has no parts, Ray deals out its work")
        from lingoss.grpo.engines import engine
        from lingoss.grpo.ray.stage import run as train_on_ray

        return train_on_ray(config, engine(config.engine))
    if part == "rollout":
        from lingoss.grpo.serving import serve_rollout

        serve_rollout(config)
        return None
    if part is not None:
        raise LingossError(f"--part {part}: stage grpo has the part rollout")
    from lingoss.grpo.stage import run as train

    return train(config)
