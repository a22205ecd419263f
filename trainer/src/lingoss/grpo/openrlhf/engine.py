# SPDX-License-Identifier: MIT-0
"""OpenRLHF as an engine of ours: what it starts from, how it is called, what it leaves."""

import functools
import json
import math
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from lingoss.checkpoints import base_shapes
from lingoss.data import Prompt, chat
from lingoss.grpo.openrlhf import checkpoints, command, log
from lingoss.grpo.ray.disk import Room
from lingoss.grpo.ray.engine import Engine, Row
from lingoss.grpo.ray.merge import merged
from lingoss.grpo.ray.prompts import all_steps
from lingoss.grpo.ray.result import check_model
from lingoss.models import load_tokenizer
from lingoss.rewards import openrlhf as reward
from lingoss.rewards import request_to_json
from lingoss.runs.files import read_json, write_text, writing

_BYTES = 2  # of a parameter in bfloat16
_SMALL = 100_000_000  # tokenizers and prompts


class OpenRlhf(Engine):
    """Full weights, ZeRO-3, vLLM on nodes of its own or in turns on the same GPUs."""

    name: ClassVar[str] = "openrlhf"
    packages: ClassVar[tuple[str, ...]] = ("openrlhf", "deepspeed", "vllm")

    @functools.cached_property
    def room(self) -> Room:
        """The merged model, the checkpoints, and the trained one."""
        parameters = sum(math.prod(shape) for shape in base_shapes(self.setting.base.model).values())
        one = checkpoints.checkpoint_bytes(parameters)
        merged_bytes = sum(path.stat().st_size for path in self.setting.base.model.glob("*.safetensors"))
        return Room(merged_bytes, one, command.kept(self.config), _BYTES * parameters + _SMALL)

    @property
    def remarks(self) -> list[str]:
        """See `Engine.remarks`."""
        told = [
            "engine openrlhf shuffles the prompts by a seed of its own: a step's languages are not balanced",
            "engine openrlhf: the policy of the last step is the result, no checkpoint is chosen by validation",
        ]
        if self.config.mask_truncated_completions:
            told.append("engine openrlhf has no mask_truncated_completions: cut completions count with reward 0")
        return told

    @property
    def paths(self) -> command.Paths:
        """Where OpenRLHF reads and writes."""
        return command.Paths(
            model=self.work / "merged",
            prompts=self.work / "prompts.jsonl",
            validation=self.work / "validation.jsonl",
            reward=Path(reward.__file__),
            checkpoints=self.work / "openrlhf",
            export=self.work / "export",
        )

    def require(self) -> None:
        """See `Engine.require`."""
        command.require(self.config, self.layout)
        self.require_no_code(self.setting.base.model)

    def repair(self) -> int:
        """See `Engine.repair`. What an earlier end of training half exported is written again."""
        shutil.rmtree(self.paths.export, ignore_errors=True)
        return checkpoints.repair(self.paths.checkpoints, self.layout.trainer_gpus, self.setting.steps)

    def prepare(self) -> None:
        """Merge the SFT adapter into its base and write the prompts."""
        with writing(self.work):
            self.work.mkdir(parents=True, exist_ok=True)
        self.require_no_code(merged(self.setting, self.paths.model))
        plan, format = self.setting.prompts, self.config.format
        write_rows(self.paths.prompts, all_steps(plan, self.setting.steps), format)
        write_rows(self.paths.validation, plan.validation, format)

    def command_line(self) -> list[str]:
        """See `Engine.command_line`."""
        gpt_oss = (read_json(self.setting.base.model / "config.json")[0] or {}).get("model_type") == "gpt_oss"
        # Attention sinks: only eager has them right on every card (docs/engines.md).
        attention = "eager" if gpt_oss else "sdpa"
        lengths = (self._longest, self.setting.completion_length)
        return command.command(self.config, self.layout, self.paths, lengths, attention, self.setting.has_experts)

    def steps(self, line: str) -> Iterable[Row]:
        """See `Engine.steps`."""
        if (found := log.step(line) or log.validation(line)) is not None:
            yield found

    def prune(self) -> None:
        """See `Engine.prune`."""
        checkpoints.prune_exports(self.paths.checkpoints)

    def collect(self) -> None:
        """Compare the export with the model that training began with, and make it the run's `model/`."""
        export = self.paths.export
        check_model(export, self.setting.base.model)
        tokenizer = load_tokenizer(self.paths.model)
        tokenizer.save_pretrained(export)
        (export / "chat_template.jinja").write_text(chat.template(self.config.template), encoding="utf-8")
        shutil.copyfile(self.paths.model / "generation_config.json", export / "generation_config.json")
        target = self.run / "model"
        shutil.rmtree(target, ignore_errors=True)  # of an attempt that did not end in DONE
        with writing(target):
            export.rename(target)
            for path in target.iterdir():
                path.chmod(0o644)

    def check(self, path: Path) -> None:
        """See `Engine.check`."""
        check_model(path / "model", self.setting.base.model)

    @functools.cached_property
    def _longest(self) -> int:
        return self.setting.encode(load_tokenizer(self.setting.base.model)).model_length


def write_rows(path: Path, prompts: Iterable[Prompt], format: str) -> None:
    """One JSON line for each prompt: the rendered text, and the request as the reward reads it. The same bytes for the
    same prompts, so a run that goes on finds its place in them.

    Raises:
        LingossError: the file cannot be written.
    """
    rows = (
        {command.INPUT: chat.prompt_text(prompt, format), command.LABEL: request_to_json(prompt.request())}
        for prompt in prompts
    )
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows))
