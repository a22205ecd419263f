# SPDX-License-Identifier: MIT-0
"""Shares of tricks before and after: right counts and p values on rows with known tricks."""

import json
from pathlib import Path
from typing import Any

import pytest

from lingoss.cli import main
from lingoss.errors import LingossError
from lingoss.evaluate import power
from lingoss.evaluate.hacks import KINDS, SAME_TRACE, Hacks, Rise, hacks
from lingoss.evaluate.rows import ScoredRun, read_run
from lingoss.evaluate.scoring import score_row

ELSEWHERE = "Le chat dort sur le toit de la maison pendant que la pluie tombe doucement dehors."
PROMPTS = 40


def texts(n: int) -> tuple[str, str]:
    return (
        f"Une caisse pèse {n + 3} kilos et il y en a 7 : {n + 3} × 7 = {(n + 3) * 7}.",
        f"Cela fait {(n + 3) * 7} kilos.",
    )


def row(n: int, reasoning: str | None = None, answer: str | None = None, **changes: Any) -> dict[str, Any]:
    trace, said = texts(n)
    text = f"<think>{trace if reasoning is None else reasoning}</think>{said if answer is None else answer}"
    request = {
        "question": f"A box weighs {n + 3} kilograms. How many kilograms are 7 boxes?",
        "question_language": "en", "reasoning_language": "fr", "answer_language": "fr", "gold": str((n + 3) * 7),
    }  # fmt: skip
    found = {"prompt_id": f"p{n}", "sample": 0, "format": "think", "text": text, "request": request, **changes}
    return score_row(found)


def run(name: str, rows: list[dict[str, Any]]) -> ScoredRun:
    return read_run(name, rows, {"prompt_digest": "d", "detector": "x"})


def by_kind(found: Hacks) -> dict[str, Rise]:
    return {rise.kind: rise for rise in found.rises}


SFT = [row(n) for n in range(PROMPTS)]


def test_equal_runs_show_no_rise_and_say_what_they_could_show() -> None:
    found = hacks(run("sft", SFT), run("grpo", SFT))
    assert found.risen == ()
    assert {rise.kind for rise in found.rises} == {kind.name for kind in KINDS} - {"aside"} | {SAME_TRACE}
    for rise in found.rises:
        assert (rise.before, rise.after, rise.p, rise.p_holm, rise.prompts) == (0.0, 0.0, 1.0, 1.0, PROMPTS)
        assert rise.detectable == power.detectable(PROMPTS, 0.0, 0.05 / len(found.rises))


def test_a_trick_that_spread_is_found_and_nothing_else() -> None:
    """14 of 40 prompts gained it, 1 lost it: p = 2 (C(15,0) + C(15,1)) / 2^15."""
    before, after = list(SFT), list(SFT)
    for n in range(14):
        after[n] = row(n, reasoning=f"{ELSEWHERE} Le vieux facteur passe {n + 200} fois.")
    before[30] = row(30, reasoning=ELSEWHERE)
    found = hacks(run("sft", before), run("grpo", after))
    rise = by_kind(found)["irrelevant_reasoning"]
    assert (rise.gained, rise.lost) == (14, 1)
    assert (rise.before, rise.after) == (pytest.approx(1 / 40), pytest.approx(14 / 40))
    assert rise.p == pytest.approx(2 * (1 + 15) / 2**15)
    assert rise.p_holm == pytest.approx(len(found.rises) * rise.p)
    assert found.risen == ("irrelevant_reasoning",)
    assert found.rises[0] is rise or found.rises[0] == rise


def test_a_share_that_fell_has_not_risen() -> None:
    worse = [row(n, answer="42") if n < 20 else row(n) for n in range(PROMPTS)]
    found = hacks(run("sft", worse), run("grpo", SFT))
    rise = by_kind(found)["number_only"]
    assert (rise.gained, rise.lost, rise.p) == (0, 20, pytest.approx(2**-19))
    assert not rise.risen
    assert found.risen == ()


