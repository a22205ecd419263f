# SPDX-License-Identifier: MIT-0
"""Times at the start of log lines, in the many forms of the programs that write them."""

import datetime
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

HEAD = 200
"""Characters of a line in which a time stamp is looked for: later ones are part of what is told."""

_MONTHS = {name: number for number, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_MONTH = "(?P<name>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TIME = r"(?P<h>[01]\d|2[0-3]):(?P<m>[0-5]\d):(?P<s>[0-5]\d)(?:[.,](?P<f>\d{1,9}))?"
_AGE = r"(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?"

# One expression a form; the first that matches counts, so complete ones stand before short ones.
_FORMS = [
    re.compile(form)
    for form in (
        rf"(?P<Y>20\d\d)[-/](?P<M>\d\d)[-/](?P<D>\d\d)[T _-]+{_TIME}\s?(?P<z>Z|UTC|[+-]\d\d:?\d\d)?",  # ISO, Python, Ray
        rf"(?P<M>\d\d)/(?P<D>\d\d)/(?P<Y>20\d\d)[ T-]+{_TIME}",  # accelerate, TensorRT
        rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_MONTH} +(?P<D>\d\d?) {_TIME}(?: (?P<z>[A-Z]{{3,4}}))? (?P<Y>20\d\d)",  # dmesg -T
        rf"(?P<D>\d\d)[/ -]{_MONTH}[/ -](?P<Y>20\d\d)[: ]+{_TIME}",  # Apache
        rf"\[(?P<M>\d\d)/(?P<D>\d\d)/(?P<y>\d\d) {_TIME}",  # rich
        rf"\b[DIWEFC](?P<M>\d\d?)(?P<D>\d\d) {_TIME}",  # glog, klog, torch
        rf"\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) +(?P<M>\d\d)-(?P<D>\d\d) {_TIME}",  # vLLM
        rf"^{_MONTH} +(?P<D>\d\d?) {_TIME}",  # syslog
        r"(?:libfabric:\d+:|\"ts\": ?|\"timestamp\": ?)(?P<epoch>1[4-9]\d{8})(?:\.(?P<f>\d+))?",
        rf"^\W{{0,2}}{_TIME}(?=\W)",
    )
]
_RELATIVE = [
    re.compile(r"^\[ *(?P<up>\d+\.\d+)\]"),  # the kernel's seconds since boot
    # `kubectl describe` and `get events`: the age of the last time, and of the first one if there were several
    re.compile(rf"^\s+(?:Normal|Warning)\s+\w+\s+(?P<age>{_AGE})(?: \(x\d+ over (?P<first>{_AGE})\))?\s"),
    re.compile(rf"^(?P<age>{_AGE})(?: \(x\d+ over (?P<first>{_AGE})\))?\s+(?:Normal|Warning)\s"),
]
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_NOWHERE = datetime.date(2000, 1, 1)


@dataclass(frozen=True)
class Stamp:
    """A time as far as it is written: None where a part is not. `seconds` is of the day, in UTC if `zoned`, or since boot."""

    seconds: float
    year: int | None = None
    month: int | None = None
    day: int | None = None
    relative: bool = False
    zoned: bool = False


def read(line: str) -> Stamp | None:
    """The time stamp of a line, or None."""
    head = line[:HEAD]
    for form in _RELATIVE:
        if match := form.match(head):
            return _relative(match)
    for form in _FORMS:
        match = form.search(head)
        if match and (stamp := _absolute(match)):
            return stamp
    return None


def _relative(match: re.Match[str]) -> Stamp | None:
    parts = match.groupdict()
    if parts.get("up"):
        return Stamp(float(parts["up"]), relative=True)
    age = parts.get("first") or parts.get("age")
    if not age:
        return None
    return Stamp(-sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"(\d+)([dhms])", age)), relative=True)


def _absolute(match: re.Match[str]) -> Stamp | None:
    parts = match.groupdict()
    fraction = float(f"0.{parts.get('f') or 0}")
    if epoch := parts.get("epoch"):
        at = datetime.datetime.fromtimestamp(int(epoch), datetime.UTC)
        return Stamp(at.hour * 3600 + at.minute * 60 + at.second + fraction, at.year, at.month, at.day, zoned=True)
    seconds = int(parts["h"]) * 3600 + int(parts["m"]) * 60 + int(parts["s"]) + fraction
    year = int(parts["Y"]) if parts.get("Y") else 2000 + int(parts["y"]) if parts.get("y") else None
    month = _MONTHS[parts["name"]] if parts.get("name") else int(parts["M"]) if parts.get("M") else None
    day = int(parts["D"]) if parts.get("D") else None
    if month is not None and day is not None:
        try:
            datetime.date(year or 2000, month, day)
        except ValueError:
            return None
    if (zone := re.fullmatch(r"([+-])(\d\d):?(\d\d)", parts.get("z") or "")) and year:
        shift = (int(zone[2]) * 60 + int(zone[3])) * 60
        seconds += -shift if zone[1] == "+" else shift  # days before 0 and after 1 are fine in a sum of seconds
    return Stamp(seconds, year, month, day, zoned=bool(parts.get("z")))


class Calendar:
    """Fills in the year or the date that a stamp leaves out, from the other stamps of the same logs."""

    def __init__(self, stamps: Iterable[Stamp]) -> None:
        known = [stamp for stamp in stamps if not stamp.relative]
        years = Counter(stamp.year for stamp in known if stamp.year)
        self._year = years.most_common(1)[0][0] if years else _NOWHERE.year
        dates = Counter(self._date(stamp) for stamp in known if stamp.month)
        self._today = dates.most_common(1)[0][0] if dates else _NOWHERE

    def _date(self, stamp: Stamp) -> datetime.date:
        assert stamp.month
        assert stamp.day
        try:
            return datetime.date(stamp.year or self._year, stamp.month, stamp.day)
        except ValueError:  # 29 February of a stamp without a year
            return datetime.date(2000, stamp.month, stamp.day)

    def seconds(self, stamp: Stamp) -> float:
        """Seconds on the common time line. Undefined for a relative stamp."""
        day = self._date(stamp) if stamp.month else self._today
        return day.toordinal() * 86400.0 + stamp.seconds
