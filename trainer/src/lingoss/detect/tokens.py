# SPDX-License-Identifier: MIT-0
"""The words of the Latin-script parts of a masked text, with their places.

A text is cut at white space; what a piece holds (words, an identifier, a number with its unit) is worked out once and
remembered, because the same pieces come again in every text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from lingoss.detect.script import LATIN
from lingoss.detect.words import NO_WORD

_PIECE = re.compile("[!-~¡-ʯ\u1e00-\u1eff\u2010-\u2027\u2030-\u205e\u20a0-\u20cf\u2190-\u2bff]++")
_PLAIN = re.compile(f"[\"'«“‘„¿¡(*\\[]*+([{LATIN}]{{2,40}}+)[)\"'»”’.,;:!?…*\\]]*+")
_CHAIN = re.compile(f"[{LATIN}0-9_]++(?:\\.[{LATIN}0-9_]++)*+")
_DIGIT_INSIDE = re.compile("[a-z][0-9][a-z]")
_JSON_KEY = re.compile(r"[{\[,]*+\"\w++\":")
_CAMEL = re.compile("[a-z][A-Z]")
_PART = re.compile(f"[{LATIN}]++")
_ENDING = re.compile(f"(?:t|s|re|ve|ll|d|m)(?![{LATIN}0-9_])", re.IGNORECASE)
_PLURAL = re.compile(r"\((?:s|es|e|n|en|x|a|o|os|as|i|in|innen|ne)\)")
_SENTENCE_END = re.compile(r"[.!?…]++(?![^\s)\]\"'»”*])|[。！？؟।॥]++|\n+")

_OPERATORS = frozenset("=+-*/<>|~@%&^·≤≥≡≈≠×÷→⇒±∓∈")
_LONGEST = 40  # letters; the longest German compounds in use are shorter

# One letter that may be a word of its own: article, conjunction or pronoun.
_LETTER_WORDS = frozenset("aAIyYeEoOuUiàÀèÈéÉóÓòÒôÔ")

# Signs that every language writes alike. Those in the second set only count as units behind a number.
_FORMULA_WORDS = frozenset("cos tan ln log lim exp mod gcd lcm det sqrt arcsin arccos arctan sinh cosh".split())
_UNITS = frozenset(
    "nm mm cm dm km mg kg dag hg ml cl dl hl ms ns min sec mph kmh kw kwh mw gw hz khz mhz ghz kb mb gb tb kj mj cal kcal "
    "pa kpa hpa bar psi ft lb lbs oz yd mi am pm eur usd gbp chf jpy cny inr krw".split()
)


@dataclass(slots=True)
class Tokens:
    """Parallel lists: [start, end) of each word, the word in lower case (or NO_WORD), and its number of letters."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def add(self, start: int, end: int, word: str, size: int) -> None:
        """Append one word."""
        self.starts.append(start)
        self.ends.append(end)
        self.words.append(word)
        self.sizes.append(size)

    def drop(self) -> None:
        """Take the last word away again."""
        for column in (self.starts, self.ends, self.words, self.sizes):
            column.pop()

    def part(self, indices: Sequence[int]) -> "Tokens":
        """Only these words."""
        columns = (self.starts, self.ends, self.words, self.sizes)
        return Tokens(*([column[at] for at in indices] for column in columns))


