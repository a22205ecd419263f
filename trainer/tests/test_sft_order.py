# SPDX-License-Identifier: MIT-0
"""Which example is trained when: a function of seed and position, in which nothing is lost and nothing repeated."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lingoss.sft.order import WINDOW, epoch_order, plan_steps, total_steps

LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=60)


@given(lengths=LENGTHS, batch=st.integers(1, 9), epochs=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_each_example_is_seen_once_in_every_epoch(lengths: list[int], batch: int, epochs: int, seed: int) -> None:
    steps = total_steps(len(lengths), batch, epochs, None)
    planned = plan_steps(lengths, batch, steps, epochs * len(lengths), seed)
    assert len(planned) == steps
    assert [len(step) for step in planned[:-1]] == [batch] * (steps - 1)
    assert Counter(i for step in planned for i in step) == Counter(dict.fromkeys(range(len(lengths)), epochs))


@given(lengths=LENGTHS, batch=st.integers(1, 9), steps=st.integers(1, 40), seed=st.integers(0, 99))
def test_with_max_steps_every_step_is_full(lengths: list[int], batch: int, steps: int, seed: int) -> None:
    planned = plan_steps(lengths, batch, steps, steps * batch, seed)
    assert [len(step) for step in planned] == [batch] * steps
    counts = Counter(i for step in planned for i in step)
    assert max(counts.values()) - min(counts[i] for i in range(len(lengths))) <= 1


@given(lengths=LENGTHS, batch=st.integers(1, 9), steps=st.integers(1, 40))
def test_steps_are_sorted_inside_so_that_micro_batches_need_little_padding(
    lengths: list[int], batch: int, steps: int
) -> None:
    for step in plan_steps(lengths, batch, steps, 0, 0):
        assert [lengths[i] for i in step] == sorted((lengths[i] for i in step), reverse=True)


def test_the_order_is_pinned() -> None:
    """A change here would make resumed runs differ from the runs they resume."""
    assert epoch_order(8, 0, 0) == [7, 4, 0, 1, 2, 6, 5, 3]
    assert plan_steps([5, 1, 4, 2, 3], 2, 4, 0, 7) == [[2, 4], [0, 0], [4, 3], [3, 1]]


def test_seed_and_epoch_change_the_order() -> None:
    assert epoch_order(50, 0, 0) != epoch_order(50, 1, 0)
    assert epoch_order(50, 0, 0) != epoch_order(50, 0, 1)


def test_batching_by_length_saves_padding() -> None:
    """Padding of random lengths falls from about a third of all tokens to a few percent."""
    lengths = [50 + 7919 * i % 350 for i in range(400)]
    steps = plan_steps(lengths, 8, 50, 400, 0)
    padded = sum(len(step) * max(lengths[i] for i in step) for step in steps)
    assert sum(lengths) / padded > 0.93
    assert len({len(step) for step in steps[:WINDOW]}) == 1


def test_total_steps() -> None:
    assert total_steps(160, 4, None, 40) == 40
    assert total_steps(10, 4, 3.0, None) == 8
    assert total_steps(10, 4, 0.5, None) == 2
    assert total_steps(10, 64, 1.0, None) == 1
