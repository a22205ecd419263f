# SPDX-License-Identifier: MIT-0
"""The stand-in's decisions about agents, without any: each situation and what follows."""

from __future__ import annotations

from dataclasses import replace

from harness.hyperpod.agents import State, Status
from harness.hyperpod.ranks import Memory, Order, Policy, decide

POLICY = Policy(sizes=(1, 2, 4), graceful_seconds=60, shrink_seconds=30, retries=2)
RUNNING = Memory("running", ("a", "b"), since=5)


def seen(**states: State) -> dict[str, Status]:
    return {name: Status(state) for name, state in states.items()}


def test_ranks_begin_when_enough_are_ready_in_the_order_of_their_names() -> None:
    memory, orders = decide(Memory(), 2, seen(b="ready", a="init"), POLICY, 1)
    assert (memory, orders) == (Memory(), [])
    memory, orders = decide(Memory(), 2, seen(b="ready", a="ready", c="ready"), POLICY, 1)
    assert (memory.phase, memory.members) == ("running", ("a", "b"))
    assert orders == [Order("a", "start", rank=0), Order("b", "start", rank=1)]


def test_without_a_replacement_a_smaller_size_begins() -> None:
    waiting = Memory(since=10)
    states = seen(a="ready", b="ready", c="ready", d="gone")
    assert decide(waiting, 4, states, POLICY, 39)[1] == []
    memory, _ = decide(waiting, 4, states, POLICY, 40)
    assert memory.members == ("a", "b")  # 3 is no size
    assert decide(waiting, 4, seen(a="gone"), POLICY, 99)[1] == []


def test_running_ranks_are_left_alone() -> None:
    for states in (
        seen(a="running", b="running"),
        seen(a="running", b="completed"),
        seen(a="silent", b="running"),
        seen(a="stopping", b="running"),
    ):
        assert decide(RUNNING, 2, states, POLICY, 6) == (RUNNING, [])


def test_a_loss_stops_all_who_run_and_counts() -> None:
    for states, stopped in (
        (seen(a="faulted", b="running"), ["a", "b"]),
        (seen(a="running"), ["a"]),
        (seen(a="ready", b="running"), ["b"]),
        (seen(a="completed", b="faulted"), ["a", "b"]),
    ):
        memory, orders = decide(RUNNING, 2, states, POLICY, 6)
        assert (memory.phase, memory.faults) == ("stopping", 1)
        assert orders == [Order(name, "stop") for name in stopped]


def test_one_fault_too_many_fails_the_job() -> None:
    memory, orders = decide(replace(RUNNING, faults=2), 2, seen(a="faulted", b="running"), POLICY, 6)
    assert memory.phase == "failed"
    assert orders == [Order("a", "shutdown"), Order("b", "shutdown")]
    assert decide(memory, 2, seen(a="gone", b="gone"), POLICY, 7) == (memory, [])


def test_another_size_is_a_graceful_stop_without_a_fault() -> None:
    memory, orders = decide(RUNNING, 4, seen(a="running", b="running", c="ready", d="ready"), POLICY, 6)
    assert (memory.phase, memory.faults) == ("stopping", 0)
    assert orders == [Order("a", "stop", graceful=True), Order("b", "stop", graceful=True)]


def test_the_end_of_all_ranks_ends_the_agents() -> None:
    memory, orders = decide(RUNNING, 1, seen(a="completed", b="completed"), POLICY, 6)
    assert memory.phase == "completed"
    assert orders == [Order("a", "shutdown"), Order("b", "shutdown")]


def test_a_stop_waits_for_all_and_repeats_an_order_that_was_missed() -> None:
    stopping = Memory("stopping", ("a", "b"), faults=1)
    for states, orders in (
        (seen(a="stopping", b="ready"), []),
        (seen(a="init", b="ready"), []),
        (seen(a="silent", b="ready"), []),
        (seen(a="running", b="stopping"), [Order("a", "stop")]),
    ):
        assert decide(stopping, 2, states, POLICY, 6) == (stopping, orders)
    memory, _ = decide(stopping, 2, seen(a="gone", b="ready"), POLICY, 6)
    assert (memory.phase, memory.members, memory.faults, memory.since) == ("waiting", (), 1, 6)


def test_an_operator_without_memory_stops_what_it_finds() -> None:
    memory, orders = decide(Memory(), 2, seen(a="running", b="running"), POLICY, 6)
    assert (memory.phase, memory.faults) == ("stopping", 0)
    assert orders == [Order("a", "stop"), Order("b", "stop")]
