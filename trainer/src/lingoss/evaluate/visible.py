# SPDX-License-Identifier: MIT-0
"""Model text is hostile: what no reader can see, or what rewrites the line around it, is shown as a name."""

import re

# Control characters, invisible spaces, direction overrides and isolates, lone surrogates. Joiners and direction marks
# (U+200C to U+200F) stay: Hindi, Persian and Arabic need them.
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]")


def visible(text: str) -> str:
    """`text` with every such character written as ⟦U+202E⟧."""
    return HIDDEN.sub(lambda found: f"⟦U+{ord(found[0]):04X}⟧", text)
