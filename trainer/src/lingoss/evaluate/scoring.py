# SPDX-License-Identifier: MIT-0
"""Rows of generated texts -> rows with verdicts. Needs no model, so it can be repeated whenever the rules change."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lingoss import __version__, detect, languages, runs
from lingoss.data import jsonl
from lingoss.errors import LingossError
from lingoss.evaluate.rows import ScoredRun, read_run
from lingoss.score import DEFAULT, Request, Rules, score
from lingoss.transcript import Transcript, parse

Row = dict[str, Any]
FINISH_REASONS = ("stop", "length")


def parse_row(row: Row) -> Transcript:
    """The transcript of a row `{format, text, finish_reason?}`. Raises LingossError that names the faulty key."""
    reason = row.get("finish_reason")
    if reason is not None and reason not in FINISH_REASONS:
        raise LingossError(f"`finish_reason` must be one of {', '.join(FINISH_REASONS)} or absent, not {reason!r}")
    return parse(jsonl.string(row, "text"), jsonl.string(row, "format"), reason)


def read_request(row: Row) -> Request:
    """The request of a row. Languages may be codes or names; `gold` may be a number, a string or null.

    Raises LingossError that names the faulty key, and `UnknownLanguage` for a language nobody knows.
    """
    request = row.get("request")
    if not isinstance(request, dict):
        raise LingossError(
            "`request` must be an object with question, question_language, reasoning_language, answer_language, gold"
        )
    gold = request.get("gold")
    if isinstance(gold, bool) or not isinstance(gold, str | int | float | None):
        raise LingossError(f"`request.gold` must be a number, a string or null, not {type(gold).__name__}")
    codes = {
        key: languages.find(jsonl.string(request, key, "request.")).code
        for key in ("question_language", "reasoning_language", "answer_language")
    }
    return Request(
        question=jsonl.string(request, "question", "request."), gold=None if gold is None else str(gold), **codes
    )


def score_row(row: Row, rules: Rules = DEFAULT) -> Row:
    """The same row with its `verdict`. Raises LingossError for a row that cannot be read."""
    return {**row, "verdict": score(parse_row(row), read_request(row), rules).to_dict()}


def score_rows(rows: Iterator[tuple[int, Row | jsonl.BadLine]], rules: Rules = DEFAULT) -> Iterator[Row]:
    """Scored rows in order; a row that cannot be read, or was an error before, becomes an error row."""
    return (row for _, row in jsonl.mapped(rows, lambda row: row if "error" in row else score_row(row, rules)))


def score_folder(folder: Path, name: str, rules: Rules = DEFAULT) -> ScoredRun:
    """Score `samples.jsonl` into `verdicts.jsonl`, with `scoring.json` beside it, and read them back as a run.

    Raises:
        LingossError: the folder has no samples or cannot be written.
    """
    samples = folder / "samples.jsonl"
    if not samples.exists():
        raise LingossError(f"{folder} holds no samples.jsonl: run `lingoss generate` into it first")
    jsonl.write(folder / "verdicts.jsonl", score_rows(jsonl.read(samples), rules))
    runs.write_json(
        folder / "scoring.json", {"detector": detect.version(), "rules": asdict(rules), "lingoss": __version__}
    )
    return read_scored(folder, name)


def read_scored(folder: Path, name: str | None = None) -> ScoredRun:
    """A scored folder as a run; its card is what generation and scoring noted.

    Raises:
        LingossError: the folder has no verdicts.
    """
    verdicts = folder / "verdicts.jsonl"
    if folder.is_file():
        raise LingossError(
            f"{folder} is a file: copy it into a folder of its own as samples.jsonl, and run `lingoss score` on that folder"
        )
    if not verdicts.exists():
        raise LingossError(f"{folder} holds no verdicts.jsonl: run `lingoss score {folder}` first")
    rows = (row.to_dict() if isinstance(row, jsonl.BadLine) else row for _, row in jsonl.read(verdicts))
    card: Row = {}
    for part in ("run.json", "scoring.json"):
        try:
            found = json.loads((folder / part).read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue  # rows of a user's own have no card
        except ValueError as error:
            raise LingossError(f"{folder / part} is not valid JSON: {error}") from error
        if not isinstance(found, dict):
            raise LingossError(f"{folder / part} must hold a JSON object, but it holds a {type(found).__name__}")
        card |= found
    return read_run(name or str(card.get("name") or folder.name), rows, card)
