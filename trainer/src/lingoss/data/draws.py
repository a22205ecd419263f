# SPDX-License-Identifier: MIT-0
"""From a family and a seed to numbers, the same on every machine and for ever: by hash, not by `random`,
whose stream belongs to Python."""

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from lingoss.data.expressions import Value, evaluate
from lingoss.data.families import Family
from lingoss.data.rows import short_digest
from lingoss.errors import LingossError

# Part of every id. Raise it when numbers or texts of an existing family change, because an id names one text for ever.
GENERATOR = 1
ATTEMPTS = 20_000


@dataclass(frozen=True, slots=True)
class Draw:
    """One problem of a family, before it is put into words. The answer is a number, or the index of a word."""

    family: Family
    seed: int
    values: Mapping[str, Value]
    answer: Value

    @property
    def item(self) -> str:
        """Id of the problem, whatever the language: 16 hex digits."""
        return short_digest([GENERATOR, self.family.name, self.seed])

    def id(self, question: str, reasoning: str, answer: str) -> str:
        """Id of the prompt with this language triple: 16 hex digits."""
        return short_digest([GENERATOR, self.family.name, [question, reasoning, answer], self.seed])


def draw(family: Family, seed: int) -> Draw:
    """The family's problem with that number.

    Raises:
        LingossError: 20,000 attempts meet no values that keep the constraints.
    """
    for attempt in range(ATTEMPTS):
        values = {
            name: _pick(variable.values(), family.name, seed, attempt, name)
            for name, variable in family.variables.items()
        }
        answer = evaluate(family.answer, values)
        if _keeps(family, values, answer):
            return Draw(family, seed, values, answer)
    raise LingossError(f"family {family.name}: no values keep the constraints in {ATTEMPTS} attempts; widen the ranges")


def distinct(family: Family, start: int = 0) -> Iterator[Draw]:
    """Draws with the seeds `start`, `start` + 1, …, leaving out those that repeat a problem.

    Endless: a family whose problems are used up begins to repeat them.
    """
    seen: set[tuple[Value, ...]] = set()
    repeats = 0
    for seed in itertools.count(start):
        drawn = draw(family, seed)
        values = tuple(drawn.values.values())
        repeats = repeats + 1 if values in seen else 0
        if repeats > 200:
            seen.clear()
        if values not in seen:
            seen.add(values)
            yield drawn


def _pick(values: tuple[int, ...], *key: str | int) -> int:
    # 64 bits over at most a thousand values: the bias of the remainder is below 10^-15.
    number = int.from_bytes(hashlib.sha256(json.dumps([GENERATOR, *key]).encode("ascii")).digest()[:8], "big")
    return values[number % len(values)]


def _keeps(family: Family, values: Mapping[str, Value], answer: Value) -> bool:
    result = family.result
    if family.kind == "number":
        shown = Fraction(answer) * 10**result.decimals
        if shown.denominator != 1 or not result.min <= answer <= result.max:
            return False
    known = {**values, "answer": answer}
    return all(evaluate(source, known) for source in family.constraints)
