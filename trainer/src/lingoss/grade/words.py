# SPDX-License-Identifier: MIT-0
"""Numbers written in words: text2num for the languages that it knows, the language's own word list for the rest.

Chinese and Japanese numerals are composed character by character, Korean ones by whole words (its digits are common
syllables), Hindi and Arabic by words. A number that is more often an article or part of another word is weak.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from lingoss.grade.lexicon import WORD, Lexicon, lexicon
from lingoss.grade.mention import Mention
from lingoss.grade.numbers import finish

TEXT2NUM = ("en", "fr", "de", "es", "it", "pt", "nl")

_SCRIPTS = (
    ("ko", re.compile("[가-힣]")),
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
)

# text2num is quadratic in the length of a run of number words, so it sees a long text in pieces.
_PIECE = 300

_TOKEN = re.compile(rf"[{WORD}]+(?:['-][{WORD}]+)*|[^\w\s]|\s+")
_CJK_RUN = re.compile(
    "[〇零一二两兩三四五六七八九十百千万萬亿億壹贰叁肆伍陆柒捌玖拾佰仟]+(?:点[〇零一二三四五六七八九]+)?"
)
_CJK_DIGITS = {
    char: value
    for value, chars in enumerate(("〇零", "一壹", "二两兩贰", "三叁", "四肆", "五伍", "六陆", "七柒", "八捌", "九玖"))
    for char in chars
}
_CJK_SCALES = {
    "十": 10,
    "拾": 10,
    "百": 100,
    "佰": 100,
    "千": 1000,
    "仟": 1000,
    "万": 10**4,
    "萬": 10**4,
    "亿": 10**8,
    "億": 10**8,
}
# Behind or before these a numeral is part of another word: triangle, the first, Monday, ten thousand to one ...
_CJK_WORD_AFTER = frozenset("角边邊辺方切般定样樣起直些旦致路流种種緒番部分")
_CJK_WORD_BEFORE = frozenset("第星期周週拜唯统統同")
_HALF_AFTER = re.compile(r"[^\W\d一二三四五六七八九十]{0,2}半")
_KOREAN_DIGITS = {
    "영": 0,
    "공": 0,
    "일": 1,
    "이": 2,
    "삼": 3,
    "사": 4,
    "오": 5,
    "육": 6,
    "륙": 6,
    "칠": 7,
    "팔": 8,
    "구": 9,
}
_KOREAN_SCALES = {"십": 10, "백": 100, "천": 1000, "만": 10**4, "억": 10**8}
_KOREAN_RUN = re.compile(
    "[영공일이삼사오육륙칠팔구십백천만억]+"
    "|(?:열|스물|스무|서른|마흔|쉰|예순|일흔|여든|아흔)?(?:하나|한|둘|두|셋|세|넷|네|다섯|여섯|일곱|여덟|아홉)?"
)
# fmt: off
_KOREAN_PARTICLES = frozenset((
    "", "을", "를", "이", "가", "은", "는", "에", "의", "로", "으로", "와", "과", "도", "만", "씩", "마다", "동안",
    "뒤", "후", "입니다", "이다", "이에요", "예요", "이고", "이며", "짜리", "다", "임",
))
# fmt: on


def mentions(text: str, lex: Lexicon) -> list[Mention]:
    """All numbers in words of a normalised text, in order."""
    if not lex.numbers:
        return []
    if lex.code in TEXT2NUM:
        return _latin(text, lex)
    if lex.code in ("zh", "ja"):
        return list(_han(text, lex))
    return list(_korean(text, lex) if lex.code == "ko" else _spaced(text, lex))


class _Token:
    """What text2num asks of a token."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def text(self) -> str:
        return self._text

    def nt_separated(self, previous: Any) -> bool:
        return False

    def not_a_number_part(self) -> bool:
        return False


def _latin(text: str, lex: Lexicon) -> list[Mention]:
    from text_to_num import alpha2digit, find_numbers

    if len(text) < 2000 and alpha2digit(text, lex.code, 0.0) == text:
        return _fractions(text, lex)
    found: list[Mention] = []
    tokens = list(_TOKEN.finditer(text))
    for first in range(0, len(tokens), _PIECE):
        piece = tokens[first : first + _PIECE]
        for number in find_numbers([_Token(match.group().lower()) for match in piece], lex.code, 0.0):
            start, end = piece[number.start].start(), piece[number.end - 1].end()
            written = text[start:end].casefold()
            mention = Mention(start, end, (Fraction(number.value).limit_denominator(10**6),), word=True)
            mention.kind = "ordinal" if number.is_ordinal else "number"
            mention.weak = written in lex.weak
            found.append(finish(text, _fraction_after(text, mention, lex), lex))
    return found or _fractions(text, lex)


