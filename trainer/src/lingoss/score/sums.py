# SPDX-License-Identifier: MIT-0
"""What the sums of a trace come to, and whether they are true. Evidence is sought: a reading that fits is taken."""

import itertools
import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache

_UNITS = (1, 7, 10, 12, 24, 60, 100, 1000, 3600)
_CYCLES = (7.0, 12.0, 24.0)  # weekdays and clocks: "10 + 5 = 3"
_CLOSE = 0.01  # relative; results are rounded
_LONGEST = 40  # characters of a number; more are a flood
_SPACES, _POINTS = " \u00a0\u202f", ".,٫"

_NUMBER = "\\d+(?:[.,]\\d+)*"
_MINUS, _TIMES, _BY = "\\-−–", "×*·⋅x", "÷/:"
_RESULT = re.compile(f"[=≈]\\s*[-−]?({_NUMBER})(?!\\s*[-−+×*÷/:·])")
# A sum of nothing but numbers that is complete on both sides: no unit, unknown, power, bracket or longer chain, no
# thousands with a space, no time of day.
_SIGN = f"(?: ?[{_MINUS}+{_TIMES}÷/] ?| : )"
_SUM = re.compile(
    f"(?<![\\w.,:^()%√'’{_MINUS}+{_TIMES}{_BY}])(?<![()%√{_MINUS}+{_TIMES}÷/] )(?<!\\d[{_SPACES}])"
    f"({_NUMBER}(?:{_SIGN}{_NUMBER}){{1,5}}) ?[=≈] ?({_NUMBER})"
    f"(?![\\d'’²³½¼¾^:]|[.,]\\d| ?[{_MINUS}+{_TIMES}{_BY}%(]|[{_SPACES}]?\\d| ?(?:mod|h)\\b)"
)
_OPERATOR = re.compile(f"[{_MINUS}+{_TIMES}{_BY}]")


def contradicts(text: str, result: float) -> bool:
    """Whether the last sum of a text comes to something else than `result`.

    A rounded result or one in another unit (minutes, hours; 0.32, 32 %) is the same.
    """
    found = _RESULT.findall(text)
    return bool(found) and not any(is_same(value, result) for value in readings(found[-1]))


def is_false(text: str) -> bool:
    """Whether the last sum of numbers alone is wrong in every reading ("80 + 15 = 68").

    Right are also rounded results, those in another unit ("45 + 45 = 1.5"), quotients without their rest, and what a
    clock or a week makes of a sum.
    """
    found = _SUM.findall(text)
    if not found:
        return False
    left, right = found[-1]
    results = readings(right)
    divided = any(sign in left for sign in _BY)
    parts = [left, *left.split(" : ")[-1:]] if " : " in left else [left]  # "we check: 68 + 12 = 80" is no quotient
    values = [value for part in parts for value in _values(part)]
    return bool(values) and not any(_agree(value, result, divided) for value in values for result in results)


def is_same(value: float, result: float) -> bool:
    """Equal, or in another unit, up to rounding."""
    ratio = max(value / result, result / value) if value and result else 0.0
    return min(abs(ratio - unit) / unit for unit in _UNITS) < _CLOSE


def _agree(value: float, result: float, divided: bool) -> bool:
    if abs(value - result) < 1e-6 or is_same(abs(value), result):
        return True
    rest = abs(value - result)
    return (divided and rest < (1.0 if abs(value) >= 1.0 else 0.1)) or any(
        rest % cycle == 0 for cycle in _CYCLES if result < cycle
    )


def _values(written: str) -> Iterator[float]:
    """What a sum comes to; each number has its readings, of which few have two."""
    numbers = [readings(number.strip()) for number in _OPERATOR.split(written)]
    signs = _OPERATOR.findall(written)
    for chosen in itertools.islice(itertools.product(*numbers), 32):
        value = _calculate(list(chosen), signs)
        if value is not None:
            yield value


def _calculate(numbers: list[float], signs: list[str]) -> float | None:
    """Products and quotients first; None for a division by zero."""
    terms, added = [numbers[0]], list[Callable[[float, float], float]]()
    for sign, number in zip(signs, numbers[1:], strict=True):
        if sign in _TIMES:
            terms[-1] *= number
        elif sign in _BY:
            if not number:
                return None
            terms[-1] /= number
        else:
            added.append(operator.add if sign == "+" else operator.sub)
            terms.append(number)
    value = terms[0]
    for apply, term in zip(added, terms[1:], strict=True):
        value = apply(value, term)
    return value


@lru_cache(maxsize=16384)
def readings(token: str) -> tuple[float, ...]:
    """All values that digits and marks may mean: no reading is preferred."""
    parts = [part for part in re.split(r"\D", token[:_LONGEST]) if part]
    mark = token[len(parts[0])] if len(parts) > 1 else ""
    found = {round(float(int("".join(parts))), 6)}
    if len(parts) > 2 or mark in _SPACES:  # "80 15" are two numbers, "1 250" is one
        found |= {round(float(int(part)), 6) for part in parts}
    if len(parts) == 2 and mark in _POINTS:
        found.add(round(float(f"{parts[0]}.{parts[1]}"), 6))
    elif len(parts) > 2 and token[-len(parts[-1]) - 1] in _POINTS:
        found.add(round(float("".join(parts[:-1]) + "." + parts[-1]), 6))
    return tuple(found)
