# SPDX-License-Identifier: MIT-0
"""The steps of an evaluation one by one: `generate report compare gate accept power` (`score` is among the texts).

Each works on folders: `generate` makes one, `score FOLDER` adds the verdicts, the others read them.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lingoss.cli.folders import WIDE
from lingoss.errors import LingossError

if TYPE_CHECKING:
    from rich.console import Console

    from lingoss.evaluate.rows import ScoredRun

FOLDER = "a folder that `lingoss generate` made and `lingoss score` scored"
EXAMPLES = {
    "generate": """\
example:  lingoss generate --run base --root work --prompts core-crossed --limit 10 -o base
          lingoss generate --run latest:sft --root work --prompts core-crossed --limit 10 -o sft
          lingoss score base && lingoss score sft && lingoss report base sft -o page

Prompts of your own: JSON lines {"question": "...", "reasoning_language": "fr", "answer_language": "fr", "gold": "4"};
only `question` is needed. The same command goes on where it was stopped.""",
    "report": """\
example:  lingoss report base sft -o page        earliest first; how to read it: docs/report.md

Texts of your own: copy their rows (see `lingoss score --help`) to FOLDER/samples.jsonl, then `lingoss score FOLDER`.""",
    "compare": "example:  lingoss compare base sft\n          lingoss compare sft grpo --tricks        what they are: docs/reward.md",
    "gate": "example:  lingoss generate --run latest:sft --root work --prompts validation --k 8 --temperature 1 -o drawn\n"
    "          lingoss score drawn && lingoss gate drawn\n\n"
    "What each outcome means: docs/report.md. `lingoss evaluate` does all this in one.",
    "accept": "example:  lingoss accept grpo sft\n\nPrints accept or keep, with the reasons.",
    "power": "example:  lingoss power --difference 0.05",
}


def positive(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


def temperature(text: str) -> float:
    """A sampling temperature, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be 0 (greedy) or a positive number, not {text!r}")
    return value


def add(commands: Any) -> None:
    """Add the six commands to the parser."""
    _generate_arguments(
        _command(commands, "generate", _generate, "Sample completions of a model, resumable, one row a sample.")
    )

    report = _command(commands, "report", _report, "One page on one or more scored folders: terminal, Markdown, HTML.")
    report.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help=FOLDER)
    report.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="write report.html and report.md there")

    compare = _command(
        commands, "compare", _compare, "What changed from one run to the next: paired, with intervals and tests."
    )
    compare.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER", help=f"two or more, earliest first; each {FOLDER}"
    )
    compare.add_argument("--force", action="store_true", help="compare other prompt sets or detectors too, as unpaired")
    compare.add_argument(
        "--tricks", action="store_true", help="did the share of any known trick to earn reward rise? (after GRPO)"
    )
    compare.add_argument("--json", action="store_true", help="print the figures as JSON")

    gate = _command(commands, "gate", _gate, "Is GRPO worth starting? From k samples of each prompt.")
    gate.add_argument("folder", type=Path, metavar="FOLDER", help=FOLDER)
    gate.add_argument(
        "--heldout", type=Path, metavar="FOLDER", help="the same model on held-out prompts: is the target met already?"
    )
    gate.add_argument(
        "--baseline", type=Path, metavar="FOLDER", help="its parent on those prompts: was correctness kept?"
    )
    gate.add_argument(
        "--k", type=positive, default=8, help="samples of each prompt that count (default: 8, as GRPO draws)"
    )
    gate.add_argument(
        "--waive-prompts", action="store_true", help="decide from fewer than 64 prompts a language; the reasons say so"
    )
    gate.add_argument(
        "--waive-groups", action="store_true", help="do without 8 informative groups a step; the reasons say so"
    )
    gate.add_argument("-o", "--output", type=Path, metavar="gate.json", help="write the decision there too")
    gate.add_argument(
        "--require", metavar="OUTCOME", help="exit with 1 unless this is the outcome (viable, for example)"
    )

    accept = _command(
        commands, "accept", _accept, "Does the candidate replace the current run? Clause by clause, paired."
    )
    accept.add_argument("candidate", type=Path, metavar="CANDIDATE", help=f"the GRPO run; {FOLDER}")
    accept.add_argument(
        "current", type=Path, metavar="CURRENT", help="the SFT run that it would replace, on the same prompts"
    )
    accept.add_argument("-o", "--output", type=Path, metavar="accept.json", help="write the decision there too")

    power = _command(commands, "power", _power, "How many prompts does a difference need to be seen?")
    power.add_argument("--difference", type=float, default=0.08, help="true difference as a share (default: 0.08)")
    power.add_argument("--power", type=float, default=0.8, help="chance to see it (default: 0.8)")


