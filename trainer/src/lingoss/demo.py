# SPDX-License-Identifier: MIT-0
"""`make demo`: the real pipeline on a real 135M model, on this machine. The same stages as on a cluster, other settings.

Every stage finds its own run again, so stopping the demo at any moment loses at most a checkpoint interval.
"""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lingoss import config, prepare

MODEL_NOTE = (
    "This is a demonstration on a model of 135 million parameters. It learns the form, to think and answer in the language"
    " asked for, and not arithmetic: its answers are mostly wrong before and after. Never read compliance as quality."
)

# What fits into eight minutes on two cores; docs/data.md says what the sets hold.
PREPARE: dict[str, Any] = {"prompt_sets": ["core-crossed"]}
SFT: dict[str, Any] = {
    "data": {"examples_per_language": 32},
    "max_steps": 40,
    "global_batch": 4,
    "per_device_batch": 2,
    "optimizer": {"learning_rate": 2e-3},
    "lora": {
        "rank": 16,
        "alpha": 32.0,
        "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    },
    "checkpoint": {"save_steps": 10},
}
EVALUATE: dict[str, Any] = {
    "prompts": {"sets": ["core-crossed"]},
    "generate": {"k": 1, "temperature": 0.0, "max_new_tokens": 128},
    # 4 prompts for each of five languages; the reasons in the report say that the rules of 64 and of 8 were waived.
    "gate": {"prompts_per_language": 4, "k": 8, "waive_prompts": True, "informative_groups": 0},
}


def run(folder: Path, fresh: bool = False) -> int:
    """Run or go on with the demo in `folder`; returns the exit status. Raises LingossError as the stages do."""
    started = time.monotonic()
    if fresh:
        clear(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _threads()
    print(
        f"lingoss demo in {folder}/: one real model, measured before and after. Ctrl-C is safe; run it again to go on."
    )

    from lingoss import sft
    from lingoss.evaluate import run as evaluate
    from lingoss.models import fastest_dtype

    _step(1, "the model: SmolLM2-135M-Instruct", lambda: prepare.run(_config("prepare", folder, PREPARE)))
    measure = {**EVALUATE, "dtype": fastest_dtype()}
    settings = _config("evaluate", folder, {**measure, "runs": ["base"]})
    _step(
        2,
        "measure the untrained model, and ask whether GRPO would be worth it",
        lambda: evaluate.run(settings, [MODEL_NOTE]),
    )
    trained = _step(3, "teach it: LoRA fine-tuning on our own problems", lambda: sft.run(_config("sft", folder, SFT)))
    if not trained.done:  # SIGTERM: its checkpoint is saved
        print("stopped; the same command goes on from here")
        return 0
    settings = _config("evaluate", folder, measure)
    last = _step(4, "measure again, on the same prompts, and ask again", lambda: evaluate.run(settings, [MODEL_NOTE]))

    for name in ("report.html", "report.md"):
        shutil.copyfile(last.path / name, folder / name)
    print(_results(last.path, folder))
    print(f"\nReport: {folder / 'report.html'} (one file, opens in any browser)")
    print(
        f"Done in {(time.monotonic() - started) / 60:.1f} minutes. `lingoss runs --root {folder}` lists what was made."
    )
    return 0


def _config(stage: str, folder: Path, values: dict[str, Any]) -> Any:
    return config.stage_type(stage).model_validate({**values, "root": str(folder)})


def _step(number: int, title: str, work: Callable[[], Any]) -> Any:
    print(f"\n[{number}/4] {title}", flush=True)
    start = time.monotonic()
    result = work()
    print(f"[{number}/4] {time.monotonic() - start:.0f} s", flush=True)
    return result


def clear(folder: Path) -> None:
    """Remove what an earlier demo made, and nothing else: the folder may be the user's."""
    for name in ("runs", "models", "evaluations", "data", "downloads"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("report.html", "report.md"):
        (folder / name).unlink(missing_ok=True)


def _threads() -> None:
    """As many threads as cores. That they sleep while idle is set by `lingoss.cli.main` for every command."""
    os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count() or 1))


def _results(evaluation: Path, folder: Path) -> str:
    """The few numbers that the README shows, from summary.json and compare.json."""
    import json

    summaries = json.loads((evaluation / "summary.json").read_text(encoding="utf-8"))
    changes = json.loads((evaluation / "compare.json").read_text(encoding="utf-8"))[0]["changes"]
    test = next(one for one in changes if (one["metric"], one["group"]) == ("strict", "all"))
    columns = [{**one["cells"]["all"]["all"]["rates"]} for one in summaries]
    asked = summaries[0]["cells"]["all"]["all"]["prompts"]
    lines = [f"| {asked} crossed prompts, greedy | {' | '.join(one['run'].split('-')[0] for one in summaries)} |"]
    lines.append("|---|" + "---|" * len(columns))
    for title, metric in (
        ("form kept", "format_ok"),
        ("reasoning in the language asked for", "reasoning"),
        ("answer in the language asked for", "answer"),
        ("all three (strict)", "strict"),
        ("right answer", "correct"),
    ):
        lines.append(f"| {title} | " + " | ".join(_cell(one.get(metric)) for one in columns) + " |")
    p = test["p"] if test["mcnemar"] is None else test["mcnemar"]
    lines.append(
        f"\nStrict compliance, paired: {test['gains']} prompts gained, {test['losses']} lost; exact McNemar p = {p:.1g}."
    )
    return "\n" + "\n".join(lines) + f"\n{MODEL_NOTE}"


def _cell(rate: dict[str, Any] | None) -> str:
    if rate is None:
        return "none counted"
    return f"{rate['k']}/{rate['n']} ({100 * rate['low']:.0f} to {100 * rate['high']:.0f} %)"
