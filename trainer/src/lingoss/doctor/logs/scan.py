# SPDX-License-Identifier: MIT-0
"""The lines of one log that say something: matches of the causes' patterns, and signs that the work went on after them.

One compiled search for the words of all patterns passes over a window in C++; only lines that it finds are read in Python,
and of lines that differ in nothing but their numbers only the first ones.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from lingoss.doctor.cause import Pattern, causes, signs
from lingoss.doctor.logs import clock
from lingoss.doctor.logs.anchors import anchors
from lingoss.doctor.logs.source import Window

_DIGITS = b"0123456789abcdefABCDEF.+"
"""Characters by which lines of one kind differ: numbers, identifiers, addresses."""
_RANKS = 256
"""So many lines of one kind are read where each rank's counts."""
_ALIKE = 8
"""Otherwise."""
_OF_PATTERN = 64
"""So many matches of one pattern are kept, but for those that tell of ranks."""
_READ = 20_000
"""When so many lines were read, only the first line of each further kind is."""
_KINDS = 30_000
"""Kinds of lines a file; a file with more is no log, and the rest of it is passed over."""
_NEAR = 20
"""Lines before and after in which `near` looks: the frames of a traceback."""
_AROUND = 8
"""The same for `unless`."""
_NEARBY = 60
"""The same for `unless_nearby`."""
_LINES_BEFORE, _LINES_AFTER = 400, 30
"""How far away a line may take its time from. What is printed without one is mostly followed by what notices it."""
_OBJECT = re.compile(
    r"\b(?:pod|job|rayjob|workload|raycluster)/([\w.-]+)|assigned [\w.-]+/([\w.-]+) to|pod[s]? \"([\w./-]+)\""
)


@dataclass(frozen=True)
class Match:
    """A line that a pattern matches. `last` is the last line of its kind; stamps are of the line or of one close to it."""

    pattern: Pattern
    file: str
    line: int
    text: str
    stamp: clock.Stamp | None
    kind: "Kind"

    @property
    def last(self) -> int:
        return max(self.line, self.kind.last)


@dataclass
class Kind:
    """Lines that are the same but for their numbers: how many were read, the last two, what they match."""

    read: int = 0
    last: int = 0
    before_last: int = 0
    of_ranks: bool = False
    health: set[str] = field(default_factory=set)


@dataclass
class Scan:
    """What one file says. `placed` has line and object of each event that shows a pod in its place."""

    file: str
    matches: list[Match] = field(default_factory=list)
    kinds: list[Kind] = field(default_factory=list)
    placed: list[tuple[int, str]] = field(default_factory=list)
    lines_with: set[re.Pattern[str]] = field(default_factory=set)
    cut: bool = False
    read: int = 0
    counts: Counter[Pattern] = field(default_factory=Counter)

    def later(self, group: str, line: int) -> int:
        """How many lines of that group of health signs follow; two stand for more."""
        count = 0
        for kind in self.kinds:
            if group in kind.health:
                count += (kind.last > line) + (kind.before_last > line)
        return count


@dataclass(frozen=True)
class _Rules:
    """Every expression with the words that a line must hold for it, and one expression for all the words."""

    failures: list[tuple[list[str], Pattern]]
    health: list[tuple[list[str], re.Pattern[str], str]]
    context: list[tuple[list[str], re.Pattern[str]]]
    noise: list[re.Pattern[str]]
    words: str


@cache
def _rules() -> _Rules:
    failures = [(anchors(p.match), p) for cause in causes().values() for p in cause.patterns]
    health = [(anchors(p), p, group) for group, patterns in signs("health").items() for p in patterns]
    context = [(anchors(p.with_line), p.with_line) for _, p in failures if p.with_line]
    groups = [row[0] for row in failures] + [row[0] for row in health] + [row[0] for row in context]
    words = {word for group in groups for word in group}
    # A word that holds another one is found with it.
    least = sorted(word for word in words if not any(other in word for other in words if other != word))
    noise = [p for patterns in signs("noise").values() for p in patterns]
    return _Rules(failures, health, context, noise, "|".join(re.escape(word) for word in least))


