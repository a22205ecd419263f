# SPDX-License-Identifier: MIT-0
"""The command line. Each command lives in a small file here and imports what is heavy only when it runs.

Exit status: 0 done, 1 done but some rows were bad (or a check said no), 2 refused with one line that says why,
130 stopped by Ctrl-C and resumable, 143 by SIGTERM.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from lingoss import __version__
from lingoss.cli import checkpoints, doctor, evaluation, folders, guard, stages, texts
from lingoss.errors import LingossError

DESCRIPTION = "Reasoning models that think and answer in the language they are asked for."

EPILOG = """\
first steps
  lingoss demo                         the whole pipeline on a real 135M model, on this machine
  lingoss detect FILE.jsonl            which language is each text in?
  lingoss score FILE.jsonl             reward and every term of it, for texts you have

stages (each takes --config FILE.yaml, --set a.b=c and --dry-run)
  prepare -> sft -> evaluate -> serve

an evaluation by hand
  generate -> score -> report, compare, gate, accept

`lingoss COMMAND --help` teaches each command. Files are JSON lines; `-` reads standard input.
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line, without importing anything heavy."""
    top = argparse.ArgumentParser(
        prog="lingoss", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--version", action="version", version=f"lingoss {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for room in (stages, evaluation, texts, folders, checkpoints, doctor, guard):
        room.add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    arguments = parser().parse_args(argv)
    # Before torch is loaded: idle threads sleep. Spinning ones make a busy machine many times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        return int(arguments.run(arguments) or 0)
    except LingossError as error:
        print(f"lingoss {arguments.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\nlingoss {arguments.command}: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `lingoss … | head` is no error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        print(f"lingoss {arguments.command}:{where}: {error.strerror or error}", file=sys.stderr)
        return 2


def entry() -> None:
    """The console script. SIGTERM ends it: the first process of a container ignores it otherwise, until it is killed."""
    signal.signal(signal.SIGTERM, _end)
    sys.exit(main())


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