def sentence_ends(text: str) -> list[int]:
    """Offsets behind each sentence; the last one is the length of the text."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    if not ends or ends[-1] < len(text):
        ends.append(len(text))
    return ends


def tokenize(text: str) -> Tokens:
    """Words of the Latin-script pieces of a masked text, single letters of formulas left out."""
    tokens = Tokens()
    before = ""  # kind of the piece before
    letters: list[int] = []  # offsets of single letters in a row
    for match in _PIECE.finditer(text):
        start = match.start()
        piece = match.group()
        found, kind = _known_piece(piece) if len(piece) <= 60 else _read_piece(piece)
        if kind == "letter":
            letters.append(start)
        elif letters:
            _spaced_out(tokens, letters)
            letters.clear()
        if kind == "operator" and before == "letter" and tokens.ends and tokens.ends[-1] - tokens.starts[-1] == 1:
            tokens.drop()  # "a ≡ 3": a variable, not the article
        elif found and not (kind == "unit" and before == "number") and not (kind == "letter" and before == "operator"):
            for at, end, word, size in found:
                tokens.add(start + at, start + end, word, size)
        before = kind
    if letters:
        _spaced_out(tokens, letters)
    return tokens


def _spaced_out(tokens: Tokens, letters: list[int]) -> None:
    """Six single letters in a row or more are a word with spaces in it, which belongs to no language as it stands."""
    if len(letters) >= 6:
        while tokens.starts and tokens.starts[-1] >= letters[0]:
            tokens.drop()
        tokens.add(letters[0], letters[-1] + 1, NO_WORD, len(letters))


Word = tuple[int, int, str, int]  # start, end, word in lower case, letters
Found = tuple[tuple[Word, ...], str]


@lru_cache(maxsize=65536)
def _known_piece(piece: str) -> Found:
    return _read_piece(piece)


def _read_piece(piece: str) -> Found:
    """Words of one piece as (start, end, word, letters), and its kind: word, letter, unit, number, operator or ""."""
    plain = _PLAIN.fullmatch(piece)
    if plain and not _CAMEL.search(piece):
        word = plain.group(1).lower()
        if word in _FORMULA_WORDS:
            return (), ""
        return ((plain.start(1), plain.end(1), word, len(word)),), "unit" if word in _UNITS else "word"
    chains = list(_CHAIN.finditer(piece))
    if not chains:
        return (), "operator" if piece[0] in _OPERATORS else ""
    if len(chains) == 1 and len(chains[0].group()) == 1 and chains[0].group().isalpha():
        letter = chains[0]
        found = ((letter.start(), letter.end(), letter.group().lower(), 1),) if letter.group() in _LETTER_WORDS else ()
        return found, "letter"
    if _JSON_KEY.match(piece) or "://" in piece or "@" in piece or piece.startswith(("www.", "/", "\\")):
        return (), ""
    letters = [part for chain in chains for part in chain.group().split(".")]
    if len(letters) >= 4 and all(len(part) == 1 and part.isalpha() for part in letters):
        return ((0, len(piece), NO_WORD, len(letters)),), "word"  # "t-r-a-i-n", "t.r.a.i.n"
    words = tuple(_words(piece, chains))
    if words:
        return words, "word"
    return (), "number" if chains[-1].group()[-1].isdigit() else ""


def _words(piece: str, chains: list[re.Match[str]]) -> Iterator[Word]:
    skip_to = 0
    for chain in chains:
        start, end = chain.span()
        if start < skip_to:
            continue
        before, after = piece[start - 1 : start], piece[end : end + 1]
        if after == "(" and not _PLURAL.match(piece, end):  # a call, with its arguments
            closing = piece.find(")", end)
            skip_to = closing if closing > 0 else len(piece)
            continue
        names = chain.group().strip("_").split(".")
        if len(names) == 2 and len(names[0]) > 1 and names[0][1:].islower() and names[1][:1].isupper():
            yield from _split(chain)  # two sentences without a space between them
        elif len(names) + chain.group().count("_") > 4:
            yield from _split(chain)  # a sentence with another spacing, not an identifier
        elif len(names) > 1 or "_" in names[0]:
            continue
        elif after in ("'", "’") and piece[end + 1 : end + 2].isalpha() and names[0].isalpha():
            ending = _ENDING.match(piece, end + 1)
            if ending:  # "don't", "Nina's"
                skip_to = ending.end()
                yield start, skip_to, f"{names[0]}'{ending.group()}".lower(), skip_to - start - 1
            else:  # an elided word: "l'eau", "d'abord"
                yield start, end, names[0].lower(), end - start
        elif names[0]:
            yield from _word(names[0], start, before, after)


def _word(name: str, start: int, before: str, after: str) -> Iterator[Word]:
    size = len(name)
    word = name.lower()
    if not name.isalpha():
        letters = sum(map(str.isalpha, name))
        if letters >= 4 and _DIGIT_INSIDE.search(name):  # "tr41n": digits for letters
            yield start, start + size, NO_WORD, letters
    elif size > _LONGEST:
        yield start, start + size, NO_WORD, size
    elif "^" in (before, after) or "\\" in (before, after) or _CAMEL.search(name) or word in _FORMULA_WORDS:
        return
    elif size <= 2 and (before in _OPERATORS or after in _OPERATORS):
        return  # "km/h", "a+b"
    elif size > 1 or name in _LETTER_WORDS:
        yield start, start + size, word, size


def _split(chain: re.Match[str]) -> Iterator[Word]:
    for part in _PART.finditer(chain.group()):
        yield chain.start() + part.start(), chain.start() + part.end(), part.group().lower(), len(part.group())
