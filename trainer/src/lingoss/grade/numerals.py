# SPDX-License-Identifier: MIT-0
"""Numbers written in Chinese characters (Chinese and Japanese) and in Korean.

The characters also make up other words ("triangle", "the first"), and Korean digits are common syllables, so a numeral
counts only where what stands around it leaves no doubt.
"""

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from lingoss.grade.lexicon import Lexicon, lexicon
from lingoss.grade.mention import Mention
from lingoss.grade.numbers import finish

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


def chinese(text: str, lex: Lexicon) -> Iterator[Mention]:
    """Numbers in Chinese characters: 三十七, 百分之三十七, 四分之三, 三点五, 三時間半."""
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


def values_seen(text: str, words: Iterable[str], lex: Lexicon) -> set[Fraction]:
    """Every value that a Chinese, Japanese or Korean text may spell, other readings not weighed; `words`: its words.

    For finding out whether a text speaks of a number at all, where `chinese` and `korean` tell what it states.
    """
    if lex.code == "ko":
        found = (_korean_beginning(word) for word in words)
    else:
        found = (_compose_han(run) for run in set(_CJK_RUN.findall(text)))
    return {value for value in found if value is not None}


@functools.lru_cache(maxsize=32768)
def _korean_beginning(word: str) -> Fraction | None:
    """The number at the beginning of a Korean word; one syllable counts only alone, most words begin with such."""
    run = _KOREAN_RUN.match(word)
    written = run.group() if run else ""
    return _compose_korean(written, lexicon("ko")) if len(written) > 1 or written == word else None


def _last_han(text: str) -> str:
    runs = _CJK_RUN.findall(text)
    return runs[-1] if runs else ""


def _compose_han(run: str) -> Fraction | None:
    """The value of a Chinese or Japanese numeral; None when the characters make none."""
    whole, _, decimals = run.partition("点")
    if len(run) > 24:
        return None
    if len(whole) > 1 and all(char in _CJK_DIGITS for char in whole):
        if len(whole) < 3 and not decimals:
            return None  # two digits side by side are an estimate or two words
        value = Fraction(int("".join(str(_CJK_DIGITS[char]) for char in whole)))
    else:
        value = _composed(whole, _CJK_DIGITS, _CJK_SCALES)
    if decimals:
        value += Fraction(int("".join(str(_CJK_DIGITS[char]) for char in decimals)), 10 ** len(decimals))
    return value


def korean(text: str, lex: Lexicon) -> Iterator[Mention]:
    """Korean numbers of both kinds (삼십칠, 서른일곱): before a counter, alone, or clearly composed."""
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
    if any(left in _KOREAN_DIGITS and right in _KOREAN_DIGITS for left, right in itertools.pairwise(written)):
        return None  # two digit syllables side by side are a word
    return _composed(written, _KOREAN_DIGITS, _KOREAN_SCALES)


def _composed(written: str, digits: Mapping[str, int], scales: Mapping[str, int]) -> Fraction:
    """Digits times tens, hundreds and thousands, in sections of ten thousand: 三万五千 is 3 × 10,000 + 5 × 1,000."""
    total = section = digit = 0
    seen = False
    for char in written:
        scale = scales.get(char)
        if scale is None:
            digit, seen = digits[char], True
        elif scale < 10**4:
            section += (digit if seen else 1) * scale
            digit, seen = 0, False
        else:
            total += (section + digit or 1) * scale
            section, digit, seen = 0, 0, False
    return Fraction(total + section + digit)
