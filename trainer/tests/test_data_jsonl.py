# SPDX-License-Identifier: MIT-0
"""JSON lines: what is read, what is a bad line, and what a writer leaves behind when it is stopped."""

import errno
import io
import json
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lingoss.data import jsonl
from lingoss.data.jsonl import BadLine, Writer
from lingoss.errors import LingossError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
ROWS = st.dictionaries(st.text(), JSON, max_size=4)


def read(tmp_path, data: bytes):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(data)
    return list(jsonl.read(path))


@given(rows=st.lists(ROWS, max_size=5))
def test_what_is_written_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("jsonl") / "rows.jsonl"
    assert jsonl.write(path, rows) == len(rows)
    assert [row for _, row in jsonl.read(path)] == rows
    with Writer(path) as writer:
        for row in rows:
            writer.write(row)
    assert [row for _, row in jsonl.read(path)] == rows + rows


@given(data=st.binary(max_size=200))
def test_no_bytes_break_the_reader(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("jsonl") / "rows.jsonl"
    path.write_bytes(data)
    lines = data.split(b"\n")
    for number, row in jsonl.read(path):
        assert lines[number - 1].strip()
        assert isinstance(row, dict | BadLine)
        assert not isinstance(row, BadLine) or row.line == number
    Writer(path).close()
    assert path.read_bytes().removesuffix(b"\n").count(b"\n") <= data.count(b"\n")


def test_bom_crlf_and_blank_lines(tmp_path):
    assert read(tmp_path, b'\xef\xbb\xbf{"a": 1}\r\n\r\n  \n{"b": 2}\r\n') == [(1, {"a": 1}), (4, {"b": 2})]
    assert read(tmp_path, b"") == []
    assert read(tmp_path, b'{"a": "\xe2\x80\xa8"}') == [(1, {"a": "\u2028"})]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON: Expecting property name"),
        (b'{"a": "\x00"}', "not JSON: Invalid control character"),
        (b'{"a": "\xff"}', "not UTF-8: invalid start byte at byte 7"),
        (b"[1, 2]", "expected a JSON object, found list"),
        (b"null", "expected a JSON object, found NoneType"),
        (b'{"a": NaN}', "not JSON: NaN is not a JSON number"),
        (b'{"a": -Infinity}', "not JSON: -Infinity is not a JSON number"),
        (b'{"a": ' + b"[" * 200_000, "not JSON: nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON: Exceeds the limit"),
    ],
)
def test_a_bad_line_is_a_row_and_the_rest_goes_on(tmp_path, line, reason):
    (first, bad), rest = read(tmp_path, line + b'\n{"ok": true}\n')
    assert (first, bad.line, rest) == (1, 1, (2, {"ok": True}))
    assert bad.error.startswith(reason)
    assert bad.to_dict() == {"line": 1, "error": bad.error}


def test_a_lone_surrogate_survives(tmp_path):
    rows = read(tmp_path, b'{"a": "\\ud800x"}\n')
    assert rows == [(1, {"a": "\ud800x"})]
    assert jsonl.dumps(rows[0][1]) == '{"a": "\\ud800x"}'
    assert jsonl.dumps({"a": "é"}) == '{"a": "é"}'


def test_a_line_of_ten_megabytes(tmp_path):
    text = "x" * 10_000_000
    assert read(tmp_path, json.dumps({"a": text}).encode() + b"\n") == [(1, {"a": text})]


def test_a_torn_last_line_is_named_and_a_whole_one_is_a_row(tmp_path):
    assert read(tmp_path, b'{"a": 1}\n{"b": 2}')[1] == (2, {"b": 2})
    _, (number, torn) = read(tmp_path, b'{"a": 1}\n{"b": "half a l')
    assert number == 2
    assert torn.error.endswith("the line has no end, so it was probably cut while being written")


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"a": 1}\n')))
    assert list(jsonl.read("-")) == [(1, {"a": 1})]


