# SPDX-License-Identifier: MIT-0
"""Gate and verdict of a stage that meets GRPO runs: measured as GRPO samples, on prompts that it has not seen, read
back by the guard."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grpo_helpers import tiny_grpo, trained_root
from lingoss import grpo, runs
from lingoss.config import EvaluateConfig, GrpoConfig, ServeConfig
from lingoss.data import Prompt
from lingoss.errors import LingossError
from lingoss.evaluate import run as evaluate
from lingoss.evaluate.decisions import decide_accept, decide_gate
from lingoss.evaluate.rows import ScoredRun
from lingoss.evaluate.sampling import completion_length, differences, grpo_sampling
from lingoss.evaluate.setting import Setting, Subject, resolve
from lingoss.guard.volume import facts
from lingoss.prepare import Prepared
from synthetic import outcomes, run, scored
from test_evaluate_run import config, load

N = 240
SOURCE = Prepared("prepare-1", Path("m"), "d", "hub/m", None, {}, {})
BASE, OLD, NEW = (
    Subject(name, stage, Path("m"), run=name) for name, stage in (("base", "base"), ("sft-a", "sft"), ("sft-b", "sft"))
)


def asked(split: str = "heldout") -> list[Prompt]:
    """The prompts of `outcomes("…" * N)` in French."""
    return [Prompt(f"pfr{i}", f"item{i}", "speed", f"Question {i}?", "en", "fr", "fr", "42", split) for i in range(N)]


def setting(root: Path, *subjects: Subject, prompts: list[Prompt] | None = None, **changes: Any) -> Setting:
    return Setting(
        EvaluateConfig(root=root, **changes), SOURCE, [BASE, *subjects], asked() if prompts is None else prompts, []
    )


def grown(root: Path, **data: Any) -> Subject:
    """A GRPO run that came of sft-a."""
    with runs.open_run(root, "grpo", GrpoConfig(root=root, data=data), ("sft-a",)) as folder:
        pass
    return Subject(folder.name, "grpo", Path("m"), run=folder.name, parents=("sft-a",))


def sides(*names: str, better: int = 40) -> list[ScoredRun]:
    """Scored runs; the last one solves more prompts than the others."""
    return [
        run(name, outcomes("1" * (180 + better * (name == names[-1])) + "0" * (60 - better * (name == names[-1]))))
        for name in names
    ]


def test_grpo_is_compared_with_the_sft_run_that_it_came_of(tmp_path: Path) -> None:
    candidate = grown(tmp_path)
    names = ("base", "sft-a", "sft-b", candidate.name)
    found = decide_accept(setting(tmp_path, OLD, NEW, candidate), sides(*names))
    assert found is not None
    assert (found["decision"], found["runs"]) == ("accept", [candidate.name, "sft-a"])
    assert found["metrics"]["primary"]["difference"] == pytest.approx(40 / N)
    assert decide_accept(setting(tmp_path, OLD, NEW), sides(*names[:3])) is None
    stranger = replace(candidate, parents=("sft-c",))
    found = decide_accept(setting(tmp_path, OLD, NEW, stranger), sides(*names))
    assert found == {
        "decision": "keep",
        "failed": [f"SFT run: {candidate.name} came of none that is finished here"],
        "metrics": {},
        "runs": [candidate.name],
    }


def test_prompts_that_the_run_was_chosen_by_or_trained_on_prove_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [{"question": f"Question {i}?", "question_language": "en"} for i in range(20)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    candidate = grown(tmp_path, files=[str(path)])
    prompts = asked()[:200] + [replace(prompt, split="validation") for prompt in asked()[200:]]
    found = decide_accept(setting(tmp_path, OLD, candidate, prompts=prompts), sides("base", "sft-a", candidate.name))
    assert found is not None
    assert found["metrics"]["left_out"] == 60
    assert found["metrics"]["samples"] == N - 60
    assert found["metrics"]["primary"]["difference"] == pytest.approx(20 / 180)
    found = decide_accept(
        setting(tmp_path, OLD, candidate, prompts=asked("validation")), sides("base", "sft-a", candidate.name)
    )
    assert found is not None
    assert (found["decision"], found["failed"]) == (
        "keep",
        ["prompts: the run was trained on or chosen by every one of them"],
    )
    assert found["runs"] == [candidate.name, "sft-a"]


def done(tokens: int, learned: int, rows: int, p99: int) -> runs.RunInfo:
    record = {"tokens": {"tokens": tokens, "learned": learned, "p99": p99}, "examples": {"rows": rows}}
    return runs.RunInfo(Path("sft-a"), "sft-a", "sft", record=record)


def test_the_longest_completion_leaves_half_as_much_room_again_as_the_sft_rows_needed() -> None:
    assert completion_length(done(tokens=12_000, learned=7_000, rows=100, p99=210)) == 240  # 1.5 * (210 - 50)
    assert completion_length(done(tokens=12_000, learned=7_000, rows=100, p99=211)) == 248
    with pytest.raises(LingossError, match="set max_completion_length"):
        completion_length(runs.RunInfo(Path("sft-a"), "sft-a", "sft", record={}))


def test_the_gate_samples_as_grpo_does_and_says_how(tmp_path: Path) -> None:
    """Every default of the gate is GRPO's own, and a difference has a name."""
    weights = {"language": 0.9}
    for gate, trained, expected in (
        ({}, {}, []),
        ({"k": 4}, {}, ["k 4 instead of 8"]),
        ({"temperature": 0.7}, {"sampling": {"temperature": 0.8}}, ["temperature 0.7 instead of 0.8"]),
        ({"prompts_per_step": 32}, {}, ["prompts_per_step 32 instead of 16"]),
        ({"max_completion_length": 64}, {}, ["max_completion_length 64 instead of 96"]),
        ({}, {"mask_truncated_completions": False}, ["mask_truncated_completions True instead of False"]),
        ({"reward": weights}, {"reward": weights}, []),
        ({}, {"reward": weights}, ["reward.language 0.6 instead of 0.9"]),
    ):
        samples = run("sft-a", [row for i in range(70) for row in pair(i, gate.get("k", 8))])
        prepared = setting(tmp_path, OLD, generate={"max_new_tokens": 96}, gate=gate)
        verdict = decide_gate(prepared, samples, [run("base", outcomes("1" * N)), run("sft-a", outcomes("1" * N))])
        assert differences(verdict["sampling"], grpo_sampling(GrpoConfig(**trained), 96)) == expected
    assert differences({}, grpo_sampling(GrpoConfig(), 96)) == []


