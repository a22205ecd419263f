# SPDX-License-Identifier: MIT-0
"""What counts for which figure, and which interval it gets."""

import json
import math

import pytest

from lingoss.errors import LingossError
from lingoss.evaluate.metrics import METRICS, measure
from lingoss.evaluate.rows import read_run
from lingoss.evaluate.scoring import score_row
from lingoss.evaluate.statistics import wilson
from lingoss.evaluate.summary import Rate, Summary, summarise
from synthetic import detection, outcomes, run, scored


def values(**fields: object) -> dict[str, float]:
    return measure(scored(**fields))  # type: ignore[arg-type]


def summary_of(rows: object) -> Summary:
    return summarise(run("r", rows), draws=500)


def test_a_compliant_row() -> None:
    found = values()
    assert {name for name, value in found.items() if value == 1.0} == {
        "strict", "strict_worded", "reasoning", "answer", "answer_worded", "format_ok", "correct", "joint",
        "lpr_compatible", "acc_compatible", "reward",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "lost"),
    [
        ({"format_ok": False}, {"strict", "joint"}),
        ({"truncated": True}, {"strict", "joint"}),
        ({"reasoning": "en"}, {"strict", "joint", "reasoning"}),
        ({"reasoning": ["fr", "fr", "en"]}, {"strict", "joint", "reasoning"}),
        ({"answer": "en"}, {"strict", "joint", "answer"}),
        ({"abstained": True}, {"strict", "joint", "reasoning"}),
        ({"grade": "incorrect"}, {"joint", "correct"}),
        ({"grade": "unparsed"}, {"joint", "correct"}),
    ],
)
def test_each_fault_costs_exactly_what_it_should(fields: dict[str, object], lost: set[str]) -> None:
    found = values(**fields)
    watched = ("strict", "joint", "reasoning", "answer", "correct")
    assert {name for name in watched if found[name] == 0.0} == lost


def test_neutral_answers_follow_both_conventions() -> None:
    found = values(answer="neutral")
    assert found["answer"] == found["strict"] == found["answer_neutral"] == 1.0
    assert math.isnan(found["answer_worded"])
    assert math.isnan(found["strict_worded"])


def test_neutral_reasoning_is_not_compliant() -> None:
    row = scored()
    row["verdict"]["reasoning"] = detection("fr", [("neutral", "3 * 14 = 42")])
    found = measure(row)
    assert (found["reasoning"], found["reasoning_neutral"], found["strict"]) == (0.0, 1.0, 0.0)


def test_an_empty_answer_is_missing_not_neutral() -> None:
    row = scored()
    row["verdict"]["answer"] = {**detection("fr"), "label": "neutral"}
    found = measure(row)
    assert (found["answer"], found["answer_worded"], found["answer_neutral"]) == (0.0, 0.0, 0.0)


def test_without_known_answer_language_and_form_decide() -> None:
    found = values(grade=None)
    assert found["joint"] == found["ungraded"] == 1.0
    assert all(math.isnan(found[name]) for name in ("correct", "incorrect", "unparsed"))


def test_plain_texts_have_no_reasoning_to_judge() -> None:
    row = scored(reasoning="en")
    row["format"], row["text"] = "plain", "La réponse est 42."
    found = measure(row)
    assert math.isnan(found["reasoning"])
    assert found["strict"] == 1.0


def test_lpr_counts_lines_and_skips_short_ones() -> None:
    row = scored()
    reasoning = "On multiplie la vitesse par le temps.\nSo this line is in English.\nOui.\n3 + 4 = 7 et 8 + 9"
    row["text"] = f"<think>\n{reasoning}\n</think>\nLa réponse est 42 km, je crois."
    english = reasoning.index("So")
    row["verdict"]["reasoning"]["segments"] = [
        [0, 37, "fr"],
        [english, english + 29, "en"],
        [reasoning.index("Oui"), reasoning.index("Oui") + 4, "en"],  # too short to count
        [reasoning.index("3 +"), len(reasoning), "neutral"],
    ]
    row["verdict"]["answer"]["segments"] = [[0, 31, "fr"]]
    found = measure(row)
    assert found["lpr_compatible"] == 0.0
    assert found["acc_compatible"] == pytest.approx(2 / 3)
    row["text"] = "<think>\nOui.\n</think>\n42"
    assert math.isnan(measure(row)["lpr_compatible"])


