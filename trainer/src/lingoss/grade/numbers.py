# SPDX-License-Identifier: MIT-0
"""Numbers written in digits, as each language writes them.

Decimal and thousands marks differ: `1.234,5`, `1,234.5`, `1 234,5`, `10,00,000` and `١٬٢٣٤٫٥` are clear in any
language, while `1.234` has two readings, of which the language's own comes first. Every pattern here is linear.
"""

import re
import unicodedata
from collections.abc import Iterator
from fractions import Fraction

from lingoss.grade.lexicon import WORD, Lexicon
from lingoss.grade.mention import Mention

# A number with more digits is spam; Python's own conversion is quadratic in them.
MAX_DIGITS = 30

_SPACE = "\u00a0"
_TABLE: dict[int, str | None] = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys((0x2212, 0xFE63, 0x2011), "-"),
    **dict.fromkeys((0xA0, 0x202F, 0x205F, *range(0x2002, 0x200B)), _SPACE),
    **dict.fromkeys((0x2019, 0x2BC), "'"),
    **dict.fromkeys((0x66A, 0xFE6A), "%"),
    **dict.fromkeys((0x2044, 0x2215), "/"),
    0x3000: " ",
    # Invisible: zero-width and direction marks, which come between digits and signs in right-to-left text.
    **dict.fromkeys(
        (0xAD, 0x61C, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A)), None
    ),
}
_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character: text2num, written in Rust, takes none
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_UNIT_POWER = re.compile(r"(?<![A-Za-z])(mm|cm|dm|km|m|s|h|min|kg|ft|in) ?\^ ?\{?-?[0-9]\}?")
_MARKUP = re.compile(r"\*\*|__|`")

_LATEX = (
    (re.compile(r"\\[dtc]?frac ?\{ ?(-?[0-9]{1,12}) ?\} ?\{ ?([0-9]{1,12}) ?\}"), r" \1/\2"),
    (re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox|operatorname) ?\{([^{}]*)\}"), r" \1"),
    (re.compile(r"\\[,;:! ]|~"), _SPACE),
    (re.compile(r"\\(?:left|right|displaystyle)(?![A-Za-z])|\\[()\[\]]|\$"), " "),
    (re.compile(r"\\(?:times|cdot)(?![A-Za-z])"), "×"),
    (re.compile(r"\\div(?![A-Za-z])"), "÷"),
    (re.compile(r"\\approx(?![A-Za-z])"), "≈"),
    (re.compile(r"\^ ?\{? ?\\circ ?\}?|\\degree(?![A-Za-z])"), "°"),
    (re.compile(r"\\%"), "%"),
    (re.compile(r"\{([,.])\}"), r"\1"),
)

