# SPDX-License-Identifier: MIT-0
"""Config of stage serve: an OpenAI-compatible server for one run."""

from typing import Annotated, Literal

from pydantic import Field

from lingoss.config.common import Count, Free, StageConfig, Text


class ServeConfig(StageConfig):
    """Serve the run that `parent` names with vLLM. Serving makes no run folder."""

    stage: Free[Literal["serve"]] = "serve"
    """The stage that this config is for. A file may name it; a file that names another stage is refused."""
    host: Free[Text] = "127.0.0.1"
    """Address to listen on; a pod needs `0.0.0.0`."""
    port: Free[Annotated[int, Field(strict=True, ge=1, le=65535)]] = 8000
    """Port to listen on."""
    max_model_len: Free[Count | None] = None
    """Longest prompt and completion in tokens; null takes the model's own limit."""
    tensor_parallel: Free[Count] = 1
    """GPUs that share one copy of the model."""
    vllm_args: Free[tuple[Text, ...]] = ()
    """Further arguments of `vllm serve`, one list item each."""
