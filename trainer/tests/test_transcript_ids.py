# SPDX-License-Identifier: MIT-0
"""Harmony from token ids, with the true vocabulary (which comes from PyPI, see `lingoss.vocab`)."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lingoss import vocab
from lingoss.errors import LingossError
from lingoss.prepare import cache_folder
from lingoss.transcript import parse, parse_ids
from lingoss.transcript.formats import harmony

RETURN = 200002
FRAGMENTS = [
    *harmony.SPECIAL.values(), "<|endoftext|>", "<|reserved_200017|>", "<|reserved_200002|>", "<|im_end|>", "<|", "|>",
    "assistant", "user", "analysis", "final", "commentary", " to=functions.x", " json", "42", " ", "\n", "é", "数", "🙂",
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def encoding() -> Iterator[Any]:
    """openai-harmony with the vocabulary in the user's cache; parse_ids then finds it too."""
    from openai_harmony import HarmonyEncodingName, load_harmony_encoding

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(vocab.ENVIRONMENT, str(vocab.o200k(cache_folder()).parent))
        yield load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)


def encode(encoding: Any, text: str) -> list[int]:
    ids: list[int] = encoding.encode(text, allowed_special="all")
    return ids


def test_special_numbers_are_those_of_openai_harmony(encoding: Any) -> None:
    for number, token in harmony.SPECIAL.items():
        assert encode(encoding, token) == [number]
    assert sorted(encoding.stop_tokens_for_assistant_actions()) == sorted(
        number for number, token in harmony.SPECIAL.items() if token in harmony.STOP
    )
    numbers = [encode(encoding, token)[0] for token in encoding.special_tokens_set]
    assert (min(numbers), max(numbers)) == (harmony.FIRST_SPECIAL, harmony.LAST_SPECIAL)


def test_typed_tokens_stay_text(encoding: Any) -> None:
    typed = encoding.encode("<|return|> <|channel|>", disallowed_special=())
    ids = encode(encoding, "<|channel|>final<|message|>I type ") + typed
    assert parse_ids(ids, "harmony").truncated
    found = parse_ids([*ids, RETURN], "harmony")
    assert (found.answer, found.format_ok) == ("I type <|return|> <|channel|>", True)
    assert not parse_ids([*ids, RETURN, *typed], "harmony").format_ok


def test_a_character_cut_in_the_middle_is_replaced(encoding: Any) -> None:
    ids = encode(encoding, "<|channel|>final<|message|>𒀀")
    found = parse_ids(ids[:-1], "harmony")
    assert (found.answer.strip("\ufffd"), found.truncated) == ("", True)
    assert found.answer != ""


@given(
    st.one_of(st.text(), st.lists(st.sampled_from(FRAGMENTS), max_size=24).map("".join)),
    st.sampled_from([None, "stop", "length"]),
)
def test_text_and_ids_agree(encoding: Any, text: str, finish_reason: str | None) -> None:
    assert parse_ids(encode(encoding, text), "harmony", finish_reason) == parse(text, "harmony", finish_reason)


@given(st.lists(st.one_of(st.integers(), st.integers(199_990, 201_099), st.integers(0, 200_020))))
def test_any_ids_are_read(ids: list[int]) -> None:
    found = parse_ids(ids, "harmony")
    assert not (found.truncated and found.format_ok)
    assert not found.format_ok or RETURN in ids or 200007 in ids


def test_own_decode_is_used_for_ordinary_ids_only() -> None:
    seen: list[int] = []

    def decode(ids: Any) -> str:
        seen.extend(ids)
        return "final" if ids == [1] else "42"

    assert parse_ids([200005, 1, 200008, 2, RETURN], "harmony", decode=decode).answer == "42"
    assert seen == [1, 2]


def test_without_vocabulary_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(vocab.ENVIRONMENT, str(tmp_path))
    with pytest.raises(LingossError, match="TIKTOKEN_ENCODINGS_BASE"):
        parse_ids([RETURN], "harmony")


def test_vocabulary_is_cached_by_digest(encoding: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(os.environ[vocab.ENVIRONMENT]) / vocab.FILE_NAME
    assert vocab.o200k(tmp_path) == source  # the folder of the environment comes first, as in an image
    monkeypatch.delenv(vocab.ENVIRONMENT)
    calls: list[Any] = []
    monkeypatch.setattr(vocab, "_content_of_wheel", lambda: calls.append(1) or source.read_bytes())
    found = vocab.o200k(tmp_path)
    assert hashlib.sha256(found.read_bytes()).hexdigest() == vocab.SHA256
    assert vocab.o200k(tmp_path) == found
    assert len(calls) == 1
    found.write_bytes(b"damaged")
    assert vocab.o200k(tmp_path).stat().st_size == source.stat().st_size
    assert list(found.parent.iterdir()) == [found]


def test_vocabulary_that_cannot_be_had_is_a_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(vocab.ENVIRONMENT)
    failed = subprocess.CompletedProcess([], 1, "", "noise\nERROR: No matching distribution found\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(
        LingossError, match=r"cannot download litellm==.*No matching distribution.*TIKTOKEN_ENCODINGS_BASE"
    ):
        vocab.o200k(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_vocabulary_in_a_cache_that_is_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(vocab.ENVIRONMENT)
    monkeypatch.setattr(vocab, "_content_of_wheel", lambda: b"")
    (tmp_path / "file").write_text("")
    with pytest.raises(LingossError, match="cannot write the o200k vocabulary"):
        vocab.o200k(tmp_path / "file")
