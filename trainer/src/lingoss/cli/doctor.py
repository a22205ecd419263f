# SPDX-License-Identifier: MIT-0
"""`doctor`: what is wrong, why, and what to do."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lingoss.errors import LingossError

if TYPE_CHECKING:
    from lingoss.doctor.logs import Diagnosis

DESCRIPTION = """\
Finds what goes wrong on GPU clusters and says cause, evidence and remedy.

  lingoss doctor                this machine or pod: driver, EFA, NCCL, memory, volume, Hub, clock, caches, kernels
  lingoss doctor --logs FILE…   the first failure (not the loudest) in the logs of all ranks, pods and nodes
  lingoss doctor --image        an image against its locks"""

EPILOG = """\
examples: lingoss doctor --root /data                 in a pod of the release; without --root the volume is not checked
          lingoss doctor --logs run/logs events.txt   files, folders, packed files; `-` reads standard input
          kubectl logs -l app.kubernetes.io/name=lingoss --prefix --tail=-1 | lingoss doctor --logs - --json
          lingoss doctor --image --lock a.lock        the last step of an image build

`--logs --json` prints {cause, first: {file, line}, evidence, remedy, …}; `first` and `evidence` are null for cause `none`.
Give all logs of a failure at once: the first one is found by comparing them. docs/troubleshooting.md has all causes.

exit status: 0 nothing wrong (logs: a diagnosis was made, whatever it is); 1 a check failed, and the line below it says what
to do; 2 the question cannot be answered."""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    title = "What is wrong with this machine or pod, an image, or a run that left logs, and what to do."
    parser = commands.add_parser(
        "doctor",
        help=title,
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--logs", nargs="+", metavar="FILE", help="name the first failure in these files or folders")
    what.add_argument("--image", action="store_true", help="check an image against its locks")
    parser.add_argument(
        "--lock",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="--image: its locks (default: those baked into it)",
    )
    parser.add_argument("--root", type=Path, metavar="FOLDER", help="the shared folder of the release, to check it too")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    for name, needs in (("lock", arguments.image), ("root", not (arguments.image or arguments.logs))):
        if getattr(arguments, name) and not needs:
            raise LingossError(f"--{name} does not go with this question: see lingoss doctor --help")
    if arguments.logs:
        from lingoss.doctor.logs import diagnose

        found = diagnose(arguments.logs)
        if arguments.json:
            print(json.dumps(found.to_dict(), ensure_ascii=False))
        else:
            _tell(found)
        return 0
    from lingoss.doctor import check

    if arguments.image:
        from lingoss.doctor import image

        return check.tell(image.checks(arguments.lock), as_json=arguments.json)
    from lingoss.doctor import live

    return check.tell(live.checks(arguments.root), as_json=arguments.json)


def _tell(found: "Diagnosis") -> None:
    row = found.to_dict()
    print(f"cause     {found.cause}: {row['meaning']}")
    if found.first:
        print(f"first     {found.first.file}:{found.first.line}")
        print(f"evidence  {found.evidence}")
    if found.detail:
        print(f"          {found.detail}")
    print(f"remedy    {found.remedy}")
    for cause, place in found.others:
        print(f"also      {cause} at {place.file}:{place.line}")
    for line in found.unread:
        print(f"unread    {line}")