def scan(file: str, windows: Iterable[Window]) -> Scan:
    """Read one file to its end."""
    found, kinds = Scan(file), dict[bytes, Kind]()
    for window in windows:
        for i in _hits(window):
            if i >= window.seen:
                _read(window, int(i), kinds, found)
    found.kinds = [kind for kind in kinds.values() if kind.health]
    return found


def _hits(window: Window) -> Iterator[Any]:
    """Positions of the pieces that hold a word of any expression."""
    if not len(window):
        return
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    # Each piece up to the start of the next one: what lies between them is line ends.
    offsets = np.append(window.starts, window.ends[-1])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(window.data)]
    array = pa.Array.from_buffers(pa.large_binary(), len(window), buffers)
    held = pc.match_substring_regex(array, _rules().words, ignore_case=True)
    yield from np.flatnonzero(held.to_numpy(zero_copy_only=False))


def _read(window: Window, i: int, kinds: dict[bytes, Kind], found: Scan) -> None:
    key = window.data[window.starts[i] : window.ends[i]].translate(None, _DIGITS)
    kind = kinds.get(key)
    if kind is None:
        if len(kinds) >= _KINDS:
            found.cut = True
            return
        kind = kinds[key] = Kind()
    number = int(window.numbers[i])
    kind.before_last, kind.last = kind.last, number
    kind.read += 1
    if kind.read > (1 if found.read > _READ else _RANKS if kind.of_ranks else _ALIKE):
        return
    found.read += 1
    text = _message(window.text(i))
    lower = text.lower()
    rules = _rules()
    for words, expression, group in rules.health:
        if any(word in lower for word in words) and expression.search(text):
            kind.health.add(group)
            if group == "placed" and len(found.placed) < _KINDS:
                found.placed.append((number, object_of(text)))
    for words, expression in rules.context:
        if any(word in lower for word in words) and expression.search(text):
            found.lines_with.add(expression)
    if any(expression.search(text) for expression in rules.noise):
        return
    for words, pattern in rules.failures:
        if not any(word in lower for word in words):
            continue
        if found.counts[pattern] >= (_RANKS if pattern.refine else _OF_PATTERN):
            continue
        match = pattern.match.search(text)
        if not match:
            continue
        if not _fits(pattern, window, i):
            continue
        found.counts[pattern] += 1
        kind.of_ranks |= bool(pattern.refine)
        found.matches.append(Match(pattern, found.file, number, _shown(text, match), _stamp(window, i), kind))


def _fits(pattern: Pattern, window: Window, i: int) -> bool:
    """Does what stands around a line allow the pattern?"""
    for expression, lines, wanted in (
        (pattern.near, _NEAR, True),
        (pattern.unless, _AROUND, False),
        (pattern.unless_nearby, _NEARBY, False),
    ):
        if expression:
            around = range(max(0, i - lines), min(len(window), i + lines + 1))
            if any(expression.search(window.text(k)) for k in around) != wanted:
                return False
    return True


def object_of(text: str) -> str:
    """The pod or job that an event is about, or an empty string."""
    match = _OBJECT.search(text)
    return next((group for group in match.groups() if group), "").rsplit("/", 1)[-1] if match else ""


def _message(text: str) -> str:
    """What a container runtime or a JSON logger wrapped into an object, else the text itself."""
    if not text.startswith("{") or not text.rstrip().endswith("}"):
        return text
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(row, dict):
        return text
    told = next(
        (row[key] for key in ("log", "message", "msg", "MESSAGE", "event") if isinstance(row.get(key), str)), ""
    )
    return told.rstrip("\n") or text


def _stamp(window: Window, i: int) -> clock.Stamp | None:
    if own := clock.read(window.text(i)[: clock.HEAD]):
        return own
    nearby = [*range(i + 1, min(len(window), i + _LINES_AFTER)), *range(i - 1, max(-1, i - _LINES_BEFORE), -1)]
    for k in nearby:
        stamp = clock.read(window.text(k)[: clock.HEAD])
        if stamp and not stamp.relative:
            return stamp
    return None


def _shown(text: str, match: re.Match[str]) -> str:
    """The part of a line around its match, at most 400 characters."""
    text = "".join(c if c.isprintable() else " " for c in text[max(0, match.start() - 150) : match.start() + 250])
    return " ".join(text.split())
