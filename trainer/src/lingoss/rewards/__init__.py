# SPDX-License-Identifier: MIT-0
"""Thin adapters of `lingoss.score` to the call shapes of TRL, OpenRLHF and veRL, one module each.

All three read a completion into a transcript, score it here, and hand the same numbers (`numbers`) to their logs. A
call never raises: what cannot be scored earns 0, is counted (`failed`) and is said once. What is wrong with a *set-up*
raises before anything is generated.
"""

from lingoss.rewards.label import request_from_json, request_of, request_to_json
from lingoss.rewards.parallel import estimate, verdicts
from lingoss.rewards.safe import FAILED, numbers, verdict
from lingoss.rewards.settings import VARIABLE, Settings, from_environment

__all__ = [
    "FAILED",
    "VARIABLE",
    "Settings",
    "estimate",
    "from_environment",
    "numbers",
    "request_from_json",
    "request_of",
    "request_to_json",
    "verdict",
    "verdicts",
]
