# SPDX-License-Identifier: MIT-0
"""Golden renders: how the chart's output looks today, so that a change of it is read by a person.

golden/<stage>[-<engine>].yaml      the whole render of each stage on the base layout
golden/<variant>.yaml               the same for the variants marked `golden` in variants.yaml
golden/notes-<stage>.txt            what NOTES.txt says
golden/layouts/<layout>-<stage>.diff   what another layout changes in it

`make golden` (or `python tests/render/golden.py`) rewrites them; test_golden.py compares byte by byte.
"""

import difflib
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [
        str(Path(__file__).parents[1]),
        str(Path(__file__).parents[2] / "charts"),
    ]

import charts

from cases import EXTRA, VARIANTS, Case, stages_of

FOLDER = Path(__file__).parent / "golden"
HEAD = "# SPDX-License-Identifier: MIT-0\n# Written by `make golden`.\n"
COMMAND = "make golden"


def whole() -> dict[str, Case]:
    """Golden files that hold a whole render."""
    stages = {case.name.removeprefix(f"{charts.BASE}-"): case for case in stages_of(charts.BASE)}
    marked = {case.name: case for case in EXTRA if VARIANTS[case.name].get("golden")}
    return {f"{name}.yaml": case for name, case in (stages | marked).items()}


def differences() -> dict[str, Case]:
    """Golden files that hold a difference."""
    others = [case for layout in charts.LAYOUTS if layout != charts.BASE for case in stages_of(layout)]
    return {f"layouts/{case.name}.diff": case for case in others}


def wanted(version: int = 4) -> dict[str, str]:
    """Every golden file with the text that it must have, as Helm `version` renders it."""
    made = {file: HEAD + case.text(version=version) for file, case in whole().items()}
    for file, case in differences().items():
        base = f"{case.name.removeprefix(f'{case.layout}-')}.yaml"
        old = made.get(base, HEAD)
        new = HEAD + case.text(version=version)
        made[file] = difference(old, new, f"golden/{base}", case.layout)
    if version == 4:
        for case in stages_of(charts.BASE):
            made[f"notes-{case.name.removeprefix(f'{charts.BASE}-')}.txt"] = case.notes()
    return made


def difference(old: str, new: str, old_name: str, new_name: str) -> str:
    """A unified diff with one line of context: short, and readable without the files."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), old_name, new_name, n=1, lineterm="")
    return HEAD + "".join(f"{line}\n" for line in lines)


def main() -> None:
    """Write all golden files and remove those that nothing renders any more."""
    made = wanted()
    for file in FOLDER.rglob("*"):
        if file.is_file() and str(file.relative_to(FOLDER)) not in made:
            file.unlink()
    for name, text in made.items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(text)
    print(f"wrote {len(made)} files to {FOLDER.relative_to(charts.ROOT)}")


if __name__ == "__main__":
    main()
