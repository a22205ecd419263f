# SPDX-License-Identifier: MIT-0
"""Config of stage serve: an OpenAI-compatible server for one run."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from lingoss.config.common import Count, Free, StageConfig, Text


class ServeConfig(StageConfig):
    """Serve a run with vLLM. Serving makes no run folder."""

    stage: Free[Literal["serve"]] = "serve"
    """The stage that this config is for. A file may name it; a file that names another stage is refused."""
    parent: Free[Text] = "auto"
    """The run to serve: a name, an id, a unique beginning of either, or `latest:<stage>`; a prepare run is the base model.
    `auto` is the newest GRPO run that the last evaluation accepted, else the newest finished SFT run."""
    name: Free[Text] = "lingoss"
    """The model's name in requests; with an adapter the base model answers to its own name beside it."""
    host: Free[Text] = "127.0.0.1"
    """Address to listen on; a pod needs `0.0.0.0`."""
    port: Free[Annotated[int, Field(strict=True, ge=1, le=65535)]] = 8000
    """Port to listen on."""
    max_model_len: Free[Count | None] = None
    """Longest prompt and completion in tokens; null takes the model's own limit."""
    tensor_parallel: Free[Count] = 1
    """GPUs that share one copy of the model."""
    vllm_args: Free[tuple[Text, ...]] = ()
    """Further arguments of `vllm serve`, one list item each; never a key, which everybody could read there."""

    @model_validator(mode="after")
    def _no_key_on_the_command_line(self) -> "ServeConfig":
        if any(argument.partition("=")[0] == "--api-key" for argument in self.vllm_args):
            raise ValueError("vllm_args holds --api-key: give the key in the environment variable VLLM_API_KEY")
        return self
