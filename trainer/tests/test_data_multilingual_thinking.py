# SPDX-License-Identifier: MIT-0
"""Multilingual-Thinking: 1,000 rows in the published schema, made here, with every fault that a row may have."""

import json
from types import SimpleNamespace

import pyarrow
import pytest
from pyarrow import parquet

from lingoss.data import language_table, prompt_digest
from lingoss.data.multilingual_thinking import load, split
from lingoss.errors import LingossError

NAMES = {"English": "en", "French": "fr", "German": "de", "Spanish": "es", "Italian": "it"}
THOUGHTS = {
    "en": "The user wants to know about town {n}. I should answer briefly and kindly.",
    "fr": "L'utilisateur veut en savoir plus sur la ville {n}. Je devrais répondre brièvement et gentiment.",
    "de": "Der Nutzer möchte etwas über die Stadt {n} wissen. Ich sollte kurz und freundlich antworten.",
    "es": "El usuario quiere saber algo de la ciudad {n}. Debería responder de forma breve y amable.",
    "it": "L'utente vuole sapere qualcosa della città {n}. Dovrei rispondere in modo breve e gentile.",
}
SCHEMA = pyarrow.schema(
    [(name, pyarrow.string()) for name in ("reasoning_language", "developer", "user", "analysis", "final")]
    + [
        (
            "messages",
            pyarrow.list_(pyarrow.struct([(name, pyarrow.string()) for name in ("content", "role", "thinking")])),
        )
    ]
)


def message(role, content, thinking=None):
    return {"content": content, "role": role, "thinking": thinking}


def published_row(number: int, turns: int = 1) -> dict:
    """A row as it is published: English question and answer, reasoning in one of five languages."""
    name, code = list(NAMES.items())[number % 5]
    developer = f"You are helper number {number % 7}."
    messages = [message("system", f"reasoning language: {name}\n\n{developer}")]
    for turn in range(turns):
        town = f"{number}-{turn}"
        messages.append(message("user", f"What can you tell me about the small town with the number {town}?"))
        final = f"The small town with the number {town} has a nice market and a bridge over the river."
        messages.append(message("assistant", final, THOUGHTS[code].format(n=town)))
    return {
        "reasoning_language": name,
        "developer": developer,
        "user": messages[1]["content"],
        "analysis": messages[2]["thinking"],
        "final": messages[2]["content"],
        "messages": messages,
    }


def published_rows(count: int = 1000) -> list[dict]:
    """`count` valid rows; every tenth is a conversation of two turns."""
    return [published_row(number, 2 if number % 10 == 9 else 1) for number in range(count)]


def write_parquet(path, rows):
    parquet.write_table(pyarrow.Table.from_pylist(rows, schema=SCHEMA), path)


