# SPDX-License-Identifier: MIT-0
"""The newest gate of a run, and whether GRPO may start after it: for the stage grpo and for the chart's guard."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lingoss import runs

VIABLE = "viable"

_AFTER = {
    "sft-first": "train longer or on more examples in stage sft, then evaluate again",
    "saturated": "GRPO has nothing left to learn on these prompts, so serve the SFT run or ask harder ones",
    "inconclusive": "evaluate again with more prompts (inference.evaluate.config.gate.prompts_per_language)",
    "target-met": "the SFT run is good enough, so go on with stage serve",
}


@dataclass(frozen=True, slots=True)
class GateResult:
    """What the newest evaluation that judged the SFT run says of it; `reason` is its first sentence, `sampling` how its
    samples were drawn."""

    evaluation: str
    outcome: str
    reason: str
    sampling: Mapping[str, Any] = field(default_factory=dict)


def last_gate(root: Path, run: str) -> GateResult | None:
    """What the newest finished evaluation that judged `run` says; None when there is none.

    A newer one whose gate.json cannot be read counts as one that says `unreadable`: an older answer might be wrong.
    """
    done = [one for one in runs.list_runs(root) if one.stage == "evaluate" and one.done]
    for one in sorted(done, key=lambda one: one.finished or "", reverse=True):
        try:
            found = json.loads((one.path / "gate.json").read_bytes())
            judged, outcome, reasons = found["runs"][0], str(found["outcome"]), found.get("reasons") or [""]
            reason = " ".join(str(reasons[0]).split()).rstrip(".")
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            return GateResult(one.name, "unreadable", f"{one.path / 'gate.json'}: {type(error).__name__}")
        if judged == run:
            sampling = found.get("sampling")
            return GateResult(one.name, outcome, reason, sampling if isinstance(sampling, dict) else {})
    return None


def objection(run: str, gate: GateResult | None) -> str | None:
    """Why GRPO should not start from `run`, and what to do instead; None when its gate says viable."""
    if gate is None:
        return (
            f"stage grpo cannot start, no finished evaluation has judged {run}, so nobody knows whether "
            "GRPO would learn anything: run stage evaluate first"
        )
    if gate.outcome == VIABLE:
        return None
    remedy = _AFTER.get(gate.outcome, "run stage evaluate again")
    return (
        f"stage grpo is not worth starting, the gate of {gate.evaluation} says {gate.outcome} for {run} "
        f"({gate.reason}): {remedy}"
    )
