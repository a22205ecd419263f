# SPDX-License-Identifier: MIT-0
"""Which rank was late, from what the watchdogs of all ranks say about one collective."""

import re
from collections import Counter
from collections.abc import Sequence

from lingoss.doctor.logs.scan import Match

_RANK = re.compile(r"\[Rank (\d+)\]|Rank (\d+)\]|\[rank(\d+)\]|\[(\d+)\] is setting up")
_RANK_OF_FILE = re.compile(r"(?:rank|worker)[-_.]?(\d+)", re.IGNORECASE)
_ENQUEUED = re.compile(r"[Ll]ast enqueued (?:NCCL )?work: (-?\d+)")
_WORK = re.compile(r"SeqNum=(\d+), OpType=(\w+)")
_NAMED = re.compile(r"monitoredBarrier|failed to pass|mismatch", re.IGNORECASE)


def rank_of(match: Match) -> int | None:
    """The rank that wrote a line, by what it says or by the name of its file."""
    found = _RANK.search(match.text) or _RANK_OF_FILE.search(match.file)
    return int(next(group for group in found.groups() if group)) if found else None


def late(matches: Sequence[Match]) -> tuple[Match, str]:
    """The line that shows who is late, and a sentence. `matches` is not empty, and the first one stands for all else.

    A rank that never queued the collective is late; else one that ran another one than most.
    """
    for match in matches:
        if _NAMED.search(match.text):
            return match, "the line names it"
    timed_out = [(match, work) for match in matches if (work := _WORK.search(match.text))]
    if timed_out:
        number = max(int(work[1]) for _, work in timed_out)
        queued = [(int(said[1]), match) for match in matches if (said := _ENQUEUED.search(match.text))]
        behind = [(count, match) for count, match in queued if count < number]
        if behind:
            count, match = min(behind, key=lambda row: row[0])
            return match, f"rank {rank_of(match)} had queued {count} collectives when others waited in number {number}"
        kinds = Counter((work[1], work[2]) for _, work in timed_out)
        if len(kinds) > 1:
            rare, times = min(kinds.items(), key=lambda row: (row[1], int(row[0][0])))
            if times < max(kinds.values()) or int(rare[0]) < number:
                match = next(match for match, work in timed_out if (work[1], work[2]) == rare)
                return match, f"rank {rank_of(match)} was in collective {rare[0]} ({rare[1]}), others were not"
    return matches[0], "every rank that wrote waited; the late one wrote nothing here"
