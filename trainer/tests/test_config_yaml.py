# SPDX-License-Identifier: MIT-0
"""The YAML reader: what it reads, what it refuses, and that what is written reads back."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lingoss.config import yaml_text
from lingoss.errors import LingossError


def value(text: str) -> object:
    return yaml_text.read(text, "x.yaml")[0]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("1e-4", 1e-4),
        ("1E-4", 1e-4),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        ("-3", -3),
        ("+3", 3),
        ("0", 0),
        ("1e6", 1_000_000),
        ("1e+06", 1_000_000),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("2025-08-05", "2025-08-05"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("0x10", "0x10"),
        ("'3'", "3"),
        ('"true"', "true"),
        ("1.2.3", "1.2.3"),
        ("1" * 100, "1" * 100),
    ],
)
def test_plain_words(word: str, expected: object) -> None:
    found = value(f"key: {word}")
    assert found == {"key": expected}
    assert type(found["key"]) is type(expected)  # type: ignore[index]


def test_whole_numbers_in_exponent_form_are_whole() -> None:
    assert isinstance(value("1e6"), int)
    assert isinstance(value("1.0e6"), float)
    assert isinstance(value("1e300"), float)


def test_keys_are_words_as_written() -> None:
    assert value("{no: 1, 1: 2, on: 3}") == {"no": 1, "1": 2, "on": 3}


def test_lines_are_known_by_path() -> None:
    _, lines = yaml_text.read("a: 1\nb:\n  c: 2\n  d:\n    - e: 3\n", "x.yaml")
    assert lines == {("a",): 1, ("b",): 2, ("b", "c"): 3, ("b", "d"): 4, ("b", "d", "0", "e"): 5}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: 2\na: 3", "x.yaml line 3: key 'a' is written twice (first on line 1)"),
        ("s:\n  a: 1\n  a: 2", "x.yaml line 3: key 's.a' is written twice"),
        ("seed: 010", "line 1: 010 is octal to some YAML readers"),
        ("a: &x 1\nb: *x", "line 1: anchors"),
        ("a: !!python/object:os.system x", "line 1: tags"),
        ("a: !!int 3", "line 1: tags"),
        ("a: 1e999", "line 1: 1e999 is too large"),
        ("? [a, b]\n: 1", "a key must be a word"),
        ("a: 1\n---\nb: 2", "line 2: not valid YAML: a second document"),
        ("a: [1, 2", "not valid YAML"),
        ("a: b: c", "line 1: not valid YAML"),
        ("a:\n\t- b", "line 2: not valid YAML"),
        ("a: \x07", "not valid YAML"),
        ("[" * 40 + "]" * 40, "nested more than 16 levels"),
    ],
)
def test_refused(text: str, told: str) -> None:
    with pytest.raises(LingossError) as caught:
        value(text)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\x7fELF\0\0\0", "binary file"),
        (b"\xff\xfea\0:\0", "UTF-16"),
        (b"a: \xff", "not UTF-8 text (byte 3)"),
        (b"a" * (yaml_text.MAX_BYTES + 1), "more than 256 KiB"),
    ],
)
def test_bytes_refused(data: bytes, told: str) -> None:
    with pytest.raises(LingossError, match=r"x\.yaml: ") as caught:
        yaml_text.decode(data, "x.yaml")
    assert told in str(caught.value)


def test_bom_and_crlf_are_read() -> None:
    text = yaml_text.decode(b"\xef\xbb\xbfa: 1\r\nb:\r\n  - x\r\n", "x.yaml")
    assert value(text) == {"a": 1, "b": ["x"]}


@pytest.mark.parametrize(
    "unit", ["a", " ", "\n", "[", "{", "-", ":", "'", '"', "#", "0", "é", "a: ", "- ", "? ", "%", "|", "&", "*"]
)
def test_the_largest_file_of_one_character_costs_little(unit: str) -> None:
    text = unit * (yaml_text.MAX_BYTES // len(unit.encode()))
    start = time.process_time()
    with contextlib.suppress(LingossError):
        value(yaml_text.decode(text.encode(), "x.yaml"))
    assert time.process_time() - start < 1.0


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), JSON, max_size=4))
def test_what_is_written_reads_back(written: dict[str, object]) -> None:
    assert value(yaml_text.write(written)) == (written or {})


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_no_text_ends_in_another_error(text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    told = ""
    try:
        value(yaml_text.decode(data, "x.yaml"))
    except LingossError as error:
        told = str(error)
    assert "\n" not in told
