# SPDX-License-Identifier: MIT-0
"""`guard`: may a release change its stage? The chart runs it in hooks before upgrade, rollback and uninstall."""

import argparse
from pathlib import Path
from typing import Any

DESCRIPTION = """\
Says whether a release may change to another stage, before Helm changes anything. It refuses

  cluster   to leave a stage whose workload is running or queued (serve may always be left),
            to start a stage that reads the volume while the claim is not bound;
  volume    to start sft or evaluate without a finished prepare run, or serve without a finished run to serve,
            to start grpo without a finished sft run, or when the last gate of that run is not `viable`.

A stage whose own run is done may always be entered: it ends at once.

  cleanup   stops what still runs and deletes what is left of the release, before an uninstall."""

EPILOG = """\
examples: lingoss guard cluster --release lingoss --namespace team-a --stage sft --workload lingoss-sft-1a2b3c4d \\
              --claim lingoss-data
          lingoss guard volume --stage sft --config /etc/lingoss/sft.yaml
          lingoss guard cleanup --release lingoss --namespace team-a

`cluster` runs in a pod whose account may list jobs, rayjobs and hyperpodpytorchjobs of the namespace and get the claim;
kinds that the cluster does not know count as none. It mounts no volume: a pod that does never starts while the claim is
not bound. `volume` asks only the run folders under the config's `root`, and only reads. `cleanup` deletes the release's
jobs, rayjobs and hyperpodpytorchjobs, deployments, services, policies, configs and accounts, never a claim: after an upgrade
that failed, Helm knows only what that would have brought, and would leave what runs behind.

exit status: 0 allowed; 1 refused, with one line that says why, what to do and which flag overrides.
In the chart: `--set guard.force=true` overrides until it is set back, `--set guard.enabled=false` does without the guard."""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    title = "May a release change to another stage? For the chart's hooks."
    parser = commands.add_parser(
        "guard",
        help=title,
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    questions = parser.add_subparsers(required=True, metavar="cluster|volume|cleanup")
    title = "May the release leave its stage, and can the next one mount the volume?"
    cluster = questions.add_parser("cluster", help=title, description=title)
    _add_release(cluster)
    _add_stage(cluster, ("none", "prepare", "sft", "grpo", "evaluate", "serve"))
    cluster.add_argument(
        "--workload",
        action="extend",
        nargs="+",
        default=[],
        metavar="NAME",
        help="names of that stage's jobs; a running one that is not among them will be replaced, which is told",
    )
    cluster.add_argument("--claim", metavar="NAME", help="the claim of the volume that the stage reads")
    cluster.add_argument("--force", action="store_true", help="warn instead of refusing")
    cluster.set_defaults(run=_cluster)

    title = "Is the finished input of a stage on the volume, and for grpo the gate `viable`?"
    volume = questions.add_parser("volume", help=title, description=title)
    _add_stage(volume, ("sft", "grpo", "evaluate", "serve"))
    volume.add_argument("--config", required=True, type=Path, metavar="FILE.yaml", help="settings of that stage")
    volume.set_defaults(run=_volume)

    title = "Delete what a release still has, but for its claim, before it is uninstalled."
    cleanup = questions.add_parser("cleanup", help=title, description=title)
    _add_release(cleanup)
    cleanup.set_defaults(run=_cleanup)


def _add_release(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release", required=True, metavar="NAME", help="the Helm release")
    parser.add_argument("--namespace", required=True, metavar="NAME", help="its namespace")
    parser.add_argument(
        "--kinds",
        nargs="+",
        choices=("Job", "RayJob", "HyperPodPyTorchJob"),
        help="kinds of jobs that the release can have (default: all); the account needs no right on others",
    )


def _add_stage(parser: argparse.ArgumentParser, stages: tuple[str, ...]) -> None:
    parser.add_argument("--stage", required=True, choices=stages, help="the stage to change to")


def _cluster(arguments: argparse.Namespace) -> int:
    from lingoss.guard import check_cluster

    return check_cluster(
        arguments.release,
        arguments.namespace,
        arguments.stage,
        arguments.workload,
        arguments.claim,
        arguments.force,
        arguments.kinds,
    )


def _volume(arguments: argparse.Namespace) -> int:
    from lingoss.guard import check_volume

    return check_volume(arguments.stage, arguments.config)


def _cleanup(arguments: argparse.Namespace) -> int:
    from lingoss.guard import clean_up

    return clean_up(arguments.release, arguments.namespace, arguments.kinds)
