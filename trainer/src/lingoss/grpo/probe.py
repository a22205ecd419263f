# SPDX-License-Identifier: MIT-0
"""Ask the rollout engine and the trainer about the same tokens; `parity` compares the answers."""

import json
import math
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from lingoss.data import chat, sft_examples
from lingoss.errors import LingossError
from lingoss.grpo.parity import Drawn, ParityReport, Rows, compare, own_tolerance
from lingoss.grpo.weights import evaluating

_EACH = 2  # texts in each language
_LONGEST = 192
_DRAWN = 24  # tokens that the engine draws after each prompt
_ROWS = 4  # texts that the trainer reads at once: 200,000 words of vocabulary are 0.6 GB of logits then
_TEMPERATURES = (0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0)


class Engine(Protocol):
    """What draws the rollouts. `dtype` is the number format that it computes in."""

    dtype: str

    def encode(self, text: str) -> list[int]:
        """Its own tokenizer's ids of the text, without added special tokens."""

    def read(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        """Log-probability of every token but the first, at temperature 1."""

    def draw(self, prompts: Sequence[Sequence[int]], tokens: int) -> tuple[list[list[int]], list[list[float]]]:
        """One rollout of each prompt, cut at `tokens`, with the probabilities that it was drawn with."""


@dataclass(frozen=True)
class Probe:
    """Fixed texts: token ids, and how many of them are prompt. `temperature` is that of the rollouts."""

    texts: tuple[str, ...]
    sequences: tuple[tuple[int, ...], ...]
    prompts: tuple[int, ...]
    temperature: float

    @classmethod
    def build(cls, tokenizer: Any, format: str, template: str, longest: int, temperature: float) -> "Probe":
        """Two of our own training examples in each language, rendered as in training and cut at 192 tokens.

        `longest`: tokens that the engine has room for; texts whose prompt leaves none for an answer are left out.

        Raises:
            LingossError: that is every text.
        """
        texts, sequences, prompts = [], [], []
        for row in sft_examples(_EACH):
            rendered = chat.render(chat.messages(row, format), chat.template(template))
            ids: list[int] = tokenizer(rendered.text, add_special_tokens=False)["input_ids"]
            start = len(tokenizer(rendered.text[: rendered.trained[0][0]], add_special_tokens=False)["input_ids"])
            if start + _DRAWN > longest:
                continue
            texts.append(rendered.text)
            # vLLM reads a text by drawing one token more.
            sequences.append(tuple(ids[: min(longest - 1, max(_LONGEST, start + _DRAWN))]))
            prompts.append(start)
        if not texts:
            raise LingossError(
                f"the rollout engine has room for {longest} tokens, which is too few to compare it with the trainer: "
                "raise max_completion_length"
            )
        return cls(tuple(texts), tuple(sequences), tuple(prompts), temperature)

    def check(
        self, model: Any, tokenizer: Any, engine: Engine, known: Mapping[str, Rows] | None = None
    ) -> tuple[ParityReport, Rows]:
        """Ask both and compare; also returns what the trainer says of the fixed texts, to be `known` at a later check.

        `model` is the trained one, a PEFT model whose base is taken as one more known policy. It is left as it was
        found.
        """
        trainer = logprobs(model, self.sequences, self.prompts)
        again = logprobs(model, self.sequences, self.prompts, rows=1, dtype=engine.dtype)
        with model.disable_adapter():
            base = logprobs(model, self.sequences, self.prompts)
        theirs = [row[start - 1 :] for row, start in zip(engine.read(self.sequences), self.prompts, strict=True)]
        heads = [ids[:start] for ids, start in zip(self.sequences, self.prompts, strict=True)]
        tails, likely = engine.draw(heads, _DRAWN)
        whole = [[*head, *tail] for head, tail in zip(heads, tails, strict=True)]
        ids = [engine.encode(text) for text in self.texts]
        ours = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in self.texts]

        read = tempered(model, whole, self.prompts, sorted({self.temperature, *_TEMPERATURES}))
        report = compare(
            theirs,
            trainer,
            own_tolerance(trainer, again),
            known={"the base model": base, **(known or {})},
            drawn=Drawn(likely, read, self.temperature),
            ids=(ids, ours),
        )
        return report, trainer


def logprobs(
    model: Any,
    sequences: Sequence[Sequence[int]],
    starts: Sequence[int],
    rows: int = _ROWS,
    dtype: str | None = None,
) -> list[list[float]]:
    """The model's log-probability of each token from `starts` on at temperature 1, computed `rows` texts at a time.

    `dtype` computes in another number format where that is not the weights' own.
    """
    return tempered(model, sequences, starts, [1.0], rows, dtype)[1.0]


