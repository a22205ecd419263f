# SPDX-License-Identifier: MIT-0
"""What the parity probe asks, with a second copy of the model in the engine's place. tests/engine has the real one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from lingoss.errors import LingossError
from lingoss.grpo.probe import Probe, logprobs, tempered
from lingoss.models import load_model, load_tokenizer

LONGEST = 400


class Copy:
    """An engine that is a model; it draws what is likeliest."""

    dtype = "float32"

    def __init__(self, model: Any, tokenizer: Any, temperature: float = 1.0) -> None:
        self._model, self._tokenizer, self._temperature = model, tokenizer, temperature

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def read(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        return logprobs(self._model, sequences, [1] * len(sequences))

    def draw(self, prompts: Sequence[Sequence[int]], tokens: int) -> tuple[list[list[int]], list[list[float]]]:
        with torch.no_grad():
            tails = [
                self._model.generate(torch.tensor([list(ids)]), max_new_tokens=tokens, do_sample=False)[0, len(ids) :]
                for ids in prompts
            ]
        whole = [[*ids, *tail.tolist()] for ids, tail in zip(prompts, tails, strict=True)]
        likely = tempered(self._model, whole, [len(ids) for ids in prompts], [self._temperature])
        return [tail.tolist() for tail in tails], likely[self._temperature]


@pytest.fixture(scope="module")
def tokenizer(tiny_llama: Path) -> Any:
    return load_tokenizer(tiny_llama)


@pytest.fixture(scope="module")
def policy(tiny_llama: Path) -> Any:
    """The tiny Llama with an adapter that does something."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    model = get_peft_model(
        load_model(tiny_llama), LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    )
    return model.train()


@pytest.fixture(scope="module")
def probe(tokenizer: Any) -> Probe:
    whole = Probe.build(tokenizer, "think", "chatml", LONGEST, 1.0)
    return Probe(whole.texts[:4], whole.sequences[:4], whole.prompts[:4], 1.0)


def test_logprobs_are_those_of_each_text_alone(policy: Any, probe: Probe) -> None:
    found = tempered(policy, probe.sequences, probe.prompts, [1.0, 0.5], rows=3)
    policy.eval()
    for place, (ids, start) in enumerate(zip(probe.sequences, probe.prompts, strict=True)):
        with torch.no_grad():
            logits = policy(input_ids=torch.tensor([ids])).logits[0]
        for temperature, rows in found.items():
            scores = (logits / temperature).log_softmax(-1)
            right = [float(scores[at - 1, ids[at]]) for at in range(start, len(ids))]
            assert rows[place] == pytest.approx(right, abs=1e-4)
    policy.train()
    logprobs(policy, probe.sequences[:1], probe.prompts[:1])
    assert policy.training


def test_the_texts_fit_the_engine(tokenizer: Any) -> None:
    whole = Probe.build(tokenizer, "think", "chatml", LONGEST, 1.0)
    assert len(whole.texts) == 10
    assert all(start < len(ids) < LONGEST for start, ids in zip(whole.prompts, whole.sequences, strict=True))
    middle = sorted(whole.prompts)[5]
    some = Probe.build(tokenizer, "think", "chatml", middle + 24, 1.0)
    assert 0 < len(some.texts) < 10
    assert all(start + 24 <= middle + 24 for start in some.prompts)
    assert all(len(ids) < middle + 24 for ids in some.sequences)
    with pytest.raises(LingossError, match="room for 30 tokens, which is too few to compare it with the trainer"):
        Probe.build(tokenizer, "think", "chatml", 30, 1.0)


def test_a_copy_of_the_policy_agrees(policy: Any, tokenizer: Any, probe: Probe) -> None:
    report, rows = probe.check(policy, tokenizer, Copy(policy, tokenizer))
    assert report.layer is None
    assert report.difference < 1e-4
    assert report.tokens == sum(map(len, rows)) == sum(map(len, probe.sequences)) - sum(probe.prompts)
    assert [way.name for way in report.ways] == ["the base model"]


def test_what_is_missing_is_named(policy: Any, tokenizer: Any, tiny_llama: Path, probe: Probe) -> None:
    report, _ = probe.check(policy, tokenizer, Copy(load_model(tiny_llama), tokenizer))
    assert report.layer == "adapter"
    cold, _ = probe.check(policy, tokenizer, Copy(policy, tokenizer, temperature=0.7))
    assert cold.layer == "sampling"
    assert "it samples with temperature 0.7" in cold.sentence
