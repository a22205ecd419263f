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
_CAMEL_PART = re.compile("[A-Z]?[^A-Z]+|[A-Z]+")
_PLURAL = re.compile(r"\((?:s|es|e|n|en|x|a|o|os|as|i|in|innen|ne)\)")  # "pomme(s)", behind four letters or more
_CUT_WORD = re.compile(f"(?:[{LATIN}]{{1,2}}[-.*~|·_]++){{2,}}+[{LATIN}]{{1,2}}[-.*~|·_,;:!?]*+")
_SENTENCE_END = re.compile("[.!?…\n。！？؟।॥]++")
_BEHIND_A_DOT = frozenset(" \t\r\f\v\u00a0\u202f)]\"'»”*")  # else the dot stands within a number or a name

Word = tuple[int, int, str, int]  # start, end, word, letters
Found = tuple[tuple[Word, ...], str, tuple[Word, ...]]  # words, kind of the piece, words within its identifiers

_OPERATORS = frozenset("=+-*/<>|~@%&^·≤≥≡≈≠×÷→⇒±∓∈")
_LONGEST = 40  # letters; the longest German compounds in use are shorter

# One letter that may be a word of its own: article, conjunction or pronoun.
_LETTER_WORDS = frozenset("aAIyYeEoOuUiàÀèÈéÉóÓòÒôÔ")

# Signs that every language writes alike. Those in the second set only count as units behind a number.
_FORMULA_WORDS = frozenset("cos tan ln log lim exp mod gcd lcm det sqrt arcsin arccos arctan sinh cosh".split())
_UNITS = frozenset(
    """
    nm mm cm dm km mg kg dag hg ml cl dl hl ms ns min sec mph kmh kw kwh mw gw hz khz mhz ghz kb mb gb tb kj mj cal
    kcal pa kpa hpa bar psi ft lb lbs oz yd mi am pm eur usd gbp chf jpy cny inr krw
    """.split()
)


@dataclass(slots=True)
class Tokens:
    """Parallel lists: [start, end) of each word, the word as it is written (or NO_WORD), and its number of letters.

    `names`: the words within identifiers and calls, which are no words of the text unless they are too many.
    """

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    names: list[Word] = field(default_factory=list)

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

    def with_names(self) -> "Tokens":
        """These words and those within identifiers, in order."""
        every = Tokens()
        for word in sorted([*zip(self.starts, self.ends, self.words, self.sizes, strict=True), *self.names]):
            every.add(*word)
        return every

    def part(self, indices: Sequence[int]) -> "Tokens":
        """Only these words."""
        some = Tokens()
        for at in indices:
            some.add(self.starts[at], self.ends[at], self.words[at], self.sizes[at])
        return some


def sentence_ends(text: str) -> list[int]:
    """Offsets behind each sentence; the last one is the length of the text."""
    ends = []
    for match in _SENTENCE_END.finditer(text):
        end = match.end()
        if text[end - 1] not in ".!?…" or end == len(text) or text[end] in _BEHIND_A_DOT:
            ends.append(end)
    if not ends or ends[-1] < len(text):
        ends.append(len(text))
    return ends


def tokenize(text: str) -> Tokens:
    """Words of the Latin-script pieces of a masked text, single letters of formulas left out."""
    tokens = Tokens()
    starts, ends, words, sizes = tokens.starts, tokens.ends, tokens.words, tokens.sizes
    before = ""  # kind of the piece before
    letters: list[int] = []  # offsets of single letters in a row
    for match in _PIECE.finditer(text):
        piece = match.group()
        found, kind, names = _known_piece(piece) if len(piece) <= 60 else _read_piece(piece)
        start = match.start()
        if kind == "letter":
            letters.append(start)
        elif letters:
            _spaced_out(tokens, letters)
            letters.clear()
        if kind == "operator" and before == "letter" and ends and ends[-1] - starts[-1] == 1:
            tokens.drop()  # "a ≡ 3": a variable, not the article
        elif (kind == "unit" and before == "number") or (kind == "letter" and before == "operator"):
            pass
        else:
            for at, end, word, size in found:
                starts.append(start + at)
                ends.append(start + end)
                words.append(word)
                sizes.append(size)
        if names:
            tokens.names += ((start + at, start + end, word, size) for at, end, word, size in names)
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


@lru_cache(maxsize=65536)
def _known_piece(piece: str) -> Found:
    return _read_piece(piece)


