# SPDX-License-Identifier: MIT-0
"""Paired comparison: what is paired, what is refused, which test answers."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from lingoss.errors import LingossError
from lingoss.evaluate import compare as comparing
from lingoss.evaluate import statistics
from lingoss.evaluate.compare import Change, Comparison, paired_change, pairs
from lingoss.evaluate.rows import ScoredRun, read_run
from synthetic import outcomes, realistic, run, scored


def compare(runs: Sequence[ScoredRun], metrics: Sequence[str] = ("strict",), **options: Any) -> list[Comparison]:
    return comparing.compare(runs, metrics, **{"draws": 1_000, **options})


def change(found: Comparison, metric: str = "strict", group: str = "fr") -> Change:
    return next(item for item in found.changes if (item.metric, item.group) == (metric, group))


def two(before: str, after: str) -> tuple[ScoredRun, ScoredRun]:
    return run("base", outcomes(before)), run("sft", outcomes(after))


def test_the_large_effect_of_the_research_note() -> None:
    found = compare(two("1" * 11 + "0" * 39, "1" * 50))[0]
    moved = change(found)
    assert (moved.gains, moved.losses, moved.prompts) == (39, 0, 50)
    assert f"{moved.p:.1e}" == "3.6e-12"
    assert moved.p_holm == moved.p == moved.mcnemar
    assert (round(100 * moved.low), round(100 * moved.high)) == (63, 87)
    assert moved.method == "Newcombe, paired"
    assert len(found.gained) == 39
    assert found.lost == ()
    assert found.paired


def test_the_small_effect_is_noise_and_says_what_would_have_shown() -> None:
    moved = change(compare(two("1" * 25 + "0" * 25, "0" * 3 + "1" * 29 + "0" * 18))[0])
    assert (moved.gains, moved.losses) == (7, 3)
    assert moved.p == pytest.approx(0.34, abs=0.005)
    assert moved.low < 0 < moved.high
    assert moved.detectable is not None
    assert 0.15 < moved.detectable < 0.25


def test_holm_is_over_languages_of_one_metric() -> None:
    before = [row for code in ("en", "fr", "de", "es", "it") for row in outcomes("0" * 10, code)]
    after = [row for code in ("en", "fr", "de", "es", "it") for row in outcomes("1" * 8 + "00", code)]
    found = compare([run("a", before), run("b", after)], metrics=["strict", "answer"])[0]
    assert change(found, group="de").p_holm == pytest.approx(5 * statistics.mcnemar(8, 0))
    assert change(found, group="all").p_holm is None
    assert change(found, "answer", "de").p_holm == 1.0


def test_versions_of_an_item_are_resampled_together() -> None:
    # Whatever happens, happens to all five languages of an item: 20 items, not 100 prompts, are the evidence.
    before, after = (
        [
            {**row, "item": f"i{i}"}
            for code in ("en", "fr", "de", "es", "it")
            for i, row in enumerate(outcomes(pattern, code))
        ]
        for pattern in ("0" * 14 + "1" * 6, "1" * 8 + "0" * 8 + "1" * 4)
    )
    moved = change(compare([run("a", before), run("b", after)])[0], group="all")
    alone = change(compare([run("a", before), run("b", after)])[0], group="fr")
    assert (moved.prompts, moved.items) == (100, 20)
    assert moved.method == "bootstrap over 20 items"
    assert moved.p == pytest.approx(alone.p)
    assert moved.mcnemar is not None
    assert moved.mcnemar < 0.01 < (moved.p or 0)


def test_samples_of_a_prompt_are_averaged() -> None:
    before = [scored(f"p{i}", sample=j, reasoning="fr" if j < 1 else "en") for i in range(20) for j in range(4)]
    after = [scored(f"p{i}", sample=j, reasoning="fr" if j < 3 - i % 2 else "en") for i in range(20) for j in range(4)]
    moved = change(compare([run("a", before), run("b", after)])[0])
    assert (moved.before, moved.after, moved.gains, moved.losses) == (0.25, 0.625, 20, 0)
    assert moved.mcnemar is None
    assert moved.test == "sign flips of 20 items"
    assert moved.low < 0.375 < moved.high


def test_no_change_at_all_is_not_certainty() -> None:
    rows = [scored(f"p{i}", sample=j) for i in range(30) for j in range(4)]
    moved = change(compare([run("a", rows), run("b", rows)])[0])
    assert (moved.difference, moved.p) == (0.0, 1.0)
    assert (moved.low, moved.high) == pytest.approx(statistics.newcombe_paired(30, 0, 0, 0))


def test_other_prompts_detector_or_k_are_refused_by_name() -> None:
    base, sft = two("01", "11")
    other = run("other", outcomes("11"), prompt_digest="e" * 64)
    with pytest.raises(LingossError, match=f"base and other have different prompt sets: {'d' * 64} and {'e' * 64}"):
        compare([base, other])
    with pytest.raises(LingossError, match=r"detectors: lid\.176\.ftz 8f3472cf and lid\.218e"):
        compare([base, run("x", outcomes("11"), detector="lid.218e")])
    with pytest.raises(LingossError, match=r"different numbers of samples.*base: 1, x: 2"):
        compare([base, run("x", [scored("pfr0", sample=j) for j in range(2)])])
    with pytest.raises(LingossError, match="at least two"):
        compare([sft])
    with pytest.raises(LingossError, match="cannot compare 'reward'"):
        compare([base, sft], metrics=["reward"])


def test_force_says_unpaired_and_widens_the_interval() -> None:
    base, sft = two("1" * 20 + "0" * 20, "1" * 32 + "0" * 8)
    paired = change(compare([base, sft])[0])
    other = run("sft", outcomes("1" * 32 + "0" * 8), prompt_digest="e" * 64)
    found = compare([base, other], force=True)[0]
    forced = change(found)
    assert not found.paired
    assert "Unpaired" in found.note
    assert "e" * 64 in found.note
    assert (forced.low, forced.high) == pytest.approx(statistics.newcombe_unpaired(20, 40, 32, 40))
    assert forced.high - forced.low > paired.high - paired.low
    assert (forced.p, forced.gains) == (None, None)


def test_runs_without_cards_are_checked_by_their_requests() -> None:
    one, same = (read_run(name, outcomes("01")) for name in ("a", "b"))
    assert compare([one, same])[0].paired
    rows = [{**row, "request": {**row["request"], "question": "?"}} for row in outcomes("01")]
    with pytest.raises(LingossError, match="different prompt sets"):
        compare([one, read_run("c", rows)])


def test_only_shared_samples_are_paired_and_the_rest_is_counted() -> None:
    base, sft = run("a", outcomes("0" * 10)), run("b", list(outcomes("1" * 10))[2:])
    found = compare([base, sft])[0]
    assert change(found).prompts == len(pairs(base, sft)) == 8
    assert found.left_out == 2


def test_three_runs_give_every_pair_in_order() -> None:
    runs = [realistic(name, skill, 0.2) for name, skill in (("base", 0.1), ("sft", 0.8), ("grpo", 0.85))]
    found = comparing.compare(runs, draws=300)
    assert [(pair.before, pair.after) for pair in found] == [("base", "sft"), ("base", "grpo"), ("sft", "grpo")]
    json.dumps([pair.to_dict() for pair in found], allow_nan=False)


def test_few_items_get_students_interval() -> None:
    before = [scored(f"p{i}", sample=j, reasoning="en") for i in range(4) for j in range(4)]
    after = [scored(f"p{i}", sample=j, reasoning="fr" if j <= i else "en") for i in range(4) for j in range(4)]
    moved = paired_change(pairs(run("a", before), run("b", after)), "strict")
    assert moved is not None
    assert moved.method == "t over 4 items"
    assert (moved.p, moved.high) == (0.125, 1.0)  # four prompts prove little
    assert moved.high - moved.low > 0.85
