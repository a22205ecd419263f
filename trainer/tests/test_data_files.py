# SPDX-License-Identifier: MIT-0
"""A user's own prompts and examples."""

import json
from types import SimpleNamespace

import pytest

from lingoss.data import Prompt, jsonl, prompt_set, sft_examples
from lingoss.data.files import load_examples, load_prompts, read_examples, read_prompts
from lingoss.errors import LingossError

WORDS = {"What": "en", "Wie": "de", "Combien": "fr"}


def detect(text):
    """Stands in for the detector: the first word tells; nothing else does."""
    label = WORDS.get(text.split()[0].rstrip("?"), "unknown")
    if text.startswith("Mixed"):
        return SimpleNamespace(label="mixed", shares={"en": 0.4, "fr": 0.5, "unknown": 0.1})
    return SimpleNamespace(label=label, shares={})


def load(tmp_path, *rows):
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return load_prompts(path, detect)


def test_a_question_alone_is_enough(tmp_path):
    (prompt,) = load(tmp_path, {"question": "Wie viel ist 2 + 2?"}).strict()
    assert (prompt.question_language, prompt.reasoning_language, prompt.answer_language) == ("de", "de", "de")
    assert (prompt.gold, prompt.family, prompt.split) == (None, "file", "")
    assert prompt.id == "04f6206967fce6c2"


def test_given_fields_win(tmp_path):
    (prompt,) = load(
        tmp_path,
        {
            "id": 7,
            "item": "sum",
            "question": "What is 2 + 2?",
            "question_language": "English",
            "reasoning_language": "français",
            "answer_language": "DE",
            "gold": 4.0,
            "split": "mine",
            "family": "sums",
            "history": [["system", "Be brief."], ["user", "Hello"], ["assistant", "Hello!"]],
            "source": "a column of the user's own",
        },
    ).strict()
    assert prompt == Prompt(
        "7", "sum", "sums", "What is 2 + 2?", "en", "fr", "de", "4", "mine",
        history=(("system", "Be brief."), ("user", "Hello"), ("assistant", "Hello!")),
    )  # fmt: skip


def test_what_we_write_we_read_back(tmp_path):
    prompts, examples = prompt_set("core-crossed"), sft_examples(6)
    jsonl.write(tmp_path / "prompts.jsonl", (prompt.to_dict() for prompt in prompts))
    jsonl.write(tmp_path / "examples.jsonl", (example.to_dict() for example in examples))
    assert read_prompts(tmp_path / "prompts.jsonl") == prompts
    assert read_examples(tmp_path / "examples.jsonl") == examples


def test_an_example_of_ones_own(tmp_path):
    path = tmp_path / "mine.jsonl"
    rows = [
        {"question": "What is 2?", "reasoning": "Two.", "answer": "It is two.", "answer_language": "en"},
        {"question": "What is 2?", "answer": "It is even."},
        {"question": "What is 2?", "answer": ""},
        {"question": "What is 2?", "answer": "It is even.", "reasoning": 3},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = load_examples(path, detect)
    assert [(row.reasoning, row.answer) for row in found.rows] == [("Two.", "It is two."), ("", "It is even.")]
    assert len({row.id for row in found.rows}) == 2
    assert [str(row) for row in found.bad] == ["row 3: `answer` is empty", "row 4: `reasoning` must be text, found int"]


@pytest.mark.parametrize(
    ("given", "gold"),
    [
        (4, "4"),
        (4.0, "4"),
        (2.5, "2.5"),
        (0.0000001, "0.0000001"),
        (10**20, "1" + "0" * 20),
        (" 3/4 ", "3/4"),
        ("", None),
    ],
)
def test_gold_is_plain_text(tmp_path, given, gold):
    (prompt,) = load(tmp_path, {"question": "What?", "gold": given}).strict()
    assert prompt.gold == gold


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({}, "`question` must be text, found no such key"),
        ({"question": None}, "`question` must be text, found NoneType"),
        ({"question": ["What?"]}, "`question` must be text, found list"),
        ({"question": "  \n"}, "`question` is empty"),
        ({"question": "What?", "question_language": "Klingon"}, "unknown language 'Klingon'"),
        ({"question": "What?", "answer_language": 3.5}, "`answer_language` must be text, found float"),
        (
            {"question": "What?", "anser_language": "fr"},
            "unknown key 'anser_language'; did you mean 'answer_language'?",
        ),
        ({"question": "What?", "gold": [4]}, "`gold` must be text or a number, found list"),
        ({"question": "What?", "gold": True}, "`gold` must be text or a number, found bool"),
        ({"question": "What?", "id": {}}, "`id` must be text, found dict"),
        ({"question": "12 34"}, "the language of `question` cannot be told; give `question_language`"),
        ({"question": "What?", "history": "Hello"}, "`history` must be a list of"),
        ({"question": "What?", "history": [["user", "a"], ["system", "b"]]}, "`history` entry 2 is no"),
        ({"question": "What?", "history": [["user", 1]]}, "`history` entry 1 is no"),
        ("not json\n", "not JSON"),
        ("[1]\n", "expected a JSON object, found list"),
    ],
)
def test_a_bad_row_is_named_and_the_rest_goes_on(tmp_path, row, reason):
    found = load(tmp_path, {"question": "What is one?"}, row, {"question": "What is two?"})
    assert [prompt.question for prompt in found.rows] == ["What is one?", "What is two?"]
    ((line, why),) = [(bad.line, bad.reason) for bad in found.bad]
    assert line == 2
    assert why.startswith(reason)


def test_repeated_rows(tmp_path):
    twice = {"question": "What is one?"}
    found = load(
        tmp_path, twice, {"id": "a", "question": "What is two?"}, twice, {"id": "a", "question": "What?"}, "\n"
    )
    assert len(found.rows) == 2
    assert [str(note) for note in found.notes] == ["row 3: the same as line 1; kept once"]
    assert [str(bad) for bad in found.bad] == ["row 4: id 'a' already names another row, in line 2"]
    # The same question to be answered in another language is another prompt about the same item.
    one, other = load(tmp_path, twice, {**twice, "answer_language": "fr"}).rows
    assert one.id != other.id
    assert one.item == other.item


def test_a_mixed_question_counts_as_its_larger_part(tmp_path):
    (prompt,) = load(tmp_path, {"question": "Mixed, mais surtout français"}).strict()
    assert prompt.question_language == "fr"


def test_strict_reading_names_lines_and_reasons(tmp_path):
    rows = [{"question": ""}] * 7
    with pytest.raises(LingossError, match=r"7 unusable row\(s\): row 1: `question` is empty; .*; and 2 more$"):
        load(tmp_path, *rows).strict()
    with pytest.raises(LingossError, match=r"mine\.jsonl: no rows in it"):
        load(tmp_path).strict()


def test_surrogates_and_byte_order_marks(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"question": "What is \\ud800?", "question_language": "en"}\r\n')
    (prompt,) = read_prompts(path)
    jsonl.write(tmp_path / "again.jsonl", [prompt.to_dict()])
    assert read_prompts(tmp_path / "again.jsonl") == [prompt]


def test_the_real_detector(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(
        '{"question": "Quelle est la capitale de la Belgique et combien y a-t-il d\'habitants ?"}\n', encoding="utf-8"
    )
    assert read_prompts(path)[0].question_language == "fr"
