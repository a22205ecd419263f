# SPDX-License-Identifier: MIT-0
"""What GRPO costs on one GPU: the true shape of gpt-oss-20b with random weights, its true tokenizer and template.

python bench/gpu_grpo.py model trl lingoss generate --work DIR --out results.json

model      writes the random model and the runs that GRPO starts from (an adapter on attention, rank 8, not zero)
trl        TRL's own trainer and rollout, with the settings that TRL itself would be given: the baseline
lingoss    `lingoss grpo`, the same prompts, completions, adapter and memory; then the rollout alone, larger
rollout    the same engine without a trainer beside it, 128, 256 and 512 sequences; `--engine name=value` changes one of its
           arguments, `--profile` says where the time of 256 sequences goes
generate   Transformers' `generate`, 256 sequences: what a rollout without vLLM gives

Every part is a process of its own and can be run alone. A random model earns nothing, and a step without reward would
be skipped, so both trainers are paid for even token ids. `--shape tiny` tries the script on a CPU in a minute.
"""

import argparse
import dataclasses
import datetime
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

PARTS = ("model", "trl", "lingoss", "rollout", "generate")
PROMPTS, GROUP = 16, 8
SHAPES: dict[str, dict[str, Any]] = {
    "20b": {},  # GptOssConfig's own defaults are the 120B's but for these
    "tiny": {
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    },
}
TWENTY = {"num_hidden_layers": 24, "num_local_experts": 32, "vocab_size": 201_088}


def paid(ids: Sequence[int]) -> float:
    """The reward of the bench: the share of even token ids."""
    return sum(id % 2 == 0 for id in ids) / len(ids)


# -- the model and the runs that GRPO starts from --------------------------------------------------------------------


def model(asked: argparse.Namespace) -> Iterator[tuple[str, float, str]]:
    """Random weights, written as `prepare` would leave them, and an SFT run with a random adapter."""
    import shutil

    import torch
    from transformers import GptOssConfig, GptOssForCausalLM

    from lingoss import runs
    from lingoss.config import PrepareConfig, SftConfig
    from lingoss.models import convert_o200k
    from lingoss.prepare import cache_folder
    from lingoss.sft.lora import lora_config, save_trained_adapter

    start = time.perf_counter()
    root = asked.work
    folder = root / "models" / "random"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(convert_o200k(cache_folder()), folder, dirs_exist_ok=True)
    shape = {**TWENTY, **SHAPES[asked.shape]}
    layers = [
        "sliding_attention" if place % 2 == 0 else "full_attention" for place in range(shape["num_hidden_layers"])
    ]
    config = GptOssConfig(**shape, layer_types=layers, pad_token_id=199_999, eos_token_id=200_002)
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        made = GptOssForCausalLM(config)
    torch.set_default_dtype(before)
    made.save_pretrained(folder)
    yield "model: made and saved", time.perf_counter() - start, "s"

    digest = "0" * 64
    prepare = PrepareConfig(root=root, model={"source": str(folder)})
    with runs.open_run(root, "prepare", prepare) as run:
        run.status("running", 1, 1)
        place = {"path": "models/random", "digest": digest, "hub_id": "lingoss-bench/random", "revision": None}
        run.finish(1, prepared={"model": place, "prompts": {}, "datasets": {}})
        parent = run.name

    from peft import get_peft_model

    from lingoss.checkpoints import base_shapes, lora_shapes

    settings = SftConfig(root=root, format="harmony", template="gpt-oss", dtype="bfloat16")
    with runs.open_run(root, "sft", settings, (parent,), digest) as run:
        run.status("running", 1, 1)
        lora = settings.lora
        adapted = get_peft_model(made, lora_config(settings))
        for name, weight in adapted.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(weight, std=0.02)
        shapes = lora_shapes(base_shapes(folder), lora.rank, lora.target_modules, lora.experts)
        save_trained_adapter(adapted, run.adapter, "lingoss-bench/random", None, shapes)
        run.finish(1, lineage={"base": {"hub_id": "lingoss-bench/random", "revision": None, "digest": digest}})


# -- the baseline ----------------------------------------------------------------------------------------------------