def test_what_cannot_be_read_or_written_is_one_sentence(tmp_path):
    with pytest.raises(LingossError, match=r"cannot read .*missing\.jsonl: No such file"):
        list(jsonl.read(tmp_path / "missing.jsonl"))
    with pytest.raises(LingossError, match=r"cannot read .*: Is a directory"):
        list(jsonl.read(tmp_path))
    with pytest.raises(LingossError, match=r"cannot write .*: No such file"):
        jsonl.write(tmp_path / "no" / "rows.jsonl", [])
    with pytest.raises(LingossError, match=r"cannot append to .*: No such file"):
        Writer(tmp_path / "no" / "rows.jsonl")
    with pytest.raises(LingossError, match=r"cannot be written as JSON: .*; its keys: a"):
        jsonl.dumps({"a": float("nan")})
    with pytest.raises(LingossError, match="not JSON serializable"):
        jsonl.dumps({"a": b"bytes"})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (b'{"a": 1}\n', b'{"a": 1}\n'),
        (b'{"a": 1}\n{"b": ', b'{"a": 1}\n'),
        (b'{"a": 1}\n{"b": 2}', b'{"a": 1}\n{"b": 2}\n'),
        (b'{"b": ', b""),
        (b'\xef\xbb\xbf{"b": 2}', b'\xef\xbb\xbf{"b": 2}\n'),
        (b'{"a": "' + b"y" * 200_000, b""),
        (b'{"a": 1}\n{"b": "' + b"y" * 200_000, b'{"a": 1}\n'),
    ],
)
def test_opening_mends_the_tail(tmp_path, before, after):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(before)
    with Writer(path):
        assert path.read_bytes() == after
    with Writer(path) as writer:
        writer.write({"c": 3})
    assert path.read_bytes() == after + b'{"c": 3}\n'


def test_fsync_comes_in_batches(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(os, "fsync", calls.append)
    writer = Writer(tmp_path / "rows.jsonl", sync_every=3)
    counts = []
    for number in range(7):
        writer.write({"n": number})
        counts.append(len(calls))
    assert counts == [0, 0, 1, 1, 1, 2, 2]
    # Rows that are not yet synced are in the file all the same: only a power cut could lose them.
    assert len(list(jsonl.read(tmp_path / "rows.jsonl"))) == 7
    writer.close()
    writer.close()
    assert len(calls) == 3


class FullDisk:
    """A file that takes some bytes and then says that the disk is full, or is interrupted."""

    def __init__(self, stream, room, error):
        self.stream, self.room, self.error = stream, room, error

    def write(self, data):
        if self.room <= 0:
            raise self.error
        taken = self.stream.write(bytes(data[: self.room]))
        self.room -= taken
        return taken

    def __getattr__(self, name):
        return getattr(self.stream, name)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_or_an_interrupt_leaves_whole_lines(tmp_path, error):
    path = tmp_path / "rows.jsonl"
    writer = Writer(path)
    writer.write({"a": 1})
    writer._stream = FullDisk(writer._stream, 5, error)
    expected = (
        pytest.raises(LingossError, match="No space left") if isinstance(error, OSError) else pytest.raises(type(error))
    )
    with expected:
        writer.write({"b": 2})
    assert path.read_bytes() == b'{"a": 1}\n'


def test_write_replaces_only_when_whole(tmp_path):
    path = tmp_path / "rows.jsonl"
    jsonl.write(path, [{"a": 1}])

    def rows():
        yield {"b": 2}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jsonl.write(path, rows())
    assert path.read_bytes() == b'{"a": 1}\n'
    assert os.listdir(tmp_path) == ["rows.jsonl"]


def test_keys_of_finished_rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    assert jsonl.keys(path, "id", "sample") == set()
    path.write_bytes(b'{"id": "a", "sample": 0}\n{"id": "a", "sample": 1}\n{"id": "b"}\n{broken\n')
    assert jsonl.keys(path, "id", "sample") == {("a", 0), ("a", 1)}
