# SPDX-License-Identifier: MIT-0
"""The token loop against transformers' own, and what a sample may and may not depend on."""

from pathlib import Path
from typing import Any

import pytest
import torch

from lingoss.evaluate.decoding import Draw, _draw, decode_batch, sample_seed
from lingoss.models import load_model

PROMPTS = [[5, 9, 200], [7, 300, 301, 302, 303, 304, 305], [11], [400] * 20]
STOPS = [2]


@pytest.fixture(scope="module")
def llama(tiny_llama: Path) -> Any:
    return load_model(tiny_llama)


def reference(model: Any, prompt: list[int], count: int, stops: list[int]) -> list[int]:
    """Greedy continuation by `model.generate`."""
    ids = torch.tensor([prompt])
    settings: Any = {"do_sample": False, "max_new_tokens": count, "pad_token_id": 0, "eos_token_id": stops}
    return model.generate(ids, attention_mask=torch.ones_like(ids), **settings)[0, len(prompt) :].tolist()  # type: ignore[no-any-return]


def greedy(model: Any, prompts: list[list[int]], count: int, stops: list[int]) -> list[list[int]]:
    draws = [Draw(place, 0) for place in range(len(prompts))]
    return [one.ids for one in decode_batch(model, prompts, draws, stops, count, 0.0)]


def test_greedy_is_that_of_transformers(llama: Any) -> None:
    assert greedy(llama, PROMPTS, 24, STOPS) == [reference(llama, prompt, 24, STOPS) for prompt in PROMPTS]


@pytest.mark.slow
def test_greedy_is_that_of_transformers_with_a_sliding_window(tiny_gpt_oss: Path) -> None:
    """The window is 16 tokens, prompts and continuations are longer, and half the layers have none."""
    model = load_model(tiny_gpt_oss)
    prompts = [[5, 9, 200] * 9, [7, 300, 301], [11] * 17]
    assert greedy(model, prompts, 20, [200_002]) == [reference(model, prompt, 20, [200_002]) for prompt in prompts]


def test_it_stops_at_a_stop_token_and_says_why(llama: Any) -> None:
    free = greedy(llama, PROMPTS, 12, [])
    stop = free[1][5]
    found = decode_batch(llama, PROMPTS, [Draw(place, 0) for place in range(4)], [stop], 12, 0.0)
    for one, whole in zip(found, free, strict=True):
        if stop in whole:
            assert one.ids == whole[: whole.index(stop) + 1]
            assert one.finish_reason == "stop"
        else:
            assert (one.ids, one.finish_reason) == (whole, "length")
    assert found[1].finish_reason == "stop"


def test_rows_that_leave_early_do_not_disturb_the_others(llama: Any) -> None:
    """Every stop token that occurs is tried, so rows leave in many orders."""
    free = greedy(llama, PROMPTS, 12, [])
    for stop in {token for ids in free for token in ids}:
        cut = [ids[: ids.index(stop) + 1] if stop in ids else ids for ids in free]
        assert greedy(llama, PROMPTS, 12, [stop]) == cut


def test_a_sample_depends_on_its_seed_and_not_on_its_neighbours(llama: Any) -> None:
    def sample(prompts: list[list[int]], draws: list[Draw]) -> list[list[int]]:
        return [one.ids for one in decode_batch(llama, prompts, draws, STOPS, 16, 1.0)]

    alone = sample([PROMPTS[1]], [Draw(0, 77)])[0]
    among = sample(PROMPTS, [Draw(0, 1), Draw(1, 77), Draw(1, 78), Draw(3, 2)])
    assert among[1] == alone
    assert among[2] != alone
    assert sample(PROMPTS, [Draw(3, 2), Draw(1, 77)]) == [among[3], alone]


def test_sampling_follows_the_distribution() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.0, 0.3, 0.2]])).repeat(10_000, 1)
    uniform = (torch.arange(10_000) + 0.5) / 10_000
    tokens, probabilities = _draw(logits, uniform)
    assert torch.bincount(tokens, minlength=4).tolist() == [5000, 0, 3000, 2000]
    assert torch.allclose(probabilities, logits[0].exp()[tokens])


def test_the_ends_of_the_unit_interval_are_tokens_with_a_probability() -> None:
    logits = torch.tensor([[-torch.inf, 1.0, 1.0, -torch.inf]] * 2)
    assert _draw(logits, torch.tensor([0.0, 1.0 - 2**-24]))[0].tolist() == [1, 2]


def test_seeds_are_pinned_and_differ() -> None:
    assert sample_seed(0, "p", 0) == 2528248419652215896
    seeds = {
        sample_seed(seed, prompt, sample) for seed in (0, 1) for prompt in ("a", "b", "\ud800") for sample in (0, 1, 2)
    }
    assert len(seeds) == 18
    assert all(0 <= seed < 2**63 for seed in seeds)
