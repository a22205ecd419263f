# SPDX-License-Identifier: MIT-0
"""What the stand-in tells the agents of one elastic job: a pure function of what it remembers and what they say.

A STAND-IN, not AWS's closed operator, whose rules are not public. Ours are the plainest that its documentation allows:
ranks begin together when enough agents are ready; a rank or an agent that is lost ends all, and they begin again with
one fault more; another number of nodes is reached by a graceful stop of all and a new beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from harness.hyperpod.agents import Agent, Place, Status

Phase = Literal["waiting", "running", "stopping", "completed", "failed"]
BUSY = ("running", "faulted", "completed")  # states from which /stop leads to ready


@dataclass(frozen=True, slots=True)
class Policy:
    """What the chart writes: `elasticPolicy`, `runPolicy` and the log rules."""

    sizes: Sequence[int]  # replicaDiscreteValues
    graceful_seconds: int  # gracefulShutdownTimeoutInSeconds
    shrink_seconds: float = 0  # faultyScaleDownTimeoutInSeconds
    retries: int = 10  # jobMaxRetryCount
    log_rules: Sequence[Mapping[str, Any]] = ()  # logMonitoringConfiguration


@dataclass(frozen=True, slots=True)
class Memory:
    """What is kept with a job for an operator that is started again. `since` is when the phase began, in seconds."""

    phase: Phase = "waiting"
    members: tuple[str, ...] = ()  # names of the pods, by rank
    faults: int = 0
    since: float = 0
    told: tuple[str, ...] = field(default=())  # what happened, for people and tests

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Memory:
        """What `to_dict` gave, as JSON keeps it."""
        return cls(**{**kept, "members": tuple(kept["members"]), "told": tuple(kept["told"])})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, to be kept with the job."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Order:
    """One request to the agent of pod `to`."""

    to: str
    what: Literal["start", "stop", "shutdown"]
    graceful: bool = False
    rank: int = -1


def decide(
    memory: Memory, wanted: int, seen: Mapping[str, Status], policy: Policy, now: float
) -> tuple[Memory, list[Order]]:
    """The next step. `wanted` nodes are granted to the job; `seen` are the statuses of its pods by name."""
    states = {name: status.state for name, status in seen.items()}
    match memory.phase:
        case "waiting":
            return _begin(memory, wanted, states, policy, now)
        case "running":
            return _watch(memory, wanted, seen, policy, now)
        case "stopping":
            # again to those that missed the order: it was on its way when the operator or the agent was restarted
            again = [Order(name, "stop") for name, state in states.items() if state in BUSY]
            if again or any(state in ("stopping", "silent", "init") for state in states.values()):
                return memory, again
            return _enter(memory, "waiting", now, "all agents are ready", members=()), []
    return memory, []


def _begin(
    memory: Memory, wanted: int, states: Mapping[str, str], policy: Policy, now: float
) -> tuple[Memory, list[Order]]:
    left = [Order(name, "stop") for name, state in states.items() if state in BUSY]
    if left:  # of an operator that forgot them
        return _enter(memory, "stopping", now, f"ranks that nobody watches: {_names(left)}"), left
    ready = sorted(name for name, state in states.items() if state == "ready")
    size = wanted
    if len(ready) < wanted and now - memory.since >= policy.shrink_seconds > 0:
        size = max((one for one in policy.sizes if one <= len(ready)), default=wanted)
    if len(ready) < size:
        return memory, []
    members = tuple(ready[:size])
    orders = [Order(name, "start", rank=rank) for rank, name in enumerate(members)]
    return _enter(memory, "running", now, f"{size} nodes begin", members=members), orders


def _watch(
    memory: Memory, wanted: int, seen: Mapping[str, Status], policy: Policy, now: float
) -> tuple[Memory, list[Order]]:
    members = {name: seen.get(name, Status("gone")) for name in memory.members}
    lost = {name: one for name, one in members.items() if one.state in ("gone", "faulted", "ready", "init")}
    busy = [name for name, status in members.items() if status.state in BUSY]
    if lost:
        why = ", ".join(f"{name} is {one.state} {one.reason}".strip() for name, one in lost.items())
        if memory.faults >= policy.retries:
            ended = [Order(name, "shutdown") for name, status in seen.items() if status.state != "gone"]
            return _enter(memory, "failed", now, f"fault {memory.faults + 1}: {why}"), ended
        after = _enter(memory, "stopping", now, f"fault {memory.faults + 1}: {why}", faults=memory.faults + 1)
        return after, [Order(name, "stop") for name in busy]
    if all(status.state == "completed" for status in members.values()):
        ended = [Order(name, "shutdown") for name, status in seen.items() if status.state != "gone"]
        return _enter(memory, "completed", now, "every rank ended with 0"), ended
    if wanted != len(members):
        after = _enter(memory, "stopping", now, f"from {len(members)} to {wanted} nodes")
        return after, [Order(name, "stop", graceful=True) for name in busy]
    return memory, []


def _enter(memory: Memory, phase: Phase, now: float, why: str, **changes: Any) -> Memory:
    return replace(memory, phase=phase, since=now, told=(*memory.told, f"{phase}: {why}"), **changes)


def _names(orders: Sequence[Order]) -> str:
    return ", ".join(order.to for order in orders)


class Ranks:
    """`decide` with real agents: looks at all, and carries the orders out. Made anew from `memory` after a restart."""

    def __init__(self, policy: Policy, memory: Memory | None = None) -> None:
        self.policy, self.memory = policy, memory or Memory()

    def step(
        self, agents: Mapping[str, Agent], wanted: int, now: float, port: Callable[[], int]
    ) -> Mapping[str, Status]:
        """One look at the agents of the job's pods, and what follows; `port` gives one that is free on rank 0's node for
        the ranks' store. What was seen."""
        seen = {name: agent.status() for name, agent in agents.items()}
        self.memory, orders = decide(self.memory, wanted, seen, self.policy, now)
        chosen = port() if any(order.what == "start" for order in orders) else 0
        for order in orders:
            self._carry_out(order, agents, chosen)
        return seen

    def _carry_out(self, order: Order, agents: Mapping[str, Agent], port: int) -> None:
        """One order. An agent that is gone by now is met by the next look."""
        agent = agents[order.to]
        if order.what == "start":
            addresses = [agents[name].host for name in self.memory.members]
            place = Place(order.rank, len(addresses), self.memory.faults, f"{addresses[0]}:{port}")
            agent.start(place, addresses, self.policy.log_rules)
        elif order.what == "stop":
            agent.stop(order.graceful, self.policy.graceful_seconds if order.graceful else None)
        else:
            agent.shutdown()
