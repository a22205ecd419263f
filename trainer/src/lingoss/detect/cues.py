# SPDX-License-Identifier: MIT-0
"""Headings that name a language ("En français :"): they say what follows claims to be, not what it is."""

import re
from functools import cache

from lingoss import languages
from lingoss.detect.strip import blank


def mask(text: str) -> str:
    """Blank a language's name before a colon at the beginning of a line."""
    if ":" not in text and "：" not in text:
        return text
    return _heading().sub(lambda match: blank(match.group()), text)


@cache
def _heading() -> re.Pattern[str]:
    cues = {cue for code in languages.builtin() for cue in languages.get(code).words.get("language_cues", ())}
    names = "|".join(re.escape(cue).replace("\\ ", "[ \u00a0]") for cue in sorted(cues, key=len, reverse=True))
    opening, closing = '[ \t>#*_"«“(\\[]{0,8}', '[ \u00a0*_"»”)\\]]{0,8}'
    return re.compile(f"^{opening}(?:{names}){closing}[:：]", re.MULTILINE | re.IGNORECASE)
