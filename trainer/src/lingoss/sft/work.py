# SPDX-License-Identifier: MIT-0
"""What every rank of a training does between the run folder's lock and the end; rank 0 alone writes there and tells."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from lingoss import runs
from lingoss.checkpoints import CheckpointStore, check_tensors, save_adapter
from lingoss.checkpoints.adapter import CONFIG, WEIGHTS
from lingoss.errors import LingossError
from lingoss.models import load_model, load_tokenizer
from lingoss.models.memory import readable_memory_errors
from lingoss.progress import Progress, agent_listens, note
from lingoss.runs.metrics import Metrics
from lingoss.sft.arguments import arguments
from lingoss.sft.dataset import Encoded, encode_all, fit_length, histogram, require_all, to_dataset
from lingoss.sft.lora import adapter_config, lora_config, plain_config, trained_weights
from lingoss.sft.order import plan_steps
from lingoss.sft.parallel import Layout, Room, card_bytes
from lingoss.sft.setting import Setting, context_length, cumulative
from lingoss.sft.share import Share, collect, deal
from lingoss.sft.stops import Stops
from lingoss.sft.timing import Timing
from lingoss.sft.watchdog import Watchdog
from lingoss.sft.world import World

_SMALLER = "lower per_device_batch (the global batch and the result stay the same), or set gradient_checkpointing=true"


class Work:
    """Everything between the lock and the run's end, on every rank; only rank 0 touches the folder and tells."""

    def __init__(self, setting: Setting, folder: runs.RunFolder, world: World, share: Share, stops: Stops) -> None:
        self.setting, self.folder, self.world, self.share, self.stops = setting, folder, world, share, stops
        saves = setting.config.checkpoint
        self.store = CheckpointStore(folder.checkpoints, saves.keep, saves.budget)
        self.examples = Metrics(folder.path / "examples.jsonl")
        self.timing = Timing(folder.path, world.size, setting.config.stop_seconds, setting.size.checkpoint)
        self.alive: Callable[[str], None] = lambda doing: None
        self.steps: list[list[int]] = []
        self.layout: Layout = "single"
        self.trainer: Any = None

    def do(self) -> None:
        """Train until the run is DONE, or "stopped" when a signal came."""
        who = f"rank {self.world.rank} of {self.world.size}" if self.world.joined else "the process"
        with Watchdog(self.setting.config.hang_seconds, who) as watchdog, closing(self.examples):
            self.alive = watchdog.alive
            self._train()

    def _train(self) -> None:
        setting, config, world = self.setting, self.setting.config, self.world
        world.first_does(self._begin)
        tokenizer = load_tokenizer(setting.base.model)
        encoded = world.agree(lambda: self._encode(tokenizer))
        card = world.gather(world.agree(lambda: card_bytes(config.card_gib, world.joined)))
        smallest = min((one for one in card if one is not None), default=None)
        room = Room(setting, max(len(one.ids) for one in encoded), smallest)
        self.layout = world.agree(lambda: room.choose(world.size, world.joined))
        newest, start = world.first_does(self._resume)
        if self.stops.decide(any(world.gather(self.stops.local()))):
            return
        lengths = [len(one.ids) for one in encoded]
        self.steps = plan_steps(lengths, config.global_batch, setting.steps, setting.trained_examples, config.seed)
        require_all(setting.trained_examples, sum(map(len, self.steps)))
        tells = world.first or (world.local_rank == 0 and agent_listens())
        shown = Progress("sft", setting.steps, "steps", done=start) if tells else nullcontext()
        with shown as progress, readable_memory_errors("while training", _SMALLER):
            self.alive("loading the model")
            self.trainer = trainer = self._trainer(encoded, tokenizer, progress)
            trainer.train(resume_from_checkpoint=newest)
        step = trainer.state.global_step
        self.alive("finishing the run")
        weights = trained_weights(trainer.model) if step == setting.steps else {}
        world.first_does(lambda: self._end(step, trainer.model, weights, encoded))

    def _begin(self) -> None:
        self.folder.status("running", total=self.setting.steps)
        _tell_data(self.setting)
        self.setting.require_disk(self.folder.path)
        self.timing.require()

    def _encode(self, tokenizer: Any) -> list[Encoded]:
        setting, config, rows = self.setting, self.setting.config, self.setting.mix.examples
        encoded = encode_all(rows, config.format, config.template, tokenizer)
        length = fit_length(encoded, rows, config.max_length, context_length(setting.base.model))
        if self.world.first:
            note("tokens", {**histogram(encoded), "max_length": length, "steps": setting.steps})
        return encoded

    def _resume(self) -> tuple[str | None, int]:
        """The checkpoint to go on from and its step; what was noted of later steps is removed."""
        newest, start = self.store.resume(self.setting.steps)
        self.folder.truncate_metrics(start)
        self.examples.truncate(start)
        self.folder.status("running", step=start)
        told: dict[str, object] = {"run": self.folder.name, "step": start, "of": self.setting.steps}
        if self.world.joined:
            batch = f"{self.share.per_device} x {self.share.pieces}"
            told |= {"processes": self.world.size, "parallelism": self.layout, "batch": batch}
        note("start", {**told, "resumed_from": newest and newest.name})
        return (str(newest) if newest else None), start

    def _trainer(self, encoded: list[Encoded], tokenizer: Any, progress: Progress | None) -> Any:
        import torch
        from transformers.utils import logging

        from lingoss.sft.trainer import Reporter, Trainer

        logging.disable_progress_bar()
        setting, config = self.setting, self.setting.config
        if config.threads:
            torch.set_num_threads(config.threads)
        # Accelerate would choose again for several processes, one for each core, whatever was set before.
        os.environ.setdefault("OMP_NUM_THREADS", str(torch.get_num_threads()))
        seen = cumulative([1] * len(encoded), self.steps)

        def report(row: Mapping[str, Any]) -> None:
            if self.world.first:
                self.folder.metric(row)
            if progress is not None:
                progress.advance(
                    row["step"] - progress.done, **{key: row[key] for key in ("loss", "lr", "tokens_per_s")}
                )

        reporter = Reporter(
            tokens=cumulative([len(one.ids) for one in encoded], self.steps),
            epochs=[count / len(encoded) for count in seen],
            report=report,
            end_step=lambda step: self._end_step(step, trainer.take_consumed()),
        )
        trainer = Trainer(
            model=load_model(setting.base.model, dtype=config.dtype),
            args=arguments(setting, self.folder.checkpoints, self.share, self.layout, torch.cuda.is_available()),
            train_dataset=to_dataset(encoded),
            processing_class=tokenizer,
            peft_config=lora_config(config),
            callbacks=[reporter],
            pieces=deal(self.steps, self.share, self.world.rank),
            world=self.world,
            save=self._save,
            alive=self.alive,
            store=self.store,
        )
        require_all(len(encoded), len(trainer.train_dataset))
        return trainer

    def _end_step(self, step: int, consumed: list[int]) -> bool:
        """Note which examples all ranks have trained on, and decide with them whether to stop here."""
        nothing = [~0] * (self.share.examples - len(consumed))
        rows = self.world.gather_numbers([int(self.stops.local()), *consumed, *nothing])
        found = collect([row[1:] for row in rows], self.share)
        if found != self.steps[step - 1]:
            raise LingossError(f"step {step} trained on other examples than planned; this is a fault, report it")
        if self.world.first:
            ids = [self.setting.mix.examples[index].id for index in found]
            self.examples.append({"step": step, "processes": self.world.size, "examples": ids})
            self.folder.status(step=step)
        self.timing.step()
        self.alive(f"training step {step + 1}")
        told = [rank for rank, row in enumerate(rows) if row[0]]
        if told and self.world.first and self.world.joined:
            note("stop", {"step": step, "told": told})
        return self.stops.decide(bool(told))

    def _save(self, step: int, fill: Callable[[Path], None]) -> None:
        """The checkpoint of a step, by rank 0 alone, or by all of them where each holds a part of the weights."""
        self.alive(f"saving step {step}")
        began = time.monotonic()
        self.world.first_does(self.examples.sync)  # a checkpoint must not outlive the record of what led to it
        if self.layout == "fsdp":
            trainer = self.trainer
            described = adapter_config(trainer.model, self.setting.base.hub_id, self.setting.base.revision)
            documents = {**trainer.documents(), CONFIG: plain_config(described)}
            self.world.agree(lambda: self.store.save_sharded(step, trainer.model, trainer.optimizer, documents))
        else:
            self.world.first_does(lambda: str(self.store.write(step, fill)))
        if self.world.first:
            self.timing.save(step, time.monotonic() - began)

    def _end(self, step: int, model: Any, weights: Mapping[str, Any], encoded: list[Encoded]) -> None:
        if step < self.setting.steps:
            self.folder.status("stopped", step=step)
        else:
            _finish(self.setting, self.folder, model, weights, encoded)


def _finish(
    setting: Setting, folder: runs.RunFolder, model: Any, weights: Mapping[str, Any], encoded: list[Encoded]
) -> None:
    from lingoss.data import language_table

    base = setting.base
    save_adapter(folder.adapter, weights, adapter_config(model, base.hub_id, base.revision), setting.adapter_shapes)
    folder.finish(
        setting.steps,
        lineage={"base": {"hub_id": base.hub_id, "revision": base.revision, "digest": base.model_digest}},
        check=lambda path: check_tensors(path / "adapter" / WEIGHTS, setting.adapter_shapes),
        language_table=language_table(setting.mix.examples).to_rows(),
        examples={"rows": len(encoded), "seen": setting.trained_examples, **setting.mix.counts},
        tokens=histogram(encoded),
    )


def _tell_data(setting: Setting) -> None:
    """Which rows and which languages, before anything is trained on them."""
    from rich.console import Console

    from lingoss.data import language_table

    for remark in setting.mix.remarks:
        note("data", {"remark": remark})
    wide = None if sys.stdout.isatty() else 160  # a log: no column of the table is cut
    Console(width=wide).print(language_table(setting.mix.examples).rich())
    note("data", {"rows": len(setting.mix.examples), **setting.mix.counts})