_LETTER = "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0370-\u04ff"
_NUMBER = re.compile(
    rf"(?:(?<![{_LETTER}0-9_^\\])|(?<=EUR)|(?<=USD)|(?<=GBP)|(?<=CHF)|(?<=INR))"
    rf"(?:[0-9]+(?:(?:[.,'٫٬]|[ {_SPACE}](?=[0-9]{{3}}(?![0-9])))[0-9]+)*[¼-¾⅐-⅞]?|(?<![\w.])\.[0-9]+|[¼-¾⅐-⅞])"
)
_SLASHES = re.compile(r"(?:/[0-9]+)+|(?: / [0-9]+)+")
_MIXED = re.compile(rf"[ {_SPACE}]([0-9]{{1,4}})/([0-9]{{1,4}})(?![0-9/])|[ {_SPACE}]([¼-¾⅐-⅞])")
_CLOCK = re.compile(rf"(?::[0-9]{{2}})+(?![0-9])|[ {_SPACE}]?(?:h|H|heures?|Uhr|uur)[ {_SPACE}]?[0-9]{{2}}(?![0-9])")
_SCIENCE = re.compile(
    rf" ?[×x*·⋅] ?10(?:\^\{{?([-+]?[0-9]{{1,3}})\}}?|([⁻⁺]?[⁰¹²³⁴-⁹]{{1,3}}))|[eE]([-+]?[0-9]{{1,2}})(?![{_LETTER}0-9])"
)
_POWER = re.compile(r" ?\^|[⁰¹²³⁴-⁹]")
_SUPERSCRIPT = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
_ORDINAL = re.compile(rf"(?:st|nd|rd|th|er|re|ère|ème|eme|e|de|º|ª|番目|번째|वाँ|वां|वीं)(?![{_LETTER}])")
_PERCENT = re.compile(rf"[ {_SPACE}]?%")
_UNIT = re.compile(rf"[ {_SPACE}]?([€$£¥₹°]\w{{0,2}}|[^\W\d_][{WORD}]{{0,30}}(?:[/²³][^\W_]{{0,12}})*)")
_NO_SPACES = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
_CJK_MORE = re.compile("(?<=[千万萬亿億천만억])(?: (?=[0-9]+[천백만]))?([0-9]{1,4})([千百万萬천백만]?)(?![0-9.,])")
_CJK_SCALES = {"百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "백": 100, "천": 1000, "만": 10**4}
_MARKER = re.compile(r"^[ \t>#*-]*\(?([0-9]{1,3})[.):](?=[ \t]+\S)", re.MULTILINE)

_THOUSANDS = re.compile(r"[0-9]{1,3}(?:[^0-9][0-9]{3})+")
_INDIAN = re.compile(r"[0-9]{1,2}(?:,[0-9]{2})*,[0-9]{3}")
_MARKS = re.compile(r"[^0-9]")


def normalise(text: str) -> str:
    """One spelling for what looks alike: digits, minus signs, spaces, full-width forms, simple LaTeX, no emphasis."""
    if not text.isascii():
        text = _SURROGATE.sub("\ufffd", text.translate(_TABLE))
        text = _OTHER_DIGIT.sub(lambda match: str(unicodedata.decimal(match.group())), text)
        # The cap is there because reordering a long run of combining marks is quadratic.
        if len(text) < 20_000 and not unicodedata.is_normalized("NFC", text):
            text = unicodedata.normalize("NFC", text)
    if "\\" in text or "{" in text:
        for pattern, replacement in _LATEX:
            text = pattern.sub(replacement, text)
    if "^" in text:
        text = _UNIT_POWER.sub(r"\1", text)
    return _MARKUP.sub("", text)


def parse(text: str, lexicon: Lexicon) -> tuple[Fraction, ...]:
    """The readings of a text that is one number and nothing else; empty when it is not."""
    text = normalise(text).strip()
    mentions = list(scan(text, lexicon))
    if len(mentions) != 1 or mentions[0].end != len(text) or text[: mentions[0].start].strip("-–+ "):
        return ()
    return tuple(value for value in mentions[0].values if isinstance(value, Fraction))


def scan(text: str, lexicon: Lexicon) -> Iterator[Mention]:
    """All numbers in digits of a normalised text, in order."""
    markers = _markers(text)
    done = 0
    for match in _NUMBER.finditer(text):
        if match.start() < done:
            continue
        for mention in _mentions(text, match, lexicon):
            if mention.start in markers:
                mention.kind = "marker"
            done = mention.end
            yield mention


def _markers(text: str) -> set[int]:
    """Starts of the numbers of a numbered list: 1, 2, 3 ... at line starts."""
    found: set[int] = set()
    expected = 1
    starts = [(int(match.group(1)), match.start(1)) for match in _MARKER.finditer(text)]
    if len(starts) > 1:
        for number, start in starts:
            if number == expected:
                found.add(start)
                expected += 1
    return found if len(found) > 1 else set()


def _mentions(text: str, match: re.Match[str], lexicon: Lexicon) -> Iterator[Mention]:
    start, end = match.span()
    token = match.group()
    if not token.isdecimal() and (split := _split_list(token)):
        for left, right in split:
            yield finish(text, Mention(start + left, start + right, _readings(token[left:right], lexicon)), lexicon)
        return
    values = _readings(token, lexicon)
    mention = Mention(start, end, values)
    if slashes := _SLASHES.match(text, end):
        parts = [part.strip() for part in slashes.group().split("/")[1:]]
        if len(parts) > 1 and not any(len(part) == 4 for part in parts):
            yield finish(text, mention, lexicon)
            at = end
            for part in parts:
                at = text.index(part, at)
                yield finish(text, Mention(at, at + len(part), _readings(part, lexicon)), lexicon)
                at += len(part)
            return
        mention.end = slashes.end()
        if len(parts) > 1:
            mention.kind, mention.values = "time", ()
        else:
            mention.values = _divided(values, parts[0])
            if not mention.values:
                mention.flags.add("operand")
    elif mixed := _MIXED.match(text, end):
        mention.end = mixed.end()
        part_of_one = _vulgar(mixed.group(3)) if mixed.group(3) else _ratio(mixed.group(1), mixed.group(2))
        mention.values = () if part_of_one is None else tuple(value + part_of_one for value in values)
    elif clock := _CLOCK.match(text, end):
        mention.kind, mention.values, mention.end = "time", (), clock.end()
    elif science := _SCIENCE.match(text, end):
        power = int((science.group(1) or science.group(2) or science.group(3)).translate(_SUPERSCRIPT))
        mention.values = tuple(value * Fraction(10) ** power for value in values) if abs(power) <= 60 else ()
        mention.end = science.end()
    elif _POWER.match(text, end):
        mention.values = ()
        mention.flags.add("operand")
    elif ordinal := _ORDINAL.match(text, end):
        mention.kind, mention.end = "ordinal", ordinal.end()
    if text[start - 1 : start] == "第":
        mention.kind = "ordinal"
    yield finish(text, mention, lexicon)


def finish(text: str, mention: Mention, lexicon: Lexicon) -> Mention:
    """Look at what stands around a number, in digits or words: scale word, sign, percent, unit."""
    scale, end = lexicon.scale_at(text, mention.end)
    if scale and not mention.word:
        mention.values = tuple(value * scale for value in mention.values if isinstance(value, Fraction))
        mention.end = end
        if more := _CJK_MORE.match(text, end):  # 3万5千, 3만 5천
            rest = int(more.group(1)) * _CJK_SCALES.get(more.group(2), 1)
            mention.values = tuple(value + rest for value in mention.values if isinstance(value, Fraction))
            mention.end = more.end()
    below = lexicon.below_zero_after(text, mention.end)
    if below or lexicon.minus_before(text, mention.start) or _has_minus(text, mention.start):
        mention.values = tuple(-value for value in mention.values if isinstance(value, Fraction))
    if percent := _PERCENT.match(text, mention.end) or lexicon.percent_at(text, mention.end):
        mention.percent = True
        mention.unit = "%"
        mention.end = percent.end()
    elif unit := _UNIT.match(text, mention.end):
        mention.unit = _unit(unit.group(1), lexicon)
    mention.end = max(mention.end, below)
    return mention


def _unit(written: str, lexicon: Lexicon) -> str:
    if lexicon.conjunction.match(written):
        return ""
    if not _NO_SPACES.match(written):
        return written.casefold()
    # No space ends the unit here, so a known one or the first character has to do.
    return next((unit for unit in lexicon.units if written.startswith(unit)), written[0])


def _has_minus(text: str, start: int) -> bool:
    """True for a sign that touches the number and is no hyphen, range or subtraction."""
    sign = text[start - 1 : start]
    before = text[start - 2 : start - 1] if start > 1 else ""
    if sign == "-":
        joined = before.isalnum() and not _NO_SPACES.match(before)
        return not joined and (not before or before not in ")]%°.,-/'")
    return sign == "–" and (not before or before in " (\n=:" + _SPACE)


def _readings(token: str, lexicon: Lexicon) -> tuple[Fraction, ...]:
    """What a run of digits and marks can mean, the language's own reading first."""
    if token.isdecimal():
        return (Fraction(int(token)),) if len(token) <= MAX_DIGITS else ()
    fraction = Fraction(0)
    if not token[-1:].isdecimal():
        part = _vulgar(token[-1])
        token = token[:-1]
        if part is None:
            return ()
        fraction = part
    if not token:
        return (fraction,)
    marks = _MARKS.findall(token)
    if len(token) - len(marks) > MAX_DIGITS:
        return ()
    plain = _plain(token, marks, lexicon)
    return tuple(value + fraction for value in plain) if fraction else plain


def _plain(token: str, marks: list[str], lexicon: Lexicon) -> tuple[Fraction, ...]:
    if not marks:
        return (Fraction(int(token)),)
    last = marks[-1]
    left, right = token.rsplit(last, 1)
    if len(marks) == 1:
        as_decimal = _decimal(left, right)
        if last == "٫" or (last in ".," and not _THOUSANDS.fullmatch(token)):
            return (as_decimal,)
        if not _THOUSANDS.fullmatch(token):
            return ()
        grouped = Fraction(int(left + right))
        if last not in ".,":
            return (grouped,)
        if left.startswith("0"):
            return (as_decimal,)
        own = last in lexicon.groups and last != lexicon.decimal
        return (grouped, as_decimal) if own else (as_decimal, grouped)
    if len(set(marks)) == 1:
        valid = _THOUSANDS.fullmatch(token) or _INDIAN.fullmatch(token)
        return (Fraction(int(token.replace(last, ""))),) if valid else ()
    if last in ".,٫" and marks.count(last) == 1 and len(set(marks)) == 2:
        if _THOUSANDS.fullmatch(left) or _INDIAN.fullmatch(left):
            return (_decimal(_MARKS.sub("", left), right),)
    elif _THOUSANDS.fullmatch(token) and last not in ".,٫":
        return (Fraction(int(_MARKS.sub("", token))),)
    return ()


def _split_list(token: str) -> list[tuple[int, int]]:
    """Parts of a token that is no number but numbers with commas or spaces between them: `81,82,83` or `2024 310`."""
    marks = set(_MARKS.findall(token))
    if not marks & {",", " "} or token[-1] in "¼½¾":
        return []
    spaced = " " in marks
    if not spaced and (token.count(",") < 2 or len(marks) > 1):
        return []
    whole = re.split(r"[.,٫](?=[0-9]*$)", token)[0] if spaced else token
    if _THOUSANDS.fullmatch(whole) or (not spaced and _INDIAN.fullmatch(whole)):
        return []
    separator = " " if spaced else ","
    spans, at = [], 0
    for part in token.split(separator):
        spans.append((at, at + len(part)))
        at += len(part) + 1
    return spans


def _decimal(left: str, right: str) -> Fraction:
    return Fraction(int((left or "0") + right), 10 ** len(right))


def _vulgar(char: str) -> Fraction | None:
    try:
        return Fraction(unicodedata.numeric(char)).limit_denominator(100)
    except ValueError:
        return None


def _ratio(numerator: str, denominator: str) -> Fraction | None:
    return Fraction(int(numerator), int(denominator)) if int(denominator) else None


def _divided(values: tuple[Fraction, ...], denominator: str) -> tuple[Fraction, ...]:
    """A fraction; a division that comes out even is a sum that was not done, and states nothing."""
    if len(denominator) > MAX_DIGITS or not int(denominator) or not values or values[0].denominator != 1:
        return ()
    quotient = values[0] / int(denominator)
    return (quotient,) if quotient.denominator != 1 or int(denominator) == 1 else ()
