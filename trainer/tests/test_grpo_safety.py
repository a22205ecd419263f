# SPDX-License-Identifier: MIT-0
"""The Watch: silent on healthy runs, quick on each way to fail, and the same after a resume."""

import json
from collections import Counter
from typing import Any, get_args

import pytest

from grpo_series import FAILURES, Row, failing, healthy
from lingoss.config.grpo import Alarm as Kind
from lingoss.config.grpo import Safety
from lingoss.grpo.safety import Alarm, Watch

ONSET = 60
# Steps from the onset of a failure (which itself takes ten steps to unfold) until the run stops, at most; its kind.
CAUGHT = {
    "reward-hacking": ("reward-hacking", 25),
    "length collapse": ("length", 15),
    "length explosion": ("length", 15),
    "truncation": ("truncation", 15),
    "repetition": ("repetition", 15),
    "abstention": ("abstention", 15),
    "no-signal": ("no-signal", 50),
    "kl": ("kl", 15),
    "stale weights": ("rollout-mismatch", 15),
    "odd ratios": ("rollout-mismatch", 15),
    "non-finite": ("non-finite", 0),
}


def stops(rows: Any, **settings: Any) -> list[tuple[float, Alarm]]:
    watch = Watch(Safety(**settings))
    return [(row["step"], alarm) for row in rows for alarm in watch.step(row) if alarm.level == "stop"]


@pytest.mark.slow
def test_healthy_runs_are_left_alone(capsys: Any) -> None:
    """Of 1,000 runs of 200 steps 3 were stopped (0.3 %, at most 0.9 % with 95 % confidence) and 40 warned, in 31 s.
    What was stopped had lost ten points of correctness for a while, or was the smallest kind of run."""
    runs, stopped, warned = 400, Counter[str](), Counter[str]()
    for seed in range(runs):
        watch = Watch(Safety())
        alarms = {alarm for row in healthy(seed) for alarm in watch.step(row)}
        stopped.update({alarm.kind for alarm in alarms if alarm.level == "stop"})
        warned.update({alarm.kind for alarm in alarms if alarm.level == "warn"})
    with capsys.disabled():
        print(f"\n{runs} healthy runs of 200 steps: stopped {dict(stopped)}, warned {dict(warned)}")
    assert stopped.total() <= 0.01 * runs
    assert warned.total() <= 0.10 * runs


@pytest.mark.parametrize("failure", FAILURES)
def test_each_failure_is_caught_in_time_and_for_what_it_is(failure: str) -> None:
    kind, within = CAUGHT[failure]
    for seed in range(12):
        step, alarm = stops(failing(failure, seed, ONSET))[0]
        assert (alarm.kind, alarm.level) == (kind, "stop")
        assert ONSET <= step <= ONSET + within, (seed, step)


def test_every_kind_can_be_caught_and_overridden() -> None:
    assert {kind for kind, _ in CAUGHT.values()} == set(get_args(Kind))
    for failure, (kind, _) in CAUGHT.items():
        assert all(alarm.kind != kind for _, alarm in stops(failing(failure, 1, ONSET), override=(kind,)))


def test_an_override_warns_once_and_says_so() -> None:
    watch = Watch(Safety(override=("length",)))
    alarms = [alarm for row in failing("length collapse", 0, ONSET) for alarm in watch.step(row)]
    assert {alarm.level for alarm in alarms} == {"warn"}
    assert alarms[-1].message.endswith("(safety.override)")
    assert len(alarms) <= 2  # the warning on the way, and the one in place of the stop is the same kind


def test_a_warning_comes_before_the_stop_and_only_once() -> None:
    watch, told = Watch(Safety()), []
    for row in failing("repetition", 2, ONSET):
        told += [(row["step"], alarm.level) for alarm in watch.step(row)]
        if told and told[-1][1] == "stop":
            break
    assert [level for _, level in told] == ["warn", "stop"]
    assert told[0][0] < told[1][0]


def test_a_resumed_watch_says_what_an_undisturbed_one_says() -> None:
    rows = list(failing("reward-hacking", 5, ONSET))
    whole, part = Watch(Safety()), Watch(Safety())
    expected = [whole.step(row) for row in rows]
    found = [part.step(row) for row in rows[:70]]
    resumed = Watch(Safety())
    resumed.load_state_dict(json.loads(json.dumps(part.state_dict())))
    found += [resumed.step(row) for row in rows[70:]]
    assert found == expected
    assert any(alarm.level == "stop" for alarms in found for alarm in alarms)
    assert len(json.dumps(whole.state_dict())) < 20_000


def test_falling_correctness_stops_only_while_the_reward_rises() -> None:
    def rows(reward: float) -> list[Row]:
        return [
            {"step": step, "reward": 0.5 + reward * (step > 40), "correct": 0.6 - 0.4 * (step > 40)}
            for step in range(90)
        ]

    assert stops(rows(0.2))[0][1].kind == "reward-hacking"
    assert stops(rows(0.0)) == stops(rows(-0.2)) == []


@pytest.mark.parametrize(("prompts", "after", "level"), [(325, 0.40, "stop"), (325, 0.46, "warn"), (20, 0.40, None)])
def test_validation_needs_more_than_noise(prompts: int, after: float, level: str | None) -> None:
    watch = Watch(Safety())
    assert not watch.step({"validation/correct": 0.6, "validation/reward": 0.5, "validation/graded": prompts})
    found = watch.step({"validation/correct": after, "validation/reward": 0.6, "validation/graded": prompts})
    assert [alarm.level for alarm in found] == ([level] if level else [])
    assert not Watch(Safety()).step({"validation/correct": 0.1, "validation/reward": 0.9, "validation/graded": prompts})


def test_a_number_that_is_not_finite_stops_at_the_first_step_and_is_not_remembered() -> None:
    watch = Watch(Safety())
    before = watch.state_dict()
    (alarm,) = watch.step({"loss": 0.1, "grad_norm": float("inf"), "reward": float("nan")})
    assert alarm == Alarm(
        "non-finite", "stop", "grad_norm is inf: lower optimizer.learning_rate or optimizer.max_grad_norm"
    )
    assert watch.state_dict() == before
