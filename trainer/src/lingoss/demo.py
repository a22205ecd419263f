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

# What fits into ten minutes on two cores; docs/data.md says what the sets hold.
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
# Gate and GRPO draw alike, or the one would say nothing about the other.
SAMPLES, PROMPTS_A_STEP, LONGEST = 8, 2, 128
EVALUATE: dict[str, Any] = {
    "prompts": {"sets": ["core-crossed"]},
    "generate": {"k": 1, "temperature": 0.0, "max_new_tokens": 128},
    # 4 prompts for each of five languages; the reasons in the report say that the rules of 64 and of 8 were waived.
    "gate": {
        "prompts_per_language": 4,
        "k": SAMPLES,
        "prompts_per_step": PROMPTS_A_STEP,
        "max_completion_length": LONGEST,
        "waive_prompts": True,
        "informative_groups": 0,
    },
}
GRPO: dict[str, Any] = {
    "data": {"prompts_per_language": 16},
    "max_steps": 4,
    "prompts_per_step": PROMPTS_A_STEP,
    "num_generations": SAMPLES,
    "per_device_batch": 4,
    "max_completion_length": LONGEST,
    "optimizer": {"learning_rate": 2e-4, "warmup_ratio": 0.0},
    "rollout": {"mode": "transformers"},
    "validation": {"steps": 2, "prompts_per_language": 2},
    "checkpoint": {"save_steps": 2},
    "gate": {"force": True},
}
GRPO_NOTE = (
    f"GRPO is {GRPO['max_steps']} steps of {PROMPTS_A_STEP} prompts here, to show the way and not the effect: it is run"
    " whatever the gate says, and the rule that eight groups of a step should be informative is waived. Fifty prompts"
    " can show a large change only."
)


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

    from lingoss import grpo, sft
    from lingoss.evaluate import run as evaluate
    from lingoss.models import fastest_dtype

    _step(1, "the model: SmolLM2-135M-Instruct", lambda: prepare.run(_config("prepare", folder, PREPARE)))
    measure = {**EVALUATE, "dtype": fastest_dtype()}

    def measured(number: int, title: str, notes: list[str], *subjects: str) -> Any:
        settings = _config("evaluate", folder, {**measure, "runs": list(subjects)})
        return _step(number, title, lambda: evaluate.run(settings, notes))

    measured(2, "measure the untrained model, and ask whether GRPO would be worth it", [MODEL_NOTE], "base")
    trained = _step(3, "teach it: LoRA fine-tuning on our own problems", lambda: sft.run(_config("sft", folder, SFT)))
    if not trained.done:  # SIGTERM: its checkpoint is saved
        return _stopped()
    measured(4, "measure again, on the same prompts, and ask again", [MODEL_NOTE], trained.name)
    settings = _config("grpo", folder, {**GRPO, "dtype": measure["dtype"], "parent": trained.name})
    improved = _step(5, "practise: a few steps of GRPO, rewarded by the same score", lambda: grpo.run(settings))
    if not improved.done:
        return _stopped()
    title = "measure a third time: does GRPO's adapter replace the one before?"
    last = measured(6, title, [MODEL_NOTE, GRPO_NOTE], trained.name, improved.name)

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


def _stopped() -> int:
    print("stopped; the same command goes on from here")
    return 0


def _step(number: int, title: str, work: Callable[[], Any]) -> Any:
    print(f"\n[{number}/6] {title}", flush=True)
    start = time.monotonic()
    result = work()
    print(f"[{number}/6] {time.monotonic() - start:.0f} s", flush=True)
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
    """The few numbers that the README shows, and the verdict, from what the evaluation wrote."""
    import json

    from lingoss.evaluate.report.headline import accept_sentence

    def load(name: str) -> Any:
        return json.loads((evaluation / name).read_text(encoding="utf-8"))

    summaries, accepted = load("summary.json"), load("accept.json")
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
    names = [one["run"] for one in summaries]
    lines.append("")
    for compared in load("compare.json"):
        if names.index(compared["after"]) == names.index(compared["before"]) + 1:
            lines.append(_paired(compared))
    lines.append(" ".join([accept_sentence(accepted), *(f"{clause}." for clause in accepted["failed"][:1])]))
    return "\n" + "\n".join(lines) + f"\n{MODEL_NOTE}\n{GRPO_NOTE}"


def _paired(compared: dict[str, Any]) -> str:
    """What strict compliance did from one run to the next."""
    before, after = (compared[side].split("-")[0] for side in ("before", "after"))
    test = next(one for one in compared["changes"] if (one["metric"], one["group"]) == ("strict", "all"))
    p = test["p"] if test["mcnemar"] is None else test["mcnemar"]
    moved = f"{test['gains']} prompts gained, {test['losses']} lost; exact McNemar p = {p:.1g}"
    return f"Strict compliance from {before} to {after}, paired: {moved}."


def _cell(rate: dict[str, Any] | None) -> str:
    if rate is None:
        return "none counted"
    return f"{rate['k']}/{rate['n']} ({100 * rate['low']:.0f} to {100 * rate['high']:.0f} %)"
