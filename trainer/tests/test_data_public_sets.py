# SPDX-License-Identifier: MIT-0
"""MGSM and PolyMath in the shape in which they are published."""

import json

import pytest

from lingoss.data.public_sets import load_mgsm, load_polymath, plain_number
from lingoss.errors import LingossError


def test_mgsm(tmp_path):
    (tmp_path / "mgsm_de.tsv").write_bytes(
        'Wie viele Äpfel hat "Tom"?\t18\r\nEin Haus kostet $80,000.\tDas sind?\t70,000\r\n'.encode()
    )
    (tmp_path / "mgsm_sw.tsv").write_bytes(b"\xef\xbb\xbfTom ana matofaa mangapi?\t18\n")
    found = load_mgsm(tmp_path)
    assert not found.bad
    german, house, swahili = found.rows
    assert (german.question, german.gold, german.item) == ('Wie viele Äpfel hat "Tom"?', "18", "mgsm-1")
    assert (german.question_language, german.reasoning_language, german.answer_language) == ("de", "de", "de")
    # Only the last tab separates, so a question may hold one.
    assert (house.question, house.gold) == ("Ein Haus kostet $80,000.\tDas sind?", "70000")
    assert (swahili.question_language, swahili.item, swahili.question) == ("sw", "mgsm-1", "Tom ana matofaa mangapi?")
    assert german.id != swahili.id


def test_mgsm_can_be_crossed(tmp_path):
    path = tmp_path / "mgsm_fr.tsv"
    path.write_text("Combien ?\t4\n", encoding="utf-8")
    (row,) = load_mgsm(path, reasoning_language="German", answer_language="it").rows
    assert (row.question_language, row.reasoning_language, row.answer_language) == ("fr", "de", "it")
    assert row.crossed


def test_mgsm_bad_lines(tmp_path):
    path = tmp_path / "mgsm_en.tsv"
    path.write_text("How many?\t4\nno tab here\n\t5\nHow much?\t\n\nAnd now?\t6", encoding="utf-8")
    found = load_mgsm(path)
    assert [row.item for row in found.rows] == ["mgsm-1", "mgsm-6"]
    assert [bad.line for bad in found.bad] == [2, 3, 4]
    assert str(found.bad[0]) == "row 2: mgsm_en.tsv: not a question, a tab and an answer"


def test_polymath(tmp_path):
    for code in ("en", "zh"):
        folder = tmp_path / code
        folder.mkdir()
        rows = [
            {"id": f"low-{code}-0", "question": f"Question in {code}", "answer": "3,460"},
            {"id": f"low-{code}-1", "question": "Half?", "answer": "\\frac{1}{2}"},
            {"id": f"low-{code}-2", "question": "None?", "answer": None},
            {"id": f"low-{code}-3", "question": "", "answer": "1"},
            {"id": f"low-{code}-4", "question": "List?", "answer": [1]},
            "text",
        ]
        (folder / "low.json").write_text(json.dumps(rows), encoding="utf-8")
    (tmp_path / "en" / "top.jsonl").write_text('{"question": "Top?", "answer": 12}\nbroken\n', encoding="utf-8")
    found = load_polymath(tmp_path)
    assert [row.item for row in found.rows if row.question_language == "en"] == [
        "polymath-low-0", "polymath-low-1", "polymath-low-2", "polymath-top-1",
    ]  # fmt: skip
    assert [row.gold for row in found.rows if row.question_language == "zh"] == ["3460", "\\frac{1}{2}", None]
    assert {row.item for row in found.rows if row.question_language == "zh"} < {row.item for row in found.rows}
    assert len({row.id for row in found.rows}) == len(found.rows) == 7
    assert [str(bad) for bad in found.bad][:3] == [
        "row 4: low.json: `question` must be text",
        "row 5: low.json: `answer` must be text or a number, found list",
        "row 6: low.json: expected an object, found str",
    ]
    assert len(found.bad) == 7


@pytest.mark.parametrize(
    ("text", "plain"),
    [("70,000", "70000"), ("1,234,567.5", "1234567.5"), ("-1,000", "-1000"), ("1,5", "1,5"), ("12,34", "12,34"),
     ("x = 1,000", "x = 1,000"), ("1" * 50, "1" * 50), ("1,000" * 200_000, "1,000" * 200_000)],
)  # fmt: skip
def test_thousands_commas(text, plain):
    assert plain_number(text) == plain


def test_what_cannot_be_loaded(tmp_path):
    with pytest.raises(LingossError, match=r"has no mgsm_\*\.tsv in it"):
        load_mgsm(tmp_path)
    with pytest.raises(LingossError, match=r"has no \*/\*\.json or \*/\*\.jsonl in it"):
        load_polymath(tmp_path)
    (tmp_path / "mgsm_klingon.tsv").write_text("a\t1\n", encoding="utf-8")
    with pytest.raises(LingossError, match="unknown language 'klingon'"):
        load_mgsm(tmp_path)
    (tmp_path / "en").mkdir()
    path = tmp_path / "en" / "low.json"
    for content, reason in ((b"{}", "must hold a list, found dict"), (b"[", "is not JSON"), (b"\xff", "is not UTF-8")):
        path.write_bytes(content)
        with pytest.raises(LingossError, match=reason):
            load_polymath(tmp_path)
    path.write_bytes(b"[]")
    assert load_polymath(tmp_path).rows == []