def detect(text):
    """Stands in for the detector in tests of the loader's own rules."""
    for code, thought in THOUGHTS.items():
        if text.startswith(thought[:12]):
            return SimpleNamespace(label=code, shares={code: 1.0})
    if text.strip("0123456789. ") == "":
        return SimpleNamespace(label="neutral", shares={})
    if text.startswith("Half"):
        return SimpleNamespace(label="mixed", shares={"en": 0.6, "fr": 0.4})
    return SimpleNamespace(label="en", shares={"en": 1.0})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("Multilingual-Thinking")
    (root / "data").mkdir()
    rows = published_rows()
    write_parquet(root / "data" / "train-00000-of-00002.parquet", rows[:600])
    write_parquet(root / "data" / "train-00001-of-00002.parquet", rows[600:])
    (root / "README.md").write_text("The card.", encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def loaded(folder):
    return load(folder, detect)


def test_one_example_for_each_assistant_turn(loaded):
    assert (len(loaded.rows), loaded.bad, loaded.notes) == (1100, [], [])
    first, second = [row for row in loaded.rows if "9-" in row.question and "number 9-" in row.question]
    assert first.item == second.item
    assert first.id != second.id
    # Each turn keeps its own thoughts; the turn before is the history of the next.
    assert "9-0" in first.reasoning
    assert "9-1" in second.reasoning
    assert first.history == (("system", "You are helper number 2."),)
    assert second.history == (
        ("system", "You are helper number 2."),
        ("user", first.question),
        ("assistant", first.answer),
    )


def test_languages_are_found_separately(loaded):
    table = language_table(loaded.rows)
    assert table.counts == {
        ("en", code, "en"): count for code, count in zip(NAMES.values(), (200, 200, 200, 200, 300), strict=True)
    }
    assert table.split_requests == 900


def test_the_split_is_pinned(loaded):
    train, validation = split(loaded.rows)
    items = [{row.item for row in part} for part in (train, validation)]
    assert [len(part) for part in items] == [949, 50]
    assert not items[0] & items[1]
    assert len({row.item for row in loaded.rows} - items[0] - items[1]) == 1
    assert (prompt_digest(train)[:16], prompt_digest(validation)[:16]) == ("6ac4196e22a62b57", "85b40432f54bae85")
    assert split(loaded.rows, seed=1)[1] != validation


def test_the_split_goes_by_content_not_by_place(loaded):
    train, validation = split(loaded.rows)
    turned, turned_validation = split(list(reversed(loaded.rows)))
    assert list(reversed(turned)) == train
    assert list(reversed(turned_validation)) == validation
    # A conversation never lies on both sides.
    assert {row.item for row in train}.isdisjoint(row.item for row in validation)


@pytest.mark.parametrize(
    ("count", "sizes"), [(999, (949, 50)), (500, (475, 25)), (20, (19, 1)), (1, (1, 0)), (0, (0, 0))]
)
def test_a_smaller_set_shrinks_both_parts(loaded, count, sizes):
    single = [row for row in loaded.rows if not row.question.endswith("-1?")][:count]
    assert tuple(map(len, split(single))) == sizes


HI = message("user", "Hi?")


def broken(**changes):
    return {**published_row(1), **changes}


def said(*messages):
    return broken(messages=list(messages))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (said(HI, message("assistant", "Hello.")), "no assistant message has `thinking`"),
        (broken(messages=None, analysis=None), "`analysis` must be text, found NoneType"),
        (broken(messages=[]), "roles must be user and assistant in turn"),
        (broken(messages="text"), "`messages` must be a list of objects, found str"),
        (said(HI, message("assistant", " ", "Hm.")), "`content` of message 2 is empty"),
        (said(message("user", None), message("assistant", "x", "y")), "`content` of message 1 must be text"),
        (said(HI, message("assistant", "x", 3)), "`thinking` of message 2 must be text, found int"),
        (said(message("robot", "Hi?")), "message 1 has the role 'robot'"),
        (said(message("assistant", "x", "y"), HI), "roles must be user and assistant"),
        (said(HI), "roles must be user and assistant"),
        (broken(reasoning_language="Klingon"), "unknown language 'Klingon'"),
        (broken(reasoning_language=None), "`reasoning_language` must be text, found NoneType"),
        (broken(messages=None, analysis="Half of it, et la moitié."), "the reasoning is in no clear language (mixed)"),
        (broken(messages=None, final="Half of it, et la moitié."), "the answer is in no clear language (mixed)"),
        (broken(messages=None, user="12."), "the language of the question cannot be told: '12.'"),
        ("not json", "not JSON"),
    ],
)  # fmt: skip
def test_a_bad_row_is_named_by_number_and_reason(tmp_path, row, reason):
    path = tmp_path / "rows.jsonl"
    lines = [
        json.dumps(published_row(10)),
        row if isinstance(row, str) else json.dumps(row),
        json.dumps(published_row(11)),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = load(path, detect)
    assert len(found.rows) == 2
    assert [bad.line for bad in found.bad] == [2]
    assert found.bad[0].reason.startswith(reason)


def test_columns_stand_in_for_messages(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(broken(messages=None, final="42.")) + "\n", encoding="utf-8")
    (row,) = load(path, detect).strict()
    assert row.reasoning == THOUGHTS["fr"].format(n="1-0")
    # An answer without words is taken to be in the language of the reasoning.
    assert (row.question_language, row.reasoning_language, row.answer_language) == ("en", "fr", "fr")


def test_remarks_and_repeats(tmp_path):
    path = tmp_path / "rows.jsonl"
    odd = broken(reasoning_language="German")
    half = published_row(19, 2)
    half["messages"][2]["thinking"] = None
    rows = [odd, half, published_row(1)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = load(path, detect)
    assert [row.reasoning_language for row in found.rows] == ["fr", "it"]
    assert [str(note) for note in found.notes] == [
        "row 1: claims de, but reasons in fr; kept with the detected language",
        "row 2: the answer 'The small town with the number 19-0 has ' has no `thinking`; it is history only",
    ]
    assert [str(bad) for bad in found.bad] == ["row 3: the same as row 1"]


def test_broken_rows_in_parquet_are_numbered_through(tmp_path):
    rows = published_rows(30)
    rows[4] = said(HI, message("assistant", "Hello."))
    rows[20]["reasoning_language"] = "Klingon"
    write_parquet(tmp_path / "a.parquet", rows[:10])
    write_parquet(tmp_path / "b.parquet", rows[10:])
    found = load(tmp_path, detect)
    assert [bad.line for bad in found.bad] == [5, 21]
    assert len({row.item for row in found.rows}) == 28


def test_what_cannot_be_loaded(tmp_path):
    with pytest.raises(LingossError, match=r"holds no \.parquet or \.jsonl file"):
        load(tmp_path, detect)
    with pytest.raises(LingossError, match=r"holds no \.parquet or \.jsonl file"):
        load(tmp_path / "missing", detect)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(LingossError, match=r"cannot read .* as parquet"):
        load(tmp_path, detect)


def test_the_real_detector(tmp_path):
    write_parquet(tmp_path / "rows.parquet", published_rows(40))
    found = load(tmp_path)
    assert not found.bad
    assert not found.notes
    assert {(r.question_language, r.reasoning_language, r.answer_language) for r in found.rows} == {
        ("en", code, "en") for code in NAMES.values()
    }
