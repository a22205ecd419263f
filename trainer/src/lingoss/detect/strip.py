# SPDX-License-Identifier: MIT-0
"""Take code, formulas, units and identifiers out of a text, and leave the prose: also prose that hides in them.

Nothing here backtracks: every pattern reads each character a bounded number of times, and a search for a closing mark
that found none is not repeated.
"""

import re
from collections import deque
from collections.abc import Iterator, Set

from lingoss.detect.script import LATIN

_FENCE = "```"
_OPENER = re.compile(r"`+|~~~+|\$+|\\[(\[]|<(?=[A-Za-z/!])")
_TAG = re.compile(r"<[^<>\n]{1,300}>")
_TEXT_COMMAND = re.compile(r"\\(?:text|textbf|textit|textrm|textsf|mbox|hbox)[ ]?\{([^{}]*)\}")
_COMMAND = re.compile(r"\\(?:(?:begin|end|ref|label|operatorname|mathbb)\*?\{[^{}\s]{0,40}\}|[A-Za-z]+\*?|[^A-Za-z\s])")
# A line of code that stands without any mark. Each form has brackets or an ending that prose lacks.
_CODE_LINE = re.compile(
    r"^[ \t]*+(?:"
    + "|".join(
        (
            r"(?:async )?def [A-Za-z_]\w*+\(",
            r"class [A-Za-z_]\w*+[(:{]",
            r"for [A-Za-z_]\w*+(?:, ?\w+)? in [^\n:]{1,200}:",
            r"(?:for|while|if|else if|switch|catch) ?\([^\n]{0,300}\) ?\{",
            r"(?:if|elif|while|with|except) [^\n:]{1,200}:[ \t]{0,3}$",
            r"import [a-z_][\w.]*+(?: as \w+)?[ ;]{0,3}$",
            r"from [a-z_][\w.]*+ import ",
            r"(?:const|var|let) [A-Za-z_]\w*+ ?=",
            r"function [A-Za-z_]\w*+ ?\(",
            r"(?:print|console\.log)\(",
            r"(?:public|private|protected|static) [a-z]",
            r"(?:int|float|double|char|void) [a-z_]\w*+ ?[=(;]",
            r"return [^\n]{0,80}[;()\[\]=+*/]",
            r"#include",
            r"SELECT [^\n]{1,200} FROM",
        )
    )
    + r")[^\n]*+",
    re.MULTILINE,
)
_NAME = re.compile(r"(?<![A-Za-z0-9_.])[A-Za-z0-9_]++(?:\.[A-Za-z_][A-Za-z0-9_]*+)*+\(?")
_NATURAL = re.compile(f"(?<![{LATIN}0-9_])[{LATIN}]{{2,40}}(?![{LATIN}0-9_])")
_OPERATOR = re.compile(r"[=+*/<>{}\[\]()|&^%@;]|(?<!\S)--?[A-Za-z]")
_MARKUP = re.compile(r"[=+*/<>{}\[\]()|&^%@\\`$~#]")

# Words that code is made of: they do not make a line of code a sentence.
_CODE_WORDS = frozenset(
    """
    abs all and any args array as assert async at await begin bool break by byte case cat catch cd char class
    const continue curl data def default del delete desc dict do done double echo elif else end enum except exit
    export extends false fi final finally first float fn for from func function get git global goto group has
    having head if implements import in include inner input insert install instanceof int integer interface into
    is item items join key lambda last left len length let like limit list local long loop main make map match max
    min mod module move name namespace new next nil no none not null num number object of off on open or order out
    package pass pip print private protected public push raise range read return right run select self set short
    signed size sorted static str string struct sum super switch table tail template test then this throw time to
    total true try tuple type typedef typeof union unsigned until update use user using val value values var
    virtual void volatile when where while with write xor yield
    """.split()
)


def blank(text: str) -> str:
    """White space of the same length."""
    return " " * len(text)


def mask(text: str, function_words: Set[str]) -> str:
    """The text with code, formulas, tags and LaTeX commands blanked: same length, same offsets.

    `function_words` are the frequent words of the candidate languages: by them a sentence inside code or maths is
    known and kept. Cost is linear in the length.
    """
    spans = list(_veiled(text))
    if spans:
        text = _lift(text, spans, function_words)
    if "\\" in text:
        commands = [match.group()[1:].lower() for match in _COMMAND.finditer(text)]
        if is_cut_prose([name for name in commands if len(name) > 2], function_words):
            text = text.replace("\\", " ")  # no formula: words that pose as commands
        else:
            text = _COMMAND.sub(lambda match: blank(match.group()), text)
    return text


def bare(text: str) -> str:
    """What code and maths marks enclose, without the marks, identifiers and code words; the rest is blanked.

    For a text that is nothing else: an answer in backticks is still an answer in some language.
    """
    pieces: list[str] = []
    done = 0
    for start, end in _veiled(text):
        _, readable, operators = _read(text[start:end])
        words = blank(readable) if operators else _NATURAL.sub(_without_code_words, readable)
        pieces += [blank(text[done:start]), words]
        done = end
    return "".join(pieces)


def _without_code_words(match: re.Match[str]) -> str:
    word = match.group()
    return blank(word) if len(word) < 3 or word.lower() in _CODE_WORDS else word