def pair(number: int, k: int) -> list[dict[str, Any]]:
    return [scored(f"p{number}", "fr", sample=sample, format_ok=sample % 2 == 0) for sample in range(k)]


def test_the_gate_asks_the_prompts_of_a_file_in_place_of_the_built_in_ones(tmp_path: Path, tiny_root: Path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [
        {"question": f"How many bulbs are in {n} rows of nine?", "question_language": "en", "answer_language": code}
        for n in range(5)
        for code in ("fr", "de", "ja")
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    gate = {"prompts_per_language": 3, "files": [str(path)], "k": 2}
    found = resolve(config(tiny_root, gate=gate))
    assert [prompt.answer_language for prompt in found.asked] == ["fr", "de"] * 3
    assert found.gate.max_new_tokens == completion_length(runs.find_run(tiny_root, "latest:sft"))
    assert resolve(config(tiny_root, gate={**gate, "max_completion_length": 7})).gate.max_new_tokens == 7
    with pytest.raises(LingossError, match=r"gate.files hold no prompt that asks for an answer in it"):
        resolve(config(tiny_root, gate=gate, prompts={"sets": ["core"], "languages": ["it"]}))


@pytest.fixture(scope="module")
def tiny_root(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_root(tiny_llama, tmp_path_factory.mktemp("decisions"))


@pytest.mark.slow
def test_from_gate_to_verdict_as_the_guard_reads_them(tiny_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SFT, gate, a forced GRPO run, verdict: the guard is told the outcome of the one and obeys the other."""
    root = tiny_root
    sft = runs.find_run(root, "latest:sft").name
    first = evaluate.run(config(root))
    gate = load(first.path / "gate.json")
    assert gate["sampling"]["max_completion_length"] == 8
    known = facts("grpo", tiny_grpo(root))
    assert known.gate is not None
    assert (known.gate.evaluation, known.gate.outcome) == (first.name, gate["outcome"])
    assert known.gate.reason == " ".join(gate["reasons"][0].split()).rstrip(".")

    trained = grpo.run(tiny_grpo(root, gate={"force": True}))
    assert trained is not None
    told = capsys.readouterr().err
    assert "the gate was measured with k 2 instead of 4" in told
    assert "the gate was measured with max_completion_length 8 instead of 12" in told
    assert "temperature" not in told
    assert facts("serve", ServeConfig(root=root)).source == sft
    second = evaluate.run(config(root, runs=[trained.name]))  # its SFT run comes along
    assert [one["run"] for one in load(second.path / "summary.json")] == ["base", sft, trained.name]
    accepted = load(second.path / "accept.json")
    assert (accepted["decision"], accepted["runs"]) == ("keep", [trained.name, sft])
    assert accepted["failed"][0].startswith("primary: joint changed by 0.0 points")
    assert second.done_record()["accept"] == "keep"
    assert load(second.path / "gate.json")["runs"][0] == sft
    assert facts("serve", ServeConfig(root=root)).source == sft
    report = (second.path / "report.md").read_text(encoding="utf-8")
    assert f"## Training of {trained.name}" in report
    assert trained.done_record()["choice"]["sentence"] in report.replace("&#45;", "-")
    # The guard obeys what accept.json says, not what the run hopes.
    runs.write_json(second.path / "accept.json", accepted | {"decision": "accept", "failed": []})
    assert facts("serve", ServeConfig(root=root)).source == trained.name
