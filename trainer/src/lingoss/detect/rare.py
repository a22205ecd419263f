# SPDX-License-Identifier: MIT-0
"""Rare words of short answers ("3 erasers", "8 peras"): wordfreq's large lists, read when the first one is met.

The small lists end at one word in a million: below that they call a word of one language a word of all. The large
lists as tables of Python strings would take 300 MB; as sorted checksums with their frequencies they take 30.
"""

import zlib
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from lingoss.detect.words import WORDFREQ_CODES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MISSING = -8.0  # log10; the large lists end here
_KNOWN = -7.3  # a word that no language has more often may be anything, a misspelling too


@cache
def _large(code: str) -> "tuple[NDArray[np.uint32], NDArray[np.float64]]":
    """Sorted checksums of the words of a language, and log10 of their frequencies."""
    import numpy as np
    import wordfreq

    name = WORDFREQ_CODES.get(code, code)
    wordlist = "large" if name in wordfreq.available_languages("large") else "small"
    buckets = wordfreq.get_frequency_list.__wrapped__(name, wordlist)  # itself it would keep all strings for ever
    sums = np.fromiter((_checksum(word) for bucket in buckets for word in bucket), dtype=np.uint32)
    logs = np.repeat(np.arange(len(buckets)) / -100, [len(bucket) for bucket in buckets])
    order = np.argsort(sums, kind="stable")
    return sums[order], logs[order]


def _checksum(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "replace"))


@lru_cache(maxsize=20_000)
def _frequency(word: str, code: str) -> float:
    import numpy as np

    sums, logs = _large(code)
    wanted = np.uint32(_checksum(word))
    at = int(np.searchsorted(sums, wanted))
    return float(logs[at]) if at < len(sums) and sums[at] == wanted else MISSING


def frequencies(word: str, codes: Sequence[str]) -> list[float] | None:
    """log10 of the frequency of a lower-case word in each language, or None when it is a word of none of them."""
    found = [_frequency(word, code) for code in codes]
    return found if max(found, default=MISSING) >= _KNOWN else None
