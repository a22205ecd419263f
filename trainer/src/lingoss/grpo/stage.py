# SPDX-License-Identifier: MIT-0
"""The stage with engine trl: from a config to a finished run folder, or to one that goes on where it was stopped."""

import os
from contextlib import closing, nullcontext
from typing import Any

from lingoss import runs
from lingoss.checkpoints import CheckpointStore, check_tensors, save_adapter, verify
from lingoss.checkpoints.adapter import WEIGHTS
from lingoss.config import GrpoConfig
from lingoss.data import language_table
from lingoss.errors import LingossError, StopError
from lingoss.grpo import prompts as grpo_prompts
from lingoss.grpo.arguments import ENVIRONMENT, arguments, engine_arguments
from lingoss.grpo.choose import Choice, choose
from lingoss.grpo.course import FILE, Course
from lingoss.grpo.scoring import Scorer
from lingoss.grpo.setting import Setting, resolve
from lingoss.grpo.vllm_engine import engine_made_with, parity_check, readable_server_errors
from lingoss.models import load_model, load_tokenizer, offline
from lingoss.models.memory import keep_freed_memory, readable_memory_errors
from lingoss.progress import Progress, note
from lingoss.runs.metrics import Metrics
from lingoss.sft.lora import adapter_config
from lingoss.sft.stage import carry_out
from lingoss.stopping import StopRequest

_SMALLER = (
    "lower per_device_batch or rollout.batch_tokens (the result stays the same but for rounding), set "
    "gradient_checkpointing=true, or give vLLM less (rollout.gpu_memory_utilization)"
)


def run(config: GrpoConfig) -> runs.RunInfo:
    """Train, or resume, or find that it is done. The folder's lock is held while it works.

    SIGTERM finishes the current step, saves and returns a run in state "stopped"; Ctrl-C does the same and then raises
    KeyboardInterrupt. Started again, a stopped or killed run ends with the adapter that an undisturbed one has (with
    rollout.mode=transformers on the same machine with as many threads: equal tensors).

    Raises:
        StopError: a safety stop; all is saved, and the message says why and what to do.
        LingossError: bad input, a gate that is not viable, too little disk or memory, numbers that are not finite, or a
            checkpoint that cannot be written.
    """
    offline()
    os.environ.update(ENVIRONMENT)
    keep_freed_memory()
    setting = resolve(config)
    if not (folder := setting.folder()).done:
        setting.require_start()
    return carry_out(folder, lambda stop: _work(setting, folder, stop))


def _work(setting: Setting, folder: runs.RunFolder, stop: StopRequest) -> None:
    """Everything between the lock and the run's end, which is DONE, or "stopped" when a signal or an alarm came."""
    config = setting.config
    folder.status("running", total=setting.steps)
    _tell_data(setting)
    setting.require_disk(folder.path)
    tokenizer = load_tokenizer(setting.base.model)
    encoded = setting.encode(tokenizer)
    note("lengths", {"completion": setting.completion_length, "sequence": encoded.model_length})
    store = CheckpointStore(folder.checkpoints, config.checkpoint.keep, config.checkpoint.budget)
    newest, start = store.resume(setting.steps)
    course, completions = Course(config.safety), Metrics(folder.path / "completions.jsonl")
    if newest:
        course.load(newest)
        store.pinned = course.best
    folder.truncate_metrics(start if newest else -1)  # the row of step 0 belongs to no checkpoint
    completions.truncate(start)
    folder.status("running", step=start)
    note("start", {"run": folder.name, "step": start, "of": setting.steps, "resumed_from": newest and newest.name})
    if stop:
        return
    with Progress("grpo", setting.steps, "steps", done=start) as progress, closing(completions):
        from lingoss.grpo.reporter import Reporter

        reporter = Reporter(setting, folder, store, course, completions, progress, stop)
        server = config.rollout.server_url
        away = readable_server_errors(server) if server else nullcontext()
        with readable_memory_errors("in GRPO", _SMALLER), away:
            trainer = _trainer(setting, folder, store, course, tokenizer, encoded, reporter)
            trainer.train(resume_from_checkpoint=str(newest) if newest else None)
    step = trainer.state.global_step
    if reporter.stopped:
        folder.status(step=step)
        kind = reporter.stopped.kind
        raise StopError(
            f"step {step}: {reporter.stopped.message}; the run is saved, and goes on with safety.override=[{kind}]"
        )
    if step < setting.steps:
        folder.status("stopped", step=step)
    else:
        _finish(setting, folder, store, course, trainer.model)


