# SPDX-License-Identifier: MIT-0
"""Public held-out sets in the shape in which they are published, as prompts.

MGSM (Shi et al. 2022, arXiv 2210.03057): `mgsm_<language>.tsv`, lines of question, tab, answer, no header, no quoting.
PolyMath (2025, arXiv 2504.18428): `<language>/<level>.json` or `.jsonl` with id, question, answer. Both are parallel:
row n is the same problem in every language, so it is one item.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lingoss import languages
from lingoss.data import jsonl
from lingoss.data.files import normal_gold
from lingoss.data.rows import BadRow, Loaded, Prompt, short_digest
from lingoss.errors import LingossError

_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_LONGEST_NUMBER = 40


def load_mgsm(
    path: Path | str, reasoning_language: str | None = None, answer_language: str | None = None
) -> Loaded[Prompt]:
    """A file `mgsm_<language>.tsv`, or a folder of them. The requested languages are the question's unless given.

    Raises:
        LingossError: nothing to read, or a file name without a known language.
    """
    rows: list[Prompt] = []
    bad: list[BadRow] = []
    for file in _files(Path(path), "mgsm_*.tsv"):
        code = languages.find(file.stem.removeprefix("mgsm_")).code
        request = (code, _code(reasoning_language) or code, _code(answer_language) or code)
        for number, line in enumerate(_text(file).split("\n"), 1):
            question, tab, answer = line.rstrip("\r").rpartition("\t")
            if not line.strip():
                continue
            if not (tab and question.strip() and answer.strip()):
                bad.append(BadRow(number, f"{file.name}: not a question, a tab and an answer"))
                continue
            gold = plain_number(answer.strip())
            rows.append(_prompt("mgsm", f"mgsm-{number}", question.strip(), request, gold))
    return Loaded(str(path), rows, bad)


def load_polymath(
    path: Path | str, reasoning_language: str | None = None, answer_language: str | None = None
) -> Loaded[Prompt]:
    """A file `<language>/<level>.json` or `.jsonl`, or a folder of language folders.

    Raises:
        LingossError: nothing to read, or a folder whose name is no known language.
    """
    rows: list[Prompt] = []
    bad: list[BadRow] = []
    for file in _files(Path(path), "*/*.json", "*/*.jsonl"):
        code = languages.find(file.resolve().parent.name).code
        request = (code, _code(reasoning_language) or code, _code(answer_language) or code)
        for number, row in _objects(file):
            if isinstance(row, str):
                bad.append(BadRow(number, f"{file.name}: {row}"))
                continue
            question = row.get("question")
            if not isinstance(question, str) or not question.strip():
                bad.append(BadRow(number, f"{file.name}: `question` must be text"))
                continue
            try:
                answer = normal_gold(row.get("answer"))
            except LingossError as error:
                bad.append(BadRow(number, f"{file.name}: {str(error).replace('gold', 'answer')}"))
                continue
            gold = plain_number(answer) if answer else None
            item = f"polymath-{_item_name(row.get('id'), file, number)}"
            rows.append(_prompt("polymath", item, question.strip(), request, gold))
    return Loaded(str(path), rows, bad)


def plain_number(text: str) -> str:
    """A number without its thousands commas ("70,000" is 70000); any other text as it is."""
    if len(text) <= _LONGEST_NUMBER and _GROUPED.fullmatch(text):
        return text.replace(",", "")
    return text


def _prompt(family: str, item: str, question: str, request: tuple[str, str, str], gold: str | None) -> Prompt:
    return Prompt(short_digest([item, question, request, gold]), item, family, question, *request, gold, "heldout")


def _code(name: str | None) -> str | None:
    return languages.find(name).code if name else None


def _files(path: Path, *patterns: str) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(file for pattern in patterns for file in path.glob(pattern))
    if not found:
        raise LingossError(f"{path} is no file and has no {' or '.join(patterns)} in it")
    return found


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LingossError(f"{file} is not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise LingossError(f"cannot read {file}: {error.strerror or error}") from error


def _objects(file: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """(number, object or why it is none) of a JSON list or of JSON lines."""
    if file.suffix == ".jsonl":
        for line, row in jsonl.read(file):
            yield line, row.error if isinstance(row, jsonl.BadLine) else row
        return
    try:
        found = json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        raise LingossError(f"{file} is not JSON: {error}") from error
    if not isinstance(found, list):
        raise LingossError(f"{file} must hold a list, found {type(found).__name__}")
    for number, row in enumerate(found, 1):
        yield number, row if isinstance(row, dict) else f"expected an object, found {type(row).__name__}"


def _item_name(name: object, file: Path, number: int) -> str:
    """The problem's name in every language: `low-en-7` and `low-fr-7` are one item, `low-7`."""
    if not isinstance(name, str) or not name:
        return f"{file.stem}-{number}"
    code = file.resolve().parent.name
    parts = [part for part in name.split("-") if part != code]
    return "-".join(parts) or name
