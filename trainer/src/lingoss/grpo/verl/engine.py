# SPDX-License-Identifier: MIT-0
"""veRL as an engine of ours: what it starts from, how it is called, what it leaves."""

import functools
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from lingoss.checkpoints import base_shapes, check_tensors, lora_checkpoint_size
from lingoss.checkpoints.adapter import CONFIG, WEIGHTS
from lingoss.errors import LingossError
from lingoss.grpo.ray.disk import Room
from lingoss.grpo.ray.engine import Engine, Row
from lingoss.grpo.ray.merge import merged
from lingoss.grpo.ray.prompts import all_steps
from lingoss.grpo.ray.result import check_model
from lingoss.grpo.verl import checkpoints, collect, command, data
from lingoss.grpo.verl.log import MetricsFile
from lingoss.models import load_tokenizer
from lingoss.rewards import verl as reward
from lingoss.runs.files import folder_size, writing

_PER_RANK = 100_000  # random states and small tensors, for each process
_STATE = 12  # bytes of a parameter that is trained: float32, and Adam's two moments


class Verl(Engine):
    """FSDP2 and vLLM in turns on all GPUs; the SFT adapter, or all weights."""

    name: ClassVar[str] = "verl"
    packages: ClassVar[tuple[str, ...]] = ("verl", "tensordict", "vllm")

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        # veRL writes its file of metrics anew at each start.
        started = len(list(self.work.glob("metrics-*.jsonl"))) if self.work.is_dir() else 0
        self._metrics = self.work / f"metrics-{started}.jsonl"
        self._reader = MetricsFile(self._metrics)

    @functools.cached_property
    def room(self) -> Room:
        """With an adapter: its checkpoints, each with the tokenizer. Else as much as all weights take."""
        small = _PER_RANK * self.layout.gpus + _without_weights(self.setting.base.model)
        kept = command.kept(self.config)
        if self.config.trains_adapter:
            size = lora_checkpoint_size(self.setting.adapter_shapes)
            return Room(2 * small, size.checkpoint + small, kept, size.adapter)
        parameters = sum(math.prod(shape) for shape in base_shapes(self.setting.base.model).values())
        return Room(2 * parameters + 2 * small, _STATE * parameters + small, kept, 2 * parameters + small)

    @property
    def remarks(self) -> list[str]:
        """See `Engine.remarks`."""
        told = ["engine verl: the policy of the last step is the result, no checkpoint is chosen by validation"]
        if self.config.mask_truncated_completions:
            told.append("engine verl has no mask_truncated_completions: cut completions count with reward 0")
        if self.layout.rollout_nodes:
            told.append(
                f"engine verl trains and rolls out in turns on all {self.layout.gpus} GPUs, those of "
                "kuberay.rollout too"
            )
        return told

    @property
    def paths(self) -> command.Paths:
        """Where veRL reads and writes."""
        return command.Paths(
            model=self.setting.base.model.absolute() if self.config.trains_adapter else self.work / "merged",
            tokenizer=self.work / "tokenizer",
            adapter=self.setting.adapter.absolute() if self.config.trains_adapter else None,
            prompts=self.work / "prompts.parquet",
            validation=self.work / "validation.parquet",
            reward=Path(reward.__file__),
            manager=Path(__file__).with_name("reward_manager.py"),
            checkpoints=self.work / "verl",
        )

    def require(self) -> None:
        """See `Engine.require`."""
        command.require(self.config, self.layout)
        self.require_no_code(self.setting.base.model)
        if self.config.trains_adapter and any(".experts." in name for name in self.setting.adapter_shapes):
            raise LingossError(
                f"{self.setting.sft.name} trained experts, whose weights engine verl leaves out of what it sends to "
                "vLLM: take an SFT run with lora.experts=false, or engine=trl"
            )

    def repair(self) -> int:
        """See `Engine.repair`."""
        keep = self.config.checkpoint.keep
        return checkpoints.repair(self.paths.checkpoints, self.layout.gpus, self.setting.steps, keep)

    def prepare(self) -> None:
        """Write prompts and tokenizer; merge the SFT adapter into its base where all weights are trained."""
        with writing(self.work):
            self.work.mkdir(parents=True, exist_ok=True)
        if not self.config.trains_adapter:
            self.require_no_code(merged(self.setting, self.paths.model))
        plan, format = self.setting.prompts, self.config.format
        data.write_tokenizer(self.setting.base.model, self.paths.tokenizer, self.config.template)
        data.write_parquet(self.paths.prompts, all_steps(plan, self.setting.steps), format)
        data.write_parquet(self.paths.validation, plan.validation, format)

    def command_line(self) -> list[str]:
        """See `Engine.command_line`."""
        completion = self.setting.completion_length
        lengths = (self._longest - completion, completion)
        return command.command(self.config, self.layout, self.paths, lengths, self._adapter)

    def variables(self) -> dict[str, str]:
        """See `Engine.variables`."""
        return {**super().variables(), "VERL_FILE_LOGGER_PATH": str(self._metrics)}

    def steps(self, line: str) -> Iterable[Row]:
        """See `Engine.steps`: from veRL's own file, and not from its log."""
        return self._reader.rows() if not line else ()

    def prune(self) -> None:
        """See `Engine.prune`. What veRL has half deleted goes; its own callback keeps the newest whole."""
        checkpoints.rotate(self.paths.checkpoints, command.kept(self.config))

    def collect(self) -> None:
        """Put the last checkpoint's shards together."""
        last = [one for one in checkpoints.saved(self.paths.checkpoints) if one.problem is None]
        if not last or last[-1].step != self.setting.steps:
            raise LingossError(
                f"veRL ended without a whole checkpoint of step {self.setting.steps} in {self.paths.checkpoints}: "
                "start again, the run goes on from its last one"
            )
        shards = collect.read_shards(checkpoints.weights(last[-1]))
        if self.config.trains_adapter:
            target = self.run / "adapter"
            collect.write_adapter(target, shards, self.setting.adapter, self.setting.adapter_shapes)
            return
        partial = self.work / "model"
        collect.write_model(partial, shards, self.paths.model)
        check_model(partial, self.setting.base.model)
        partial.rename(self.run / "model")

    def check(self, path: Path) -> None:
        """See `Engine.check`."""
        if self.config.trains_adapter:
            check_tensors(path / "adapter" / WEIGHTS, self.setting.adapter_shapes)
        else:
            check_model(path / "model", self.setting.base.model)

    @functools.cached_property
    def _adapter(self) -> command.Adapter | None:
        if not self.config.trains_adapter:
            return None
        found = json.loads((self.setting.adapter / CONFIG).read_text(encoding="utf-8"))
        return command.Adapter(int(found["r"]), int(found["lora_alpha"]), sorted(found["target_modules"]))

    @functools.cached_property
    def _longest(self) -> int:
        return self.setting.encode(load_tokenizer(self.setting.base.model)).model_length


def _without_weights(model: Path) -> int:
    """Bytes of tokenizer and settings, which each checkpoint copies."""
    weights = sum(path.stat().st_size for path in model.glob("*.safetensors"))
    return folder_size(model) - weights
