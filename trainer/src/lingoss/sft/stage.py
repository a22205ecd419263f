# SPDX-License-Identifier: MIT-0
"""The stage: from a config to a finished run folder, or to one that goes on exactly where it was stopped."""

import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lingoss import runs
from lingoss.checkpoints import CheckpointStore, check_tensors
from lingoss.checkpoints.adapter import WEIGHTS
from lingoss.config import SftConfig
from lingoss.models import load_model, load_tokenizer, offline
from lingoss.models.memory import keep_freed_memory, readable_memory_errors, release
from lingoss.progress import Progress, note
from lingoss.sft.dataset import Encoded, encode_all, fit_length, histogram, require_all, to_dataset
from lingoss.sft.lora import lora_config, save_trained_adapter
from lingoss.sft.order import plan_steps
from lingoss.sft.setting import Setting, context_length, cumulative, require_tracker, resolve
from lingoss.stopping import StopRequest

_SMALLER = "lower per_device_batch (the global batch and the result stay the same), or set gradient_checkpointing=true"


def run(config: SftConfig) -> runs.RunInfo:
    """Train, or resume, or find that it is done. The folder's lock is held while it works.

    SIGTERM finishes the current step, saves and returns a run in state "stopped"; Ctrl-C does the same and then raises
    KeyboardInterrupt. Started again, a stopped or killed run ends with the adapter that an undisturbed one has (on the
    same machine with the same number of threads: equal tensors).

    Raises:
        LingossError: bad input, too little disk, a loss that is not finite, or a checkpoint that cannot be written.
    """
    offline()
    keep_freed_memory()
    setting = resolve(config)
    folder = setting.folder()
    return carry_out(folder, lambda stop: _work(setting, folder, stop))


def carry_out(folder: runs.RunFolder, work: Callable[[StopRequest], None]) -> runs.RunInfo:
    """Do a training run's work, unless it is done, under its folder's lock and heeding signals; tells how it ended."""
    with folder:
        if not folder.done:
            with StopRequest() as stop:
                work(stop)
            stop.raise_if_interrupted()
    release()
    info = runs.read_run(folder.path)
    print(f"{info.name} is {info.state}: {info.path}", file=sys.stderr)
    return info


def _work(setting: Setting, folder: runs.RunFolder, stop: StopRequest) -> None:
    """Everything between the lock and the run's end, which is DONE, or "stopped" when a signal came."""
    config, rows = setting.config, setting.mix.examples
    folder.status("running", total=setting.steps)
    _tell_data(setting)
    setting.require_disk(folder.path)
    tokenizer = load_tokenizer(setting.base.model)
    encoded = encode_all(rows, config.format, config.template, tokenizer)
    length = fit_length(encoded, rows, config.max_length, context_length(setting.base.model))
    note("tokens", {**histogram(encoded), "max_length": length, "steps": setting.steps})
    store = CheckpointStore(folder.checkpoints, config.checkpoint.keep)
    newest, start = store.resume(setting.steps)
    folder.truncate_metrics(start)
    folder.status("running", step=start)
    note("start", {"run": folder.name, "step": start, "of": setting.steps, "resumed_from": newest and newest.name})
    if stop:
        return
    with Progress("sft", setting.steps, "steps", done=start) as progress:
        trainer = _trainer(setting, encoded, tokenizer, folder, store, progress, stop)
        with readable_memory_errors("while training", _SMALLER):
            trainer.train(resume_from_checkpoint=str(newest) if newest else None)
    if trainer.state.global_step < setting.steps:
        folder.status("stopped", step=trainer.state.global_step)
    else:
        _finish(setting, folder, trainer.model, encoded)


def _trainer(
    setting: Setting,
    encoded: list[Encoded],
    tokenizer: Any,
    folder: runs.RunFolder,
    store: CheckpointStore,
    progress: Progress,
    stop: StopRequest,
) -> Any:
    import torch
    from transformers.utils import logging

    from lingoss.sft.trainer import Reporter, Trainer

    logging.disable_progress_bar()
    config = setting.config
    if config.threads:
        torch.set_num_threads(config.threads)
    lengths = [len(one.ids) for one in encoded]
    steps = plan_steps(lengths, config.global_batch, setting.steps, setting.trained_examples, config.seed)
    require_all(setting.trained_examples, sum(map(len, steps)))
    seen = cumulative([1] * len(encoded), steps)

    def report(row: Mapping[str, Any]) -> None:
        folder.metric(row)
        progress.advance(row["step"] - progress.done, **{key: row[key] for key in ("loss", "lr", "tokens_per_s")})

    reporter = Reporter(
        tokens=cumulative(lengths, steps),
        epochs=[count / len(encoded) for count in seen],
        report=report,
        beat=lambda step: folder.status(step=step),
        stop=stop,
    )
    dataset = to_dataset(encoded)
    trainer = Trainer(
        model=load_model(setting.base.model, dtype=config.dtype),
        args=_arguments(setting, folder.checkpoints, torch.cuda.is_available()),
        train_dataset=dataset,
        processing_class=tokenizer,
        peft_config=lora_config(config),
        callbacks=[reporter],
        steps=steps,
        store=store,
    )
    require_all(len(encoded), len(trainer.train_dataset))
    return trainer


def _arguments(setting: Setting, output: Path, cuda: bool) -> Any:
    from trl import SFTConfig

    config, optimizer = setting.config, setting.config.optimizer
    require_tracker(config.logging.report_to)
    return SFTConfig(
        output_dir=str(output),
        max_steps=setting.steps,
        per_device_train_batch_size=config.per_device_batch,
        gradient_accumulation_steps=config.global_batch // config.per_device_batch,
        learning_rate=optimizer.learning_rate,
        lr_scheduler_type="constant_with_warmup" if optimizer.schedule == "constant" else optimizer.schedule,
        warmup_steps=math.ceil(optimizer.warmup_ratio * setting.steps),
        weight_decay=optimizer.weight_decay,
        max_grad_norm=optimizer.max_grad_norm,
        seed=config.seed,
        bf16=config.dtype == "bfloat16",
        use_cpu=not cuda,
        gradient_checkpointing=config.gradient_checkpointing,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        router_aux_loss_coef=config.router_aux_loss_coef,
        max_length=None,  # every row fits already, and TRL would drop what it truncates
        packing=False,
        save_strategy="steps",
        save_steps=config.checkpoint.save_steps,
        logging_strategy="steps",
        logging_steps=config.logging.log_steps,
        logging_nan_inf_filter=False,  # it would hide what must stop the run
        report_to=config.logging.report_to,
        disable_tqdm=True,
        dataloader_pin_memory=cuda,
        push_to_hub=False,
    )


def _finish(setting: Setting, folder: runs.RunFolder, model: Any, encoded: list[Encoded]) -> None:
    from lingoss.data import language_table

    base = setting.base
    save_trained_adapter(model, folder.adapter, base.hub_id, base.revision, setting.adapter_shapes)
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
    Console().print(language_table(setting.mix.examples).rich())
    note("data", {"rows": len(setting.mix.examples), **setting.mix.counts})
