# SPDX-License-Identifier: MIT-0
"""`lingoss checkpoints`: are they whole, what do they hold, one model of base and adapter, and disk back."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lingoss.errors import LingossError

if TYPE_CHECKING:
    from lingoss.checkpoints.examine import Examined
    from lingoss.runs import RunInfo

_TITLE = "Checkpoints: verify, convert to an adapter, merge into a model, prune."

_ABOUT = """\
What lies in a run's checkpoints/, and what to do with it.

  verify    Is everything whole? Sizes, sha256, shapes, NaN and infinity; every kind that is known.
  convert   A checkpoint of any kind -> a PEFT adapter folder.
  merge     Base model + adapter -> one model that needs no adapter.
  prune     Delete what nobody needs. Shows a plan; --yes carries it out.

A finished run's adapter with a model card for others comes from `lingoss export` instead. Training resumes by itself
from the newest whole checkpoint, so none of this is needed to go on with a run.
"""

_VERIFY = """\
examples
  lingoss checkpoints verify --root /shared              every run below /shared/runs
  lingoss checkpoints verify latest:sft --root /shared   one run: its checkpoints and its adapter
  lingoss checkpoints verify checkpoint-200 out/merged   folders, whoever wrote them

kinds
  single      a checkpoint of one process          sharded   one of several, each wrote a part
  accelerate  torch.distributed.checkpoint folders (pytorch_model_fsdp_0) of other trainers
  adapter     PEFT's two files                     model     safetensors with or without an index

Nothing is changed, and no pickle is ever executed. Exit status 1 when something is not whole.
"""

_CONVERT = """\
examples
  lingoss checkpoints convert sft-3fa… out/adapter --root /shared      newest whole checkpoint of a run
  lingoss checkpoints convert checkpoint-200 out/adapter               that checkpoint
  lingoss checkpoints convert ckpt/pytorch_model_fsdp_0 out/adapter --adapter-config adapter_config.json

Rank, alpha and layers come from PEFT's adapter_config.json, never from a guess: our checkpoints carry it, those of
other trainers need --adapter-config. The tensors are compared with the checkpoint, part by part, after writing.
"""

_MERGE = """\
examples
  lingoss checkpoints merge latest:sft out/model --root /shared        the run's adapter into its own base
  lingoss checkpoints merge out/adapter out/model --base models/gpt-oss-20b-bf16

Each changed weight is computed in float32 and rounded once; everything else is copied. One file of the base after the
other: 20 billion parameters need about 1 GB of memory, not 84 GB. Stopped in the middle, the same command goes on.
`lingoss export --merged` does the same for a finished run and adds a model card with measured results.
"""

_PRUNE = """\
examples
  lingoss checkpoints prune --root /shared                      plan: keep the newest whole one of each run
  lingoss checkpoints prune --root /shared --budget 50          plan: no more than 50 GB in all, as few as must go
  lingoss checkpoints prune latest:sft --root /shared --yes     carry it out, for one run