def _veiled(text: str) -> Iterator[tuple[int, int]]:
    """Spans of code, maths and tags, in order, with their marks."""
    lines = deque(match.span() for match in _CODE_LINE.finditer(text))
    at = 0
    missing: set[str] = set()  # marks that do not come again
    for opener in _OPENER.finditer(text):
        start = opener.start()
        if start < at:
            continue
        end = _closing(text, opener, missing)
        if end > start:
            while lines and lines[0][0] < start:
                line = lines.popleft()
                if line[0] >= at:
                    yield line[0], min(line[1], start)
            yield start, end
            at = end
    for line in lines:
        if line[0] >= at:
            yield line


def _closing(text: str, opener: re.Match[str], missing: set[str]) -> int:
    """End of the span that this mark opens, or -1."""
    mark, inside = opener.group(), opener.end()
    if mark == "<":
        if text.startswith("<!--", opener.start()):
            return _find(text, "-->", inside, missing)
        tag = _TAG.match(text, opener.start())
        return tag.end() if tag else -1
    if mark.startswith((_FENCE, "~~~")):
        end = _find(text, mark[:3], inside, missing)
        return end if end > 0 else len(text)
    close = {"\\(": "\\)", "\\[": "\\]"}.get(mark, mark[:2] if mark[0] == "$" else mark)
    end = _find(text, close, inside, missing)
    if end < 0 or mark[0] == "\\":
        return end
    content_end = end - len(close)
    if content_end == inside or "\n\n" in text[inside:content_end]:
        return -1
    if mark == "$":
        # "$12 a kilo, so $5 ..." is money: a formula touches both of its marks, and no digit follows the second.
        money = text[inside].isspace() or text[content_end - 1].isspace() or text[end : end + 1].isdigit()
        return -1 if money else end
    return end


def _find(text: str, close: str, start: int, missing: set[str]) -> int:
    if close in missing:
        return -1
    at = text.find(close, start)
    if at < 0:
        missing.add(close)
        return -1
    return at + len(close)


def _lines(content: str) -> Iterator[tuple[str, bool]]:
    r"""The lines of a span, and apart from them, marked True, what \text{...} encloses: that is text."""
    done = 0
    for command in _TEXT_COMMAND.finditer(content) if "\\" in content else ():
        yield from ((line, False) for line in content[done : command.start(1)].splitlines(keepends=True))
        yield command.group(1), True
        done = command.end(1)
    yield from ((line, False) for line in content[done:].splitlines(keepends=True))


def _lift(text: str, spans: list[tuple[int, int]], function_words: Set[str]) -> str:
    """Blank the spans, but keep their lines of prose."""
    pieces: list[str] = []  # alternating outside, inside; lines of a span are pieces of their own
    short: list[tuple[int, str]] = []  # lines too short to judge alone: (index in pieces, readable form)
    loose: list[str] = []  # the words of the short lines
    done = 0
    for start, end in spans:
        pieces.append(text[done:start])
        for line, is_text in _lines(text[start:end]):
            if is_text:
                pieces.append(line)
                continue
            words, readable, operators = _read(line)
            if len(words) < 4:
                short.append((len(pieces), readable))
                loose += words
                pieces.append(_blank_line(line))
            else:
                prose = _is_prose(words, operators, function_words)
                pieces.append(readable if prose else _blank_line(line))
        done = end
    pieces.append(text[done:])
    if is_cut_prose(loose, function_words):
        for at, readable in short:
            pieces[at] = readable
    return "".join(pieces)


def _blank_line(line: str) -> str:
    return blank(line[:-1]) + line[-1:] if line.endswith("\n") else blank(line)


def _read(line: str) -> tuple[list[str], str, int]:
    """Words of a line of code or maths, the line without marks and identifiers, and its number of operators.

    Single letters are no words here: they are variables.
    """
    readable = _COMMAND.sub(lambda match: blank(match.group()), line) if "\\" in line else line
    readable = _NAME.sub(_spell, readable)
    operators = len(_OPERATOR.findall(readable))
    words = [match.group().lower() for match in _NATURAL.finditer(readable)]
    return words, _MARKUP.sub(" ", readable), operators


def _spell(match: re.Match[str]) -> str:
    """Blank an identifier, a call or a number; one of many parts is a sentence with another spacing and stays."""
    name = match.group()
    if name.isalpha():
        return name
    return name.replace("_", " ").replace(".", " ") if name.count("_") + name.count(".") > 3 else blank(name)


def is_cut_prose(words: list[str], function_words: Set[str]) -> bool:
    """Whether the words of many small pieces of code are a sentence cut into pieces."""
    if len(words) < 8:
        return False
    functional = sum(word in function_words and word not in _CODE_WORDS for word in words)
    return functional >= max(2, 0.2 * len(words))


def _is_prose(words: list[str], operators: int, function_words: Set[str]) -> bool:
    code = sum(word in _CODE_WORDS for word in words)
    functional = sum(word in function_words and word not in _CODE_WORDS for word in words)
    if functional and functional >= 0.15 * len(words):
        return True
    return len(words) >= 5 and not operators and 2 * code <= len(words)
