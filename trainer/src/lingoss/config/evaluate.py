# SPDX-License-Identifier: MIT-0
"""Config of stage evaluate: generate, score, report, compare, and the two decisions (gate, accept)."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from lingoss.config.common import (
    FIVE,
    Count,
    Flag,
    Folder,
    Free,
    Identity,
    Languages,
    ModelStage,
    Natural,
    NonNegative,
    Positive,
    Section,
    Share,
    Text,
)
from lingoss.config.grpo import Reward
from lingoss.config.prepare import PromptSet

ALL_FINISHED = "all-finished"


def _one_or_many(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Runs = Annotated[
    tuple[Text, ...],
    Field(min_length=1),
    BeforeValidator(_one_or_many, json_schema_input_type=str | tuple[str, ...]),
]


class EvaluatePrompts(Section):
    """What is asked. The prompts' digest enters the run id, and only runs with the same digest are compared."""

    sets: Identity[tuple[PromptSet, ...]] = ("heldout",)
    """Built-in prompt sets."""
    files: Free[tuple[Folder, ...]] = ()
    """JSON-lines prompts of your own: `question`, languages and, if known, `gold`; without it no answer is graded."""
    languages: Identity[Languages] = FIVE
    """Languages of the built-in sets."""
    limit: Identity[Count | None] = None
    """Prompts taken from each set for each language; null takes all."""

    @model_validator(mode="after")
    def _some_prompts(self) -> "EvaluatePrompts":
        if not self.sets and not self.files:
            raise ValueError("no prompts: set prompts.sets or prompts.files")
        return self


class Generate(Section):
    """How completions are drawn."""

    k: Identity[Count] = 4
    """Samples of each prompt."""
    temperature: Identity[NonNegative] = 1.0
    """Sampling temperature; 0 is greedy, which has one sample only."""
    max_new_tokens: Identity[Count] = 1024
    """Longest completion in tokens; a longer one counts as truncated."""
    batch_tokens: Free[Count] = 16384
    """Most tokens (prompt and completion) that are generated at once."""

    @model_validator(mode="after")
    def _greedy_once(self) -> "Generate":
        if self.temperature == 0 and self.k > 1:
            raise ValueError(
                f"temperature 0 gives {self.k} times the same sample: set generate.k=1 or a temperature above 0"
            )
        return self


class Gate(Section):
    """Whether GRPO is worth starting: measured with GRPO's own sampling and full reward, per language.

    What both stages name alike, `files` (grpo: data.files), `k` (num_generations) and `temperature` (sampling.temperature)
    are what stage grpo will use; the defaults are its defaults, and the chart refuses values that differ."""

    prompts_per_language: Identity[Count] = 64
    """Prompts for each language; the gate asks for at least 64."""
    waive_prompts: Identity[Flag] = False
    """Decide from fewer than 64 prompts in a language, as a demonstration; the report says so."""
    k: Identity[Annotated[int, Field(strict=True, ge=2, le=1024)]] = 8
    """Samples of each prompt, as in GRPO."""
    temperature: Identity[Positive] = 1.0
    """Sampling temperature, as in GRPO."""
    max_completion_length: Identity[Count | None] = None
    """Longest completion in tokens, as in GRPO: null takes it from the lengths of the SFT run's examples (of the base
    model, which has none, generate.max_new_tokens)."""
    mask_truncated_completions: Identity[Flag] = True
    """Leave out completions that were cut by length, as GRPO does."""
    files: Free[tuple[Folder, ...]] = ()
    """JSON-lines prompts of your own that GRPO will train on, asked in place of the built-in ones."""
    reward: Identity[Reward] = Field(default_factory=dict)
    """Weights and tolerances of GRPO's reward; what is left out keeps its default."""
    floor: Identity[Share] = 0.20
    """Least share of groups whose rewards differ; below it GRPO has nothing to compare."""
    target: Identity[Share] = 0.95
    """Joint compliance that counts as reached when its lower bound is above it in every language."""
    correctness_margin: Identity[Share] = 0.05
    """How far correctness may be below the base model's when the target is reached."""
    prompts_per_step: Identity[Count] = 16
    """Prompts in one GRPO step."""
    informative_groups: Identity[Natural] = 8
    """Groups with differing rewards that a step should have; 0 waives the rule, and the report says so."""


class Accept(Section):
    """Whether GRPO's adapter replaces the SFT adapter: paired on held-out prompts."""

    language_margin: Identity[Share] = 0.05
    """Most that any language may lose on either language metric."""
    correctness_margin: Identity[Share] = 0.03
    """Most that correctness may lose."""
    format_margin: Identity[Share] = 0.02
    """Most that the share of well-formed texts may lose, and that truncation may gain."""
    repetition_margin: Identity[Share] = 0.02
    """Most that mean repetition may gain."""
    length_ratio: Identity[Annotated[float, Field(strict=True, ge=1)]] = 1.5
    """Most that the median length may grow or shrink by, as a factor."""
    alpha: Identity[Annotated[float, Field(strict=True, gt=0, lt=0.5)]] = 0.05
    """One-sided error of each bound."""


class EvaluateConfig(ModelStage):
    """Measure finished runs on the same prompts, compare them in pairs, and decide."""

    stage: Free[Literal["evaluate"]] = "evaluate"
    """The stage that this config is for. A file may name it; a file that names another stage is refused."""
    runs: Free[Runs] = (ALL_FINISHED,)
    """Runs to evaluate beside the base model: `all-finished`, references, or `base` for none. They enter the run id."""
    prompts: EvaluatePrompts = Field(default_factory=EvaluatePrompts)
    """What is asked."""
    generate: Generate = Field(default_factory=Generate)
    """How completions are drawn."""
    bootstrap_draws: Identity[Count] = 10_000
    """Draws of the bootstrap clustered by item."""
    gate: Gate = Field(default_factory=Gate)
    """The decision before GRPO."""
    accept: Accept = Field(default_factory=Accept)
    """The decision after GRPO."""

    @model_validator(mode="after")
    def _all_or_some(self) -> "EvaluateConfig":
        if ALL_FINISHED in self.runs and len(self.runs) > 1:
            raise ValueError(f"runs holds {ALL_FINISHED} and others: name the runs, or {ALL_FINISHED} alone")
        return self
