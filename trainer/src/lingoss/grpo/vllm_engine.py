# SPDX-License-Identifier: MIT-0
"""What TRL's vLLM engine needs and has no setting for, and the check that it holds the weights that are trained."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lingoss.errors import LingossError, TemporaryError
from lingoss.grpo.arguments import VLLM_LOGPROBS
from lingoss.grpo.course import Course
from lingoss.grpo.probe import Probe, TrlEngine
from lingoss.grpo.setting import Setting
from lingoss.progress import note


@contextmanager
def engine_made_with(extra: Mapping[str, Any]) -> Iterator[None]:
    """Have the engine that TRL (1.16, `VLLMGeneration`) makes inside take these arguments, also in place of its own."""
    from trl.generation import vllm_generation

    made = getattr(vllm_generation, "LLM", None)
    if made is None:  # no vLLM here
        yield
        return
    vllm_generation.LLM = lambda **asked: made(**{**asked, **extra})
    try:
        yield
    finally:
        vllm_generation.LLM = made


@contextmanager
def readable_server_errors(url: str) -> Iterator[None]:
    """A vLLM server that is away or in trouble, in words. TRL's client (1.16) raises a bare Exception for the latter.

    Raises:
        TemporaryError: so that a Job tries again; the run goes on from its last checkpoint.
    """
    try:
        yield
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        if not isinstance(error, OSError) and not first.startswith("Request failed"):
            raise
        raise TemporaryError(f"the vLLM server at {url} does not work ({first}): look at its log") from error


def parity_check(setting: Setting, tokenizer: Any, model_length: int, course: Course) -> Callable[[Any], None]:
    """Called with the trainer after the first weight sync of a process, so also when a run is resumed.

    What it raises: LingossError, when engine and trainer mean different policies; the message says which layer broke.
    """
    config = setting.config

    def check(trainer: Any) -> None:
        generation = trainer.vllm_generation
        if config.rollout.mode == "server":
            require_sampling_logprobs(generation)
        probe = Probe.build(tokenizer, config.format, config.template, model_length, config.sampling.temperature)
        known = {"the SFT policy": course.probe} if course.probe else {}
        report, own = probe.check(trainer.model, tokenizer, TrlEngine(generation), known)
        note("parity", report.to_dict())
        report.raise_if_broken()
        course.probe = course.probe or own  # of the first start, so of the SFT policy

    return check


def require_sampling_logprobs(generation: Any) -> None:
    """Refuse a server whose log-probabilities are not those of its sampling distribution.

    Raises:
        LingossError: it was started with another --logprobs-mode.
    """
    mode = generation.vllm_client.get_server_info()["model_config"]["logprobs_mode"]
    if mode != VLLM_LOGPROBS:
        raise LingossError(
            f"the vLLM server gives {mode}, which biases the importance ratios: start it with "
            f"--logprobs-mode {VLLM_LOGPROBS}"
        )
