# SPDX-License-Identifier: MIT-0
"""A request as the frameworks carry it beside a prompt: five columns, or one string of JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from lingoss import languages
from lingoss.errors import LingossError
from lingoss.score import Request

COLUMNS = ("question", "question_language", "reasoning_language", "answer_language", "gold")


def request_of(columns: Mapping[str, Any]) -> Request:
    """The request that these five values make; others are ignored. Languages may be names or codes.

    Raises:
        LingossError: a value is missing or of the wrong type, or a language is unknown; the message names it.
    """
    texts = {}
    for name in COLUMNS[:4]:
        value = columns.get(name)
        if not isinstance(value, str):
            raise LingossError(f"a request needs the text `{name}`, got {type(value).__name__}")
        texts[name] = value if name == "question" else languages.find(value).code
    gold = columns.get("gold")
    if isinstance(gold, bool) or not isinstance(gold, str | int | float | None):
        raise LingossError(f"`gold` must be a number, a text or null, got {type(gold).__name__}")
    return Request(**texts, gold=None if gold is None else str(gold))


def request_to_json(request: Request) -> str:
    """The label of a row for OpenRLHF, and its ground truth for veRL: one line of ASCII."""
    return json.dumps(asdict(request), sort_keys=True)


def request_from_json(label: Any) -> Request:
    """The request of a label made by `request_to_json`; a mapping with the same keys will do too.

    Raises:
        LingossError: it is neither, or its values are wrong.
    """
    if isinstance(label, str):
        try:
            label = json.loads(label)
        except (ValueError, RecursionError) as error:
            raise LingossError(f"a label must be the JSON of a request: {error}") from None
    if not isinstance(label, Mapping):
        raise LingossError(f"a label must be the JSON of a request, got {type(label).__name__}")
    return request_of(label)