def test_one_prompt_an_item_gets_wilson() -> None:
    cell = summary_of(outcomes("1" * 45 + "0" * 15)).cells["fr"]["all"]
    rate = cell.rates["strict"]
    assert (rate.k, rate.n, rate.rate, rate.method) == (45, 60, 0.75, "Wilson")
    assert (rate.low, rate.high) == pytest.approx(wilson(45, 60))
    assert (cell.prompts, cell.samples, cell.items) == (60, 60, 60)


def test_slices_and_languages_stand_apart() -> None:
    rows = [
        *outcomes("1111", "fr", question_language="fr"),
        *outcomes("0001", "fr", prefix="x", question_language="en"),
        *outcomes("11", "de", question_language="en"),
    ]
    cells = summary_of(rows).cells
    count = {
        (group, part): (cell.rates["strict"].k, cell.rates["strict"].n)
        for group, parts in cells.items()
        for part, cell in parts.items()
    }
    assert count == {
        ("all", "all"): (7, 10),
        ("all", "crossed"): (3, 6),
        ("all", "same-language"): (4, 4),
        ("fr", "all"): (5, 8),
        ("fr", "crossed"): (1, 4),
        ("fr", "same-language"): (4, 4),
        ("de", "all"): (2, 2),
        ("de", "crossed"): (2, 2),
    }


def test_reasoning_is_filed_under_its_own_language() -> None:
    cells = summary_of([scored("p", "fr", answer_language="de")]).cells
    assert cells["fr"]["all"].rates["reasoning"].n == 1
    assert "answer" not in cells["fr"]["all"].rates
    assert cells["de"]["all"].rates["answer"].n == 1
    assert "reasoning" not in cells["de"]["all"].rates


def test_samples_of_a_prompt_are_one_cluster() -> None:
    rows = [scored(f"p{i}", sample=j, reasoning="fr" if i < 20 else "en") for i in range(40) for j in range(8)]
    rate = summary_of(rows).cells["fr"]["all"].rates["strict"]
    assert (rate.k, rate.n, rate.method) == (160, 320, "bootstrap over 40 items")
    assert rate.high - rate.low == pytest.approx(2 * 1.96 * 0.5 / 40**0.5, rel=0.15)  # not sqrt(320)


def test_a_prompt_with_more_samples_weighs_no_more() -> None:
    rows = [scored("p0", sample=j) for j in range(8)] + [scored("p1", sample=0, reasoning="en")]
    rate = summary_of(rows).cells["fr"]["all"].rates["strict"]
    assert (rate.k, rate.n, rate.rate) == (8, 9, 0.5)


def test_one_success_in_few_items_is_no_surer_than_none() -> None:
    """50 prompts in ten items; a percentile bootstrap would give one success at most 6 %, and none 14 %."""

    def strict(successes: int) -> Rate:
        digits = "1" * successes + "0" * (50 - successes)
        rows = [
            {**row, "item": f"i{number}"}
            for place, language in enumerate(("en", "fr", "de", "es", "it"))
            for number, row in enumerate(outcomes(digits[10 * place : 10 * place + 10], language))
        ]
        return summary_of(rows).cells["all"]["all"].rates["strict"]

    found = [strict(successes) for successes in range(5)]
    assert [(rate.k, rate.n) for rate in found] == [(successes, 50) for successes in range(5)]
    assert [round(rate.high, 3) for rate in found] == [0.145, 0.177, 0.206, 0.234, 0.26]


