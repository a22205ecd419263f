# SPDX-License-Identifier: MIT-0
"""Which language is a text in, and is it compatible with the one that was asked for?

Read the text as people see it (`normalise`), strip code and maths (`strip`, `cues`, `tokens`), decide by script where
that suffices (`blocks`, `script`), weigh words and fastText over the candidates sentence by sentence (`latin`,
`words`, `fasttext_model`), by words alone where the text is short (`short`), and count letters (`tally`).
A text may be written to deceive: what it hides is looked for, not left out.
"""

from collections.abc import Sequence

from lingoss.detect import blocks, cues, latin, short, strip, tally
from lingoss.detect.candidates import Candidates, choose
from lingoss.detect.fasttext_model import SHA256
from lingoss.detect.normalise import clean
from lingoss.detect.result import STRICT_SHARE, Detection
from lingoss.detect.script import NOT_LATIN
from lingoss.detect.tokens import Tokens, sentence_ends, tokenize
from lingoss.detect.words import names

__all__ = ["STRICT_SHARE", "Detection", "detect", "version"]

_MANY_PARTS = 8
_BROKEN = "\ufffd"
_RECIPE = 4  # raise it when a text may be judged otherwise than before


def version() -> str:
    """Detector, recipe and weights: detections are comparable when these are equal."""
    return f"lingoss-detect {_RECIPE}, lid.176.ftz sha256:{SHA256}, wordfreq 3.1.1"


def detect(text: str, target: str | None = None, languages: Sequence[str] | None = None) -> Detection:
    """Detect the languages of a text; with `target`, also whether the text is compatible with that language.

    `languages`: the candidates (all built-in languages by default), to which their close relatives are added; English
    is always weighed, and named "unknown" when it is no candidate. Pure and linear in the length of the text. Raises
    UnknownLanguage for a code that nobody knows, and nothing on any text.
    """
    who = choose(languages, target)
    seen = clean(text)
    masked = cues.mask(strip.mask(seen.text, who.function_words))
    tokens = tokenize(masked)
    names_of_code = [word.lower() for _, _, word, size in tokens.names if size > 1]
    if strip.is_cut_prose(names_of_code, who.function_words) or _outweigh(names_of_code, tokens, who):
        tokens = tokens.with_names()
    other_scripts = NOT_LATIN.search(masked) is not None
    if not tokens.words and not other_scripts:
        tokens = _only_marked(seen.text, who)
    units = [(start, end, size, "unknown") for start, end, size in seen.hidden if size]
    left: Sequence[int] = range(len(tokens.words))
    ends = sentence_ends(masked)
    if other_scripts:
        found, left = blocks.read(masked, tokens, ends, who)
        units += found
    if not units:
        if all(tokens.sizes[at] == 1 for at in left) or _only_names(tokens, who):
            return tally.neutral(text, who)
        if masked.count(_BROKEN) >= 3:  # what was text once and cannot be read any more
            units.append((masked.index(_BROKEN), masked.rindex(_BROKEN) + 1, masked.count(_BROKEN), "unknown"))
        elif len(left) <= short.WORDS or sum(tokens.sizes[at] for at in left) < short.LETTERS:
            return tally.short(text, tokens, short.read(tokens, who), who)
    units += _latin(tokens, left, ends, who)
    return tally.long(text, seen, units, ends, who)


def _outweigh(parts: list[str], tokens: Tokens, who: Candidates) -> bool:
    """Whether a text says more in identifiers and addresses than in words: "priceDropsByFifteen jacketCostsTwelve"."""
    if len(parts) < max(_MANY_PARTS, len(tokens.words)):
        return False
    return sum(map(who.evidence.knows, parts)) >= 0.6 * len(parts)


def _only_marked(text: str, who: Candidates) -> Tokens:
    """Words of a text that is nothing but code or maths marks around something: those that are words."""
    tokens = tokenize(strip.bare(text))
    known = Tokens()
    for start, end, word, size in zip(tokens.starts, tokens.ends, tokens.words, tokens.sizes, strict=True):
        if who.evidence.knows(word):
            known.add(start, end, word, size)
    return known


def _only_names(tokens: Tokens, who: Candidates) -> bool:
    """Whether a text for a language of another script is a Latin given name, as the question may have written it."""
    other_script = who.target is not None and who.target not in who.by_script.get("Latin", ())
    return other_script and all(word.lower() in names() for word in tokens.words)


def _latin(tokens: Tokens, left: Sequence[int], ends: list[int], who: Candidates) -> list[blocks.Unit]:
    if not left:
        return []
    part = tokens if len(left) == len(tokens.words) else tokens.part(left)
    first = [0]
    sentence = 0
    for at, start in enumerate(part.starts):
        if start >= ends[sentence]:
            while start >= ends[sentence]:
                sentence += 1
            if at:
                first.append(at)
    labels = latin.languages_of(part, first, who)
    return list(zip(part.starts, part.ends, part.sizes, labels, strict=True))
