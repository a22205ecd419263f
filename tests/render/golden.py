# SPDX-License-Identifier: MIT-0
"""Golden renders: how the chart's output looks today, so that a change of it is read by a person.

golden/<stage>[-<engine or runtime>].yaml        the whole render of each stage on the base layout
golden/layouts/<layout>-<stage>[-<engine>].diff  what another layout changes in it
golden/variants/<variant>.diff                   what a variant of variants.yaml changes in it; one is an upgrade
golden/notes/<stage>[-<engine or runtime>].txt   what NOTES.txt says

`make golden` (or `python tests/render/golden.py`) rewrites them; test_golden.py compares byte by byte.
"""

import difflib
import re
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "charts")]

import charts

from cases import EXTRA, Case, stages_of, values

FOLDER = Path(__file__).parent / "golden"
HEAD = "# SPDX-License-Identifier: MIT-0\n# Written by `make golden`.\n"
COMMAND = "make golden"


def base_of(case: Case) -> str:
    """Name of the whole render that a case is compared with: its stage, with what runs it where there is a choice."""
    choice = {"grpo": "grpo.engine", "sft": "sft.runtime"}.get(case.stage)
    return f"{case.stage}-{case.values.get(choice, values()[choice].default)}" if choice else case.stage


def text_of(case: Case, version: int) -> str:
    """The render as it is kept: Helm 3 and Helm 4 leave different blank lines between documents, and nothing else."""
    return HEAD + re.sub(r"\n\n+(?=---\n|\Z)", "\n", case.text(version=version, upgrade=case.upgrade))


@cache
def files() -> dict[str, Callable[[int], str]]:
    """Every golden file, and what makes the text that it must have from the version of Helm."""
    complete = {base_of(case): case for case in stages_of(charts.BASE)}
    complete |= {case.name: case for case in EXTRA if case.name == base_of(case)}
    others = [("layouts", case) for layout in charts.LAYOUTS if layout != charts.BASE for case in stages_of(layout)]
    others += [("variants", case) for case in EXTRA if case.name not in complete]

    def compared(case: Case, version: int) -> str:
        base = base_of(case)
        old = text_of(complete[base], version) if base in complete else HEAD
        return difference(old, text_of(case, version), f"golden/{base}.yaml", case.name)

    return {
        **{f"{name}.yaml": partial(text_of, case) for name, case in complete.items()},
        **{f"{folder}/{case.name}.diff": partial(compared, case) for folder, case in others},
        **{f"notes/{name}.txt": partial(notes_of, case) for name, case in complete.items()},
    }


def notes_of(case: Case, version: int) -> str:
    """The notes by Helm 4: Helm 3 asks the cluster before it prints them."""
    return case.notes()


def difference(old: str, new: str, old_name: str, new_name: str) -> str:
    """A unified diff with one line of context: short, and readable without the files."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), old_name, new_name, n=1, lineterm="")
    return HEAD + "".join(f"{line}\n" for line in lines)


def main() -> None:
    """Write all golden files and remove those that nothing renders any more."""
    made = {name: text(4) for name, text in files().items()}
    for file in FOLDER.rglob("*"):
        if file.is_file() and str(file.relative_to(FOLDER)) not in made:
            file.unlink()
    for name, text in made.items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(text)
    print(f"wrote {len(made)} files to {FOLDER.relative_to(charts.ROOT)}")


if __name__ == "__main__":
    main()
