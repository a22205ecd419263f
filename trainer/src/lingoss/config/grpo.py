# SPDX-License-Identifier: MIT-0
"""Config of stage grpo: reinforcement learning on the same score that evaluation uses."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from lingoss.config.choices import known_weights, reward_weights
from lingoss.config.common import (
    FIVE,
    Checkpoint,
    Count,
    Flag,
    Folder,
    Free,
    Identity,
    Languages,
    Logging,
    ModelStage,
    Natural,
    NonNegative,
    Optimizer,
    Positive,
    Section,
    Share,
    Text,
)


def _neutral_one(value: float) -> float:
    if value != 1:
        raise ValueError("must stay 1: a sampling filter biases the importance ratios (trl#6789)")
    return value


def _neutral_zero(value: float) -> float:
    if value != 0:
        raise ValueError("must stay 0: a sampling filter biases the importance ratios (trl#6789)")
    return value


def _describe_weights(entry: dict[str, Any]) -> None:
    properties = {name: {"type": "number", "default": weight} for name, weight in reward_weights().items()}
    entry.update(properties=properties, additionalProperties=False)


Alarm = Literal[
    "non-finite",
    "reward-hacking",
    "length",
    "truncation",
    "repetition",
    "abstention",
    "no-signal",
    "kl",
    "rollout-mismatch",
]
"""What can stop a run; `grpo/safety.py` says how each is recognised."""

# Completed with the defaults, so that the run id changes when a default does.
Reward = Annotated[
    dict[Text, Annotated[float, Field(strict=True)]],
    AfterValidator(known_weights),
    Field(json_schema_extra=_describe_weights),
]


class GrpoData(Section):
    """The prompts. Their content enters the run id through the data digest."""

    languages: Identity[Languages] = FIVE
    """Languages that are asked for."""
    prompts_per_language: Identity[Natural] = 200
    """Crossed prompts drawn for each language from the families that GRPO alone sees."""
    files: Free[tuple[Folder, ...]] = ()
    """JSON-lines prompts of your own: question, its language, the two requested languages and, if known, gold."""
    without_gold: Identity[Flag] = False
    """Also train on prompts without a known answer, where language and format decide; they are reported apart."""

    @model_validator(mode="after")
    def _some_prompts(self) -> "GrpoData":
        if not self.prompts_per_language and not self.files:
            raise ValueError("no prompts: set data.prompts_per_language or data.files")
        return self


class GrpoOptimizer(Optimizer):
    """AdamW and its learning-rate schedule."""

    learning_rate: Identity[Positive | None] = None
    """Highest learning rate. Null takes 5e-6 for an adapter and 5e-7 for full weights."""
    schedule: Identity[Literal["linear", "cosine", "constant"]] = "constant"
    """Shape of the learning rate after warm-up; linear and cosine end at zero."""


class Sampling(Section):
    """How completions are drawn. Filters stay neutral, because engine and trainer must mean the same distribution."""

    temperature: Identity[Positive] = 1.0
    """Sampling temperature."""
    top_p: Identity[Annotated[float, Field(strict=True), AfterValidator(_neutral_one)]] = 1.0
    """Fixed at 1 (no nucleus filter)."""
    top_k: Identity[Annotated[int, Field(strict=True), AfterValidator(_neutral_zero)]] = 0
    """Fixed at 0 (no top-k filter)."""
    min_p: Identity[Annotated[float, Field(strict=True), AfterValidator(_neutral_zero)]] = 0.0
    """Fixed at 0 (no minimum-probability filter)."""


class ImportanceSampling(Section):
    """Correction for the difference between the rollout engine's probabilities and the trainer's."""

    mode: Identity[Literal["token_truncate", "none"]] = "token_truncate"
    """`token_truncate` caps the ratio token by token; summed over a sequence it would mask long reasoning away."""
    threshold: Identity[Annotated[float, Field(strict=True, ge=1)]] = 2.0
    """Largest ratio that counts."""


class Rollout(Section):
    """Where completions are generated."""

    mode: Free[Literal["colocate", "server", "transformers"]] = "colocate"
    """`colocate`: vLLM on the training GPUs; `server`: a vLLM server beside them; `transformers`: no vLLM, slow."""
    server_url: Free[Text | None] = None
    """Address of the vLLM server; needed by mode server of engine trl."""
    server_timeout: Free[Positive] = 1800.0
    """Seconds to wait for the server to load the model."""
    gpu_memory_utilization: Free[Annotated[float, Field(strict=True, gt=0, lt=1)] | None] = None
    """Share of each GPU's memory that vLLM may take. Null takes 0.42 beside the training (`colocate`), 0.9 otherwise."""
    tensor_parallel: Free[Count] = 1
    """GPUs that share one copy of the model in vLLM."""
    batch_tokens: Free[Count] = 16384
    """Mode transformers: most prompt and new tokens of all completions drawn at once; bounds the memory."""

    @property
    def gpu_memory_share(self) -> float:
        """Share of each GPU's memory for vLLM, with null resolved."""
        return self.gpu_memory_utilization or (0.42 if self.mode == "colocate" else 0.9)


