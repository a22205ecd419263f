# SPDX-License-Identifier: MIT-0
"""Letters by script, and what the script alone says about the language."""

import re
from functools import cache

from lingoss import languages

# Letters of the Latin script; the ordinal signs, the micro sign and phonetic modifiers are left out on purpose.
LATIN = "A-Za-zÀ-ÖØ-öø-ɏɐ-ʯḀ-ỿ"

# First code point, last code point, script. Latin is not here: it has its own path.
_BLOCKS = (
    (0x0370, 0x03FF, "Greek"),
    (0x0400, 0x052F, "Cyrillic"),
    (0x0530, 0x058F, "Armenian"),
    (0x0590, 0x05FF, "Hebrew"),
    (0x0600, 0x06FF, "Arabic"),
    (0x0700, 0x074F, "Syriac"),
    (0x0750, 0x077F, "Arabic"),
    (0x0780, 0x07BF, "Thaana"),
    (0x08A0, 0x08FF, "Arabic"),
    (0x0900, 0x097F, "Devanagari"),
    (0x0980, 0x09FF, "Bengali"),
    (0x0A00, 0x0A7F, "Gurmukhi"),
    (0x0A80, 0x0AFF, "Gujarati"),
    (0x0B00, 0x0B7F, "Oriya"),
    (0x0B80, 0x0BFF, "Tamil"),
    (0x0C00, 0x0C7F, "Telugu"),
    (0x0C80, 0x0CFF, "Kannada"),
    (0x0D00, 0x0D7F, "Malayalam"),
    (0x0D80, 0x0DFF, "Sinhala"),
    (0x0E00, 0x0E7F, "Thai"),
    (0x0E80, 0x0EFF, "Lao"),
    (0x0F00, 0x0FFF, "Tibetan"),
    (0x1000, 0x109F, "Myanmar"),
    (0x10A0, 0x10FF, "Georgian"),
    (0x1100, 0x11FF, "Hangul"),
    (0x1200, 0x139F, "Ethiopic"),
    (0x1780, 0x17FF, "Khmer"),
    (0x1C80, 0x1C8F, "Cyrillic"),
    (0x1F00, 0x1FFF, "Greek"),
    (0x2DE0, 0x2DFF, "Cyrillic"),
    (0x3005, 0x3007, "Han"),
    (0x3041, 0x30FF, "Kana"),
    (0x3130, 0x318F, "Hangul"),
    (0x31F0, 0x31FF, "Kana"),
    (0x3400, 0x4DBF, "Han"),
    (0x4E00, 0x9FFF, "Han"),
    (0xA640, 0xA69F, "Cyrillic"),
    (0xA8E0, 0xA8FF, "Devanagari"),
    (0xA960, 0xA97F, "Hangul"),
    (0xAC00, 0xD7FF, "Hangul"),
    (0xF900, 0xFAFF, "Han"),
    (0xFB50, 0xFDFF, "Arabic"),
    (0xFE70, 0xFEFE, "Arabic"),
    (0xFF66, 0xFF9F, "Kana"),
    (0xFFA0, 0xFFDC, "Hangul"),
    (0x20000, 0x3FFFF, "Han"),
)

# A Han character, a kana or a syllable block says about as much as two or three letters of an alphabet.
WEIGHTS = {"East": 2.5, "Hangul": 2.5}


def _class(*scripts: str) -> str:
    return "".join(f"{chr(first)}-{chr(last)}" for first, last, script in _BLOCKS if script in scripts)


# Anything that may be a letter outside the Latin script, and surely is none of general punctuation, symbols and emoji.
_ANY = (
    "\u0370-\u1dff\u1f00-\u1fff\u2c00-\u2dff\u3005-\u3007\u3041-\ud7ff\uf900-\uffdc"
    "\U00010000-\U0001cfff\U0001d800-\U0001efff\U00020000-\U000fffff"
)
NOT_LATIN = re.compile(f"[{_ANY}]")


