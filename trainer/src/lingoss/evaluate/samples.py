# SPDX-License-Identifier: MIT-0
"""The folder of samples that `generate` fills and the scorer reads: its files, and how full it is. No torch in here."""

import json
from pathlib import Path
from typing import Any

from lingoss.data import jsonl
from lingoss.errors import LingossError

SAMPLES, CARD = "samples.jsonl", "run.json"
Row = dict[str, Any]
Key = tuple[str, int]


def read_card(folder: Path) -> Row | None:
    """What made the samples, with `finished` once all are drawn; None when nobody has begun.

    Raises:
        LingossError: the card cannot be read.
    """
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise LingossError(f"{folder / CARD} cannot be read: {error}; remove the folder or give another") from error
    return card if isinstance(card, dict) else {}


def drawn(samples: Path) -> set[Key]:
    """(prompt id, sample) of every row with a text."""
    rows = [row for _, row in jsonl.read(samples)] if samples.exists() else []
    return {key(row) for row in rows if is_good(row)}


def is_good(row: Row | jsonl.BadLine) -> bool:
    """Whether a row holds a text."""
    return not isinstance(row, jsonl.BadLine) and "error" not in row and "text" in row


def key(row: Any) -> Key:
    """What a row is a sample of: prompt id and sample number."""
    return str(row.get("prompt_id")), int(row.get("sample", -1))


def count_rows(folder: Path) -> int:
    """Rows so far, bad ones too: what a progress line tells. Quick enough to be asked every few seconds."""
    try:
        with (folder / SAMPLES).open("rb") as file:
            return sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 20), b""))
    except OSError:
        return 0