def _fraction_after(text: str, mention: Mention, lex: Lexicon) -> Mention:
    """ "three quarters", "three and a half", "three hours and a half"."""
    if (half := lex.half.match(text, mention.end)) and mention.values:
        mention.values = tuple(value + Fraction(1, 2) for value in mention.values if isinstance(value, Fraction))
        mention.end, mention.weak = half.end(), False
    elif quarter := lex.quarters.match(text, mention.end):
        mention.values = tuple(value / 4 for value in mention.values if isinstance(value, Fraction))
        mention.end, mention.weak = quarter.end(), False
    return mention


def _fractions(text: str, lex: Lexicon) -> list[Mention]:
    """ "half", "la moitié": only where no other number word stands, and never before a real number."""
    return [
        Mention(match.start(), match.end(), (lex.numbers[match.group().casefold()],), word=True, weak=True)
        for match in lex.parts.finditer(text)
        if match.group().casefold() in lex.numbers
    ]


def _han(text: str, lex: Lexicon) -> Iterator[Mention]:
    for match in _CJK_RUN.finditer(text):
        start, end = match.span()
        before, after = text[start - 1 : start], text[end : end + 1]
        if before.isdigit() or text.startswith("分之", end) or (before and before in _CJK_WORD_BEFORE):
            continue
        value = _compose_han(match.group())
        if value is None:
            continue
        single = end - start == 1
        if single and after and after in _CJK_WORD_AFTER:
            continue
        mention = Mention(start, end, (value,), word=True, weak=single and value <= 1)
        if text.startswith("分之", start - 2) and start > 2:
            whole = _compose_han(_last_han(text[max(0, start - 10) : start - 2]))
            if not whole:
                continue
            if whole == 100:
                mention.percent = True
            else:
                mention.values = (value / whole,)
        elif _HALF_AFTER.match(text, end):
            mention.values = (value + Fraction(1, 2),)
        yield finish(text, mention, lex)


def _last_han(text: str) -> str:
    runs = _CJK_RUN.findall(text)
    return runs[-1] if runs else ""


def _compose_han(run: str) -> Fraction | None:
    """The value of a Chinese or Japanese numeral; None when the characters make none."""
    whole, _, decimals = run.partition("点")
    if len(run) > 24:
        return None
    total = section = digit = 0
    seen = False
    if len(whole) > 1 and all(char in _CJK_DIGITS for char in whole):
        if len(whole) < 3 and not decimals:
            return None  # two digits side by side are an estimate or two words
        total = int("".join(str(_CJK_DIGITS[char]) for char in whole))
    else:
        for char in whole:
            scale = _CJK_SCALES.get(char)
            if scale is None:
                digit, seen = _CJK_DIGITS[char], True
            elif scale < 10**4:
                section += (digit if seen else 1) * scale
                digit, seen = 0, False
            else:
                total += (section + digit or 1) * scale
                section, digit, seen = 0, 0, False
        total += section + digit
    value = Fraction(total)
    if decimals:
        value += Fraction(int("".join(str(_CJK_DIGITS[char]) for char in decimals)), 10 ** len(decimals))
    return value


def _korean(text: str, lex: Lexicon) -> Iterator[Mention]:
    tokens = list(re.finditer(r"[가-힣]+", text))
    for index, match in enumerate(tokens):
        if text[match.start() - 1 : match.start()].isdigit():
            continue
        token = match.group()
        run = _KOREAN_RUN.match(token)
        assert run is not None  # the second alternative matches the empty string
        written = run.group()
        value = _compose_korean(written, lex)
        if value is None:
            continue
        rest = token[len(written) :]
        following = tokens[index + 1].group() if index + 1 < len(tokens) else ""
        adjacent = bool(following) and text[match.end() : tokens[index + 1].start()].isspace()
        counted = _is_counter(rest, lex) if rest else adjacent and _is_counter(following, lex)
        alone = len(tokens) == 1 and rest in _KOREAN_PARTICLES
        if counted or alone or (len(written) > 1 and rest in _KOREAN_PARTICLES and written not in ("만일", "하나")):
            mention = Mention(match.start(), match.start() + len(written), (value,), word=True, weak=value <= 1)
            yield finish(text, mention, lex)


def _is_counter(text: str, lex: Lexicon) -> bool:
    return any(text.startswith(unit) and text[len(unit) :] in _KOREAN_PARTICLES for unit in lex.units)


