# SPDX-License-Identifier: MIT-0
"""What a run is decided by before a model is loaded: SFT run, base, gate, prompts, lengths, sizes. For run and plan."""

import importlib.util
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lingoss import runs
from lingoss.checkpoints import CheckpointSize, base_shapes, lora_checkpoint_size, tensor_shapes
from lingoss.checkpoints.adapter import WEIGHTS
from lingoss.checkpoints.tensors import Shapes
from lingoss.config import GrpoConfig
from lingoss.errors import LingossError
from lingoss.evaluate.last_gate import GateResult, last_gate, objection
from lingoss.evaluate.sampling import completion_length, differences, grpo_sampling
from lingoss.grpo.encoded import Encoded
from lingoss.grpo.prompts import Plan, training_plan
from lingoss.prepare import Prepared, base_of
from lingoss.sft.setting import context_length, require_disk, require_tracker


@dataclass(frozen=True)
class Setting:
    """A run's inputs: the SFT run whose adapter is trained on, the base that it belongs to, and the prompts."""

    config: GrpoConfig
    sft: runs.RunInfo
    base: Prepared
    prompts: Plan
    gate: GateResult | None

    @property
    def steps(self) -> int:
        """Planned optimizer steps."""
        return self.config.max_steps

    @property
    def completions(self) -> int:
        """Completions that one optimizer step trains on."""
        return self.config.prompts_per_step * self.config.num_generations

    @cached_property
    def completion_length(self) -> int:
        """Longest completion in tokens."""
        return self.config.max_completion_length or completion_length(self.sft)

    @property
    def adapter(self) -> Path:
        """The SFT run's adapter: the policy that training starts from, and its reference."""
        return self.sft.path / "adapter"

    @cached_property
    def adapter_shapes(self) -> Shapes:
        """Tensors of the adapter: those that SFT trained. Raises LingossError for a damaged file."""
        try:
            return tensor_shapes(self.adapter / WEIGHTS)
        except LingossError as error:
            raise LingossError(f"the adapter of {self.sft.name} is damaged ({error}): take another SFT run") from None

    @cached_property
    def size(self) -> CheckpointSize:
        """Bytes on disk."""
        return lora_checkpoint_size(self.adapter_shapes)

    @cached_property
    def has_experts(self) -> bool:
        """Whether the base is a mixture of experts."""
        return any(".experts." in name for name in base_shapes(self.base.model))

    @property
    def kept_checkpoints(self) -> int:
        """Most checkpoints on disk at once: `keep`, but at least the newest and the one being written; and the best by
        validation if it is older."""
        return max(self.config.checkpoint.keep, 2) + 1

    def is_candidate(self, step: int) -> bool:
        """Whether the checkpoint of this step may become the adapter. Decided by fields that name the run alone, so
        that a stop or another cadence of saves changes nothing."""
        return step == self.steps or (step > 0 and step % self.config.validation.steps == 0)

    def encode(self, tokenizer: Any) -> Encoded:
        """All prompts as token ids; with them the longest sequence, `model_length`. Raises LingossError."""
        prompts, config = [*self.prompts.rows, *self.prompts.validation], self.config
        context = context_length(self.base.model)
        return Encoded(prompts, config.format, tokenizer, self.completion_length, context)

    def folder(self) -> runs.RunFolder:
        """The run's folder, not opened yet."""
        config = self.config
        return runs.open_run(
            config.root, "grpo", config, (self.sft.name,), self.prompts.digest, lock_wait=config.lock_wait
        )

    def require_start(self) -> None:
        """Refuse what could not work or would not be worth it, before anything is loaded.

        Raises:
            LingossError: several processes, a missing package, or a gate that is not viable (unless `gate.force`).
        """
        _require_one_process()
        require_tracker(self.config.logging.report_to)
        mode = self.config.rollout.mode
        if mode != "transformers" and importlib.util.find_spec("vllm") is None:
            raise LingossError(
                f"rollout.mode={mode} needs vLLM, which is not installed: use the trainer image, or set "
                "rollout.mode=transformers (slow, and right for a CPU)"
            )
        if mode == "colocate" and (several := self.config.rollout.tensor_parallel) > 1:
            raise LingossError(
                f"rollout.tensor_parallel={several} with rollout.mode=colocate needs as many training processes, and "
                "engine trl trains in one for now: set rollout.tensor_parallel=1, or rollout.mode=server"
            )
        self.require_gate()

    def require_gate(self) -> None:
        """Raise LingossError where the gate does not say that GRPO is worth it, unless `gate.force`."""
        against = objection(self.sft.name, self.gate)
        if against and not self.config.gate.force:
            command = "" if self.gate else f" (lingoss evaluate --set root={self.config.root})"
            raise LingossError(f"{against}{command}, or set gate.force=true")

    @property
    def gate_differences(self) -> list[str]:
        """In what the gate was measured otherwise than this run samples: so far it says little about the run."""
        return differences(self.gate.sampling, grpo_sampling(self.config, self.completion_length)) if self.gate else []

    def require_disk(self, path: Path) -> None:
        """Refuse to start what would run out of disk. Raises LingossError."""
        require_disk(path, self.size.needed(self.kept_checkpoints), self.config.checkpoint)


def resolve(config: GrpoConfig) -> Setting:
    """Find the SFT run, its base, its gate and the prompts.

    Raises:
        LingossError: there is no finished SFT run, it speaks another format, or the prompts have faults.
    """
    sft = runs.find_parent(config.root, "grpo", config.parent)
    for name in ("format", "template"):
        if (trained := (sft.config or {}).get(name)) != getattr(config, name):
            raise LingossError(
                f"{sft.name} was trained with {name}={trained}, not {getattr(config, name)}: set {name}={trained}"
            )
    if not (sft.path / "adapter" / WEIGHTS).is_file():
        raise LingossError(f"{sft.name} holds no adapter/{WEIGHTS}, which GRPO goes on with: take another SFT run")
    base = base_of(config.root, sft)
    return Setting(config, sft, base, training_plan(config, sft), last_gate(config.root, sft.name))


def _require_one_process() -> None:
    """Rows are dealt to one process only: ranks would each draw the whole step, and write the same files."""
    size = os.environ.get("WORLD_SIZE", "1")
    if size.isdigit() and int(size) > 1:
        raise LingossError(
            f"engine trl trains in one process for now, and {size} were started: set grpo.processesPerNode=1 and "
            "grpo.nodes=1"
        )
