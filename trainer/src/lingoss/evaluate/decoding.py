# SPDX-License-Identifier: MIT-0
"""The token loop of the Transformers backend: a batch of prompts in, sampled continuations out.

Why not `model.generate`: it computes finished rows to the end, prefills a prompt once for each of its k samples, copies
the whole key/value cache at every token and draws all rows from one random stream. On two cores that is 3 to 5 times
slower, and a row's text would depend on its neighbours. Greedy output equals `model.generate`'s (tested).
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicLayer

from lingoss.evaluate.grouped_attention import grouped

# Finished rows leave the batch when they are at least this share of it: leaving costs one copy of the cache.
_LEAVE_SHARE = 0.15


@dataclass(frozen=True, slots=True)
class Draw:
    """One wanted sample: `prompt` is an index into the batch's prompts, `seed` the seed of its own random stream."""

    prompt: int
    seed: int


@dataclass(frozen=True, slots=True)
class Continuation:
    """New token ids of one sample, the stop token included when there is one; `finish_reason` is stop or length.

    `logprobs` are the ids' log-probabilities at the temperature they were drawn with; none for greedy ones.
    """

    ids: list[int]
    finish_reason: str
    logprobs: list[float] = field(default_factory=list)


def sample_seed(seed: int, prompt_id: str, sample: int) -> int:
    """The seed of one sample, a function of these three alone (63 bits)."""
    digest = hashlib.sha256(f"{seed}\0{prompt_id}\0{sample}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def decode_batch(
    model: Any,
    prompts: Sequence[Sequence[int]],
    draws: Sequence[Draw],
    stop_ids: Sequence[int],
    max_new_tokens: int,
    temperature: float,
    tell: Callable[[float], None] | None = None,
) -> list[Continuation]:
    """Sample one continuation for each of `draws`, greedily when `temperature` is 0.

    Each prompt (token ids, left-padded here) is prefilled once, however many samples are drawn from it. A token is
    chosen by one uniform number from the row's own stream through the inverse of the distribution function, so that a
    row depends on its neighbours only through the rounding of the logits. `tell` hears how far it is (0..1).
    """
    with torch.inference_mode(), grouped(model):
        return _decode(model, prompts, draws, stop_ids, max_new_tokens, temperature, tell)


def _decode(
    model: Any,
    prompts: Sequence[Sequence[int]],
    draws: Sequence[Draw],
    stop_ids: Sequence[int],
    max_new_tokens: int,
    temperature: float,
    tell: Callable[[float], None] | None,
) -> list[Continuation]:
    device = next(model.parameters()).device
    longest = max(len(prompt) for prompt in prompts)
    ids = torch.zeros(len(prompts), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, longest - len(prompt) :] = torch.tensor(prompt)
        mask[row, longest - len(prompt) :] = 1
    ids, mask = ids.to(device), mask.to(device)
    layers = [_Layer(longest + max_new_tokens) for _ in range(model.config.get_text_config().num_hidden_layers)]
    cache = Cache(layers=layers)
    logits = _forward(model, ids, mask, (mask.cumsum(-1) - 1).clamp(min=0), cache)

    rows = torch.tensor([draw.prompt for draw in draws], device=device)
    cache.batch_select_indices(rows)
    logits, mask = logits[rows], mask[rows]
    position = mask.sum(-1, keepdim=True)
    uniform = _uniform(draws, max_new_tokens, device) if temperature > 0 else None
    stops = torch.tensor(sorted(stop_ids), device=device)
    output = torch.zeros(len(draws), max_new_tokens, dtype=torch.long, device=device)
    likely = torch.zeros(len(draws), max_new_tokens, device=device)
    length = torch.full((len(draws),), max_new_tokens, device=device)
    stopped = torch.zeros(len(draws), dtype=torch.bool, device=device)
    active = torch.arange(len(draws), device=device)  # the sample that each row of the batch computes

    for step in range(max_new_tokens):
        running = ~stopped[active]
        if uniform is None:
            chosen = logits.argmax(-1)
        else:
            chosen, likelihood = _draw(logits / temperature, uniform[active, step])
            likely[active[running], step] = likelihood[running].log()
        output[active[running], step] = chosen[running]
        ended = active[running & torch.isin(chosen, stops)]
        stopped[ended] = True
        length[ended] = step + 1
        finished = stopped[active]
        if step + 1 == max_new_tokens or bool(finished.all()):
            break
        if tell:
            tell((step + 1) / max_new_tokens)
        if int(finished.sum()) >= max(1, _LEAVE_SHARE * len(active)):
            keep = (~finished).nonzero().squeeze(-1)
            active, chosen, mask, position = active[keep], chosen[keep], mask[keep], position[keep]
            cache.batch_select_indices(keep)
        mask = torch.cat([mask, mask.new_ones(len(active), 1)], dim=1)
        logits = _forward(model, chosen[:, None], mask, position, cache)
        position = position + 1
    return [
        Continuation(
            ids=output[i, : length[i]].tolist(),
            finish_reason="stop" if stopped[i] else "length",
            logprobs=[] if uniform is None else likely[i, : length[i]].tolist(),
        )
        for i in range(len(draws))
    ]