def _compose_korean(written: str, lex: Lexicon) -> Fraction | None:
    if not written:
        return None
    if not all(char in _KOREAN_DIGITS or char in _KOREAN_SCALES for char in written):
        parts = re.fullmatch("(열|스물|스무|서른|마흔|쉰|예순|일흔|여든|아흔)?(.*)", written)
        assert parts is not None
        tens, ones = parts.group(1) or "", parts.group(2)
        if ones and ones not in lex.numbers:
            return None
        return lex.numbers.get(tens, Fraction(0)) + (lex.numbers[ones] if ones else 0)
    total = section = digit = 0
    seen = False
    for char in written:
        scale = _KOREAN_SCALES.get(char)
        if scale is None:
            if seen:
                return None  # two digit syllables side by side are a word
            digit, seen = _KOREAN_DIGITS[char], True
        elif scale < 10**4:
            section += (digit if seen else 1) * scale
            digit, seen = 0, False
        else:
            total += (section + digit or 1) * scale
            section, digit, seen = 0, 0, False
    return Fraction(total + section + digit)


def _spaced(text: str, lex: Lexicon) -> Iterator[Mention]:
    """Languages with spaces between words and their own list: Hindi, Arabic, and any that is added."""
    group: list[tuple[int, int, Fraction, bool]] = []
    end_of_last = 0
    tokens = list(re.finditer(rf"[{WORD}]+", text))
    index = 0
    while index < len(tokens):
        value, used, joined = _spaced_value(tokens, index, lex)
        if value is None:
            yield from _grouped(text, group, lex)
            group = []
            index += 1
            continue
        start, end = tokens[index].start(), tokens[index + used - 1].end()
        if group and not (text[end_of_last:start].isspace() and _continues([g[2] for g in group], value, joined)):
            yield from _grouped(text, group, lex)
            group = []
        group.append((start, end, value, joined))
        end_of_last = end
        index += used
    yield from _grouped(text, group, lex)


def _spaced_value(tokens: list[re.Match[str]], index: int, lex: Lexicon) -> tuple[Fraction | None, int, bool]:
    """Value of the number word at `index`, how many tokens it takes, and whether an Arabic "and" is glued to it."""
    word = tokens[index].group().casefold()
    if index + 1 < len(tokens):
        pair = f"{word} {tokens[index + 1].group().casefold()}"
        for candidate in (pair, pair[1:] if pair[0] == "و" else ""):
            if candidate in lex.numbers:
                return lex.numbers[candidate], 2, candidate != pair
    if word in lex.numbers:
        return lex.numbers[word], 1, False
    if lex.code == "ar" and len(word) > 3 and word[0] in "وبلفك" and word[1:] in lex.numbers:
        return lex.numbers[word[1:]], 1, word[0] == "و"
    return None, 1, False


def _continues(values: list[Fraction], value: Fraction, joined: bool) -> bool:
    last = values[-1]
    if last < 1 or value < 1:
        return False
    if value >= 100 and value > last:
        return True
    if last >= 100:
        return value < last
    return joined and last < 10 and value >= 20


def _grouped(text: str, group: list[tuple[int, int, Fraction, bool]], lex: Lexicon) -> Iterator[Mention]:
    if not group:
        return
    total = current = Fraction(0)
    for _, _, value, _ in group:
        if value >= 1000:
            total += (current or 1) * value
            current = Fraction(0)
        elif value == 100:
            current = (current or 1) * 100 if current < 100 else current + 100
        else:
            current += value
    value = total + current
    start, end = group[0][0], group[-1][1]
    weak = len(group) == 1 and (text[start:end].casefold() in lex.weak or value < 1)
    yield finish(text, Mention(start, end, (value,), word=True, weak=weak), lex)


def language_of(text: str, asked: str = "en") -> str:
    """The language whose number words may stand in `text`: by script, in Latin script by its frequent words.

    `asked` is the language that it should be in: another must have two frequent words more.
    """
    for code, script in _SCRIPTS:
        if script.search(text):
            return code
    counts = {code: len(lexicon(code).common.findall(text)) for code in TEXT2NUM}
    best = max(counts, key=counts.__getitem__)
    return best if asked not in counts or counts[best] >= counts[asked] + 2 else asked


def values_in(text: str) -> set[Fraction]:
    """All values of number words in a text of unknown language."""
    found = mentions(text, lexicon(language_of(text)))
    return {value for mention in found if not mention.weak for value in mention.values if isinstance(value, Fraction)}