def _run() -> str:
    """One group per script, named after it, "East" for Chinese characters and kana together; any other letter last.

    A run goes on over single spaces. Looking ahead for any such letter first saves trying every group everywhere.
    """
    frequent = ("East", "Hangul", "Arabic", "Devanagari", "Cyrillic", "Greek")
    rest = sorted({script for *_, script in _BLOCKS} - {*frequent, "Han", "Kana"})
    groups = []
    for script in (*frequent, *rest):
        letter = _class("Han", "Kana") if script == "East" else _class(script)
        groups.append(f"(?P<{script}>[{letter}]++(?: [{letter}]++)*+)")
    return f"(?=[{_ANY}])(?:{'|'.join(groups)}|(?P<Other>[{_ANY}]))"


RUN = re.compile(_run())
HIRAGANA = re.compile("[\u3041-\u309f ]+")
KANA = re.compile(f"[{_class('Kana')} ]+")

_PERSIAN = re.compile("[\u067e\u0686\u0698\u06a9\u06af\u06cc\u06d2\u06ba\u06c1\u06be\u0679\u0688\u0691]")
# Frequent in Chinese, and rare where Japanese strings Chinese characters together without kana.
_CHINESE_GRAMMAR = frozenset("的是了我你他她它就也都把很那每只但已个")
# Longer than this without kana, Chinese characters are hardly Japanese.
_LONGEST_KANJI = 12
_LONG_KANJI = 8  # with a Chinese grammar word among them, this is too long already


@cache
def _marks() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Characters written only in Chinese, only in Japanese, and not in simplified Chinese.

    Told by the national character sets: GB 2312 (simplified), Big5 (traditional) and JIS X 0208 (Japanese).
    """
    chinese, japanese, not_simplified = set(), set(), set()
    for point in range(0x4E00, 0x9FA6):
        character = chr(point)
        simplified, traditional, kanji = (_in(character, name) for name in ("gb2312", "big5", "shift_jis"))
        if not kanji and (simplified or traditional):
            chinese.add(character)
        if kanji and not simplified and not traditional:
            japanese.add(character)
        if not simplified:
            not_simplified.add(character)
    return frozenset(chinese), frozenset(japanese), frozenset(not_simplified)


def _in(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def east_asian(han: str, kana: int) -> str:
    """The language of a sentence in Chinese characters and kana: "zh", "ja", "zh+ja" (Chinese with kana strewn in)
    or "" (either).

    `han`: its Chinese characters; `kana`: how many Japanese letters it has besides.
    """
    chinese, japanese, _ = _marks()
    used = set(han)
    only_chinese, only_japanese = len(used & chinese), len(used & japanese)
    if kana:
        strewn = only_chinese >= 2 and 10 * only_chinese >= len(used)
        return "zh+ja" if strewn or (only_chinese and 10 * kana < len(han)) else "ja"
    if only_chinese or only_japanese:
        return "zh" if only_chinese >= only_japanese else "ja"
    grammar = sum(map(han.count, used & _CHINESE_GRAMMAR))
    if grammar >= (1 if len(han) > _LONG_KANJI else 2) or len(han) > _LONGEST_KANJI:
        return "zh"
    return ""


def likely_japanese(han: str) -> bool:
    """Whether ambiguous Chinese characters are at least not simplified Chinese."""
    return bool(set(han) & _marks()[2])


def looks_persian(text: str) -> bool:
    """Whether a text in Arabic letters has letters that Arabic itself does not use."""
    return 20 * len(_PERSIAN.findall(text)) >= len(text)


@cache
def weekdays(code: str) -> frozenset[str]:
    """Names of the days: no other words of few characters differ so surely between Chinese and Japanese."""
    return frozenset(name for variants in languages.get(code).words["weekdays"] for name in variants)


@cache
def own_words(code: str) -> frozenset[str]:
    """Words of two characters or more that only one of our Chinese and Japanese files has."""
    mine, other = (_words_of(each) for each in (code, "ja" if code == "zh" else "zh"))
    return frozenset(word for word in mine - other if len(word) > 1)


@cache
def _words_of(code: str) -> frozenset[str]:
    words = languages.get(code).words
    return frozenset(word for key in ("yes", "no", "true", "false", "numbers", "units") for word in words[key])
