# SPDX-License-Identifier: MIT-0
"""Config of stage sft: supervised fine-tuning of a LoRA adapter."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

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
    Optimizer,
    Positive,
    Section,
    Text,
)

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
SOURCES = ("families", "multilingual_thinking", "files")


def _zero(value: float) -> float:
    if value != 0:
        raise ValueError(
            "is fixed at 0: a router loss would train experts towards balance, also where no example teaches anything"
        )
    return value


class SftData(Section):
    """Where the examples come from. Their content enters the run id through the data digest."""

    languages: Identity[Languages] = FIVE
    """Languages that the model is asked to reason and answer in."""
    examples_per_language: Identity[Natural] = 200
    """Examples drawn from the built-in problem families for each language; 0 leaves the families out."""
    multilingual_thinking: Free[Literal["prepared"] | Folder | None] = None
    """HuggingFaceH4/Multilingual-Thinking: `prepared` for the copy that the prepare run brought, or a folder or
    parquet file; null leaves it out."""
    files: Free[tuple[Folder, ...]] = ()
    """JSON-lines files of your own with question, reasoning, answer and their three languages."""
    mix: Identity[tuple[Literal["families", "multilingual_thinking", "files"], ...] | None] = None
    """What one epoch holds, as a list; a source named twice is seen twice. Null takes each source that is set, once."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The mix, with null resolved to every source that is set."""
        if self.mix is not None:
            return self.mix
        return tuple(source for source in SOURCES if self._is_set(source))

    def _is_set(self, source: str) -> bool:
        return bool(
            {
                "families": self.examples_per_language,
                "multilingual_thinking": self.multilingual_thinking,
                "files": self.files,
            }[source]
        )

    @model_validator(mode="after")
    def _mix_and_sources_agree(self) -> "SftData":
        if not self.sources:
            raise ValueError("no data: set data.examples_per_language, data.multilingual_thinking or data.files")
        for source in SOURCES:
            setting = "examples_per_language" if source == "families" else source
            if source in self.sources and not self._is_set(source):
                raise ValueError(
                    f"data.mix names {source}, but data.{setting} is not set: set it, or drop it from the mix"
                )
            # The families have a default size, so a mix without them is a plain choice and no contradiction.
            if source != "families" and self._is_set(source) and source not in self.sources:
                raise ValueError(f"data.{setting} is set, but data.mix leaves it out: add it to the mix")
        return self


class Lora(Section):
    """The low-rank adapter that is trained; the base model stays as it is."""

    rank: Identity[Count] = 8
    """Rank of the update."""
    alpha: Identity[Positive] = 16.0
    """Scale of the update; it is multiplied by alpha / rank."""
    dropout: Identity[Annotated[float, Field(strict=True, ge=0, lt=1)]] = 0.0
    """Dropout in front of the adapter. Must be 0 when experts are trained. What is dropped follows seed, step and
    micro-batch, so it is the same on any number of devices whose share of the global batch per_device_batch divides."""
    target_modules: Identity[Annotated[tuple[Text, ...], Field(min_length=1)]] = ATTENTION
    """Linear layers that get an adapter. Attention alone is the default: every serving path can load it."""
    experts: Identity[Flag] = False
    """Train the expert weights of a mixture-of-experts model too. Such an adapter is merged before it is served."""

    @model_validator(mode="after")
    def _experts_without_dropout(self) -> "Lora":
        if self.experts and self.dropout > 0:
            raise ValueError(
                f"lora.dropout is {self.dropout}, but adapters on experts cannot have dropout: set lora.dropout=0"
            )
        return self


class SftOptimizer(Optimizer):
    """AdamW and its learning-rate schedule."""

    learning_rate: Identity[Positive] = 2e-4
    """Highest learning rate, reached after warm-up."""


class SftConfig(ModelStage):
    """Teach the form and the languages: loss on the assistant's tokens only, LoRA on a frozen base."""

    stage: Free[Literal["sft"]] = "sft"
    """The stage that this config is for. A file may name it; a file that names another stage is refused."""
    data: SftData = Field(default_factory=SftData)
    """The examples."""
    max_length: Identity[Annotated[int, Field(strict=True, ge=16, le=2**20)] | None] = None
    """Longest example in tokens. Null takes it from the token counts of the data, so that none is cut or dropped."""
    epochs: Identity[Positive | None] = 3.0
    """Passes over the mix. Give this or max_steps."""
    max_steps: Identity[Count | None] = None
    """Optimizer steps. Giving it replaces the default number of epochs."""
    global_batch: Identity[Count] = 16
    """Examples in one optimizer step, over all devices together, however many devices there are."""
    per_device_batch: Free[Count] = 4
    """Most examples that one device works on at once; the rest of the global batch comes by accumulation."""
    parallelism: Free[Literal["auto", "single", "ddp", "fsdp"]] = "auto"
    """How processes share the work. `ddp`: each has the whole model; `fsdp`: each layer's weights are shared out (FSDP2),
    for cards that the model does not fit. `auto` takes `ddp` where it fits, for it is faster."""
    card_gib: Free[Positive | None] = None
    """Memory of one card in GiB, which the run must fit by the plan that --dry-run prints. Null: what the card has, and
    no check without one."""
    optimizer: SftOptimizer = Field(default_factory=SftOptimizer)
    """The optimizer."""
    lora: Lora = Field(default_factory=Lora)
    """The adapter."""
    gradient_checkpointing: Free[Flag] = False
    """Recompute activations in the backward pass: less memory, about a third more time, same result."""
    router_aux_loss_coef: Identity[Annotated[float, Field(strict=True), AfterValidator(_zero)]] = 0.0
    """Fixed at 0. Mixture-of-experts models add a router loss by default, which trains where nothing is to learn."""
    checkpoint: Checkpoint = Field(default_factory=Checkpoint)
    """Saves."""
    stop_seconds: Free[Positive | None] = None
    """Seconds that a graceful stop may take, from the signal to the end of the process, as the cluster grants them. A
    run whose step and save take longer is refused at its start. Null: not checked."""
    hang_seconds: Free[Positive] = 900.0
    """Seconds after which a process that makes no progress (no micro-batch, load or save ends) prints where each of its
    threads is and ends with status 1, so that it is started again. Also the limit of any exchange between processes."""
    logging: Logging = Field(default_factory=Logging)
    """Logs."""

    @model_validator(mode="before")
    @classmethod
    def _steps_replace_default_epochs(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("max_steps") is not None and "epochs" not in given:
            return {**given, "epochs": None}
        return given

    @model_validator(mode="after")
    def _one_length_and_whole_batches(self) -> "SftConfig":
        if self.epochs is not None and self.max_steps is not None:
            raise ValueError(
                f"epochs={self.epochs:g} and max_steps={self.max_steps} are both set: set one of them to null"
            )
        if self.epochs is None and self.max_steps is None:
            raise ValueError("epochs and max_steps are both null: set one of them")
        if self.global_batch % self.per_device_batch:
            raise ValueError(
                f"global_batch={self.global_batch} is not a multiple of per_device_batch={self.per_device_batch}: "
                f"set per_device_batch to one of {', '.join(map(str, _divisors(self.global_batch)))}"
            )
        return self


def _divisors(number: int) -> list[int]:
    """The smaller divisors of `number`, at most eight: enough for a hint, whatever the number."""
    return [divisor for divisor in range(1, min(number, 512) + 1) if number % divisor == 0][-8:]