def _forward(model: Any, ids: torch.Tensor, mask: torch.Tensor, position: torch.Tensor, cache: Cache) -> torch.Tensor:
    """Logits of the last position of each row, [rows, vocabulary].

    The position is given as a tensor, which copies it out of the hidden states. A plain 1 makes a strided view of them,
    and torch (2.11) multiplies that, with weights that need no gradient, by one copy of the weights for each row.
    """
    last = torch.tensor([ids.shape[1] - 1], device=ids.device)
    result = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=position,
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=last,
    )
    return result.logits[:, -1].float()  # type: ignore[no-any-return]


def _uniform(draws: Sequence[Draw], count: int, device: torch.device) -> torch.Tensor:
    """[draws, count] uniform numbers in [0, 1), each row from its own seed."""
    streams = [torch.Generator().manual_seed(draw.seed) for draw in draws]
    return torch.stack([torch.rand(count, generator=stream) for stream in streams]).to(device)


def _draw(logits: torch.Tensor, uniform: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The token at quantile `uniform` of each row's distribution, and its probability."""
    probabilities = logits.softmax(-1)
    cumulative = probabilities.cumsum(-1)
    target = uniform[:, None] * cumulative[:, -1:]
    # right=True: a token of probability zero is never met, not even by a uniform number of exactly 0
    chosen = torch.searchsorted(cumulative, target, right=True).squeeze(-1)
    chosen = chosen.clamp(max=logits.shape[-1] - 1)
    return chosen, probabilities.gather(-1, chosen[:, None]).squeeze(-1)


class _Layer(DynamicLayer):  # type: ignore[misc]
    """A layer of the cache that is allocated once at its full length, instead of being copied for each new token.

    Layers with a sliding window use it too: the model's mask keeps what is outside the window out of sight.
    """

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._capacity = capacity
        self._stored: tuple[torch.Tensor, torch.Tensor] | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if self._stored is None:
            self.lazy_initialization(key_states, value_states)
            self._reserve(key_states[:, :, :0], value_states[:, :, :0])
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        stored_keys, stored_values = self._storage()
        stored_keys[:, :, start:end] = key_states
        stored_values[:, :, start:end] = value_states
        self.keys, self.values = stored_keys[:, :, :end], stored_values[:, :, :end]
        return self.keys, self.values

    def get_seq_length(self) -> int:
        return 0 if self.keys is None else self.keys.shape[-2] if self.keys.dim() == 4 else 0

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        self._reserve(self.keys[indices], self.values[indices])

    def _storage(self) -> tuple[torch.Tensor, torch.Tensor]:
        assert self._stored is not None
        return self._stored

    def _reserve(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Allocate for the batch of `keys` and `values`, and copy them in."""
        rows, heads, length, width = keys.shape
        fresh = keys.new_empty(rows, heads, self._capacity, width), values.new_empty(rows, heads, self._capacity, width)
        self._stored = fresh
        self.keys, self.values = fresh[0][:, :, :length], fresh[1][:, :, :length]
        self.keys.copy_(keys)
        self.values.copy_(values)
