# SPDX-License-Identifier: MIT-0
"""What one scored row says: every metric is one entry of METRICS, a plain-language line beside it.

A value is 0 or 1 for a rate, a number for a mean, and NaN where the row does not belong to the metric's denominator.
Neutral answers ("42", "x = 3") show no language. Both conventions are reported: they count as compliant (`answer`,
`strict`), or they leave the denominator (`answer_worded`, `strict_worded`). Comparisons use the first, because there
the denominator does not depend on what the model wrote.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lingoss.detect import STRICT_SHARE
from lingoss.errors import LingossError

NAN = math.nan
LINE_TOKENS = 5  # shorter lines are skipped, as in the Language Confusion Benchmark


@dataclass(frozen=True, slots=True)
class Metric:
    """`axis`: which requested language a row is filed under. `kind`: a rate has k of n, a mean has not."""

    name: str
    title: str
    meaning: str
    of: Callable[[Mapping[str, Any]], float]
    axis: Literal["answer", "reasoning"] = "answer"
    kind: Literal["rate", "mean"] = "rate"
    better: Literal["higher", "lower", ""] = "higher"


def _from_verdict(key: str) -> Callable[[Mapping[str, Any]], float]:
    """A finite number of the verdict, else NaN."""

    def value(row: Mapping[str, Any]) -> float:
        found = row["verdict"].get(key)
        return float(found) if isinstance(found, int | float) and math.isfinite(found) else NAN

    return value


def _strict(found: Mapping[str, Any]) -> bool:
    return found.get("accepted") is True and (found.get("target_share") or 0.0) >= STRICT_SHARE


def _neutral(found: Mapping[str, Any]) -> bool:
    """Something was written, and it has no words; an empty text is missing, not neutral."""
    return found.get("label") == "neutral" and bool(found.get("segments"))


def _abstained(found: Mapping[str, Any]) -> bool:
    return bool(found.get("abstained"))


def _reasoning(row: Mapping[str, Any]) -> float:
    return NAN if row.get("format") == "plain" else float(_strict(row["verdict"]["reasoning"]))


def _answer(row: Mapping[str, Any]) -> float:
    found = row["verdict"]["answer"]
    return float(_neutral(found) or _strict(found))


def _worded(metric: Callable[[Mapping[str, Any]], float]) -> Callable[[Mapping[str, Any]], float]:
    return lambda row: NAN if _neutral(row["verdict"]["answer"]) else metric(row)


def _compliant(row: Mapping[str, Any]) -> float:
    verdict = row["verdict"]
    whole = verdict["format_ok"] and not verdict["truncated"]
    return float(bool(whole) and _reasoning(row) != 0.0 and _answer(row) == 1.0)  # plain: no reasoning was asked for


def _graded(value: str) -> Callable[[Mapping[str, Any]], float]:
    return lambda row: NAN if row["verdict"]["grade"] is None else float(row["verdict"]["grade"] == value)


def _joint(row: Mapping[str, Any]) -> float:
    return float(_compliant(row) == 1.0 and row["verdict"]["grade"] in (None, "correct"))


def _part(part: str, test: Callable[[Mapping[str, Any]], bool]) -> Callable[[Mapping[str, Any]], float]:
    def value(row: Mapping[str, Any]) -> float:
        return NAN if part == "reasoning" and row.get("format") == "plain" else float(test(row["verdict"][part]))

    return value


def texts(row: Mapping[str, Any]) -> tuple[str, str]:
    """(reasoning, answer) that the verdict's segments point into; empty where the text cannot be read."""
    parsed = row.get("parsed")
    if isinstance(parsed, Mapping):
        return str(parsed.get("reasoning") or ""), str(parsed.get("answer") or "")
    from lingoss.transcript import parse

    try:
        found = parse(str(row.get("text") or ""), str(row.get("format")), row.get("finish_reason"))
    except LingossError:
        return "", ""
    return found.reasoning, found.answer


def _right_lines(row: Mapping[str, Any]) -> list[bool]:
    """For each line long enough to judge: is most of it in the requested language? Lines without words are skipped."""
    from lingoss.score.ngrams import units

    right = []
    for part, text in zip(("reasoning", "answer"), texts(row), strict=True):
        segments, target = row["verdict"][part].get("segments") or (), row["verdict"][part].get("target")
        start, at = 0, 0
        for line in text.split("\n"):
            end = start + len(line)
            weight: dict[str, int] = {}
            while at < len(segments) and segments[at][1] <= start:
                at += 1
            for left, stop, language in segments[at:]:
                if left >= end:
                    break
                weight[language] = weight.get(language, 0) + min(stop, end) - max(left, start)
            weight.pop("neutral", None)
            if weight and len(units(line)) >= LINE_TOKENS:
                right.append(max(weight, key=weight.__getitem__) == target)
            start = end + 1
    return right


