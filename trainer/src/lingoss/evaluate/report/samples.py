# SPDX-License-Identifier: MIT-0
"""Every sample as compact JSON for the page's table. A text is stored once: reasoning and answer point into it."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from lingoss.evaluate.metrics import texts
from lingoss.evaluate.report.data import ReportData, language_name
from lingoss.evaluate.rows import Row

_SURROGATE = re.compile("[\ud800-\udfff]")
_SHARES = 3  # languages listed of each detection


def payload(data: ReportData) -> str:
    """JSON that may stand inside a script element: no "<", no lone surrogate; offsets in UTF-16 units."""
    questions: dict[str, int] = {}
    samples = [
        _sample(row, number, questions)
        for number, run in enumerate(data.runs)
        for row in sorted(run.rows, key=_badness)
    ]
    names = {code: language_name(code) for code in _languages(samples)}
    found = {
        "runs": [run.name for run in data.runs],
        "languages": names,
        "questions": list(questions),
        "samples": samples,
    }
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _badness(row: Row) -> tuple[float, float, float]:
    """Worst first: lowest reward, then least of the requested language, then longest."""
    verdict = row.source["verdict"]
    reward = row.values["reward"]
    share = min(verdict[part].get("target_share") or 0.0 for part in ("reasoning", "answer"))
    return (-math.inf if math.isnan(reward) else reward, share, -len(str(row.source.get("text") or "")))


def _sample(row: Row, run: int, questions: dict[str, int]) -> dict[str, Any]:
    source, verdict = row.source, row.source["verdict"]
    raw = str(source.get("text") or "")
    reasoning, answer = texts(source)
    offsets = _Utf16(raw)
    question = str(source["request"].get("question") or "")
    return {
        "run": run,
        "id": row.prompt_id,
        "n": row.sample,
        "family": str(source.get("family") or ""),
        "asked": [row.question_language, row.reasoning_language, row.answer_language],
        "crossed": row.crossed,
        "q": questions.setdefault(question, len(questions)),
        "gold": source["request"].get("gold"),
        "text": raw,
        "reasoning": {**_detection(verdict["reasoning"], reasoning), "at": _place(raw, reasoning, offsets, raw.find)},
        "answer": {**_detection(verdict["answer"], answer), "at": _place(raw, answer, offsets, raw.rfind)},
        "grade": verdict["grade"],
        "rule": verdict.get("grade_rule"),
        "read": verdict.get("grade_value"),
        "reward": _finite(verdict.get("reward")),
        "terms": {name: _finite(value) for name, value in (verdict.get("terms") or {}).items()},
        "lengths": {**(verdict.get("lengths") or {}), "new_tokens": source.get("new_tokens")},
        "repetition": _finite(verdict.get("repetition")),
        "copied": _finite(verdict.get("prompt_copy")),
        "faults": _faults(row),
    }


def _finite(value: Any) -> float | None:
    return round(value, 4) if isinstance(value, int | float) and math.isfinite(value) else None


def _faults(row: Row) -> list[str]:
    """What is wrong with this sample, in the words of the page's filter."""
    verdict, values = row.source["verdict"], row.values
    checks = (
        ("form broken", not verdict["format_ok"]),
        ("cut off", verdict["truncated"]),
        ("reasoning language", values["reasoning"] == 0.0),
        ("answer language", values["answer"] == 0.0),
        ("detector unsure", 1.0 in (values["reasoning_abstained"], values["answer_abstained"])),
        ("answer neutral", values["answer_neutral"] == 1.0),
        ("answer wrong", verdict["grade"] == "incorrect"),
        ("answer not readable", verdict["grade"] == "unparsed"),
    )
    return [name for name, wrong in checks if wrong]


def _detection(found: Mapping[str, Any], text: str) -> dict[str, Any]:
    offsets = _Utf16(text)
    shares = sorted((found.get("shares") or {}).items(), key=lambda share: -share[1])[:_SHARES]
    return {
        "label": found.get("label"),
        "accepted": found.get("accepted"),
        "share": _finite(found.get("target_share")),
        "shares": {code: round(share, 3) for code, share in shares},
        "abstained": bool(found.get("abstained")),
        "segments": [[offsets(start), offsets(end), str(code)] for start, end, code in found.get("segments") or ()],
    }


def _place(raw: str, text: str, offsets: "_Utf16", find: Any) -> list[int] | str:
    """[start, end) of the parsed text in the raw one; the text itself where it was put together from pieces."""
    start = find(text) if text else -1
    return [offsets(start), offsets(start + len(text))] if start >= 0 else text


class _Utf16:
    """Offsets of Python characters as offsets of UTF-16 units: they differ after an emoji."""

    def __init__(self, text: str) -> None:
        self.length = len(text)
        self.wide = [] if text.isascii() else [i for i, character in enumerate(text) if character > "\uffff"]

    def __call__(self, offset: int) -> int:
        from bisect import bisect_left

        offset = min(max(int(offset), 0), self.length)
        return offset + bisect_left(self.wide, offset)


def _languages(samples: Sequence[Mapping[str, Any]]) -> list[str]:
    """Language codes that the page will name: asked for or found; `neutral` and `unknown` have words of their own."""
    seen: dict[str, None] = {}
    for sample in samples:
        seen |= dict.fromkeys(sample["asked"])
        for part in ("reasoning", "answer"):
            seen |= dict.fromkeys(sample[part]["shares"])
            seen |= dict.fromkeys(segment[2] for segment in sample[part]["segments"])
    return [code for code in seen if code not in ("neutral", "unknown", "mixed")]