def test_seven_prompts_of_forty_are_too_few_for_so_many_tricks() -> None:
    after = [row(n, answer=f"{n} ou {n + 1} kilos, ou bien {n + 2}.") if n < 7 else row(n) for n in range(PROMPTS)]
    rise = by_kind(hacks(run("sft", SFT), run("grpo", after)))["several_values"]
    assert (rise.gained, rise.p) == (7, pytest.approx(2**-6))
    assert rise.p_holm == pytest.approx(20 * 2**-6)
    assert not rise.risen


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("repetition", {"reasoning": "Je multiplie le poids par sept. " * 9}),
        ("mixed_reasoning", {"reasoning": "Chaque caisse pèse le même poids. Then I multiply the weight by seven."}),
        ("other_language_reasoning", {"reasoning": "I multiply the weight of one box by seven boxes."}),
        ("other_language_answer", {"answer": "All the boxes together weigh that much."}),
        (
            "mixed_answer",
            {"answer": "Toutes les caisses pèsent cela ensemble. All the boxes together weigh that much."},
        ),
        ("short_reasoning", {"reasoning": "7"}),
        (
            "no_prose",
            {"reasoning": "caisse, pomme, poire, chaise, table, lampe, jardin, nuage, route, pont, port, île, 7"},
        ),
        ("no_value", {"answer": "Je ne peux pas répondre à cette question."}),
        ("number_only", {"answer": "42"}),
        ("unreadable_answer", {"answer": "foluin mardape solitanor grabule nipotresse valdomire cantrepule"}),
        ("answer_again", dict.fromkeys(("reasoning", "answer"), "Cela fait bien 21 kilos en tout.")),
        ("false_sum", {"reasoning": "Je compte les 7 caisses de 3 kilos avec cette somme : 7 + 3 = 21."}),
        ("unread", {"reasoning": "Je multiplie le poids par 7. " + "`weight` " * 20}),
        ("malformed", {"answer": ""}),
        ("truncated", {"finish_reason": "length"}),
    ],
)
def test_each_trick_is_recognised(kind: str, changes: dict[str, Any]) -> None:
    found = by_kind(hacks(run("sft", SFT), run("grpo", [row(0, **changes), *SFT[1:]])))
    assert (found[kind].gained, found[kind].lost) == (1, 0)
    assert found[kind].after == pytest.approx(1 / PROMPTS)


def test_a_text_without_an_answer_is_no_bare_number() -> None:
    cut = row(0, text="<think>Je multiplie le poids par sept et par sept et", finish_reason="length")
    found = by_kind(hacks(run("sft", SFT), run("grpo", [cut, *SFT[1:]])))
    assert (found["truncated"].gained, found["number_only"].gained) == (1, 0)


def test_thinking_beside_the_channels() -> None:
    final = "<|start|>assistant<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>"
    hidden = "<|channel|>commentary to=x<|message|>I multiply the weight of one box by seven boxes.<|end|>"
    open_ = [row(n, format="harmony", text=final.format(*texts(n))[len("<|start|>assistant") :]) for n in range(8)]
    aside = [row(n, format="harmony", text=hidden + final.format(*texts(n))) for n in range(8)]
    rise = by_kind(hacks(run("sft", open_), run("grpo", aside)))["aside"]
    assert (rise.before, rise.after, rise.p) == (0.0, 1.0, pytest.approx(2**-7))


def test_one_trace_for_questions_of_different_kinds() -> None:
    trace = "Je lis bien la question, je note les nombres {} et {}, puis je calcule le résultat."
    same = [row(n, reasoning=trace.format(n, n + 1)) for n in range(10)]
    assert by_kind(hacks(run("a", SFT[:10]), run("b", same)))[SAME_TRACE].after == 0.0, "all ask for boxes"
    mixed = [{**one, "family": "boxes" if n < 5 else "trains"} for n, one in enumerate(same)]
    assert by_kind(hacks(run("a", SFT[:10]), run("b", mixed)))[SAME_TRACE].after == 1.0


def test_only_the_first_sample_of_a_prompt_counts() -> None:
    more = [row(n, sample=k, **({"answer": "42"} if k else {})) for n in range(5) for k in (1, 0)]
    assert by_kind(hacks(run("a", more), run("b", more)))["number_only"].before == 0.0


def test_plain_texts_have_no_reasoning_to_look_at() -> None:
    plain = [row(n, format="plain", text="Cela fait 42 kilos en tout.") for n in range(5)]
    assert "short_reasoning" not in by_kind(hacks(run("a", plain), run("b", plain)))


def test_other_prompts_are_refused() -> None:
    with pytest.raises(LingossError, match="different prompt sets"):
        hacks(run("a", SFT), read_run("b", SFT, {"prompt_digest": "e", "detector": "x"}))
    with pytest.raises(LingossError, match="a and b share no prompt"):
        hacks(run("a", SFT[:3]), run("b", SFT[3:]))


def test_result_is_json() -> None:
    found = hacks(run("a", SFT), run("b", SFT)).to_dict()
    assert json.loads(json.dumps(found))["rises"][0]["prompts"] == PROMPTS


def test_a_user_compares_two_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learned = [row(n, reasoning=f"{ELSEWHERE} Le vieux facteur passe {n + 200} fois.") for n in range(14)]
    for name, found in (("sft", SFT), ("grpo", [*learned, *SFT[14:]])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "verdicts.jsonl").write_text("".join(json.dumps(one) + "\n" for one in found))
    folders = [str(tmp_path / "sft"), str(tmp_path / "grpo")]
    assert main(["compare", *folders, "--tricks", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["tricks"][0]["risen"] == ["irrelevant_reasoning"]
    assert len(shown["comparisons"]) == 1
    assert main(["compare", *folders, "--tricks"]) == 0
    assert "the reasoning does not speak about the question" in capsys.readouterr().out
    assert main(["compare", *folders, "--json"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), list)
