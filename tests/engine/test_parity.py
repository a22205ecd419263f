# SPDX-License-Identifier: MIT-0
"""The parity probe against the real engine: it lets a synced policy pass, and names what is broken on purpose."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from engine.helpers import Trained
from lingoss.errors import LingossError
from lingoss.grpo.parity import ParityReport, Rows
from lingoss.grpo.probe import Probe, TrlEngine, logprobs

Tensors = Iterator[tuple[str, torch.Tensor]]
Check = Callable[..., tuple[ParityReport, Rows]]


@pytest.fixture(scope="module")
def probe(trained: Trained) -> Probe:
    """Every third text, cut short: a quarter of the time."""
    length = trained.generation.max_model_length
    whole = Probe.build(trained.tokenizer, "think", "chatml", longest=length, temperature=1.0)
    chosen = range(0, len(whole.texts), 3)
    return dataclasses.replace(
        whole,
        texts=tuple(whole.texts[at] for at in chosen),
        sequences=tuple(whole.sequences[at][: whole.prompts[at] + 40] for at in chosen),
        prompts=tuple(whole.prompts[at] for at in chosen),
    )


@pytest.fixture
def check(trained: Trained, probe: Probe) -> Check:
    """Ask both sides; the engine has the policy when a test begins."""

    def asked(known: dict[str, Rows] | None = None, tokenizer: Any = trained.tokenizer) -> tuple[ParityReport, Rows]:
        engine = TrlEngine(trained.generation)
        return probe.check(trained.generation.model, tokenizer, engine, known)

    trained.generation.sync_weights()
    return asked


@contextmanager
def sent(generation: Any, change: Callable[[Tensors], Tensors]) -> Iterator[None]:
    """What TRL sends at a sync goes through `change` first."""
    kept = generation._iter_named_params
    generation._iter_named_params = lambda: change(kept())
    try:
        yield
    finally:
        generation._iter_named_params = kept


@contextmanager
def moved(model: Any, factor: float) -> Iterator[None]:
    """The adapter, strengthened by that factor: as if training had gone on."""
    weights = [weight for name, weight in model.named_parameters() if ".lora_B." in name]
    kept = [weight.detach().clone() for weight in weights]
    try:
        with torch.no_grad():
            for weight in weights:
                weight.mul_(factor)
        yield
    finally:
        with torch.no_grad():
            for weight, before in zip(weights, kept, strict=True):
                weight.copy_(before)


def test_a_synced_policy_passes(check: Check) -> None:
    report, _ = check()
    assert report.layer is None
    assert 0 < report.difference < 0.1
    assert report.drawn is not None
    (way,) = report.ways
    assert (way.name, way.tells) == ("the base model", True)
    assert way.fraction == pytest.approx(1, abs=0.15)


def test_a_stale_adapter_is_refused(trained: Trained, probe: Probe, check: Check) -> None:
    before = logprobs(trained.generation.model, probe.sequences, probe.prompts)
    with moved(trained.generation.model, 2.0):
        report, _ = check({"the SFT policy": before})
        assert report.layer == "adapter"
        with pytest.raises(LingossError, match="the engine still runs the SFT policy"):
            report.raise_if_broken()
        trained.generation.sync_weights()
        assert check({"the SFT policy": before})[0].layer is None


def test_an_adapter_that_never_arrived_is_refused(trained: Trained, check: Check) -> None:
    with moved(trained.generation.model, 0.0):
        trained.generation.sync_weights()
    report, _ = check()
    assert report.layer == "adapter"
    assert "the engine still runs the base model" in report.sentence


def test_a_sync_that_was_cut_short_is_refused(trained: Trained, check: Check) -> None:
    def half(tensors: Tensors) -> Tensors:
        # All are taken, or TRL leaves the adapter merged.
        yield from [(name, tensor.clone()) for name, tensor in tensors][:150]

    with moved(trained.generation.model, 0.0):
        trained.generation.sync_weights()
    with sent(trained.generation, half):
        trained.generation.sync_weights()
    report, _ = check()
    assert report.layer == "adapter"
    assert "only a part of the trained weights has arrived" in report.sentence


def test_swapped_tensors_are_refused(trained: Trained, check: Check) -> None:
    def swapped(tensors: Tensors) -> Tensors:
        found = {name: tensor.clone() for name, tensor in tensors}
        one, other = (f"model.layers.{layer}.self_attn.q_proj.weight" for layer in (3, 4))
        found[one], found[other] = found[other], found[one]
        yield from found.items()

    with sent(trained.generation, swapped):
        trained.generation.sync_weights()
    report, _ = check()
    assert report.layer == "base"
    assert "tensors were mixed up on the way" in report.sentence


def test_another_base_is_refused(trained: Trained, check: Check) -> None:
    def other(tensors: Tensors) -> Tensors:
        random = torch.Generator().manual_seed(0)
        for name, tensor in tensors:
            noise = torch.randn(tensor.shape, generator=random).to(tensor.dtype)
            yield name, tensor + 0.1 * tensor.std() * noise

    with sent(trained.generation, other):
        trained.generation.sync_weights()
    report, _ = check()
    assert report.layer == "base"
    assert "it was started from another base model" in report.sentence


@pytest.mark.parametrize(
    ("parameter", "value", "words"),
    [("temperature", 0.7, "it samples with temperature 0.7"), ("top_k", 5, "a filter (top-p, top-k or min-p)")],
)
def test_other_sampling_is_refused(parameter: str, value: float, words: str, trained: Trained, check: Check) -> None:
    generation = trained.generation
    kept = getattr(generation, parameter)
    setattr(generation, parameter, value)
    try:
        report, _ = check()
    finally:
        setattr(generation, parameter, kept)
    assert report.layer == "sampling"
    assert words in report.sentence


def test_another_tokenizer_is_refused(trained: Trained, check: Check) -> None:
    from lingoss.models import load_tokenizer

    other = load_tokenizer(trained.tokenizer.name_or_path)
    other.add_tokens(["<think>"])
    report, _ = check(tokenizer=other)
    assert report.layer == "ids"
    assert "the engine's tokenizer differs" in report.sentence
