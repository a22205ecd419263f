# SPDX-License-Identifier: MIT-0
"""`guard`: may a release change its stage? The chart runs it in a hook before each upgrade and rollback."""

import argparse
from pathlib import Path
from typing import Any

DESCRIPTION = """\
Says whether a release may change to another stage, before Helm changes anything. It refuses

  to leave a stage whose workload is running or queued (serve may always be left),
  to start sft or evaluate without a finished prepare run, or serve without a finished run to serve,
  to start grpo without a finished sft run, or when the last gate of that run is not `viable`.

A stage whose own run is done may always be entered: it ends at once."""

EPILOG = """\
example:  lingoss guard --release lingoss --namespace team-a --stage sft --workload lingoss-sft-1a2b3c4d \\
              --config /etc/lingoss/sft.yaml

It runs in a pod whose account may list jobs, rayjobs and hyperpodpytorchjobs of the namespace; kinds that the cluster
does not know count as none. The run folders are found under the config's `root` and are only read.

exit status: 0 allowed; 1 refused, with one line that says why, what to do and which flag overrides.
In the chart: `--set guard.force=true` overrides once, `--set guard.enabled=false` does without the guard."""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    title = "May a release change to another stage? For the chart's hook."
    parser = commands.add_parser(
        "guard",
        help=title,
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--release", required=True, metavar="NAME", help="the Helm release")
    parser.add_argument("--namespace", required=True, metavar="NAME", help="its namespace")
    parser.add_argument(
        "--stage",
        required=True,
        choices=("none", "prepare", "sft", "grpo", "evaluate", "serve"),
        help="the stage to change to",
    )
    parser.add_argument(
        "--workload",
        action="extend",
        nargs="+",
        default=[],
        metavar="NAME",
        help="names of that stage's jobs; a running one that is not among them will be replaced, which is told",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE.yaml", help="settings of that stage (none and prepare: no)"
    )
    parser.add_argument("--force", action="store_true", help="warn instead of refusing")
    parser.set_defaults(run=_guard)


def _guard(arguments: argparse.Namespace) -> int:
    from lingoss.guard import check

    return check(
        arguments.release,
        arguments.namespace,
        arguments.stage,
        arguments.workload,
        arguments.config,
        arguments.force,
    )