def _command(commands: Any, name: str, work: Any, title: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=title, description=title, epilog=EXAMPLES[name], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(run=work)
    return parser


def _generate_arguments(parser: argparse.ArgumentParser) -> None:
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument(
        "--run", dest="reference", metavar="RUN", help="a finished run under --root: name, id, latest:sft, or `base`"
    )
    model.add_argument("--model", type=Path, metavar="FOLDER", help="a local model folder")
    parser.add_argument("--adapter", type=Path, metavar="FOLDER", help="a PEFT adapter for --model")
    parser.add_argument("--root", type=Path, default=Path(), help="the shared folder with runs/ (default: .)")
    parser.add_argument(
        "--prompts",
        required=True,
        metavar="SET|FILE",
        help="core, core-crossed, validation, heldout, or a JSONL file of yours",
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FOLDER", help="where samples.jsonl and run.json go"
    )
    parser.add_argument("--languages", default="en,fr,de,es,it", metavar="en,fr,…", help="languages of a built-in set")
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N prompts")
    parser.add_argument("--format", default="think", help="chat format: think, plain or harmony (default: think)")
    parser.add_argument("--k", type=positive, default=1, help="samples of each prompt (default: 1)")
    parser.add_argument("--temperature", type=temperature, default=0.0, help="0 is greedy (default)")
    parser.add_argument("--max-new-tokens", type=positive, default=512, help="longest completion (default: 512)")
    parser.add_argument(
        "--batch-tokens", type=positive, default=16384, help="most tokens generated at once (default: 16384)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--threads", type=positive, help="CPU threads (default: torch's choice)")


def _generate(arguments: argparse.Namespace) -> int:
    from lingoss.data import prompt_set
    from lingoss.data.files import read_prompts
    from lingoss.data.prompt_sets import NAMES
    from lingoss.evaluate.generate import generate

    if arguments.reference and arguments.adapter:
        raise LingossError("--adapter goes with --model; --run brings its own adapter: leave one of them out")
    if arguments.prompts in NAMES:
        rows = prompt_set(arguments.prompts, [code.strip() for code in arguments.languages.split(",") if code.strip()])
    elif not Path(arguments.prompts).exists():
        raise LingossError(f"--prompts {arguments.prompts}: no such file, and the prompt sets are {', '.join(NAMES)}")
    else:
        rows = read_prompts(arguments.prompts)
    model, adapter = arguments.model, arguments.adapter
    if arguments.reference:
        model, adapter = _weights(arguments.root, arguments.reference)
    generate(
        model,
        rows[: arguments.limit],
        arguments.output,
        adapter=adapter,
        format=arguments.format,
        k=arguments.k,
        temperature=arguments.temperature,
        max_new_tokens=arguments.max_new_tokens,
        batch_tokens=arguments.batch_tokens,
        seed=arguments.seed,
        dtype=arguments.dtype,
        threads=arguments.threads,
    )
    print(f"samples: {arguments.output / 'samples.jsonl'}\nnext:    lingoss score {arguments.output}")
    return 0


def _weights(root: Path, reference: str) -> tuple[Path, Path | None]:
    """Base model and adapter of a run; the base model alone for `base`."""
    from lingoss import runs
    from lingoss.prepare import base_of, prepared

    if reference == "base":
        return prepared(root, runs.find_run(root, "latest:prepare").name).model, None
    run = runs.find_run(root, reference)
    run.done_record()
    if not (run.path / "adapter").is_dir():
        raise LingossError(f"run {run.name} has no adapter: name an sft run, or `base` for the model without one")
    return base_of(root, run).model, run.path / "adapter"


def _read(folders: list[Path]) -> "list[ScoredRun]":
    """Scored folders as runs; two of the same name get their folders' names."""
    from lingoss.evaluate.scoring import read_scored

    found = [read_scored(folder) for folder in folders]
    if len({run.name for run in found}) < len(found):
        found = [read_scored(folder, str(folder)) for folder in folders]
    return found


def _console() -> "Console":
    """Standard output; into a file or a pipe a fixed width that leaves the tables whole."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 120)


def _report(arguments: argparse.Namespace) -> int:
    from lingoss.evaluate.compare import check_comparable, compare
    from lingoss.evaluate.report import ReportData, terminal, write_reports
    from lingoss.evaluate.summary import summarise

    found = _read(arguments.folders)
    for run in found[1:]:
        check_comparable(found[0], run)
    data = ReportData(found, [summarise(run) for run in found], compare(found) if len(found) > 1 else [])
    _console().print(terminal.build(data))
    if arguments.output:
        for name in write_reports(data, arguments.output):
            print(arguments.output / name)
    return 0


def _compare(arguments: argparse.Namespace) -> int:
    from itertools import combinations

    from lingoss.evaluate.compare import compare
    from lingoss.evaluate.hacks import hacks
    from lingoss.evaluate.report import terminal

    runs = _read(arguments.folders)
    found = compare(runs, force=arguments.force)
    tricks = [hacks(*sides) for sides in combinations(runs, 2)] if arguments.tricks else []
    if arguments.json:
        shown = [one.to_dict() for one in found]
        print(
            json.dumps(
                {"comparisons": shown, "tricks": [one.to_dict() for one in tricks]} if tricks else shown, indent=2
            )
        )
        return 0
    for comparison in found:
        _console().print(terminal.comparison(comparison))
    for one in tricks:
        _console().print(terminal.tricks(one))
    return 0


def _gate(arguments: argparse.Namespace) -> int:
    from lingoss.evaluate.gate import OUTCOMES, GateSettings, gate
    from lingoss.evaluate.scoring import read_scored

    if arguments.require and arguments.require not in OUTCOMES:
        raise LingossError(f"--require {arguments.require}: outcomes are {', '.join(OUTCOMES)}")
    settings = GateSettings(
        samples=arguments.k, waive_prompts=arguments.waive_prompts, waive_groups=arguments.waive_groups
    )
    heldout, baseline = (read_scored(path) if path else None for path in (arguments.heldout, arguments.baseline))
    found = gate(read_scored(arguments.folder), settings, heldout, baseline).to_dict()
    _decision(found, arguments.output)
    return int(bool(arguments.require) and found["outcome"] != arguments.require)


def _accept(arguments: argparse.Namespace) -> int:
    from lingoss.evaluate.accept import accept
    from lingoss.evaluate.scoring import read_scored

    _decision(accept(read_scored(arguments.candidate), read_scored(arguments.current)).to_dict(), arguments.output)
    return 0


def _decision(found: dict[str, Any], output: Path | None) -> None:
    """Print the decision with its reasons, and write it."""
    from lingoss import runs

    print(found.get("outcome") or found["decision"])
    for reason in (*found.get("reasons", ()), *found.get("failed", ())):
        print(f"- {reason}")
    if output:
        output.absolute().parent.mkdir(parents=True, exist_ok=True)
        runs.write_json(output.absolute(), found)


def _power(arguments: argparse.Namespace) -> int:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from lingoss.evaluate import power

    if not 0 < arguments.difference < 0.5 or not 0.5 <= arguments.power < 1:
        raise LingossError("--difference must be a share between 0 and 0.5, and --power one from 0.5 to below 1")
    table = Table(
        title=f"Prompts per language to see {100 * arguments.difference:g} points",
        box=SIMPLE_HEAD,
        title_justify="left",
    )
    for name in ("design", "assumption", "alpha", "prompts"):
        table.add_column(name, justify="right" if name == "prompts" else "left")
    for need in power.table(arguments.difference, arguments.power):
        table.add_row(need.design, need.assumption, f"{need.alpha:g}", f"{need.prompts:,}")
    Console(width=None if sys.stdout.isatty() else WIDE).print(table)
    return 0
