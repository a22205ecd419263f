# SPDX-License-Identifier: MIT-0
"""What every chat format is read into."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Transcript:
    """One answer of a model, taken apart.

    `reasoning` and `answer` are the text between the format's marks, outer white space stripped, inner code points
    kept; a missing part is the empty string. `format_ok`: the whole text has the form that the format asks for.
    `truncated`: the model was cut before it stopped by itself; a truncated text is never `format_ok`.
    `aside`: what the format has room for beside the two (Harmony: commentary, tool calls, extra words of headers): no
    reader of the answer sees it, and it must not be where the thinking is done.
    """

    format: str
    reasoning: str
    answer: str
    format_ok: bool
    truncated: bool
    aside: str = ""
