# SPDX-License-Identifier: MIT-0
"""The stages: `prepare`, `sft`, `grpo`, `evaluate`, `serve`, each from one YAML file and `--set`, and `demo`, which runs all."""

import argparse
import ast
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from lingoss.errors import TemporaryError

STAGES = {
    "prepare": (
        "lingoss.prepare.stage",
        "Bring base model, data sets and prompt sets to the shared folder; everything later runs offline.",
        "lingoss prepare --set root=./work",
    ),
    "sft": (
        "lingoss.sft",
        "Teach form and languages: LoRA SFT on a frozen base. Killed at any moment, the same command goes on exactly.",
        "lingoss sft --set root=./work --set data.examples_per_language=40 --set max_steps=100",
    ),
    "grpo": (
        "lingoss.grpo",
        "Improve the SFT policy by GRPO on the score of evaluation, if its gate says that is worth it. Resumes exactly.",
        "lingoss grpo --set root=./work --set rollout.mode=transformers --set max_steps=30",
    ),
    "evaluate": (
        "lingoss.evaluate.run",
        "Generate, score, report and compare every finished run on the same prompts, and say whether GRPO is worth it.",
        "lingoss evaluate --set root=./work --set prompts.sets=[core-crossed] --set generate.k=1",
    ),
    "serve": (
        "lingoss.serve",
        "Serve the accepted GRPO run, else the newest SFT run, by vLLM's OpenAI-compatible server.",
        "lingoss serve --set root=./work --dry-run",
    ),
}


def add(commands: Any) -> None:
    """Add the stages and the demo to the parser."""
    for stage, (module, title, example) in STAGES.items():
        parser = commands.add_parser(
            stage,
            help=title,
            description=title,
            epilog=f"example:  {example}\n\nEvery key, its default and its meaning: docs/configuration.md, or --dry-run.\n"
            "A run is named by the settings that change its result, so the same command finds its run again:\n"
            "it resumes an unfinished one and exits at once on a finished one. `--set run=2` does it again.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument(
            "--config", type=Path, metavar="FILE.yaml", help="settings; what it leaves out has its default"
        )
        parser.add_argument(
            "--set", action="append", default=[], metavar="a.b=c", help="one setting; wins over the file"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="print the resolved settings and the plan; load no model"
        )
        if parts := _parts(module):
            told = "; ".join(f"{name}: {meaning}" for name, meaning in parts.items())
            parser.add_argument("--part", choices=parts, metavar="NAME", help=f"only a part of the stage. {told}")
        if stage == "evaluate":
            parser.add_argument(
                "--wait", type=_seconds, metavar="SECONDS", help="how long part report waits for the samples"
            )
        parser.set_defaults(run=_stage, stage=stage, module=module)
    demo = commands.add_parser(
        "demo",
        help="The whole pipeline on a real 135M model, on this machine.",
        description="Convert a real small model, measure it, fine-tune it, improve it by GRPO, measure after each, and write one report.\n"
        "About 10 minutes and 5 GB of memory on two cores. Stop it at any time; the same command goes on.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo.add_argument("--folder", type=Path, default=Path("demo"), help="where to work (default: ./demo)")
    demo.add_argument("--fresh", action="store_true", help="remove the folder's earlier runs and begin again")
    demo.set_defaults(run=_demo)


def _parts(module: str) -> dict[str, str]:
    """The dict PARTS of a stage's module; empty when it has none. Read, not imported: help loads nothing heavy."""
    path = Path(__file__).parents[1].joinpath(*module.split(".")[1:])
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="PARTS")], value=value):
                return dict(ast.literal_eval(value))
    return {}


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError
    return value


def _stage(arguments: argparse.Namespace) -> int:
    from lingoss import config

    settings = config.load(arguments.stage, arguments.config, arguments.set)
    room = importlib.import_module(arguments.module)
    if arguments.dry_run:
        import yaml

        print(config.dump(settings), end="")
        print("---\n# plan")
        # Innermost lists and mappings on one line each: a language table is long enough as it is.
        plan = yaml.safe_dump(
            room.plan(settings), sort_keys=False, allow_unicode=True, default_flow_style=None, width=120
        )
        print(plan, end="")
        return 0
    options = {name: value for name in ("part", "wait") if (value := getattr(arguments, name, None)) is not None}
    speaks = os.environ.get("RANK", "0") == "0"  # one of the processes of a torchrun
    if speaks:
        _tell(arguments.stage, arguments.config, options.get("part"))
    try:
        result = room.run(settings, **options)
    except TemporaryError as error:
        print(f"lingoss {arguments.stage}: {error}", file=sys.stderr)
        return 1
    if speaks and (following := _following(arguments.stage, options.get("part"), result)):
        print(f"next: {_command(following, settings.root)}", flush=True)
    return 0


def _tell(stage: str, file: Path | None, part: str | None) -> None:
    """The head of a log: what runs here, why, and by which settings."""
    what = f"lingoss {stage}: {STAGES[stage][1]}"
    told = f"settings: {file or 'the defaults'}, and --set; all of them resolved: config.json in the run's folder"
    if part:
        told = f"part {part}: {_parts(STAGES[stage][0])[part]}\n{told}"
    print(f"{what}\n{told}", flush=True)  # a refusal stays the only line on standard error


def _following(stage: str, part: str | None, result: Any) -> str | None:
    """The stage that comes after this one; None when this was not all of it."""
    if result is None:
        return None
    if stage == "prepare":
        return None if part == "fetch" else "sft"
    if stage in ("sft", "grpo"):
        return "evaluate" if result.done else None
    if part in (None, "report"):
        done = result.done_record()
        return "grpo" if done.get("gate") == "viable" and "accept" not in done else "serve"
    return None


def _command(stage: str, root: Path) -> str:
    """How a stage is begun from here: a pod's owner does it by Helm."""
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return f"helm upgrade RELEASE charts/lingoss --reset-then-reuse-values --set global.stage={stage}"
    return f"lingoss {stage} --set root={root}"


def _demo(arguments: argparse.Namespace) -> int:
    from lingoss import demo

    return demo.run(arguments.folder, fresh=arguments.fresh)
