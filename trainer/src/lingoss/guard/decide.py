# SPDX-License-Identifier: MIT-0
"""The rules of the guard: pure, from what runs in the cluster and what lies on the volume to refusals or none.

Leaving: a stage whose workload has not finished may not be left. Serve has no such workload and may always be left.
Mounting: a stage that reads the volume needs a bound claim. Prepare, which fills it, may be what the claim waits for.
Entering: a stage needs its finished input, and grpo a gate that says `viable`, unless its own run is done already.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lingoss.evaluate.last_gate import GateResult, objection

OVERRIDE = "--set guard.force=true"
OVERRIDE_GATE = "--set grpo.config.gate.force=true,guard.force=true"
"""The trainer asks the gate too, so the guard's flag alone would start pods that refuse."""
NONE, PREPARE, SFT, GRPO, EVALUATE, SERVE = STAGES = ("none", "prepare", "sft", "grpo", "evaluate", "serve")
NEEDS_INPUT = (SFT, GRPO, EVALUATE, SERVE)
FINISHED, FAILED, RUNNING, QUEUED, STARTING = STATES = (
    "finished",
    "failed",
    "running",
    "queued",
    "queued or starting",
)
BOUND, PENDING, MISSING = "Bound", "Pending", "missing"


@dataclass(frozen=True, slots=True)
class Workload:
    """A run-once workload of the release. `state`: one of STATES."""

    kind: str
    name: str
    stage: str
    state: str

    @property
    def is_active(self) -> bool:
        """Whether leaving its stage would stop it."""
        return self.state not in (FINISHED, FAILED)


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of the release's volume. `state`: its phase, or missing, or being deleted."""

    name: str
    namespace: str
    state: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What the volume tells about a stage: the name of its own run if that is done, and of its finished input; without
    an input the `problem`, with its remedy. For grpo the last gate, and whether its config does without."""

    own: str | None = None
    source: str | None = None
    problem: str = ""
    gate: GateResult | None = None
    gate_forced: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not, what to do instead, and what overrides."""

    text: str
    override: str = OVERRIDE

    @property
    def line(self) -> str:
        """One line that ends with the flag that overrides."""
        return f"{' '.join(self.text.split())}, or pass {self.override}"


def remarks(stage: str, names: Sequence[str], workloads: Sequence[Workload]) -> list[str]:
    """What the owner may not expect of an upgrade to `stage`, whose workloads will be `names`: one line each."""
    told = []
    for one in workloads:
        it, delete = f"{one.kind} {one.name}", f"kubectl delete {one.kind.lower()} {one.name}"
        if one.is_active and one.stage == stage and one.name not in names:
            told.append(
                f"{it} is {one.state} and will be stopped: {', '.join(names) or 'nothing'} takes its place, and resumes "
                "its run from the last checkpoint unless settings that change the result have changed"
            )
        elif one.state == FAILED and one.name in names:
            told.append(
                f"{it} has failed before and does not start again by itself: read `kubectl logs {one.kind.lower()}/"
                f"{one.name}`, then `{delete}` and upgrade once more"
            )
        elif one.state == FAILED:
            told.append(f"{it} of stage {one.stage} has failed; it goes with this upgrade, and its log with it")
    return told


def leaving(stage: str, workloads: Sequence[Workload]) -> list[Refusal]:
    """Why the stage that runs now may not be left for `stage`: one for each workload that would be stopped."""
    return [
        Refusal(
            f"stage {one.stage} cannot be left for {stage}, {one.kind} {one.name} is still {one.state}: wait until it "
            f"has finished, or stop it with `kubectl delete {one.kind.lower()} {one.name}`"
        )
        for one in workloads
        if one.is_active and one.stage != stage
    ]


def mounting(stage: str, claim: Claim) -> list[Refusal]:
    """Why the pods of `stage` could not even start, nor the one that looks at the volume."""
    if stage not in NEEDS_INPUT or claim.state == BOUND:
        return []
    if claim.state == MISSING:
        return [
            Refusal(
                f"stage {stage} cannot start, there is no claim {claim.name} in namespace {claim.namespace}: run stage "
                "prepare first, or name another claim (global.storage.existingClaim)"
            )
        ]
    first = "; a class that waits for its first pod is bound by stage prepare" if claim.state == PENDING else ""
    return [
        Refusal(
            f"stage {stage} cannot start, claim {claim.name} is {claim.state}, so no pod can mount it: "
            f"`kubectl --namespace {claim.namespace} describe pvc {claim.name}` says why{first}"
        )
    ]


def entering(stage: str, facts: Facts) -> list[Refusal]:
    """Why `stage` may not start with what lies on the volume: one reason, or none."""
    if stage not in NEEDS_INPUT or facts.own:
        return []
    if facts.source is None:
        return [Refusal(f"stage {stage} cannot start, {facts.problem}")]
    if stage != GRPO or facts.gate_forced:
        return []
    against = objection(facts.source, facts.gate)
    return [Refusal(against, OVERRIDE_GATE)] if against else []
