# SPDX-License-Identifier: MIT-0
"""One place in a text where a possible answer stands."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(slots=True, eq=False)
class Mention:
    """A number, a weekday, a choice ... at `text[start:end]` of the normalised text.

    `values` are its readings, the one that the language prefers first; empty when it states no value (a time of day,
    an unevaluated division). `weak`: an everyday word that is a number only when nothing else is ("one", "un", "一").
    """

    start: int
    end: int
    values: tuple[Hashable, ...]
    kind: str = "number"  # "number", or what cannot be an answer: "ordinal", "marker", "time"
    word: bool = False
    weak: bool = False
    percent: bool = False
    unit: str = ""
    flags: set[str] = field(default_factory=set)

    @property
    def key(self) -> Hashable:
        """What makes two mentions the same answer."""
        return self.values[0] if self.values else (self.start, self.end)


def number_text(value: Hashable) -> str:
    """A number in plain ASCII: a decimal where it ends, else a fraction."""
    if not isinstance(value, Fraction):
        return str(value)
    if value.denominator == 1:
        return str(value.numerator)
    denominator = value.denominator
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    if denominator != 1:
        return f"{value.numerator}/{value.denominator}"
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
    digits = str(abs(value * 10**places)).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}"
