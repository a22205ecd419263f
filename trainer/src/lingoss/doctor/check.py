# SPDX-License-Identifier: MIT-0
"""What one check found, and how a list of them is told to people and to programs."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

State = Literal["ok", "failed", "warning", "skipped"]
_WIDTH = len("skipped")


@dataclass(frozen=True)
class Check:
    """One line of the doctor. A skipped check could not be made here, and its evidence says why."""

    name: str
    state: State
    evidence: str
    remedy: str = ""
    cause: str = ""
    """Name of an entry of the causes, where one fits."""


def tell(checks: Iterable[Check], *, as_json: bool) -> int:
    """Print each check as soon as it is made; returns the exit status: 1 when one failed.

    JSON is one object, {ok, checks: [{name, state, evidence, remedy, cause}]}; text is a line a check and, below one that
    is not well, what to do.
    """
    made = []
    for check in checks:
        made.append(check)
        if not as_json:
            print(f"{check.state:<{_WIDTH}}  {check.name}: {check.evidence}", flush=True)
            if check.remedy:
                print(f"{'':<{_WIDTH}}  -> {check.remedy}", flush=True)
    failed = [check for check in made if check.state == "failed"]
    if as_json:
        print(json.dumps({"ok": not failed, "checks": [asdict(check) for check in made]}, ensure_ascii=False))
    else:
        counts = ", ".join(
            f"{sum(check.state == state for check in made)} {state}"
            for state in ("ok", "failed", "warning", "skipped")
            if any(check.state == state for check in made)
        )
        print(counts)
    return 1 if failed else 0
