# SPDX-License-Identifier: MIT-0
"""What GRPO asks: never what SFT was taught, never what evaluation asks, in an order that the seed alone decides."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lingoss import prepare, runs
from lingoss.config import GrpoConfig, SftConfig
from lingoss.data import Prompt, grpo_prompts, prompt_set, sft_examples
from lingoss.data.families import families
from lingoss.errors import LingossError
from lingoss.grpo.overlap import overlaps
from lingoss.grpo.prompts import MEASURED, Plan, tell, training_plan
from lingoss.prepare import Prepared
from lingoss.score.ngrams import copied

FEW: dict[str, Any] = {"data": {"prompts_per_language": 20}, "validation": {"prompts_per_language": 5}}
SPLITS = {family.name: (family.split, family.validation) for family in families()}


def config(**fields: Any) -> GrpoConfig:
    return GrpoConfig.model_validate(fields)


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def own(number: int, **fields: Any) -> dict[str, Any]:
    question = f"My garden has {number} rows of tulips with nine bulbs in each of them. How many bulbs did I plant?"
    return {"question": question, "question_language": "en", "answer_language": "fr", "gold": str(9 * number)} | fields


def made_up(counts: dict[str, int]) -> list[Prompt]:
    return [
        Prompt(f"{code}{i}", f"{code}{i}", "file", "?", "en", code, code)
        for code in counts
        for i in range(counts[code])
    ]


def test_rows_and_validation_share_nothing_with_what_sft_learns_or_evaluation_asks() -> None:
    plan = training_plan(config())
    assert plan.counts == {"families": 1000, "files": 0, "without_gold": 0, "validation": 325}
    assert {SPLITS[row.family] for row in plan.rows} == {("grpo", False)}
    assert {SPLITS[row.family] for row in plan.validation} == {("grpo", True)}
    elsewhere = [*sft_examples(300), *(row for name in MEASURED for row in prompt_set(name))]
    assert overlaps(plan.rows, elsewhere) == overlaps(plan.validation, elsewhere) == []
    assert overlaps(plan.rows, plan.validation) == []
    for part in ("family", "item", "id", "question"):
        rows, validation, others = (
            {getattr(row, part) for row in side} for side in (plan.rows, plan.validation, elsewhere)
        )
        assert not rows & validation
        assert not (rows | validation) & others


def test_no_question_is_like_one_of_another_set_even_with_the_numbers_taken_out() -> None:
    def forms(rows: Sequence[Prompt]) -> dict[str, str]:
        """One question of each family and language, its numbers all the same."""
        return {f"{row.family}/{row.question_language}": re.sub(r"\d+([.,]\d+)?", "0", row.question) for row in rows}

    def closest(rows: dict[str, str], others: dict[str, str]) -> float:
        return max(copied(one, other) for one in rows.values() for other in others.values())

    trained, heldout = forms(training_plan(config()).rows), forms(prompt_set("heldout"))
    validation, taught = forms(prompt_set("validation")), forms(sft_examples(60))
    assert closest(trained, {**validation, **heldout, **taught}) < 0.1
    assert closest(validation, {**heldout, **taught}) < 0.1
    # The measure sees a problem that is the same but for its numbers (and, in one family, the names of two days).
    core = forms(prompt_set("core"))
    assert min(copied(core[name], heldout[name]) for name in core.keys() & heldout.keys()) >= 0.4


def test_the_slice_is_the_first_prompts_of_each_language() -> None:
    plan = training_plan(config(validation={"prompts_per_language": 4}, data={"languages": ["fr", "de"]}))
    assert Counter(row.answer_language for row in plan.validation) == {"fr": 4, "de": 4}
    assert plan.validation == prompt_set("validation", ("de", "fr"))[:8]


def test_steps_follow_from_the_seed_and_the_position_alone() -> None:
    plan, again = training_plan(config(seed=3, **FEW)), training_plan(config(seed=3, **FEW))
    late = again.step(150)
    assert [plan.step(n) for n in range(1, 201)][149] == late
    assert plan.digest == again.digest != training_plan(config(seed=4, **FEW)).digest
    assert [plan.rows[index].id for index in plan.step(1)[:3]] == [again.rows[index].id for index in again.step(1)[:3]]
    other = Plan(plan.rows, plan.validation, 16, seed=4)
    assert [other.step(n) for n in range(1, 4)] != [plan.step(n) for n in range(1, 4)]


@given(
    st.dictionaries(st.sampled_from(("en", "fr", "de", "es", "it")), st.integers(1, 30), min_size=1),
    st.integers(1, 12),
    st.integers(0, 5),
)
@example({"en": 1, "fr": 1, "de": 1, "es": 1, "it": 7}, 4, 0)
def test_a_pass_asks_each_row_once_and_mixes_the_languages(counts: dict[str, int], size: int, seed: int) -> None:
    rows = made_up(counts)
    size = min(size, len(rows))
    plan = Plan(rows, (), size, seed)
    steps = len(rows) // size
    first, second = ([plan.step(n) for n in range(start, start + steps)] for start in (1, steps + 1))
    for one in (first, second):
        flat = [index for step in one for index in step]
        assert len(set(flat)) == len(flat) == steps * size
    assert plan.passes(steps) <= 1
    for step in (*first, *second):
        found = Counter(rows[index].answer_language for index in step)
        for code, count in counts.items():
            # The first rows of a pass hold, of each language, one common part to within half a row: off its share by at
            # most (1 + share x (languages - 2)) / 2. A step lies between two such places.
            share = count / len(rows)
            assert abs(found[code] - size * share) <= 1 + share * (len(counts) - 2) + 1e-9
        if len(set(counts.values())) == 1:
            assert max(found[code] for code in counts) - min(found[code] for code in counts) <= 1
    assert sorted([*plan.step(1), *plan.spares(1)]) == list(range(len(rows)))


def test_rows_of_a_file_join_and_those_without_an_answer_only_when_asked(tmp_path: Path, capsys: Any) -> None:
    path = written(tmp_path / "mine.jsonl", [own(3), own(4), own(5, gold=None), own(6, split="validation")])
    asked = {"data": {"files": [path], "prompts_per_language": 20}, "validation": {"prompts_per_language": 2}}
    plan = training_plan(config(**asked))
    assert plan.counts == {"families": 100, "files": 2, "without_gold": 0, "validation": 11}
    assert [row.gold for row in plan.rows[100:]] == ["27", "36"]
    assert plan.validation[-1].gold == "54"
    assert plan.remarks == ["1 rows have no known answer and are left out: data.without_gold=true keeps them"]
    kept = training_plan(config(**{**asked, "data": {**asked["data"], "without_gold": True}}))
    assert kept.counts == {"families": 100, "files": 3, "without_gold": 1, "validation": 11}
    assert kept.digest != plan.digest
    tell(kept)
    shown = capsys.readouterr().out
    assert [shown.count(title) for title in ("Prompts to train on", "without a known answer", "never trained on")] == [
        1
    ] * 3
    assert "102 rows" in shown
    assert "1 rows" in shown


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (prompt_set("heldout")[7].to_dict(), "family of heldout"),
        ({**prompt_set("core")[1].to_dict(), "family": "mine"}, "item of core"),
        ({"question": "“" + prompt_set("heldout")[7].question.upper(), "question_language": "de"}, "text of heldout"),
        (own(3, split="heldout"), "split heldout"),
    ],
)
def test_a_prompt_that_models_are_measured_on_is_refused(tmp_path: Path, row: dict[str, Any], why: str) -> None:
    path = written(tmp_path / "mine.jsonl", [own(2), row])
    with pytest.raises(
        LingossError, match=f"1 of 2 rows in .*mine.jsonl are prompts that models are measured on: .*{why}"
    ):
        training_plan(config(data={"files": [path]}))


def test_validation_rows_are_not_trained_on(tmp_path: Path) -> None:
    validation, trained = prompt_set("validation")[9].to_dict(), grpo_prompts(1)[0].to_dict()
    rows = [own(2), own(7, split="validation"), {**own(7), "id": "again"}, {**validation, "split": ""}]
    path = written(tmp_path / "mine.jsonl", [*rows, {**trained, "split": "validation"}, {**trained, "id": "new"}])
    plan = training_plan(config(data={"files": [path]}))
    assert plan.counts == {"families": 1000, "files": 2, "without_gold": 0, "validation": 326}
    assert [remark.partition(" and are left out")[0] for remark in plan.remarks] == [
        "1 rows with split validation are trained on",
        "2 rows are in the validation slice",
    ]


def test_what_sft_was_trained_on_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learned = [{**own(number), "answer": "neuf"} for number in range(2, 6)]
    taught = written(tmp_path / "taught.jsonl", learned)
    source = SftConfig.model_validate({"data": {"examples_per_language": 1, "files": [taught]}})
    (tmp_path / "config.json").write_text(json.dumps(source.resolved()))
    run = runs.RunInfo(tmp_path, "sft-1", "sft", "1", parents=("prepare-1",))
    base = Prepared("prepare-1", tmp_path, "", "", None, {}, {})
    monkeypatch.setattr(prepare, "prepared", lambda root, name: base if name == "prepare-1" else None)
    path = written(tmp_path / "mine.jsonl", [own(number) for number in range(4, 10)])
    asked = config(root=str(tmp_path), data={"files": [path], "prompts_per_language": 4})
    plan = training_plan(asked, run)
    assert [row.gold for row in plan.rows[20:]] == ["54", "63", "72", "81"]
    assert plan.remarks[0].startswith("2 rows are among what sft-1 was trained on and are left out: ")
    (tmp_path / "taught.jsonl").unlink()
    with pytest.raises(LingossError, match="cannot tell which of your rows sft-1 was trained on: "):
        training_plan(asked, run)
    assert training_plan(config(root=str(tmp_path), **FEW), run).counts["families"] == 100


def test_too_few_prompts_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        LingossError,
        match=r"^10 prompts are too few for a step of prompts_per_step=16: set data.prompts_per_language to 4 or more",
    ):
        training_plan(config(data={"prompts_per_language": 2}))
    path = written(tmp_path / "mine.jsonl", [own(3, gold=None), own(4)])
    with pytest.raises(
        LingossError, match=r"^1 prompts are too few .*, set data.without_gold=true, or lower prompts_per_step"
    ):
        training_plan(config(data={"prompts_per_language": 0, "files": [path]}))


def test_a_language_that_the_families_lack_needs_validation_rows_of_ones_own(tmp_path: Path) -> None:
    rows = [own(number, answer_language="ja") for number in range(2, 20)]
    asked: dict[str, Any] = {"prompts_per_language": 0, "languages": ["ja"]}
    with pytest.raises(LingossError, match=r'no validation prompt in ja .*"split": "validation"'):
        training_plan(config(data={**asked, "files": [written(tmp_path / "a.jsonl", rows)]}))
    rows[0]["split"] = "validation"
    plan = training_plan(config(data={**asked, "files": [written(tmp_path / "b.jsonl", rows)]}))
    assert (len(plan.rows), len(plan.validation)) == (17, 1)
