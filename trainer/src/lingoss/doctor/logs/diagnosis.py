# SPDX-License-Identifier: MIT-0
"""The first failure in the logs of all ranks, pods and nodes, and not the loudest one.

Every line that a pattern matches is a candidate. Those after which the work went on are healed. Of the others, one is
explained by another of a lower layer (`cause.LAYERS`) that was not seen clearly later: a machine that failed explains the
program that ended, which explains those that waited for it. What is left is put on one time line, and the first is named.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lingoss.doctor.cause import LAYERS, causes
from lingoss.doctor.logs import straggler
from lingoss.doctor.logs.clock import Calendar
from lingoss.doctor.logs.scan import Match, Scan, object_of, scan
from lingoss.doctor.logs.source import sources, windows

_SIGN, _WAITING = LAYERS.index("sign"), LAYERS.index("waiting")
_NOTICED = {LAYERS.index("program"): 5.0, _WAITING: 120.0, _SIGN: 120.0}
"""Seconds by which what explains a line may be seen after it: clocks differ, and buffers are written late."""
_ZONE = 3000.0
"""Seconds from which a difference between a time with a zone and one without may be that zone."""
_LINES = 150
"""The same within one file without times, for what waited or is only a sign."""
_REFINE: dict[str, Callable[[Sequence[Match]], tuple[Match, str]]] = {"late-rank": straggler.late}
UNKNOWN, NONE = "unknown", "none"


@dataclass(frozen=True)
class Place:
    """A line of a file."""

    file: str
    line: int


@dataclass(frozen=True)
class Diagnosis:
    """The first failure. `first` and `evidence` are None where nothing points to one; `others` were seen after it."""

    cause: str
    first: Place | None
    evidence: str | None
    remedy: str
    detail: str = ""
    others: list[tuple[str, Place]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As JSON: {cause, first: {file, line} | null, evidence, remedy, meaning, detail, others, unread}."""
        return {
            "cause": self.cause,
            "first": {"file": self.first.file, "line": self.first.line} if self.first else None,
            "evidence": self.evidence,
            "remedy": self.remedy,
            "meaning": causes()[self.cause].meaning,
            "detail": self.detail,
            "others": [{"cause": cause, "file": place.file, "line": place.line} for cause, place in self.others],
            "unread": self.unread,
        }


def diagnose(paths: list[str]) -> Diagnosis:
    """Read files, folders or `-` and name the first failure. Files that cannot be read are listed, not fatal.

    Raises LingossError for a path that is not there.
    """
    scans, unread = [], []
    for source in sources(paths):
        try:
            scans.append(scan(source.name, windows(source)))
        except OSError as error:
            unread.append(f"{source.name}: {error.strerror or error}")
            continue
        if scans[-1].cut:
            unread.append(f"{source.name}: too many kinds of lines, its end was passed over")
    return _decide(scans, unread)


def _decide(scans: list[Scan], unread: list[str]) -> Diagnosis:
    matches = [match for found in scans for match in found.matches if not _healed(match, found)]
    line = _TimeLine(matches, [found.file for found in scans])
    # Of each layer of a file the earliest one stands for the later ones: what explains it explains them too.
    earliest = line.earliest(matches)
    kept = [match for match in earliest if not any(line.explains(other, match) for other in earliest)]
    if not kept:
        return Diagnosis(NONE, None, None, causes()[NONE].remedy, unread=unread)
    first, detail = line.first(kept), ""
    alike = [match for match in matches if match.pattern.cause == first.pattern.cause]
    if first.pattern.refine:
        first, detail = _REFINE[first.pattern.refine]([first, *(match for match in alike if match is not first)])
    cause = causes()[first.pattern.cause]
    others: dict[str, Place] = {}
    for match in sorted(matches, key=line.order):
        if match.pattern.cause not in (cause.name, UNKNOWN) and match is not first:
            others.setdefault(match.pattern.cause, Place(match.file, match.line))
    return Diagnosis(
        cause.name, Place(first.file, first.line), first.text, cause.remedy, detail, list(others.items()), unread
    )


def _healed(match: Match, found: Scan) -> bool:
    """Did the work go on after it, or does the file lack the line that would make it a fault?"""
    pattern = match.pattern
    if pattern.with_line and pattern.with_line not in found.lines_with:
        return True
    for group in pattern.healed_by:
        if group == "placed":
            about = object_of(match.text)
            if any(line > match.last and (not about or not where or where == about) for line, where in found.placed):
                return True
        elif found.later(group, match.last) >= (2 if group == "progress" else 1):
            return True
    return False


class _TimeLine:
    """Puts matches of all files in order, as far as their times allow."""

    def __init__(self, matches: list[Match], files: list[str]) -> None:
        self._calendar = Calendar(match.stamp for match in matches if match.stamp)
        self._position = {file: i for i, file in enumerate(files)}
        self._times = {id(match): self._seconds(match) for match in matches}

    def _seconds(self, match: Match) -> float | None:
        return self._calendar.seconds(match.stamp) if match.stamp and not match.stamp.relative else None

    def _later(self, a: Match, b: Match) -> float | None:
        """Seconds from b to a, None where they cannot be compared. Within a file without times, lines stand for them."""
        start, end = self._times[id(b)], self._times[id(a)]
        if start is not None and end is not None:
            gap = end - start
            # Nodes write UTC with its mark, programs mostly local time without one: whole hours between them are zones.
            if a.stamp and b.stamp and a.stamp.zoned != b.stamp.zoned and abs(gap) > _ZONE:
                gap -= round(gap / 3600) * 3600
            return gap
        if a.file == b.file and a.stamp and b.stamp and a.stamp.relative and b.stamp.relative:
            return a.stamp.seconds - b.stamp.seconds
        return None

    def before(self, a: Match, b: Match) -> bool:
        """Is a surely before b? Within one file its lines are in order, unless they are events with ages."""
        if a.file == b.file:
            ages = a.stamp and b.stamp and a.stamp.relative and b.stamp.relative and a.stamp.seconds != b.stamp.seconds
            return (self._later(a, b) or 0.0) < 0 if ages else a.line < b.line
        gap = self._later(a, b)
        return gap is not None and gap < 0

    def explains(self, other: Match, match: Match) -> bool:
        """Is `match` a consequence of `other`, which lies in a lower layer and was not seen clearly later?"""
        layer = match.pattern.layer
        if other.pattern.layer >= layer:
            return False
        gap = self._later(other, match)
        if other.file == match.file:
            near = other.line < match.line + (_LINES if layer >= _WAITING else 1)
            return near and (layer >= _WAITING or not self.before(match, other))
        return gap is None or gap <= _NOTICED[layer]

    def earliest(self, matches: list[Match]) -> list[Match]:
        """The first match of each layer of each file."""
        found: dict[tuple[str, int], Match] = {}
        for match in matches:
            key = (match.file, match.pattern.layer)
            if key not in found or self.before(match, found[key]):
                found[key] = match
        return list(found.values())

    def first(self, matches: list[Match]) -> Match:
        """The one that no other is surely before; among those that cannot be compared the lowest layer, then the order."""
        earliest = [match for match in matches if not any(self.before(other, match) for other in matches)]
        return min(earliest or matches, key=lambda match: (match.pattern.layer, *self.order(match)))

    def order(self, match: Match) -> tuple[float, int, int]:
        seconds = self._times[id(match)]
        return (seconds if seconds is not None else float("inf"), self._position[match.file], match.line)