def _lpr(row: Mapping[str, Any]) -> float:
    lines = _right_lines(row)
    return float(all(lines)) if lines else NAN


def _line_accuracy(row: Mapping[str, Any]) -> float:
    lines = _right_lines(row)
    return sum(lines) / len(lines) if lines else NAN


_ALL = (
    Metric(
        "strict",
        "Strict compliance",
        "Form kept, not cut off, reasoning and answer each at least 90 % in the language asked for. A neutral answer"
        " (42) counts as compliant. Says nothing about the answer being right.",
        _compliant,
    ),
    Metric(
        "strict_worded", "Strict, neutral answers out", "The same, over answers that have words.", _worded(_compliant)
    ),
    Metric(
        "reasoning",
        "Reasoning in its language",
        "At least 90 % of the reasoning's letters are in the language asked for. Reasoning without words shows no"
        " language, so it does not count.",
        _reasoning,
        axis="reasoning",
    ),
    Metric(
        "reasoning_abstained",
        "Reasoning: detector unsure",
        "The detector would not name a language. Such rows are not counted as compliant.",
        _part("reasoning", _abstained),
        axis="reasoning",
        better="lower",
    ),
    Metric(
        "reasoning_neutral",
        "Reasoning: no words",
        "Only numbers, formulas or code.",
        _part("reasoning", _neutral),
        axis="reasoning",
        better="lower",
    ),
    Metric("answer", "Answer in its language", "In the language asked for, or neutral (42, x = 3).", _answer),
    Metric("answer_worded", "Answer, neutral ones out", "The same, over answers that have words.", _worded(_answer)),
    Metric(
        "answer_abstained",
        "Answer: detector unsure",
        "The detector would not name a language.",
        _part("answer", _abstained),
        better="lower",
    ),
    Metric(
        "answer_neutral", "Answer: neutral", "No words, so no language is shown.", _part("answer", _neutral), better=""
    ),
    Metric(
        "format_ok",
        "Form kept",
        "Reasoning and answer could be told apart as the chat format asks.",
        lambda row: float(bool(row["verdict"]["format_ok"])),
    ),
    Metric(
        "truncated",
        "Cut off",
        "The text ended before the model stopped by itself.",
        lambda row: float(bool(row["verdict"]["truncated"])),
        better="lower",
    ),
    Metric("correct", "Answer correct", "Of the prompts whose right answer is known.", _graded("correct")),
    Metric(
        "incorrect", "Answer wrong", "Of the prompts whose right answer is known.", _graded("incorrect"), better="lower"
    ),
    Metric(
        "unparsed",
        "Answer not readable",
        "No answer of the right kind was found: neither right nor wrong.",
        _graded("unparsed"),
        better="lower",
    ),
    Metric(
        "ungraded",
        "No known answer",
        "Language and form alone decide for these.",
        lambda row: float(row["verdict"]["grade"] is None),
        better="",
    ),
    Metric("joint", "Compliant and correct", "Strictly compliant and, where the answer is known, correct.", _joint),
    Metric("reward", "Reward", "Mean of the training reward, 0 to 1.", _from_verdict("reward"), kind="mean"),
    Metric(
        "repetition",
        "Repetition",
        "Mean share of repeated word groups.",
        _from_verdict("repetition"),
        kind="mean",
        better="lower",
    ),
    Metric(
        "prompt_copy",
        "Copied from the question",
        "Mean share of word groups that stand in the question.",
        _from_verdict("prompt_copy"),
        kind="mean",
        better="lower",
    ),
    Metric(
        "lpr_compatible",
        "LPR (compatible)",
        "Share of outputs without a line in a wrong language, after the Language Confusion Benchmark"
        " (arXiv 2406.20052) but with our detector. Lines under 5 words are skipped; unknown counts as wrong.",
        _lpr,
    ),
    Metric(
        "acc_compatible",
        "Line accuracy (compatible)",
        "Mean share of lines in the right language, after the same benchmark.",
        _line_accuracy,
        kind="mean",
    ),
)
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ALL}


def measure(row: Mapping[str, Any]) -> dict[str, float]:
    """Every metric of one scored row."""
    return {name: metric.of(row) for name, metric in METRICS.items()}