def tempered(
    model: Any,
    sequences: Sequence[Sequence[int]],
    starts: Sequence[int],
    temperatures: Sequence[float],
    rows: int = _ROWS,
    dtype: str | None = None,
) -> dict[float, list[list[float]]]:
    """The same at several temperatures, for the price of one."""
    import torch

    parameter = next(model.parameters())
    device = parameter.device
    other = dtype is not None and getattr(torch, dtype) != parameter.dtype
    cast = torch.autocast(device.type, dtype=getattr(torch, dtype)) if other and dtype else nullcontext()
    found: dict[float, list[list[float]]] = {value: [] for value in temperatures}
    with torch.no_grad(), evaluating(model), cast:
        for at in range(0, len(sequences), rows):
            part = sequences[at : at + rows]
            ids = torch.zeros(len(part), max(map(len, part)), dtype=torch.long, device=device)
            mask = torch.zeros_like(ids)
            for row, tokens in enumerate(part):
                ids[row, : len(tokens)] = torch.tensor(tokens, device=device)
                mask[row, : len(tokens)] = 1
            logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
            for row, tokens in enumerate(part):
                start = starts[at + row]
                scores = logits[row, start - 1 : len(tokens) - 1].float()
                wanted = ids[row, start : len(tokens), None]
                for value, kept in found.items():
                    kept.append((scores / value).log_softmax(-1).gather(-1, wanted).squeeze(-1).tolist())
    return found


class TrlEngine:
    """The engine that TRL 1.16 holds (`VLLMGeneration`), colocated or a server. Rollouts are drawn by TRL's own call
    with its own parameters, so that what is checked is what trains."""

    def __init__(self, generation: Any) -> None:
        self._generation = generation
        self._client = generation.vllm_client if generation.mode == "server" else None
        if self._client is None:
            dtype = generation.llm.llm_engine.vllm_config.model_config.dtype
        else:
            dtype = self._client.get_server_info()["model_config"]["dtype"]
        self.dtype = str(dtype).removeprefix("torch.")

    def encode(self, text: str) -> list[int]:
        """See `Engine`."""
        if self._client is None:
            return list(self._generation.llm.get_tokenizer().encode(text, add_special_tokens=False))
        asked = {"model": self._client.model, "prompt": text, "add_special_tokens": False}
        return list(_post(f"{self._client.base_url}/tokenize", asked)["tokens"])

    def read(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        """See `Engine`."""
        if self._client is None:
            from vllm import SamplingParams

            prompts = [{"prompt_token_ids": list(ids)} for ids in sequences]
            asked = SamplingParams(max_tokens=1, prompt_logprobs=0)
            outputs = self._generation.llm.generate(prompts, asked, use_tqdm=False)
            return [
                [at[token].logprob for at, token in zip(one.prompt_logprobs[1:], ids[1:], strict=True)]
                for one, ids in zip(outputs, sequences, strict=True)
            ]
        wanted = {"prompt": [list(ids) for ids in sequences], "max_tokens": 1, "prompt_logprobs": 0}
        answer = _post(f"{self._client.base_url}/v1/completions", {"model": self._client.model, **wanted})
        return [
            [at[str(token)]["logprob"] for at, token in zip(one["prompt_logprobs"][1:], ids[1:], strict=True)]
            for one, ids in zip(answer["choices"], sequences, strict=True)
        ]

    def draw(self, prompts: Sequence[Sequence[int]], tokens: int) -> tuple[list[list[int]], list[list[float]]]:
        """See `Engine`."""
        generation = self._generation
        limit, generation.max_completion_length = generation.max_completion_length, tokens
        try:
            _, ids, likely, _ = generation.generate([list(ids) for ids in prompts], images=None, num_generations=1)
        finally:
            generation.max_completion_length = limit
        # TRL writes None for NaN.
        rows = [[math.nan if (value := one[0]) is None else float(value) for one in row] for row in likely]
        return [list(one) for one in ids], rows


def _post(url: str, body: Mapping[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=600) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise LingossError(
            f"the vLLM server refused {url}: {error.code} {error.read()[:300].decode(errors='replace')}"
        ) from error
    except OSError as error:
        raise LingossError(f"the vLLM server at {url} does not answer ({error}): look at its log") from error