class OpenRlhf(Section):
    """What engine openrlhf alone reads."""

    offload_optimizer: Free[Flag] = True
    """Keep the optimizer (12 bytes for each parameter) in the nodes' memory. Cards of 24 GB need it; where the GPUs hold
    all, false is faster."""


class Verl(Section):
    """What engine verl alone reads."""

    offload: Free[Flag] = False
    """Keep weights and optimizer in the nodes' memory and bring them to the GPUs layer by layer: slower, for small
    cards."""


class GrpoGate(Section):
    """What the gate before GRPO means for this run."""

    force: Free[Flag] = False
    """Start although the last gate was not `viable`."""


class Validation(Section):
    """The slice by which the checkpoint that becomes the adapter is chosen. It is drawn greedily and never trained on;
    whether the result replaces the SFT adapter is decided on other prompts (stage evaluate)."""

    steps: Identity[Count] = 50
    """Optimizer steps between two draws. Each saves a checkpoint, and these, with the last step's, are the choice."""
    prompts_per_language: Identity[Annotated[int, Field(strict=True, ge=1, le=65)]] = 65
    """Prompts for each language. Rows of `data.files` whose `split` is `validation` join them."""


class Safety(Section):
    """When a run stops by itself, with a complete checkpoint. Each has a warning well before it."""

    override: Free[tuple[Alarm, ...]] = ()
    """Kinds of stop that become warnings, so that the same config goes on from the checkpoint of a stopped run."""
    window: Free[Annotated[int, Field(strict=True, ge=4)]] = 16
    """Steps of a window. Most rules compare windows and say nothing in the first two."""
    correctness_drop: Free[Share] = 0.10
    """Fall of the share of right answers, in training or validation, that stops a run whose reward rises."""
    share_rise: Free[Share] = 0.30
    """Rise of repetition, of abstention or of the share of truncated completions that stops a run."""
    length_factor: Free[Annotated[float, Field(strict=True, gt=1)]] = 4.0
    """Factor by which completions may grow or shrink."""
    informative_floor: Free[Share] = 0.05
    """Share of informative groups below which, for three windows, a run has nothing to learn and stops."""
    kl: Free[Positive] = 2.0
    """Divergence from the SFT policy in nats a token, where it is measured, that stops a run."""
    rollout_kl: Free[Positive] = 0.5
    """Divergence of the trainer's policy from the one that drew the completions, in nats a token, that stops a run."""
    importance_ratio: Free[Annotated[float, Field(strict=True, gt=1)]] = 2.0
    """Factor by which the mean ratio of the trainer's to the rollout's probabilities may be off 1."""


class GrpoLogging(Logging):
    """What a run tells while it works."""

    completions_steps: Free[Count] = 10
    """Optimizer steps between completions that are kept in `completions.jsonl`, as rows that `lingoss score` reads."""
    completions: Free[Natural] = 8
    """Completions kept of such a step, one of each of its first prompts."""


