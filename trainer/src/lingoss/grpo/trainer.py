# SPDX-License-Identifier: MIT-0
"""TRL's GRPOTrainer with these things replaced: which prompts a step sees, how completions are drawn and scored, how
they are cut into micro-batches, the correction of the rollout's probabilities, and how a checkpoint is written.

Imports torch, so it is imported only by a run that trains.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader
from transformers import set_seed
from trl import GRPOTrainer

from lingoss.config import GrpoConfig
from lingoss.data import Prompt
from lingoss.grpo import figures
from lingoss.grpo.batches import Batch, has_signal, micro_batches
from lingoss.grpo.draws import Clock, Drawer, Drawn, Group, Score, advantages
from lingoss.grpo.encoded import Encoded
from lingoss.grpo.prompts import Plan
from lingoss.grpo.rollout import Rollout, TransformersRollout, VllmRollout, rollout_seed
from lingoss.grpo.weights import base_kept
from lingoss.sft.saving import Saving
from lingoss.sft.trainer import PlannedBatches, project_learned_positions_only


class Trainer(Saving, GRPOTrainer):  # type: ignore[misc]
    """One run. `score` judges completions, `state` is what a checkpoint carries beside TRL's own files (a file name and
    a function that gives its text), `probe` compares engine and trainer after the first weight sync."""

    def __init__(
        self,
        *args: Any,
        config: GrpoConfig,
        plan: Plan,
        encoded: Encoded,
        stop_ids: Sequence[int],
        score: Score,
        state: tuple[str, Callable[[], str]],
        probe: Callable[["Trainer"], None] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, reward_funcs=score_reward, rollout_func=self._roll_out, **kwargs)
        project_learned_positions_only()
        # TRL asks these whether a completion was cut; the format has stop tokens that the model's files do not name.
        self.eos_token_ids = list(stop_ids)
        self._config, self._plan, self._score, self._state_file, self._probe = config, plan, score, state, probe
        self._clock = Clock()
        self._begun = 0.0
        self._drawn: Drawn | None = None
        self._advantages: list[float] = []
        self._loss_inputs: Batch | None = None
        self._differences: list[torch.Tensor] = []
        self._drawer = Drawer(
            self._engine(encoded, stop_ids), score, self._clock, leave_out_cut=config.mask_truncated_completions
        )

    def _engine(self, encoded: Encoded, stop_ids: Sequence[int]) -> Rollout:
        if self.use_vllm:
            return VllmRollout(self.vllm_generation, encoded, stop_ids)
        config = self._config
        return TransformersRollout(
            self.model_wrapped,
            encoded,
            stop_ids,
            self.max_completion_length,
            config.sampling.temperature,
            config.seed,
            config.rollout.batch_tokens,
        )

    # Which prompts a step sees

    def get_train_dataloader(self) -> Any:
        """The whole run as one pass: for each step its prompts, and one more entry for each further micro-batch.

        Completions are drawn at the first; what the others hold is not looked at. What was trained is skipped by the
        base class, which counts entries.
        """
        group, further = self.num_generations, [[0]] * (self.args.steps_per_generation - 1)
        steps: list[list[int]] = []
        for n in range(1, self.args.max_steps + 1):
            steps += [[index for index in self._plan.step(n) for _ in range(group)], *further]
        batches = PlannedBatches(steps, len(steps[0]))
        return self.accelerator.prepare(DataLoader(self.train_dataset, batch_sampler=batches, collate_fn=list))

    # How completions are drawn and scored

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Batch:
        step = self.state.global_step + 1
        self._begun = time.perf_counter()
        # Whatever draws random numbers in this process (vLLM's sampler, colocated) draws the step's own, also when the
        # run was resumed.
        set_seed(rollout_seed(self._config.seed, step, "", 0) % 2**32)
        self._sync()
        batch: Batch = super()._generate_and_score_completions(inputs)
        assert self._drawn is not None
        scaled = self.scale_rewards != "none"
        self._advantages = [value for group in self._drawn.kept for value in advantages(group, scaled)]
        batch["advantages"] = torch.tensor(self._advantages, device=batch["advantages"].device)
        return batch

    def _roll_out(self, prompts: list[str], trainer: Any) -> dict[str, list[Any]]:
        """TRL's `rollout_func`: the step's completions, with the rewards that they earned."""
        config = self._config
        rounds = config.dynamic_rounds if config.dynamic_sampling else 0
        step = self.state.global_step + 1
        self._drawn = self._drawer.step(self._plan, step, config.num_generations, rounds)
        rows = self._drawn.rows
        return {
            "prompt_ids": [one.completion.prompt_ids for one in rows],
            "completion_ids": [one.completion.ids for one in rows],
            "logprobs": [one.completion.logprobs for one in rows],
            "reward": [one.verdict.reward for one in rows],
        }

    def _sync(self) -> None:
        """Give vLLM the policy as it is now, and check once that it took it."""
        self._last_loaded_step: int
        if not self.use_vllm or self._last_loaded_step == self.state.global_step:
            return
        first = self._last_loaded_step < 0
        with self._clock("sync"), base_kept(self.model):
            self.vllm_generation.sync_weights()
        self._last_loaded_step = self.state.global_step
        if first and self._probe is not None:
            with self._clock("probe"):
                self._probe(self)

    def validate(self, prompts: Sequence[Prompt]) -> list[Group]:
        """One greedy completion of each prompt, scored; the time is no part of a step's."""
        self._sync()
        drawer = replace(self._drawer, clock=Clock())
        return drawer.groups(prompts, self.state.global_step, 1, greedy=True)

    # How the step is trained

    def _prepare_inputs(self, generation_batch: Any) -> Batch:
        """The micro-batch to train on now, out of a new draw when the step begins."""
        parts = self.args.steps_per_generation
        place = self._step % parts
        if place == 0:
            self._buffered_inputs = micro_batches(self._generate_and_score_completions(generation_batch), parts)
        return self._buffered_inputs[place]  # type: ignore[no-any-return]

    def _compute_loss(self, model: Any, inputs: Batch) -> torch.Tensor:
        """As TRL's. A micro-batch that could not move any weight costs nothing."""
        if not self.beta and not bool(has_signal(inputs).any()):
            return sum(weight.sum() * 0 for weight in model.parameters() if weight.requires_grad)  # type: ignore[return-value]
        self._loss_inputs = dict(inputs)
        try:
            loss: torch.Tensor = super()._compute_loss(model, self._loss_inputs)
        finally:
            self._loss_inputs = None
        return loss

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        """As TRL's. Within the loss, the advantages are corrected for what the rollout engine thought instead.

        The policy that drew is the one that is trained, so the trainer's log-probabilities are at hand here and are
        not computed beforehand. TRL takes advantages token by token, and multiplies them where it would multiply the
        truncated ratio (trl 1.16, `_compute_loss`).
        """
        found = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        if (inputs := self._loss_inputs) is not None:
            # A token that the engine could not tell is not corrected.
            difference = torch.nan_to_num(found[0].detach() - inputs["sampling_per_token_logps"], nan=0.0).float()
            self._differences.append(difference[inputs["completion_mask"].bool()])
            correction = self._config.importance_sampling
            if correction.mode == "token_truncate":
                ratio = difference.exp().clamp(max=correction.threshold)
                inputs["advantages"] = inputs["advantages"].unsqueeze(1) * ratio
        return found

    # What a step tells

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """TRL's figures and ours, for callbacks and trackers; `row` keeps those that metrics.jsonl gets."""
        self.row: dict[str, Any] = {}
        if "loss" in logs and self._drawn is not None:
            total = time.perf_counter() - self._begun
            differences, self._differences = self._differences, []
            self.row = {
                **figures.of_training(logs, self._metrics["train"]),
                **figures.of_groups(self._drawn, self._config),
                **figures.of_ratios(differences),
                **figures.of_time(self._drawn, self._clock.take(), total),
            }
            self._score.took(total)
            logs.update(self.row)
        super().log(logs, start_time)

    def shown(self, count: int) -> list[dict[str, Any]]:
        """Completions of the step just trained: see `figures.shown`."""
        assert self._drawn is not None
        step, format = self.state.global_step, self._config.format
        return figures.shown(self._drawn, self._advantages, count, step, format, self._tokenizer)

    def _fill(self, folder: Path) -> None:
        super()._fill(folder)
        name, text = self._state_file
        (folder / name).write_text(text(), encoding="utf-8")


def score_reward(prompts: Any, completions: Any, completion_ids: Any, reward: list[float], **_: Any) -> list[float]:
    """TRL's reward function: the completions were scored when they were drawn."""
    return reward
