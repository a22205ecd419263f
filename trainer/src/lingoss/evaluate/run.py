# SPDX-License-Identifier: MIT-0
"""Stage evaluate: generate, score, report and compare every finished run on the same prompts; then the gate.

<root>/evaluations/<model>-<digest>/       one for each model, prompts and sampling; shared by later evaluations
    samples.jsonl  run.json  verdicts.jsonl
<root>/evaluations/evaluate-<id>/          what was found out this time; `<root>/runs/evaluate-<id>` is a link to it
    report.html  report.md  summary.json  compare.json  gate.json  accept.json  hacks.json

In one process, or in parts: `generate` where the GPU is, `report` (no torch) beside or after it, both with the root
mounted read-only but for `evaluations/`, once `open` has made folder and link.
"""

from collections.abc import Sequence
from typing import Any

from lingoss import runs
from lingoss.config import EvaluateConfig
from lingoss.errors import LingossError
from lingoss.evaluate.compare import compare
from lingoss.evaluate.decisions import decide_accept, decide_gate, find_hacks
from lingoss.evaluate.report import write_reports
from lingoss.evaluate.report.gather import gather
from lingoss.evaluate.report.headline import accept_sentence
from lingoss.evaluate.scoring import score_folder
from lingoss.evaluate.setting import Draw, Setting, resolve
from lingoss.evaluate.waiting import require_samples, wait_for_samples
from lingoss.score import Rules

PARTS = {
    "open": "make the run's folder below evaluations/ and the link to it below runs/, for which both must be writable",
    "generate": "draw the samples of every model not yet evaluated and those of the gate; needs torch, scores nothing",
    "report": "score the samples, compare, decide and write the report; needs no torch and no GPU",
}


def run(
    config: EvaluateConfig, notes: Sequence[str] = (), part: str | None = None, wait: float | None = None
) -> runs.RunInfo:
    """Evaluate what is not yet evaluated and write the report; a finished evaluation is only found again.

    `notes` are sentences that stand beside the report's headline. `part` (of PARTS) does only that part; part report
    waits up to `wait` seconds for the samples of part generate, and without `wait` refuses when some are missing.

    Raises:
        LingossError: no prepared model, a run that is not finished, prompts that cannot be read, an unknown part, or
            samples that did not come.
    """
    if part is not None and part not in PARTS:
        raise LingossError(f"--part {part}: stage evaluate has the parts {', '.join(PARTS)}")
    if wait is not None and part != "report":
        raise LingossError("--wait is for --part report alone, which waits for samples: leave it out")
    setting = resolve(config)
    if setting.left_out:
        print(setting.left_out, flush=True)
    folder = setting.folder()
    if runs.read_run(folder.path).done:
        print(f"{folder.name} is done: {folder.path / 'report.html'}", flush=True)
    elif part == "open":
        folder.announce()
        print(f"{folder.name}: {folder.path}", flush=True)
    elif part == "generate":
        _generate_alone(setting, folder)
    elif part == "report":
        if wait is None:
            require_samples(setting)
        else:
            wait_for_samples(setting, folder.path, wait)
        with folder:
            if not folder.done:
                _report(setting, folder, notes)
    else:
        with folder:
            if not folder.done:
                _generate(setting, folder)
                _report(setting, folder, notes)
    return runs.read_run(folder.path)


def plan(config: EvaluateConfig) -> dict[str, Any]:
    """What `run` would do: its run and state, models, prompts, completions, most tokens."""
    setting = resolve(config)
    completions = sum(len(draw.prompts) * draw.k for draw in setting.draws)
    folder = setting.folder()
    found = {
        "parent": setting.source.run,
        "run": folder.name,
        "state": "done" if folder.done else "new" if not folder.path.exists() else "begun",
        "models": [subject.name for subject in setting.subjects],
        "prompts": len(setting.prompts),
        "gate_prompts": len(setting.asked),
        "completions": completions,
        "most_new_tokens": sum(len(draw.prompts) * draw.k * draw.max_new_tokens for draw in setting.draws),
    }
    return found | ({"note": setting.left_out} if setting.left_out else {})


def _generate_alone(setting: Setting, folder: runs.RunFolder) -> None:
    """Part generate. The lock is taken only when something is missing: report may hold it already."""
    if all(draw.is_whole for draw in setting.draws):
        print(f"{folder.name}: every sample is there already", flush=True)
        return
    with folder:
        if not folder.done:
            _generate(setting, folder)
            folder.status("pending")  # part report goes on with it


def _generate(setting: Setting, folder: runs.RunFolder) -> None:
    """Draw what is missing."""
    folder.status("running", 0, _steps(setting))
    for number, draw in enumerate(setting.draws, 1):
        if draw is setting.gate:
            print(f"gate for {draw.subject.name}: {len(draw.prompts)} prompts, {draw.k} samples each", flush=True)
        else:
            print(f"evaluating {draw.subject.name}: {len(draw.prompts)} prompts, {draw.k} sample(s) each", flush=True)
        _draw(setting, draw)
        folder.status(step=number)


def _draw(setting: Setting, draw: Draw) -> None:
    from lingoss.evaluate.generate import generate

    config = setting.config
    generate(
        draw.subject.model,
        draw.prompts,
        draw.folder,
        adapter=draw.subject.adapter,
        format=config.format,
        k=draw.k,
        temperature=draw.temperature,
        max_new_tokens=draw.max_new_tokens,
        batch_tokens=config.generate.batch_tokens,
        seed=config.seed,
        dtype=config.dtype,
        threads=config.threads,
        lock_wait=config.lock_wait,
    )


def _steps(setting: Setting) -> int:
    """One for each draw, one for the report."""
    return len(setting.draws) + 1


def _report(setting: Setting, folder: runs.RunFolder, notes: Sequence[str]) -> None:
    """Score the samples, compare, decide, write the report and finish the run."""
    config, steps = setting.config, _steps(setting)
    folder.status("running", steps - 1, steps)
    scored = [score_folder(draw.folder, draw.subject.name) for draw in setting.heldout]
    rules: Any = config.gate.reward
    verdict = decide_gate(setting, score_folder(setting.gate.folder, setting.judged.name, Rules(**rules)), scored)
    comparisons = compare(scored, draws=config.bootstrap_draws) if len(scored) > 1 else []
    accepted, tricks = decide_accept(setting, scored), find_hacks(setting, scored)
    report = gather(setting, folder.name, scored, comparisons, verdict, accepted, tricks, notes)
    found = {"gate.json": verdict, "compare.json": [one.to_dict() for one in comparisons]}
    found["summary.json"] = [one.to_dict() for one in report.summaries]
    if accepted:
        found["accept.json"] = accepted
    if tricks:
        found["hacks.json"] = tricks.to_dict()
    for name, value in found.items():
        runs.write_json(folder.path / name, value)
    names = [*found, *write_reports(report, folder.path)]
    folder.finish(
        steps,
        {name: runs.file_digest(folder.path / name) for name in names},
        gate=verdict["outcome"],
        **({"accept": accepted["decision"]} if accepted else {}),
    )
    print(f"gate: {verdict['outcome']}. {verdict['reasons'][0]}", flush=True)
    if accepted:
        print(f"accept: {accept_sentence(accepted)}", flush=True)
    print(f"report: {folder.path / 'report.html'}", flush=True)
