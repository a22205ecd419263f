# SPDX-License-Identifier: MIT-0
"""Puts a drawn problem into words: numbers with the language's decimal mark, plural forms, words from lists.

In a text, `{a * b}` prints a value, `{n|apple|apples}` picks the form for n, `{day@weekdays}` looks a word up.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from lingoss import languages
from lingoss.data.draws import Draw
from lingoss.data.expressions import Value, evaluate
from lingoss.data.families import Text, words
from lingoss.errors import LingossError

_SLOT = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Rendered:
    """One problem in one language. `gold`: a number in ASCII with a decimal point, or the word itself."""

    question: str
    reasoning: str
    answer: str
    gold: str


def render(drawn: Draw, code: str, names: str | None = None) -> Rendered:
    """All texts of a draw in one language.

    `names`: the language whose first names are used, by default the same. Reasoning and answer must take those of the
    question: nobody who is called Tom in an English question becomes Paul in the French answer.

    Raises:
        LingossError: the family has no text in that language, or a text asks for something that is not there.
    """
    family = drawn.family
    text = family.text.get(code)
    if text is None:
        raise LingossError(f"family {family.name} has no text in {code!r}; it has {', '.join(sorted(family.text))}")
    lists = {**words(code).lists, "names": words(names or code).lists["names"]}
    writer = _Writer(drawn, text, words(code).plural, lists, languages.get(code).decimal)
    return Rendered(
        writer.fill(text.question),
        writer.fill(writer.branch(text.reasoning)),
        writer.fill(writer.branch(text.answer)),
        writer.option() if family.kind == "word" else number(drawn.answer, "."),
    )


def number(value: Value, decimal: str) -> str:
    """Digits without thousands marks, which differ between languages and would make texts ambiguous.

    Raises:
        LingossError: from 10,000 on a reader needs such marks; or the decimals do not end after two places.
    """
    hundredths = Fraction(value) * 100
    if hundredths.denominator != 1 or abs(hundredths) >= 1_000_000:
        raise LingossError(f"cannot print {value}: at most two decimals, below 10,000; rephrase the text")
    sign = "-" if value < 0 else ""
    whole, part = divmod(abs(hundredths.numerator), 100)
    digits = f"{part:02d}".rstrip("0")
    return f"{sign}{whole}{decimal}{digits}" if digits else f"{sign}{whole}"


class _Writer:
    """Fills the slots of one draw's texts in one language."""

    def __init__(
        self, drawn: Draw, text: Text, plural: tuple[str, ...], lists: Mapping[str, tuple[str, ...]], decimal: str
    ) -> None:
        self._drawn, self._text, self._conditions, self._lists, self._decimal = drawn, text, plural, lists, decimal

    def branch(self, lines: tuple[str, ...]) -> str:
        """The text for the answer that was drawn, where texts differ by answer."""
        return lines[0] if len(lines) == 1 else self._item(lines, "texts", self._index())

    def option(self) -> str:
        """The word that is the answer."""
        options = self._text.options or self._list(self._drawn.family.options)
        return self.fill(self._item(options, "options", self._index()))

    def fill(self, template: str) -> str:
        """The template with every slot filled."""
        return _SLOT.sub(lambda match: self._slot(match[1]), template)

    def _slot(self, slot: str) -> str:
        source, *forms = slot.split("|")
        source, _, name = source.partition("@")
        if name:
            return self._item(self._list(name), name, self._value(source))
        if forms:
            return forms[min(self._plural(source), len(forms) - 1)]
        if source.strip() == "answer" and self._drawn.family.kind == "word":
            return self.option()
        return number(self._value(source), self._decimal)

    def _plural(self, source: str) -> int:
        n = self._value(source)
        hits = (index for index, condition in enumerate(self._conditions) if evaluate(condition, {"n": n}))
        return next(hits, len(self._conditions))

    def _value(self, source: str) -> Value:
        return evaluate(source, {**self._drawn.values, "answer": self._drawn.answer})

    def _index(self) -> int:
        return int(self._drawn.answer)

    def _list(self, name: str) -> tuple[str, ...]:
        if name not in self._lists:
            raise LingossError(f"family {self._drawn.family.name}: no list {name!r}, only {', '.join(self._lists)}")
        return self._lists[name]

    def _item(self, values: tuple[str, ...], name: str, index: Value) -> str:
        if not isinstance(index, int) or not 0 <= index < len(values):
            raise LingossError(f"family {self._drawn.family.name}: {name} has no entry {index}")
        return values[index]