class GrpoConfig(ModelStage):
    """Improve the SFT policy by group-relative policy optimisation, with the score of `lingoss.score` as reward."""

    stage: Free[Literal["grpo"]] = "grpo"
    """The stage that this config is for. A file may name it; a file that names another stage is refused."""
    engine: Identity[Literal["trl", "openrlhf", "verl"]] = "trl"
    """The framework that trains."""
    weights: Identity[Literal["auto", "adapter", "full"]] = "auto"
    """What is trained. `auto`: the SFT adapter with trl and verl, all weights of the merged model with openrlhf."""
    data: GrpoData = Field(default_factory=GrpoData)
    """The prompts."""
    max_steps: Identity[Count] = 200
    """Optimizer steps."""
    prompts_per_step: Identity[Count] = 16
    """Prompts in one optimizer step."""
    num_generations: Identity[Annotated[int, Field(strict=True, ge=2, le=1024)]] = 8
    """Completions of each prompt; they form the group whose rewards are compared."""
    per_device_batch: Free[Count] = 8
    """Completions that one device trains on at once."""
    max_completion_length: Identity[Count | None] = None
    """Longest completion in tokens. Null takes it from the lengths of the SFT run's examples."""
    loss_type: Identity[Literal["dapo", "dr_grpo"]] = "dapo"
    """`dapo` weighs all tokens of a step alike; `dr_grpo` divides by constants, not by the group's deviation."""
    beta: Identity[NonNegative] = 0.0
    """Weight of the KL term against the SFT policy; 0 needs no reference model."""
    importance_sampling: ImportanceSampling = Field(default_factory=ImportanceSampling)
    """Correction of the rollout's probabilities."""
    mask_truncated_completions: Identity[Flag] = True
    """Leave completions that were cut by length out of the loss and out of their group's comparison."""
    dynamic_sampling: Identity[Flag] = False
    """Draw further prompts in place of groups whose rewards are all equal (DAPO, arXiv 2503.14476)."""
    dynamic_rounds: Identity[Count] = 3
    """Most further draws of a step with `dynamic_sampling`; what is still missing then stays without a gradient."""
    sampling: Sampling = Field(default_factory=Sampling)
    """How completions are drawn."""
    reward: Identity[Reward] = Field(default_factory=dict)
    """Weights and tolerances of the reward, as in `lingoss.score.Rules`; what is left out keeps its default there."""
    optimizer: GrpoOptimizer = Field(default_factory=GrpoOptimizer)
    """The optimizer."""
    rollout: Rollout = Field(default_factory=Rollout)
    """Where completions are generated."""
    openrlhf: OpenRlhf = Field(default_factory=OpenRlhf)
    """Engine openrlhf."""
    verl: Verl = Field(default_factory=Verl)
    """Engine verl."""
    cluster_wait: Free[Positive] = 1800.0
    """Engines openrlhf and verl: seconds to wait for all GPUs of the Ray cluster before giving up."""
    trust_remote_code: Free[Flag] = False
    """Let engines openrlhf and verl run Python that lies beside a model's weights. Off, because such code runs with all
    rights of the training and is needed by no model that transformers knows; a model that brings some is refused."""
    gate: GrpoGate = Field(default_factory=GrpoGate)
    """The gate."""
    validation: Validation = Field(default_factory=Validation)
    """The validation slice."""
    safety: Safety = Field(default_factory=Safety)
    """When a run stops by itself."""
    gradient_checkpointing: Free[Flag] = False
    """Recompute activations in the backward pass: less memory, about a third more time, same result."""
    checkpoint: Checkpoint = Field(default_factory=Checkpoint)
    """Saves."""
    logging: GrpoLogging = Field(default_factory=GrpoLogging)
    """Logs."""

    @property
    def trains_adapter(self) -> bool:
        """Whether the SFT adapter is trained on, with `auto` resolved."""
        return self.weights == "adapter" or (self.weights == "auto" and self.engine != "openrlhf")

    @property
    def learning_rate(self) -> float:
        """The learning rate, with null resolved."""
        return self.optimizer.learning_rate or (5e-6 if self.trains_adapter else 5e-7)

    @model_validator(mode="after")
    def _engine_can(self) -> "GrpoConfig":
        if self.engine == "openrlhf" and self.weights == "adapter":
            raise ValueError(
                "engine openrlhf cannot train an adapter, its weight sync sends raw adapter names to vLLM "
                "(OpenRLHF#546): set weights=full or engine=trl"
            )
        if self.engine == "trl" and self.weights == "full":
            raise ValueError(
                "engine trl trains the SFT adapter only: set weights=adapter, or engine=openrlhf for full weights"
            )
        if self.engine == "verl" and self.format == "harmony":
            raise ValueError(
                "engine verl hands the reward texts without special tokens, which hides the channels of Harmony: "
                "set engine=trl or engine=openrlhf, or train a model with format think or plain"
            )
        if self.engine == "openrlhf" and self.loss_type == "dr_grpo":
            raise ValueError(
                "engine openrlhf weighs all tokens of a step alike and knows no division by constants: set "
                "loss_type=dapo, or engine=trl or verl"
            )
        if self.engine != "trl" and self.dynamic_sampling:
            raise ValueError(
                f"engine {self.engine} cannot draw further prompts for groups without a signal as dynamic_sampling "
                "means it: set dynamic_sampling=false or engine=trl"
            )
        if self.engine == "trl" and self.trust_remote_code:
            raise ValueError("engine trl runs no code that comes with a model: set trust_remote_code=false")
        if self.engine != "trl" and self.rollout.mode == "transformers":
            raise ValueError(f"engine {self.engine} rolls out with vLLM alone: set rollout.mode=colocate or server")
        return self

    @model_validator(mode="after")
    def _rollout_is_complete(self) -> "GrpoConfig":
        server = self.engine == "trl" and self.rollout.mode == "server"
        if server and self.rollout.server_url is None:
            raise ValueError("rollout.mode=server needs the server's address: set rollout.server_url=http://host:port")
        if not server and self.rollout.server_url is not None:
            raise ValueError(
                f"rollout.server_url is set, but engine {self.engine} with rollout.mode={self.rollout.mode} asks no "
                "server: set rollout.mode=server (engine trl), or rollout.server_url=null"
            )
        completions = self.prompts_per_step * self.num_generations
        if completions % self.per_device_batch:
            raise ValueError(
                f"a step has prompts_per_step x num_generations = {completions} completions, which is not a multiple "
                f"of per_device_batch={self.per_device_batch}: set per_device_batch to {self.num_generations}"
            )
        return self