@pytest.mark.parametrize("digit", ["0", "1"])
def test_nothing_and_everything_keep_a_bound(digit: str) -> None:
    languages = ("en", "fr", "de", "es", "it")
    rows = [
        {**row, "item": f"i{number}"}
        for language in languages
        for number, row in enumerate(outcomes(digit * 10, language))
    ]
    rate = summary_of(rows).cells["all"]["all"].rates["strict"]
    assert rate.method == "Wilson on 23 effective prompts"  # 50 prompts, ten items in five languages
    assert (rate.low, rate.high) == pytest.approx(wilson(rate.rate * 50 / 2.2, 50 / 2.2))
    assert rate.high - rate.low > 0.1


def test_bad_rows_are_kept_as_errors_and_stop_nothing() -> None:
    good = list(outcomes("11"))
    bad = [{"line": 3, "error": "not JSON"}, {"prompt_id": "x"}, {**good[0], "verdict": None}, good[0], [], {"a": 1}]
    found = run("r", [*good, *bad])
    assert len(found.rows) == 2
    assert found.errors[0]["error"] == "not JSON"
    assert "twice" in found.errors[3]["error"]
    assert len(found.errors) == 6
    assert summarise(found, draws=10).errors == 6
    with pytest.raises(LingossError, match="no scored row"):
        read_run("empty", bad[:2])


def test_rows_of_a_users_own_need_no_ids() -> None:
    rows = []
    for _ in range(2):
        row = scored()
        for key in ("id", "prompt_id", "sample", "item"):
            del row[key]
        rows.append(row)
    found = read_run("own", rows)
    assert len({row.prompt_id for row in found.rows}) == 1
    assert [row.sample for row in found.rows] == [0, 1]
    assert found.samples == 2
    assert len(found.digest) == 64


def test_language_names_in_requests_become_codes() -> None:
    row = scored("p", "fr", question_language="fr")
    row["request"] |= dict.fromkeys(("question_language", "reasoning_language", "answer_language"), "French")
    found = read_run("named", [row]).rows[0]
    assert (found.question_language, found.answer_language, found.crossed) == ("fr", "fr", False)


def test_summary_is_plain_json_with_every_metric_explained() -> None:
    found = summary_of(outcomes("10")).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["cells"]["fr"]["all"]["medians"]["new_tokens"] == 60
    assert found["prompt_set"] == "heldout"
    assert all(metric.meaning and metric.title for metric in METRICS.values())


def test_rows_that_score_really_wrote() -> None:
    request = {
        "question": "A train travels 126 km in 3 hours. How fast is it?",
        "question_language": "English",
        "reasoning_language": "fr",
        "answer_language": "fr",
        "gold": 42,
    }
    reasoning = "Le train parcourt cent vingt-six kilomètres en trois heures, donc on divise la distance par le temps."
    english = "The train travels one hundred and twenty-six kilometres in three hours, so we divide distance by time."
    texts = {
        "good": f"<think>\n{reasoning}\n</think>\nSa vitesse est de 42 km/h.",
        "neutral": f"<think>\n{reasoning}\n</think>\n42",
        "english": f"<think>\n{english}\n</think>\nSa vitesse est de 42 km/h.",
        "wrong": f"<think>\n{reasoning}\n</think>\nSa vitesse est de 24 km/h.",
        "empty": f"<think>\n{reasoning}\n</think>",
    }
    rows = [
        score_row({"id": name, "format": "think", "text": text, "request": request}) for name, text in texts.items()
    ]
    found = {row.prompt_id: row.values for row in read_run("real", rows).rows}
    assert {name for name, value in found.items() if value["strict"]} == {"good", "neutral", "wrong"}
    assert {name for name, value in found.items() if value["joint"]} == {"good", "neutral"}
    assert {name for name, value in found.items() if value["answer_neutral"]} == {"neutral"}
    assert found["english"]["reasoning"] == found["english"]["lpr_compatible"] == 0.0
    assert found["empty"]["answer"] == found["empty"]["format_ok"] == 0.0
    assert found["good"]["reward"] == pytest.approx(1.0)
