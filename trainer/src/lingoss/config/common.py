# SPDX-License-Identifier: MIT-0
"""What every stage's config shares: frozen sections, field types, and the mark that says whether a field names the run.

A field marked `Identity` changes the result of the run, so it is part of the run id: another value starts another run.
A field marked `Free` (resources, paths, cadence of saves and logs) may change when a run is resumed in the same folder.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from lingoss.config.choices import formats, known_format, known_language, known_template, templates

T = TypeVar("T")


class Mark:
    """The annotation that puts a field into the run id (`identity=True`) or keeps it out."""

    def __init__(self, *, identity: bool) -> None:
        self.identity = identity


Identity = Annotated[T, Mark(identity=True)]
Free = Annotated[T, Mark(identity=False)]


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("holds a lone surrogate, which no file can store") from None
    if "\0" in value:
        raise ValueError("holds a NUL character")
    return value


def _path(value: object) -> object:
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or not value:
        raise ValueError("must be a path; write '.' for the current folder")
    try:
        # A shell expands ~ only at the start of a word, so `--set root=~/x` arrives here unexpanded.
        return Path(_text(value)).expanduser()
    except RuntimeError:
        raise ValueError("starts with ~ but there is no home folder; write the whole path") from None


def _run_label(value: object) -> object:
    # `run: 2` is what people write; YAML reads a number.
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    for position, value in enumerate(values):
        if value in values[:position]:
            raise ValueError(f"holds {value!r} twice")
    return values


# Leaves are strict: "3" is no number and 1 is no truth value. Whole numbers stay exact in JSON (below 2**53).
Count = Annotated[int, Field(strict=True, ge=1, le=2**53)]
Natural = Annotated[int, Field(strict=True, ge=0, le=2**53)]
Positive = Annotated[float, Field(strict=True, gt=0)]
NonNegative = Annotated[float, Field(strict=True, ge=0)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Flag = Annotated[bool, Field(strict=True)]
Text = Annotated[str, Field(strict=True, min_length=1), AfterValidator(_text)]
Folder = Annotated[Path, BeforeValidator(_path)]
RunLabel = Annotated[
    str,
    Field(strict=True, min_length=1, max_length=64),
    AfterValidator(_text),
    BeforeValidator(_run_label, json_schema_input_type=str | int),
]
Commit = Annotated[str, Field(strict=True, pattern="^[0-9a-f]{40}$")]
Languages = Annotated[
    tuple[Annotated[Text, AfterValidator(known_language)], ...], Field(min_length=1), AfterValidator(_unique)
]
# The choices are files of other rooms, so the schema asks for them when it is made and no list is repeated here.
Format = Annotated[
    Text, AfterValidator(known_format), Field(json_schema_extra=lambda s: s.update(enum=list(formats())))
]
Template = Annotated[
    Text, AfterValidator(known_template), Field(json_schema_extra=lambda s: s.update(enum=list(templates())))
]

FIVE = ("en", "fr", "de", "es", "it")


class Section(BaseModel):
    """A frozen group of settings that refuses unknown keys; the sentence under each field is its documentation."""

    # Validators are built on first use: `lingoss --help` imports every config and makes none.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True, defer_build=True)

    def identity(self) -> dict[str, Any]:
        """The fields that change the result, nested as in the config, as JSON values."""
        found: dict[str, Any] = {}
        resolved = self.model_dump(mode="json")
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if isinstance(value, Section):
                if inner := value.identity():
                    found[name] = inner
            elif isinstance(value, tuple) and any(isinstance(item, Section) for item in value):
                found[name] = [item.identity() for item in value]
            elif any(isinstance(mark, Mark) and mark.identity for mark in field.metadata):
                found[name] = resolved[name]
        return found


class StageConfig(Section):
    """The settings that every stage has."""

    stage: Free[str]
    """The stage that this config is for. A file may name it; a file that names another stage is refused."""
    root: Free[Folder] = Path()
    """The shared folder; runs live in `runs/` below it. On a cluster this is the mounted volume."""
    run: Free[RunLabel] = "1"
    """Do it again: another label gives another run of the same settings. It enters the run id beside the identity."""
    seed: Identity[Annotated[int, Field(strict=True, ge=0, lt=2**32)]] = 0
    """Seed of data order, sampling and initialisation."""
    lock_wait: Free[NonNegative] = 120.0
    """Seconds to wait for another process that holds the run folder before giving up. A holder that died on another
    host counts as gone 60 seconds after its last sign of life, so keep this above 60."""
    parent: Free[Text] = "auto"
    """The run to start from: a name, an id, a unique beginning of either, `latest:<stage>`, or `auto` for the newest
    finished run of the stage before. The parent's id is part of the run id, however it was written here."""

    def resolved(self) -> dict[str, Any]:
        """Every field as JSON values, as `config.json` stores it."""
        return self.model_dump(mode="json")


class ModelStage(StageConfig):
    """The settings of a stage that talks to a chat model."""

    format: Identity[Format] = "think"
    """How reasoning and answer are told apart in text: a chat format of `lingoss.transcript`."""
    template: Identity[Template] = "chatml"
    """Our pinned chat template: `gpt-oss` renders Harmony, `chatml` is for SmolLM2 and Qwen."""
    dtype: Identity[Literal["float32", "bfloat16"]] = "float32"
    """Number format of the weights. `float32` is right for a CPU; use `bfloat16` on a GPU."""
    threads: Free[Count | None] = None
    """CPU threads for tensor work; null leaves torch's choice. More threads than idle cores is many times slower."""

    @model_validator(mode="after")
    def _harmony_and_gpt_oss_belong_together(self) -> "ModelStage":
        if self.format == "harmony" and self.template != "gpt-oss":
            raise ValueError(f"format harmony needs template gpt-oss, not {self.template}: set template=gpt-oss")
        if self.template == "gpt-oss" and self.format != "harmony":
            raise ValueError(
                f"template gpt-oss writes Harmony, so format {self.format} cannot be read back: set format=harmony"
            )
        return self


class Optimizer(Section):
    """AdamW and its learning-rate schedule."""

    schedule: Identity[Literal["linear", "cosine", "constant"]] = "cosine"
    """Shape of the learning rate after warm-up; linear and cosine end at zero."""
    warmup_ratio: Identity[Share] = 0.03
    """Share of all steps over which the learning rate rises from zero."""
    weight_decay: Identity[NonNegative] = 0.0
    """Decoupled weight decay of the trained weights."""
    max_grad_norm: Identity[Positive] = 1.0
    """Gradients are scaled down to this norm."""


class Checkpoint(Section):
    """When to save and how much disk the saves may take."""

    save_steps: Free[Count] = 50
    """Optimizer steps between checkpoints; a killed run loses fewer than this."""
    keep: Free[Count] = 2
    """Complete checkpoints kept; where budget or disk are short the oldest goes before the next is written, the newest
    never."""
    disk_budget_gb: Free[Positive | None] = None
    """Most gigabytes that the run's checkpoints may take, at any moment; null sets no limit beyond the free space."""

    @property
    def budget(self) -> int | None:
        """`disk_budget_gb` in bytes."""
        return None if self.disk_budget_gb is None else int(self.disk_budget_gb * 1e9)


class Logging(Section):
    """What a run tells while it works."""

    log_steps: Free[Count] = 1
    """Optimizer steps between rows of `metrics.jsonl`."""
    report_to: Free[Literal["none", "tensorboard", "trackio"]] = "none"
    """An extra tracker, written locally; nothing is sent to an outside service."""
