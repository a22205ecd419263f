# SPDX-License-Identifier: MIT-0
"""The stages: `prepare`, `sft`, `evaluate`, each from one YAML file and `--set`, and `demo`, which runs all."""

import argparse
import importlib
from pathlib import Path
from typing import Any

STAGES = {
    "prepare": (
        "lingoss.prepare",
        "Bring base model, data sets and prompt sets to the shared folder; everything later runs offline.",
        "lingoss prepare --set root=./work",
    ),
    "sft": (
        "lingoss.sft",
        "Teach form and languages: LoRA SFT on a frozen base. Killed at any moment, the same command goes on exactly.",
        "lingoss sft --set root=./work --set data.examples_per_language=40 --set max_steps=100",
    ),
    "evaluate": (
        "lingoss.evaluate.run",
        "Generate, score, report and compare every finished run on the same prompts, and say whether GRPO is worth it.",
        "lingoss evaluate --set root=./work --set prompts.sets=[core-crossed] --set generate.k=1",
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
        parser.set_defaults(run=_stage, stage=stage, module=module)
    demo = commands.add_parser(
        "demo",
        help="The whole pipeline on a real 135M model, on this machine.",
        description="Convert a real small model, measure it, gate, fine-tune it, measure it again, and write one report.\n"
        "About 8 minutes and 5 GB of memory on two cores. Stop it at any time; the same command goes on.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo.add_argument("--folder", type=Path, default=Path("demo"), help="where to work (default: ./demo)")
    demo.add_argument("--fresh", action="store_true", help="remove the folder's earlier runs and begin again")
    demo.set_defaults(run=_demo)


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
    room.run(settings)
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from lingoss import demo

    return demo.run(arguments.folder, fresh=arguments.fresh)