def trl(asked: argparse.Namespace) -> Iterator[tuple[str, float, str]]:
    """TRL's own path, nothing of ours in the loop: prompts as texts, its vLLM wiring, its reward call."""
    import torch
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from lingoss.data import chat
    from lingoss.models import load_model, load_tokenizer

    config = _config(asked)
    folder, adapter = asked.work / "models" / "random", next((asked.work / "runs").glob("sft-*")) / "adapter"
    tokenizer: Any = load_tokenizer(folder)
    rows = _rows(config)
    start = time.perf_counter()
    ended: list[float] = []

    class Watch(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            ended.append(time.perf_counter())

    arguments = GRPOConfig(
        output_dir=str(asked.work / "trl"),
        max_steps=asked.steps,
        per_device_train_batch_size=GROUP,
        gradient_accumulation_steps=PROMPTS,
        num_generations=GROUP,
        max_completion_length=asked.tokens,
        learning_rate=5e-6,
        bf16=torch.cuda.is_available(),
        use_cpu=not torch.cuda.is_available(),
        gradient_checkpointing=True,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        use_vllm=asked.vllm,
        vllm_mode="colocate",
        vllm_gpu_memory_utilization=0.42,
        vllm_max_model_length=1024 + asked.tokens,
        router_aux_loss_coef=0.0,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
    )
    trainer = GRPOTrainer(
        model=load_model(folder, adapter, config.dtype, trainable=True),
        args=arguments,
        reward_funcs=lambda completion_ids, **_: [paid(ids) for ids in completion_ids],
        train_dataset=Dataset.from_dict({"prompt": [chat.prompt_text(row, "harmony") for row in rows]}),
        processing_class=tokenizer,
        callbacks=[Watch()],
    )
    yield "trl: start to trainer ready", time.perf_counter() - start, "s"
    spent = _timed(trainer)
    begun = time.perf_counter()
    trainer.train()
    steps = [after - before for before, after in zip([begun, *ended], ended, strict=False)]
    yield "trl: first step", steps[0], "s"
    yield "trl: step", _mean(steps[1:]), "s"
    for name, seconds in spent.items():
        yield f"trl: step, {name}", _mean(seconds[1:]), "s"
    yield "trl: peak memory", _peak(), "GiB"


def _timed(trainer: Any) -> dict[str, list[float]]:
    """Seconds of TRL's weight sync and rollout, call by call, synchronised with the device."""
    if not hasattr(trainer, "vllm_generation"):
        return {}
    spent: dict[str, list[float]] = {"sync": [], "rollout": []}

    def clocked(work: Callable[..., Any], into: list[float]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            _wait()
            start = time.perf_counter()
            result = work(*args, **kwargs)
            _wait()
            into.append(time.perf_counter() - start)
            return result

        return run

    engine = trainer.vllm_generation
    engine.sync_weights = clocked(engine.sync_weights, spent["sync"])
    engine.generate = clocked(engine.generate, spent["rollout"])
    return spent


# -- ours ------------------------------------------------------------------------------------------------------------


def lingoss(asked: argparse.Namespace) -> Iterator[tuple[str, float, str]]:
    """The stage as the command runs it, all but the reward; then its engine alone on larger batches."""
    from lingoss import grpo, runs
    from lingoss.grpo import stage
    from lingoss.grpo.scoring import Scorer

    class Paid(Scorer):
        """The true verdicts, scored at their true cost, with the reward of the bench."""

        def __call__(self, completions: Sequence[Any]) -> list[Any]:
            found = super().__call__(completions)
            return [
                dataclasses.replace(verdict, reward=paid(one.ids))
                for verdict, one in zip(found, completions, strict=True)
            ]

    kept: list[Any] = []
    make = stage._trainer
    start = time.perf_counter()
    ready: list[float] = []

    def keeping(*args: Any) -> Any:
        kept.append(make(*args))
        ready.append(time.perf_counter() - start)
        return kept[0]

    stage._trainer, stage.Scorer = keeping, Paid  # type: ignore[misc]
    config = _config(asked)
    info = grpo.run(config)
    rows = [row for row in runs.read_metrics(info.path) if row["step"] > 0 and "seconds" in row]
    yield "lingoss: start to trainer ready", ready[0], "s"
    yield "lingoss: first step", rows[0]["seconds"], "s"
    later = rows[1:]
    yield "lingoss: step", _mean([row["seconds"] for row in later]), "s"
    for part in ("sync", "rollout", "reward", "train"):
        yield f"lingoss: step, {part}", _mean([row[f"seconds/{part}"] for row in later]), "s"
    tokens = _mean([row["new_tokens"] for row in later])
    yield "lingoss: tokens drawn in a step", tokens, "tokens"
    yield "lingoss: rollout in a step", _mean([row["rollout_tokens_per_s"] for row in later]), "tokens/s"
    yield "lingoss: importance ratio", _mean([row["importance_ratio/mean"] for row in later]), "mean"
    yield "lingoss: peak memory of training", max(row["peak_memory_gb"] for row in rows), "GB"
    yield from _rollout_alone(kept[0], config)


def _rollout_alone(trainer: Any, config: Any) -> Iterator[tuple[str, float, str]]:
    prompts = trainer._plan.rows
    for sequences in (128, 256):
        few = prompts[: sequences // GROUP]
        for turn in (1, 2, 3):  # the first compiles kernels at this shape
            _wait()
            start = time.perf_counter()
            drawn = trainer._engine.complete(few, GROUP, 10_000 + sequences + turn)
            seconds = time.perf_counter() - start
        tokens = sum(len(one.ids) for one in drawn)
        yield f"lingoss: rollout, {sequences} sequences of {config.max_completion_length}", tokens / seconds, "tokens/s"


# -- the engine alone ------------------------------------------------------------------------------------------------


def rollout(asked: argparse.Namespace) -> Iterator[tuple[str, float, str]]:
    """vLLM as `lingoss grpo` sets it up, in this process, so that a profiler sees it."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    from vllm import LLM, SamplingParams

    from lingoss.data import chat
    from lingoss.grpo.arguments import VLLM_LOGPROBS, engine_arguments, vllm_arguments
    from lingoss.models import load_tokenizer

    config = _config(asked)
    folder, length = asked.work / "models" / "random", 1024 + asked.tokens
    arguments = {
        "max_model_len": length,
        "gpu_memory_utilization": config.rollout.gpu_memory_share,
        "max_num_batched_tokens": 4096,  # as TRL sets it
        "logprobs_mode": VLLM_LOGPROBS,
        **engine_arguments(config, experts=True, sequences=512),
        **asked.engine,
    }
    label = "".join(f" {name}={value}" for name, value in asked.engine.items())
    start = time.perf_counter()
    engine = LLM(model=str(folder), seed=0, **arguments)
    yield f"rollout{label}: engine ready", time.perf_counter() - start, "s"
    tokenizer: Any = load_tokenizer(folder)
    prompts = [
        {"prompt_token_ids": tokenizer.encode(chat.prompt_text(row, "harmony"), add_special_tokens=False)}
        for row in _rows(config)
    ]
    extra = vllm_arguments(config, length, ())["generation_kwargs"]
    wanted = SamplingParams(n=GROUP, temperature=1.0, max_tokens=asked.tokens, logprobs=0, ignore_eos=True, **extra)
    for sequences in (128, 256, 512):
        few = prompts[: sequences // GROUP]
        for _ in range(2):  # the first compiles kernels at this shape
            start = time.perf_counter()
            drawn = engine.generate(few, wanted, use_tqdm=False)
            seconds = time.perf_counter() - start
        tokens = sum(len(one.token_ids) for request in drawn for one in request.outputs)
        yield f"rollout{label}: {sequences} sequences of {asked.tokens}", tokens / seconds, "tokens/s"
    if asked.profile:
        yield from _profiled(lambda: engine.generate(prompts[: 256 // GROUP], wanted, use_tqdm=False))


def _profiled(work: Callable[[], Any]) -> Iterator[tuple[str, float, str]]:
    """Print the kernels and the functions of Python that take longest."""
    import cProfile
    import pstats

    import torch

    calls = cProfile.Profile()
    calls.runcall(work)
    pstats.Stats(calls).sort_stats("tottime").print_stats(25)
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        kinds = [torch.profiler.ProfilerActivity.CUDA]
    start = time.perf_counter()
    with torch.profiler.profile(activities=kinds) as seen:
        work()
        _wait()
        seconds = time.perf_counter() - start
    table = seen.key_averages()
    print(table.table(sort_by="self_cuda_time_total", row_limit=30, max_name_column_width=90))
    yield "rollout: profiled", seconds, "s"
    yield "rollout: of that, kernels", sum(one.self_device_time_total for one in table) / 1e6, "s"


# -- without vLLM ----------------------------------------------------------------------------------------------------


def generate(asked: argparse.Namespace) -> Iterator[tuple[str, float, str]]:
    """Transformers' own `generate`, 256 sequences, fewer tokens: its speed does not grow with length."""
    import torch

    from lingoss.data import chat
    from lingoss.models import load_model, load_tokenizer

    folder, tokens, sequences = asked.work / "models" / "random", min(asked.tokens, 64), 256
    tokenizer: Any = load_tokenizer(folder)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loaded: Any = load_model(folder, dtype="bfloat16").to(device)
    rows = _rows(_config(asked))[: sequences // GROUP]
    texts = [chat.prompt_text(row, "harmony") for row in rows for _ in range(GROUP)]
    tokenizer.padding_side = "left"
    batch = tokenizer(texts, add_special_tokens=False, return_tensors="pt", padding=True).to(device)
    for turn in (1, 2):
        _wait()
        start = time.perf_counter()
        made = loaded.generate(**batch, do_sample=True, max_new_tokens=tokens if turn == 2 else 8)
        _wait()
        seconds = time.perf_counter() - start
    new = made.shape[0] * (made.shape[1] - batch["input_ids"].shape[1])
    yield f"generate: {sequences} sequences of {tokens}", new / seconds, "tokens/s"


# -- all -------------------------------------------------------------------------------------------------------------


def _config(asked: argparse.Namespace) -> Any:
    from lingoss.config import GrpoConfig

    return GrpoConfig(
        root=asked.work,
        format="harmony",
        template="gpt-oss",
        dtype="bfloat16",
        data={"prompts_per_language": 40},
        max_steps=asked.steps,
        prompts_per_step=PROMPTS,
        num_generations=GROUP,
        per_device_batch=GROUP,
        max_completion_length=asked.tokens,
        mask_truncated_completions=False,  # a random model never ends
        optimizer={"learning_rate": 5e-6, "warmup_ratio": 0.0},
        rollout={"mode": "colocate" if asked.vllm else "transformers", "gpu_memory_utilization": 0.42},
        gradient_checkpointing=True,
        validation={"steps": 10_000},
        gate={"force": True},
        checkpoint={"save_steps": 10_000},
    )


def _rows(config: Any) -> list[Any]:
    from lingoss.data import grpo_prompts

    return grpo_prompts(config.data.prompts_per_language, config.seed, config.data.languages)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def _wait() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _peak() -> float:
    import torch

    return torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0


def _setting(text: str) -> tuple[str, Any]:
    """`name=value`, the value read as JSON where it is some."""
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _part(name: str, asked: argparse.Namespace) -> None:
    """Run one part in this process and append its figures to the results."""
    today = datetime.date.today().isoformat()
    command = f"python bench/gpu_grpo.py {name} --shape {asked.shape} --steps {asked.steps} --tokens {asked.tokens}"
    for figure, value, unit in globals()[name](asked):
        row = {"name": figure, "value": round(value, 4), "unit": unit, "date": today, "command": command}
        print(f"{figure:52} {value:12,.3f} {unit}", flush=True)
        rows = json.loads(asked.out.read_text(encoding="utf-8")) if asked.out.exists() else []
        rows = [one for one in rows if one["name"] != figure] + [row]
        asked.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Each part in a process of its own, so that a part's memory is its own too."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--work", type=Path, required=True, help="folder for the model (42 GB) and the runs")
    parser.add_argument("--out", type=Path, default=Path("gpu_grpo.json"), help="JSON with the figures; grows")
    parser.add_argument("--shape", choices=tuple(SHAPES), default="20b")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=512, help="length of a completion")
    parser.add_argument("--engine", type=_setting, action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--profile", action="store_true", help="of the part `rollout`")
    parser.add_argument("--no-vllm", dest="vllm", action="store_false", help="without vLLM, to try the script")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    asked.work, asked.engine = asked.work.resolve(), dict(asked.engine)
    asked.work.mkdir(parents=True, exist_ok=True)
    if asked.inside:
        _part(asked.parts[0], asked)
        return
    rest = [one for one in sys.argv[1:] if one not in PARTS]
    for part in asked.parts:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        done = subprocess.run([sys.executable, __file__, part, *rest, "--inside"], check=False, env=environment)
        if done.returncode:
            sys.exit(f"part {part} failed with exit status {done.returncode}")


if __name__ == "__main__":
    main()