Bad checkpoints go first, then those of finished runs, then the oldest. The newest whole one of a run stays always, and
so does everything of a run that is running. Exit status 1 when the budget cannot be met or something could not go.
"""


def add(commands: Any) -> None:
    """Add the command and its four parts to the parser."""
    raw = argparse.RawDescriptionHelpFormatter
    group = commands.add_parser("checkpoints", help=_TITLE, description=_ABOUT, formatter_class=raw)
    parts = group.add_subparsers(dest="part", metavar="PART", required=True)

    title = "Look whether checkpoints, adapters and models are whole."
    one = parts.add_parser("verify", help=title, description=title, epilog=_VERIFY, formatter_class=raw)
    one.add_argument("where", nargs="*", metavar="WHERE", help="a run or a folder (default: every run)")
    _root(one)
    one.add_argument("--json", action="store_true", help="one JSON row for each thing that was looked at")
    one.set_defaults(run=_verify)

    title = "Write the adapter that a checkpoint holds as a PEFT folder."
    one = parts.add_parser("convert", help=title, description=title, epilog=_CONVERT, formatter_class=raw)
    one.add_argument("source", metavar="CHECKPOINT", help="a checkpoint's folder, or a run")
    one.add_argument("output", type=Path, metavar="FOLDER", help="a new folder")
    _root(one)
    one.add_argument("--adapter-config", type=Path, metavar="FILE", help="PEFT's adapter_config.json, if none is there")
    one.set_defaults(run=_convert)

    title = "Merge an adapter into its base model."
    one = parts.add_parser("merge", help=title, description=title, epilog=_MERGE, formatter_class=raw)
    one.add_argument("source", metavar="ADAPTER", help="an adapter's folder, a checkpoint, or a run")
    one.add_argument("output", type=Path, metavar="FOLDER", help="a new folder")
    _root(one)
    one.add_argument("--base", type=Path, metavar="FOLDER", help="the base model (default: the one of the run)")
    one.add_argument("--adapter-config", type=Path, metavar="FILE", help="PEFT's adapter_config.json, if none is there")
    one.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16", help="default: bfloat16")
    one.set_defaults(run=_merge)

    title = "Delete checkpoints that nobody needs; without --yes only say which."
    one = parts.add_parser("prune", help=title, description=title, epilog=_PRUNE, formatter_class=raw)
    one.add_argument("where", nargs="*", metavar="RUN", help="runs (default: all)")
    _root(one)
    one.add_argument(
        "--keep", type=int, default=1, metavar="N", help="newest whole ones to keep of each run (default: 1)"
    )
    one.add_argument(
        "--budget", type=float, metavar="GB", help="delete only until the checkpoints take no more than that"
    )
    one.add_argument("--yes", action="store_true", help="delete; otherwise nothing is changed")
    one.set_defaults(run=_prune)


def _root(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", type=Path, default=Path(), help="the shared folder with runs/ (default: .)")


def _verify(arguments: argparse.Namespace) -> int:
    from lingoss import runs
    from lingoss.checkpoints.examine import examine, examine_run

    found: list[Examined] = []
    if arguments.where:
        for where in arguments.where:
            run = _run_of(arguments.root, where)
            found += examine_run(run) if run else examine(Path(where))
    else:
        for run in runs.list_runs(arguments.root):
            found += examine_run(run)
    if arguments.json:
        for one in found:
            print(json.dumps(one.to_dict()))
    else:
        _table(found, arguments.root)
    return 1 if any(one.problem for one in found) else 0


def _table(found: "list[Examined]", root: Path) -> None:
    from lingoss.runs import gigabytes

    if not found:
        print(f"no checkpoints below {root / 'runs'}")
    for one in found:
        print(f"{'whole' if one.problem is None else 'BAD  '}  {one.kind:<10}  {gigabytes(one.bytes):>9}  {one.path}")
        if one.problem:
            print(f"       {one.problem}")
    bad = sum(one.problem is not None for one in found)
    if found:
        print(f"{len(found) - bad} of {len(found)} whole")


def _convert(arguments: argparse.Namespace) -> int:
    from lingoss.checkpoints.convert import convert
    from lingoss.runs import gigabytes

    source = _source(arguments.root, arguments.source)
    made = convert(source, arguments.output, _config(arguments.adapter_config))
    print(f"{made.path}: {made.tensors} tensors, {gigabytes(made.bytes)}, from the {made.kind} checkpoint {source}")
    print(f"sha256 {made.sha256}")
    return 0


def _merge(arguments: argparse.Namespace) -> int:
    import shutil

    from lingoss.checkpoints.adapter import CONFIG, WEIGHTS
    from lingoss.checkpoints.convert import convert
    from lingoss.checkpoints.manifest import MANIFEST, verify
    from lingoss.checkpoints.merge import merge_folder
    from lingoss.prepare import base_of

    run = _run_of(arguments.root, arguments.source)
    if arguments.base is None and run is None:
        raise LingossError(f"{arguments.source} is no run, so its base model is not known: give it with --base")
    base = arguments.base or base_of(arguments.root, run).model  # type: ignore[arg-type]  # one of the two is there
    finished = run is not None and run.done
    source = run.path / "adapter" if run and finished else _source(arguments.root, arguments.source)
    output = arguments.output.absolute()
    aside = output.with_name(f".{output.name}.adapter")
    if (source / MANIFEST).exists():
        verify(source)
    try:
        if not ((source / WEIGHTS).is_file() and (source / CONFIG).is_file()):
            shutil.rmtree(aside, ignore_errors=True)
            source = convert(source, aside, _config(arguments.adapter_config)).path
        files = merge_folder(
            base, source, arguments.output, arguments.dtype, run.name if run else Path(arguments.source).name
        )
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    for name, digest in files.items():
        print(f"{digest}  {arguments.output / name}")
    return 0


def _prune(arguments: argparse.Namespace) -> int:
    from lingoss import runs
    from lingoss.checkpoints.prune import held, plan, prune

    if arguments.keep < 1 or (arguments.budget is not None and arguments.budget < 0):
        raise LingossError("--keep is at least 1 and --budget at least 0: the newest whole one always stays")
    chosen = [runs.find_run(arguments.root, where) for where in arguments.where] or runs.list_runs(arguments.root)
    budget = None if arguments.budget is None else int(arguments.budget * 1e9)
    found = [one for run in chosen for one in held(run)]
    planned = plan(found, arguments.keep, budget)
    for one in planned.staying:
        print(f"stays   {runs.gigabytes(one.bytes):>9}  {one.path}" + (f"  ({one.reason})" if one.reason else ""))
    for one in planned.going:
        print(f"{'goes' if one.whole else 'bad '}    {runs.gigabytes(one.bytes):>9}  {one.path}")
    gone, refused = prune(arguments.root, planned.going) if arguments.yes else ([], [])
    for reason in refused:
        print(f"lingoss checkpoints: {reason}", file=sys.stderr)
    freed = sum(one.bytes for one in gone) if arguments.yes else planned.freed
    word = "freed" if arguments.yes else "would be freed; nothing was changed, --yes deletes"
    print(f"{runs.gigabytes(freed)} {word}; {runs.gigabytes(planned.left)} of checkpoints stay")
    if budget is not None and planned.left > budget:
        print(f"lingoss checkpoints: the budget of {runs.gigabytes(budget)} cannot be met", file=sys.stderr)
        return 1
    return 1 if refused else 0


def _run_of(root: Path, where: str) -> "RunInfo | None":
    """The run that is meant, unless `where` is a folder. Raises LingossError when it is neither."""
    from lingoss import runs

    if Path(where).exists():
        return None
    try:
        return runs.find_run(root, where)
    except LingossError as error:
        raise LingossError(f"{where} is no folder, and {error}") from error


def _source(root: Path, where: str) -> Path:
    """The checkpoint that is meant: a folder, or the newest whole one of a run."""
    from lingoss.checkpoints.store import newest_whole

    run = _run_of(root, where)
    if run is None:
        return Path(where)
    newest, bad = newest_whole(run.path / "checkpoints")
    for one in bad:
        print(f"lingoss checkpoints: passed over {one}", file=sys.stderr)
    if newest is None:
        raise LingossError(f"run {run.name} has no whole checkpoint")
    return newest


def _config(path: Path | None) -> Any:
    if path is None:
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise LingossError(f"--adapter-config {path} cannot be read: {error}") from error
