# SPDX-License-Identifier: MIT-0
"""Score without ever raising, and say in numbers what was found."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lingoss.detect import Detection
from lingoss.score import DEFAULT, TERMS, Request, Rules, Verdict, score
from lingoss.transcript import Transcript

FAILED = "failed"  # the `grade_rule` of what could not be scored

T = TypeVar("T")
log = logging.getLogger(__name__)
_said: set[str] = set()


def attempt(make: Callable[..., T], *given: Any) -> T | Exception:
    """What `make` makes of the arguments, or the exception that it raised."""
    try:
        return make(*given)
    except Exception as problem:  # a reward that raises ends a run of days over one odd row
        return problem


def at(column: Any, row: int) -> Any:
    """One row's value of a column; None where there is none."""
    return column[row] if isinstance(column, Sequence) and not isinstance(column, str) and row < len(column) else None


def verdict(transcript: Transcript | Exception, request: Request | Exception, rules: Rules = DEFAULT) -> Verdict:
    """`score`, but whatever fails, here or when the two were read, makes a verdict that earns nothing."""
    for given in (request, transcript):
        if isinstance(given, Exception):
            return failed(given)
    found = attempt(score, transcript, request, rules)
    return failed(found) if isinstance(found, Exception) else found


def failed(problem: Exception) -> Verdict:
    """The verdict on what could not be scored; each kind of problem is logged once in a process."""
    kind = type(problem).__name__
    if kind not in _said:
        _said.add(kind)
        said = ascii(str(problem))[1:301]
        log.error("a completion could not be scored and earns 0 (further ones are only counted): %s: %s", kind, said)
    nothing = Detection("unknown", None, False, 0.0, {}, None, 0, True, ())
    return Verdict(
        format_ok=False,
        truncated=False,
        reasoning=nothing,
        answer=nothing,
        grade=None,
        grade_rule=FAILED,
        grade_value=None,
        lengths=dict.fromkeys(("reasoning_characters", "reasoning_letters", "answer_characters", "answer_letters"), 0),
        repetition=0.0,
        prompt_copy=0.0,
        relevance=0.0,
        prose=0.0,
        terms=dict.fromkeys(TERMS, 0.0),
    )


def numbers(found: Verdict) -> dict[str, float]:
    """What a training log shows of one verdict: always the same keys, always finite, all in -1..1 but the lengths."""
    return {
        **{f"term/{name}": found.terms[name] for name in TERMS},
        "correct": float(found.grade == "correct"),
        "graded": float(found.grade is not None),
        "unparsed": float(found.grade == "unparsed"),
        "format_ok": float(found.format_ok),
        "truncated": float(found.truncated),
        "abstained": float(found.reasoning.abstained or found.answer.abstained),
        "failed": float(found.grade_rule == FAILED),
        "reasoning_share": found.reasoning.target_share or 0.0,
        "answer_share": found.answer.target_share or 0.0,
        "repetition": found.repetition,
        "prompt_copy": found.prompt_copy,
        "relevance": found.relevance,
        "prose": found.prose,
        "reasoning_characters": float(found.lengths["reasoning_characters"]),
        "answer_characters": float(found.lengths["answer_characters"]),
    }
