# SPDX-License-Identifier: MIT-0
"""Answers and gold values that are formulas, by math-verify; only where the text has the syntax of one.

math-verify's own time limit is a signal, which works in a main thread alone, so it is switched off, and what could run
long is not handed over: long texts, towers of powers, large exponents and factorials.
"""

import logging
import re

from lingoss.grade.numbers import normalise

MAX_LENGTH = 160

_SYNTAX = re.compile(r"\\(?:[dtc]?frac|sqrt|pi|log|ln|sin|cos|tan|infty|pm|binom)(?![A-Za-z])|\^|√|∛|π|[²³⁴-⁹]")
_TOWER = re.compile(r"\^ ?(?:\{[^{}]*[\^!]|\{[^{}]*\{|[\w\\]{1,9} ?\^)")
_LONG_NUMBER = re.compile(r"[0-9]{16}")
_EXPLOSIVE = re.compile(r"\^ ?\{? ?-?[0-9]{4}|\*\*|!|\\(?:int|sum|prod|lim|iint|oint)(?![A-Za-z])")
# Numbers to a power are cheap; what has an unknown is expanded, and that grows with its powers.
_NUMERIC = re.compile(r"\\(?:[dtc]?frac|sqrt|pi|cdot|times|left|right|text|pm|infty|circ|mathrm)(?![A-Za-z])")
_UNKNOWN = re.compile(r"[A-Za-z]")
_POWER = re.compile(r"\^ ?\{? ?-?([0-9]{1,3})")
_FUNCTION = re.compile(r"\\(?:log|ln|sin|cos|tan|exp|binom|arcsin|arccos|arctan)(?![A-Za-z])")
_BRACES = re.compile(r"\\boxed ?\{|\\[{}]|[{}]")
_POWER_OF_TEN = re.compile(r"(?:\\times|\\cdot|[×·⋅*x]) ?10 ?(?:\^ ?\{? ?[-+]?[0-9]{1,3} ?\}?|[⁻⁺]?[⁰¹²³⁴-⁹]{1,3})")
_UNDONE = re.compile(r"[0-9)}\]²³⁴-⁹] ?(?:[-+−–*/×·⋅÷]|\\(?:times|cdot|div)(?![A-Za-z])) ?[\\(\[{]*[0-9]")
_SIDES = re.compile(r"=|≈")


def is_undone(formula: str) -> bool:
    """True for a sum that is written down and not done: "80 \\cdot 0.85^1". A root, a power or a power of ten may be the result."""
    return _UNDONE.search(_POWER_OF_TEN.sub("", formula)) is not None


def is_expression(text: str) -> bool:
    """True when `text` holds the syntax of a formula, not only numbers and words."""
    return _SYNTAX.search(text) is not None


def boxed(text: str) -> list[str]:
    """What stands in each `\\boxed{...}`, in order; one that is not closed or holds nothing is left out."""
    found: list[str] = []
    opened: list[int] = []  # end of each open brace: negative for an ordinary one
    for match in _BRACES.finditer(text):
        token = match.group()
        if token.startswith("\\boxed"):
            opened.append(match.end())
        elif token == "{":
            opened.append(-1)
        elif (
            token == "}"
            and opened
            and (start := opened.pop()) >= 0
            and (content := text[start : match.start()].strip())
        ):
            found.append(content)
    return [content for content in found if content]


def last_formula(text: str) -> str:
    """The formula that an answer ends on: the last between dollar signs or \\( \\), else its last line's right side."""
    if match := list(re.finditer(r"\$\$?([^$]{1,200})\$|\\\((.{1,200}?)\\\)|\\\[(.{1,200}?)\\\]", text)):
        text = next(filter(None, match[-1].groups()), "")
    else:
        text = text.strip().rsplit("\n", 1)[-1]
        text = re.split(r":(?=\s)", text)[-1]
    return _SIDES.split(text)[-1].strip(" .")


def equal(answer: str, gold: str) -> bool | None:
    """Whether two formulas are equal; None when the answer cannot be read or would take too long."""
    if not _is_tame(answer) or not _is_tame(gold):
        return None
    if re.sub(r"\s", "", normalise(answer)) == re.sub(r"\s", "", normalise(gold)):
        return True
    try:
        from math_verify import parse, verify

        # It warns at each start that its time limit is off, which is what we ask for.
        logging.getLogger("math_verify").setLevel(logging.ERROR)
        wanted = parse(f"${gold}$", parsing_timeout=None)
        given = parse(f"${answer}$", parsing_timeout=None)
        return bool(verify(wanted, given, timeout_seconds=None)) if wanted and given else None
    except Exception:  # sympy and its parser raise many kinds of error on odd formulas
        return None


def _is_tame(text: str) -> bool:
    """What math-verify answers in well under a second: measured with sums, towers, powers and nested functions."""
    if not 0 < len(text) <= MAX_LENGTH or _TOWER.search(text) or _LONG_NUMBER.search(text) or _EXPLOSIVE.search(text):
        return False
    if not _UNKNOWN.search(_NUMERIC.sub("", text)):
        return True
    powers = [int(power) for power in _POWER.findall(text)]
    return len(text) <= MAX_LENGTH // 2 and sum(powers) <= 10 and len(_FUNCTION.findall(text)) <= 3
