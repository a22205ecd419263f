# SPDX-License-Identifier: MIT-0
"""Commands on run folders: `runs` lists them, `export` takes a model out."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

WIDE = 250
"""Columns of a table that goes to a file or a pipe: nothing is folded there."""


def add(commands: Any) -> None:
    """Add the two commands to the parser."""
    title = "Every run under a root: state, progress, where it came from, what is wrong with it."
    listing = commands.add_parser("runs", help=title, description=title)
    listing.add_argument("--root", type=Path, default=Path(), help="the shared folder with runs/ (default: .)")
    listing.add_argument("--json", action="store_true", help="one JSON row a run")
    listing.set_defaults(run=_runs)

    title = "Take a trained adapter, or the merged model, out of a run, with a model card and digests."
    export = commands.add_parser("export", help=title, description=title)
    export.add_argument("reference", metavar="RUN", help="a finished run: name, id, unique beginning, or latest:sft")
    export.add_argument("output", type=Path, metavar="FOLDER", help="a new or empty folder")
    export.add_argument("--root", type=Path, default=Path(), help="the shared folder with runs/ (default: .)")
    export.add_argument(
        "--merged", action="store_true", help="the whole model with the adapter merged in, instead of the adapter"
    )
    export.set_defaults(run=_export)


def _runs(arguments: argparse.Namespace) -> int:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from lingoss import runs

    rows = runs.run_rows(arguments.root)
    if arguments.json:
        for row in rows:
            print(json.dumps(asdict(row)))
        return 0
    if not rows:
        print(f"no runs below {arguments.root / 'runs'}; `lingoss prepare --set root={arguments.root}` makes the first")
        return 0
    # Empty columns are left out and notes stand below, so that names stay whole in 80 columns.
    columns = zip(runs.HEADERS, *(row.cells() for row in rows), strict=True)
    shown = [(name, cells) for name, *cells in columns if name != "note" and any(cells)]
    table = Table(box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for name, _ in shown:
        table.add_column(name, overflow="fold", no_wrap=name != "parent")
    for line in zip(*(cells for _, cells in shown), strict=True):
        table.add_row(*(Text(cell) for cell in line))
    Console(width=None if sys.stdout.isatty() else WIDE).print(table)
    for row in rows:
        if row.note:
            print(f"{row.name}: {row.note}")
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from lingoss.export import export_run

    for path in export_run(arguments.root, arguments.reference, arguments.output, merged=arguments.merged):
        print(path)
    return 0
