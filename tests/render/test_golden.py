# SPDX-License-Identifier: MIT-0
"""The golden files are what the chart renders, byte by byte, with Helm 4 and with Helm 3."""

import golden
import pytest


@pytest.mark.parametrize("name", golden.files())
@pytest.mark.parametrize("version", [4, 3])
def test_a_golden_file_is_what_helm_renders(name: str, version: int) -> None:
    file = golden.FOLDER / name
    kept, text = file.read_text() if file.exists() else "", golden.files()[name](version)
    if kept != text:
        changed = golden.difference(kept, text, f"golden/{name}", f"Helm {version} now").splitlines()[2:]
        shown = "\n".join(changed[:60])
        pytest.fail(f"golden/{name} is stale: read the change, then run `{golden.COMMAND}`\n{shown}", pytrace=False)


def test_no_golden_file_is_left_over() -> None:
    kept = {str(file.relative_to(golden.FOLDER)) for file in golden.FOLDER.rglob("*") if file.is_file()}
    assert kept - set(golden.files()) == set(), f"nothing renders these any more: run `{golden.COMMAND}`"
