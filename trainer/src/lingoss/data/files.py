# SPDX-License-Identifier: MIT-0
"""Prompts and examples in a user's JSON-lines file; what `to_dict` writes is read back as it was.

Only `question` is needed (and `answer` in an example). A missing `question_language` is detected; a missing requested
language is the question's. Languages may be codes or names. Without `id` a row is named by its content, so it keeps
its name when lines are moved.
"""

import difflib
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from lingoss import languages
from lingoss.data import jsonl
from lingoss.data.identify import Detect, default_detect, main_language
from lingoss.data.rows import BadRow, Example, Loaded, Prompt, Turn, short_digest
from lingoss.errors import LingossError

PROMPT_KEYS = (
    "id", "item", "family", "question", "question_language", "reasoning_language", "answer_language", "gold", "split",
    "history",
)  # fmt: skip
EXAMPLE_KEYS = (*PROMPT_KEYS, "reasoning", "answer")
ROLES = ("system", "user", "assistant")

R = TypeVar("R", bound=Prompt)


def read_prompts(path: Path | str) -> list[Prompt]:
    """The prompts of a file, for work that must not start with bad ones.

    Raises:
        LingossError: the file cannot be read, has no row, or has bad rows; the message names lines and reasons.
    """
    return load_prompts(path).strict()


def read_examples(path: Path | str) -> list[Example]:
    """The same for examples."""
    return load_examples(path).strict()


def load_prompts(path: Path | str, detect: Detect | None = None) -> Loaded[Prompt]:
    """Prompts, bad lines by number and reason, and notes on lines that repeat an earlier one (kept once).

    Raises:
        LingossError: the file cannot be read.
    """
    return _load(path, PROMPT_KEYS, lambda row, fields: Prompt(**fields), detect)


def load_examples(path: Path | str, detect: Detect | None = None) -> Loaded[Example]:
    """The same for examples: rows that also have `answer`, and `reasoning` where the format has a place for it."""
    return _load(path, EXAMPLE_KEYS, _example, detect)


def normal_gold(value: object) -> str | None:
    """A known answer as text: numbers in ASCII with a decimal point, nothing for an empty one.

    Raises:
        LingossError: it is neither text nor a number.
    """
    if value is None or isinstance(value, str):
        return (value or "").strip() or None
    if isinstance(value, int | float) and not isinstance(value, bool):
        plain = f"{Decimal(str(value)):f}"  # never 1e-07
        return plain.removesuffix(".0")
    raise LingossError(f"`gold` must be text or a number, found {type(value).__name__}")


def _load(
    path: Path | str, keys: tuple[str, ...], make: Callable[[jsonl.Row, dict[str, Any]], R], detect: Detect | None
) -> Loaded[R]:
    detect = detect or default_detect()
    rows: list[R] = []
    bad: list[BadRow] = []
    notes: list[BadRow] = []
    seen: dict[str, tuple[int, R]] = {}
    for line, row in jsonl.read(path):
        if isinstance(row, jsonl.BadLine):
            bad.append(BadRow(line, row.error))
            continue
        try:
            _check_keys(row, keys)
            made = make(row, _fields(row, detect))
        except LingossError as error:
            bad.append(BadRow(line, str(error)))
            continue
        first, twin = seen.setdefault(made.id, (line, made))
        if twin is made:
            rows.append(made)
        elif twin == made:
            notes.append(BadRow(line, f"the same as line {first}; kept once"))
        else:
            bad.append(BadRow(line, f"id {made.id!r} already names another row, in line {first}"))
    return Loaded(str(path), rows, bad, notes)


def _check_keys(row: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    """Other columns are welcome, but one that looks like a misspelt key would silently change the request."""
    for key in row.keys() - set(keys):
        if len(key) > 40:  # comparing is slow for long texts, and none of our keys is long
            continue
        if near := difflib.get_close_matches(key, [name for name in keys if name not in row], n=1, cutoff=0.85):
            raise LingossError(f"unknown key {key!r}; did you mean {near[0]!r}?")


def _fields(row: Mapping[str, Any], detect: Detect) -> dict[str, Any]:
    question = _text(row, "question")
    asked = _language(row, "question_language") or main_language(question, detect)
    if asked is None:
        raise LingossError("the language of `question` cannot be told; give `question_language`")
    triple = (asked, _language(row, "reasoning_language") or asked, _language(row, "answer_language") or asked)
    gold = normal_gold(row.get("gold"))
    history = _history(row.get("history"))
    content = ["file", question, triple, gold, *([history] if history else [])]
    return {
        "id": _optional(row, "id") or short_digest(content),
        "item": _optional(row, "item") or short_digest(content[:2]),
        "family": _optional(row, "family") or "file",
        "question": question,
        "question_language": triple[0],
        "reasoning_language": triple[1],
        "answer_language": triple[2],
        "gold": gold,
        "split": _optional(row, "split"),
        "history": history,
    }


def _example(row: Mapping[str, Any], fields: dict[str, Any]) -> Example:
    answer, reasoning = _text(row, "answer"), row.get("reasoning") or ""
    if not isinstance(reasoning, str):
        raise LingossError(f"`reasoning` must be text, found {type(reasoning).__name__}")
    if not _optional(row, "id"):
        # Two examples may answer one question differently, so their texts belong to the name.
        fields["id"] = short_digest([fields["id"], reasoning, answer])
    return Example(**fields, reasoning=reasoning, answer=answer)


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise LingossError(f"`{key}` must be text, found {type(value).__name__ if key in row else 'no such key'}")
    if not value.strip():
        raise LingossError(f"`{key}` is empty")
    return value


def _optional(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise LingossError(f"`{key}` must be text, found {type(value).__name__}")


def _language(row: Mapping[str, Any], key: str) -> str | None:
    name = _optional(row, key)
    return languages.find(name).code if name else None


def _history(value: object) -> tuple[Turn, ...]:
    """Pairs [role, content]; an instruction (role system) only as the first."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise LingossError(f"`history` must be a list of [role, content], found {type(value).__name__}")
    turns = []
    for place, turn in enumerate(value):
        match turn:
            case [str(role), str(content)] if role in ROLES and (role != "system" or place == 0):
                turns.append((role, content))
            case _:
                raise LingossError(f"`history` entry {place + 1} is no [role, content] with one of {', '.join(ROLES)}")
    return tuple(turns)