def _read_piece(piece: str) -> Found:
    """Words of one piece, its kind (word, letter, unit, number, operator or "") and the words of its identifiers."""
    plain = _PLAIN.fullmatch(piece)
    if plain and not _CAMEL.search(piece):
        word = plain.group(1)
        if word.lower() in _FORMULA_WORDS:
            return (), "", ()
        return ((plain.start(1), plain.end(1), word, len(word)),), "unit" if word.lower() in _UNITS else "word", ()
    chains = list(_CHAIN.finditer(piece))
    if not chains:
        return (), "operator" if piece[0] in _OPERATORS else "", ()
    if len(chains) == 1 and len(chains[0].group()) == 1 and chains[0].group().isalpha():
        letter = chains[0]
        found = ((letter.start(), letter.end(), letter.group(), 1),) if letter.group() in _LETTER_WORDS else ()
        return found, "letter", ()
    if _JSON_KEY.match(piece) or "://" in piece or "@" in piece or piece.startswith(("www.", "/", "\\")):
        return (), "", tuple(_split(piece, 0))
    if len(piece) >= 5 and _CUT_WORD.fullmatch(piece):  # "t-r-a-i-n", "t.r.a.i.n", "tr*ai*n"
        return ((0, len(piece), NO_WORD, sum(map(str.isalpha, piece))),), "word", ()
    words: list[Word] = []
    names: list[Word] = []
    _sort_out(piece, chains, words, names)
    kind = "word" if words else "number" if chains[-1].group()[-1].isdigit() else ""
    return tuple(words), kind, tuple(names)


def _sort_out(piece: str, chains: list[re.Match[str]], words: list[Word], names: list[Word]) -> None:
    """Put what the chains of a piece hold into words or into names of code."""
    skip_to = 0
    for chain in chains:
        start, end = chain.span()
        if start < skip_to:
            continue
        before, after = piece[start - 1 : start], piece[end : end + 1]
        parts = chain.group().strip("_").split(".")
        if after == "(" and not (end - start > 3 and _PLURAL.match(piece, end)):  # a call, with its arguments
            closing = piece.find(")", end)
            skip_to = closing if closing > 0 else len(piece)
            names += _split(piece[start:skip_to], start)
        elif len(parts) == 2 and len(parts[0]) > 1 and parts[0][1:].islower() and parts[1][:1].isupper():
            words += _split(chain.group(), start)  # two sentences without a space between them
        elif len(parts) > 1 or "_" in parts[0] or _CAMEL.search(parts[0]):
            inside = list(_split(chain.group(), start))
            glued = any(size > _LONGEST for *_, size in inside)  # sentences without spaces, not a name
            (words if glued else names).extend(inside)
        elif parts[0] and not parts[0].isalpha() and not _DIGIT_INSIDE.search(parts[0]):
            names += _split(chain.group(), start)  # "x1", "3km", "utf8"
        elif after in ("'", "’") and piece[end + 1 : end + 2].isalpha() and parts[0].isalpha():
            ending = _ENDING.match(piece, end + 1)
            if ending:  # "don't", "Nina's"
                skip_to = ending.end()
                words.append((start, skip_to, f"{parts[0]}'{ending.group()}", skip_to - start - 1))
            else:  # an elided word: "l'eau", "d'abord"
                words.append((start, end, parts[0], end - start))
        elif parts[0]:
            words += _word(parts[0], start, before, after)


def _word(name: str, start: int, before: str, after: str) -> Iterator[Word]:
    size = len(name)
    if not name.isalpha():
        letters = sum(map(str.isalpha, name))
        if letters >= 4 and _DIGIT_INSIDE.search(name):  # "tr41n": digits for letters
            yield start, start + size, NO_WORD, letters
    elif size > _LONGEST:
        yield start, start + size, NO_WORD, size
    elif "^" in (before, after) or "\\" in (before, after) or name.lower() in _FORMULA_WORDS:
        return
    elif size <= 2 and (before in _OPERATORS or after in _OPERATORS):
        return  # "km/h", "a+b"
    elif size > 1 or name in _LETTER_WORDS:
        yield start, start + size, name, size


def _split(code: str, start: int) -> Iterator[Word]:
    for part in _PART.finditer(code):
        for match in _CAMEL_PART.finditer(code, part.start(), part.end()):
            size = match.end() - match.start()
            yield start + match.start(), start + match.end(), match.group() if size <= _LONGEST else NO_WORD, size
