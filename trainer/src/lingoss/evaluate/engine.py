# SPDX-License-Identifier: MIT-0
"""The engine that draws completions with transformers: a loaded model, and the chat format's idea of prompt and stop."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lingoss import transcript
from lingoss.data import Prompt, chat
from lingoss.errors import LingossError
from lingoss.models import load_model, load_tokenizer

if TYPE_CHECKING:
    from lingoss.evaluate.decoding import Continuation, Draw


class Engine:
    """A loaded model with its tokenizer, and the chat format's idea of prompt and stop."""

    def __init__(self, model: Path, adapter: Path | None, format: str, dtype: str, threads: int | None) -> None:
        self._format = format
        self._tokenizer: Any = load_tokenizer(model)
        self._model: Any = load_model(model, adapter, dtype)
        import torch

        self._threads_before = torch.get_num_threads()
        if threads:
            torch.set_num_threads(threads)
        self.threads = torch.get_num_threads()
        if torch.cuda.is_available():
            self._model.to("cuda")
        self._context = int(self._model.config.max_position_embeddings)
        self._stop_ids = stop_ids(self._model, self._tokenizer, format)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        import torch

        torch.set_num_threads(self._threads_before)

    def encode(self, prompt: Prompt, max_new_tokens: int) -> list[int]:
        """Token ids of the rendered prompt. LingossError when it leaves no room for the completion."""
        ids = prompt_ids(prompt, self._format, self._tokenizer)
        if len(ids) + max_new_tokens > self._context:
            raise LingossError(
                f"the prompt has {len(ids)} tokens; with max_new_tokens={max_new_tokens} that is more than the model's "
                f"context of {self._context}"
            )
        return ids

    def complete(
        self,
        prompts: Sequence[Sequence[int]],
        draws: "Sequence[Draw]",
        max_new_tokens: int,
        temperature: float,
        tell: Callable[[float], None] | None = None,
    ) -> "list[tuple[str, Continuation]]":
        """Text and tokens of each draw; `tell` hears how far the batch is (0..1).

        Raises:
            RuntimeError, MemoryError and the like: the batch cannot be computed.
        """
        from lingoss.evaluate import decoding

        drawn = decoding.decode_batch(self._model, prompts, draws, self._stop_ids, max_new_tokens, temperature, tell)
        return [(completion_text(one.ids, self._format, self._tokenizer), one) for one in drawn]


def prompt_ids(prompt: Prompt, format: str, tokenizer: Any) -> list[int]:
    """Token ids of what a model is given to continue, by our pinned template."""
    return list(tokenizer(chat.prompt_text(prompt, format), add_special_tokens=False)["input_ids"])


def completion_text(ids: Sequence[int], format: str, tokenizer: Any) -> str:
    """Text of new tokens. Harmony keeps its special tokens, which are its form; elsewhere they are left out."""
    harmony = format == "harmony"
    return str(tokenizer.decode(ids, skip_special_tokens=not harmony, clean_up_tokenization_spaces=False))


def stop_ids(model: Any, tokenizer: Any, format: str) -> list[int]:
    """The format's stop tokens that this vocabulary has, the tokenizer's and the model's own; sorted."""
    own = model.generation_config.eos_token_id
    ids = transcript.stop_ids(format, tokenizer) | set(own if isinstance(own, list) else [own])
    return sorted(one for one in ids if one is not None)
