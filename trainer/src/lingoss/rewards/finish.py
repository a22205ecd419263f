# SPDX-License-Identifier: MIT-0
"""Did a completion stop by itself? Where a framework does not say, its last token does."""

from lingoss.transcript import chat_format


def from_text(text: str, format: str) -> str:
    """ "stop" when the text ends with one of the format's stop tokens, else "length".

    For frameworks that hand over the text with special tokens and nothing else: engines keep the stop token there.
    """
    kept = text.rstrip()
    return "stop" if any(kept.endswith(token) for token in chat_format(format).STOP) else "length"
