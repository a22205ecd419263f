# SPDX-License-Identifier: MIT-0
"""The guard's rules: what may be left, mounted and entered, and what each refusal says."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lingoss.evaluate.gate import OUTCOMES
from lingoss.evaluate.last_gate import GateResult
from lingoss.guard.decide import (
    BOUND,
    FAILED,
    FINISHED,
    MISSING,
    NEEDS_INPUT,
    PENDING,
    QUEUED,
    RUNNING,
    STAGES,
    STARTING,
    STATES,
    Claim,
    Facts,
    Refusal,
    Workload,
    entering,
    leaving,
    mounting,
    remarks,
)

SFT = Workload("HyperPodPyTorchJob", "lingoss-sft-1a2b3c4d", "sft", RUNNING)
END = ", or pass --set guard.force=true"
GATE_END = ", or pass --set grpo.config.gate.force=true,guard.force=true"
VIABLE = Facts(source="sft-a", gate=GateResult("evaluate-a", "viable", "GRPO is viable"))

workloads = st.lists(
    st.builds(
        Workload,
        st.sampled_from(["Job", "RayJob", "HyperPodPyTorchJob"]),
        st.text(max_size=8),
        st.sampled_from(["prepare", "sft", "grpo", "evaluate"]),
        st.sampled_from(STATES),
    ),
    max_size=4,
)
names = st.none() | st.text(min_size=1, max_size=8)
gates = st.none() | st.builds(GateResult, st.text(max_size=5), st.sampled_from([*OUTCOMES, "odd"]), st.text(max_size=9))
facts = st.builds(Facts, names, names, st.text(max_size=20), gates, st.booleans())
claims = st.builds(
    Claim, st.text(max_size=8), st.text(max_size=8), st.sampled_from([BOUND, PENDING, MISSING, "Lost", "being deleted"])
)
stages = st.sampled_from(STAGES)


def enter(stage: str, known: Facts) -> Refusal | None:
    """The one reason at most against entering."""
    against = entering(stage, known)
    assert len(against) <= 1
    return against[0] if against else None


@given(stages, workloads)
def test_nothing_active_elsewhere_is_ever_stopped(stage: str, found: list[Workload]) -> None:
    active = [one for one in found if one.is_active and one.stage != stage]
    refused = leaving(stage, found)
    assert len(refused) == len(active)
    for one, refusal in zip(active, refused, strict=True):
        assert f"stage {one.stage} cannot be left for {stage}, {one.kind} {one.name} is still" in refusal.text


@given(stages, workloads)
def test_finished_workloads_and_those_of_the_stage_itself_never_matter(stage: str, found: list[Workload]) -> None:
    ended = [replace(one, state=FAILED if place % 2 else FINISHED) for place, one in enumerate(found)]
    same = [replace(one, stage=stage) for one in found]
    assert leaving(stage, ended) == leaving(stage, same) == leaving(stage, []) == []


@given(stages, facts)
def test_only_a_finished_input_or_an_own_run_lets_a_stage_start(stage: str, known: Facts) -> None:
    refused = enter(stage, known)
    if stage not in NEEDS_INPUT or known.own:
        assert refused is None
    elif known.source is None:
        assert refused is not None
        assert refused.text == f"stage {stage} cannot start, {known.problem}"
    elif stage == "grpo":
        may = known.gate_forced or (known.gate is not None and known.gate.outcome == "viable")
        assert (refused is None) == may
    else:
        assert refused is None


@given(stages, claims)
def test_only_a_stage_that_reads_the_volume_needs_a_bound_claim(stage: str, claim: Claim) -> None:
    assert bool(mounting(stage, claim)) == (stage in NEEDS_INPUT and claim.state != BOUND)


@given(stages, workloads, claims, facts)
def test_every_refusal_is_one_line_that_ends_with_the_flag(
    stage: str, found: list[Workload], claim: Claim, known: Facts
) -> None:
    for one in [*leaving(stage, found), *mounting(stage, claim), *entering(stage, known)]:
        assert len(one.line.splitlines()) == 1
        assert one.line.endswith((END, GATE_END))


@pytest.mark.parametrize("state", [RUNNING, QUEUED, STARTING])
def test_leaving_says_what_runs_and_how_to_stop_it(state: str) -> None:
    (refused,) = leaving("evaluate", [replace(SFT, state=state)])
    assert refused.line == (
        f"stage sft cannot be left for evaluate, HyperPodPyTorchJob lingoss-sft-1a2b3c4d is still {state}: wait until "
        f"it has finished, or stop it with `kubectl delete hyperpodpytorchjob lingoss-sft-1a2b3c4d`{END}"
    )


def test_none_and_prepare_need_nothing() -> None:
    assert enter("sft", Facts(source="prepare-a")) is None
    assert enter("none", Facts()) is None
    assert enter("prepare", Facts()) is None


@pytest.mark.parametrize(
    ("outcome", "remedy"),
    [
        ("sft-first", "train longer or on more examples in stage sft, then evaluate again"),
        ("saturated", "GRPO has nothing left to learn on these prompts, so serve the SFT run or ask harder ones"),
        ("inconclusive", "evaluate again with more prompts (inference.evaluate.config.gate.prompts_per_language)"),
        ("target-met", "the SFT run is good enough, so go on with stage serve"),
        ("unreadable", "run stage evaluate again"),
    ],
)
def test_grpo_against_the_gate(outcome: str, remedy: str) -> None:
    known = replace(VIABLE, gate=GateResult("evaluate-a", outcome, "why so"))
    refused = enter("grpo", known)
    assert refused is not None
    assert refused.line == (
        f"stage grpo is not worth starting, the gate of evaluate-a says {outcome} for sft-a (why so): {remedy}{GATE_END}"
    )
    assert enter("grpo", replace(known, gate_forced=True)) is None
    assert enter("grpo", replace(known, own="grpo-a")) is None


def test_grpo_without_a_gate() -> None:
    refused = enter("grpo", Facts(source="sft-a"))
    assert refused is not None
    assert "no finished evaluation has judged sft-a" in refused.text
    assert refused.line.endswith(f"run stage evaluate first{GATE_END}")
    assert enter("grpo", VIABLE) is None


def test_more_memory_for_the_same_stage_is_told_and_allowed() -> None:
    queued = Workload("Job", "lingoss-sft-00000000", "sft", QUEUED)
    ended = Workload("Job", "lingoss-sft-11111111", "sft", FINISHED)
    assert leaving("sft", [SFT, queued, ended]) == []
    assert remarks("sft", [SFT.name], [SFT]) == []
    first, second = remarks("sft", ["lingoss-sft-22222222"], [SFT, queued, ended])
    assert first == (
        "HyperPodPyTorchJob lingoss-sft-1a2b3c4d is running and will be stopped: lingoss-sft-22222222 takes its place, "
        "and resumes its run from the last checkpoint unless settings that change the result have changed"
    )
    assert second.startswith("Job lingoss-sft-00000000 is queued and will be stopped")


def test_a_failed_job_is_told_of() -> None:
    failed = Workload("Job", "lingoss-sft-1a2b3c4d", "sft", FAILED)
    assert remarks("sft", [failed.name], [failed]) == [
        "Job lingoss-sft-1a2b3c4d has failed before and does not start again by itself: read `kubectl logs "
        "job/lingoss-sft-1a2b3c4d`, then `kubectl delete job lingoss-sft-1a2b3c4d` and upgrade once more"
    ]
    gone = ["Job lingoss-sft-1a2b3c4d of stage sft has failed; it goes with this upgrade, and its log with it"]
    assert remarks("sft", ["lingoss-sft-22222222"], [failed]) == remarks("evaluate", [], [failed]) == gone
    assert remarks("evaluate", ["lingoss-evaluate-1"], [replace(failed, state=FINISHED)]) == []