def _trainer(
    setting: Setting,
    folder: runs.RunFolder,
    store: CheckpointStore,
    course: Course,
    tokenizer: Any,
    encoded: Any,
    reporter: Any,
) -> Any:
    import torch
    from datasets import Dataset
    from transformers.utils import logging
    from trl import GRPOConfig

    from lingoss.evaluate.engine import stop_ids
    from lingoss.grpo.trainer import Trainer

    logging.disable_progress_bar()
    config = setting.config
    if config.threads:
        torch.set_num_threads(config.threads)
    cuda = torch.cuda.is_available()
    if (visible := torch.cuda.device_count()) > 1:
        raise LingossError(
            f"engine trl trains on one GPU for now, and {visible} are visible: set CUDA_VISIBLE_DEVICES=0"
        )
    model: Any = load_model(setting.base.model, setting.adapter, config.dtype, trainable=True)
    stops = stop_ids(model, tokenizer, config.format)
    settings = arguments(config, str(folder.checkpoints), setting.completion_length, encoded.model_length, stops, cuda)
    vllm = config.rollout.mode != "transformers"
    most = max(setting.completions, len(setting.prompts.validation))
    with engine_made_with(engine_arguments(config, setting.has_experts, most)) if vllm else nullcontext():
        trainer = Trainer(
            model=model,
            args=GRPOConfig(**settings),
            train_dataset=Dataset.from_dict({"prompt": [row.id for row in setting.prompts.rows]}),
            processing_class=tokenizer,
            callbacks=[reporter],
            config=config,
            plan=setting.prompts,
            encoded=encoded,
            stop_ids=stops,
            score=Scorer(config, tokenizer, stops),
            state=(FILE, course.dump),
            probe=parity_check(setting, tokenizer, encoded.model_length, course) if vllm else None,
            store=store,
        )
    reporter.trainer = trainer
    return trainer


def _finish(setting: Setting, folder: runs.RunFolder, store: CheckpointStore, course: Course, model: Any) -> None:
    base, prompts = setting.base, setting.prompts
    choice = _choice(store, course)
    _save_chosen(setting, folder, store, choice, model)
    folder.finish(
        setting.steps,
        lineage={"base": {"hub_id": base.hub_id, "revision": base.revision, "digest": base.model_digest}},
        check=lambda path: check_tensors(path / "adapter" / WEIGHTS, setting.adapter_shapes),
        choice=choice.to_dict(),
        validation=[{"step": one["step"], **one["figures"]} for one in course.records],
        language_table=language_table(prompts.rows).to_rows(),
        prompts={**prompts.counts, "passes": round(prompts.passes(setting.steps), 3)},
        completion_length=setting.completion_length,
        gate=setting.gate.outcome if setting.gate else None,
    )
    print(choice.sentence, flush=True)


def _choice(store: CheckpointStore, course: Course) -> Choice:
    """The chosen checkpoint; were it damaged on disk, the best of those that are whole."""
    choice = choose(course.records)
    if choice.step and (reason := _damage(store, choice.step)):
        note("bad checkpoint", {"checkpoint": store.path(choice.step).name, "reason": reason})
        choice = choose([one for one in course.records if one["step"] == 0 or _damage(store, one["step"]) is None])
    return choice


def _damage(store: CheckpointStore, step: int) -> str | None:
    try:
        verify(store.path(step))
    except LingossError as error:
        return str(error)
    return None


def _save_chosen(setting: Setting, folder: runs.RunFolder, store: CheckpointStore, choice: Choice, model: Any) -> None:
    from safetensors.torch import load_file

    source = store.path(choice.step) if choice.step else setting.adapter
    described = adapter_config(model, setting.base.hub_id, setting.base.revision)
    save_adapter(folder.adapter, load_file(source / WEIGHTS), described, setting.adapter_shapes)


def _tell_data(setting: Setting) -> None:
    """Which prompts and which languages, before anything is trained on them."""
    for difference in setting.gate_differences:
        note("gate", {"remark": f"the gate was measured with {difference}"})
    for remark in setting.prompts.remarks:
        note("data", {"remark": remark})
    grpo_prompts.tell(setting.prompts)
    note("data", setting.prompts.counts)
