# SPDX-License-Identifier: MIT-0
"""Count the letters of each language and say what the text is."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from lingoss.detect.blocks import Unit
from lingoss.detect.candidates import Candidates
from lingoss.detect.normalise import Clean
from lingoss.detect.result import STRICT_SHARE, Detection
from lingoss.detect.short import Reading
from lingoss.detect.tokens import Tokens


def neutral(text: str, who: Candidates) -> Detection:
    """A text without words of any language: compatible with none, a fault in none."""
    target = who.target
    return Detection(
        label="neutral",
        target=target,
        accepted=None if target is None else False,
        target_share=None if target is None else 0.0,
        shares={},
        second=None,
        letters=0,
        abstained=False,
        segments=_whole(text, "neutral"),
    )


def short(text: str, tokens: Tokens, reading: Reading, who: Candidates) -> Detection:
    """A few words: in the language asked for when they can be, else in the one that they name."""
    target = who.target
    accepted = target in reading.compatible
    label = target if accepted and target is not None else reading.best or "unknown"
    second = next((code for code in reading.ranked if code != label and code in who.allowed), None)
    return Detection(
        label=label,
        target=target,
        accepted=None if target is None else accepted,
        target_share=None if target is None else float(accepted),
        shares={} if label == "unknown" else {label: 1.0},
        second=second,
        letters=sum(tokens.sizes),
        abstained=label == "unknown",
        segments=_whole(text, label),
    )


def long(text: str, seen: Clean, units: list[Unit], ends: list[int], who: Candidates) -> Detection:
    """A text with parts: the language of nearly all letters, or "mixed", or "unknown"."""
    target = who.target
    count: Counter[str] = Counter()
    for _, _, size, code in units:
        count[code] += size
    letters = count.total()
    shares = {code: size / letters for code, size in count.most_common() if code in who.allowed}
    ranked = list(shares)
    if ranked and shares[ranked[0]] >= STRICT_SHARE:
        label = ranked[0]
    elif sum(shares.values()) <= 0.5:
        label = "unknown"
    else:
        label = "mixed"
    share = None if target is None else shares.get(target, 0.0)
    rest = [code for code in ranked if code != label]
    return Detection(
        label=label,
        target=target,
        accepted=None if share is None else share >= STRICT_SHARE,
        target_share=share,
        shares=shares,
        second=(rest[1] if len(rest) > 1 else None) if label == "mixed" else (rest[0] if rest else None),
        letters=letters,
        abstained=label == "unknown",
        segments=_segments(text, seen, units, ends, who),
    )


def _whole(text: str, label: str) -> tuple[tuple[int, int, str], ...]:
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    return ((start, end, label),) if start < end else ()


def _segments(
    text: str, seen: Clean, units: list[Unit], ends: Sequence[int], who: Candidates
) -> tuple[tuple[int, int, str], ...]:
    """Stretches of one language; numbers and formulas go with the sentence that they stand in."""
    stretches: list[tuple[int, str]] = []
    done = 0
    for start, end, _, code in sorted(units):
        label = code if code in who.allowed else "unknown"
        if not stretches or stretches[-1][1] != label:
            before = bisect_right(ends, start)
            boundary = ends[before - 1] if before else 0
            # From the beginning of the sentence, unless the stretch before reaches into it.
            stretches.append((boundary if boundary >= done else start, label))
        done = max(done, end)
    if len({label for _, label in stretches}) == 1:
        return _whole(text, stretches[0][1])
    found = []
    bounds = [0, *(seen.original(start) for start, _ in stretches[1:]), len(text)]
    for number, (_, label) in enumerate(stretches):
        start, end = bounds[number], bounds[number + 1]
        piece = text[start:end]
        found.append((start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip()), label))
    return tuple(segment for segment in found if segment[0] < segment[1])
