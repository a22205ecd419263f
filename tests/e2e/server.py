# SPDX-License-Identifier: MIT-0
"""A client of the OpenAI endpoint, and the same log-probabilities by transformers and PEFT."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any


def ask(address: str, path: str, body: Any = None, key: str = "") -> Any:
    """One request; `body` makes it a POST. Raises `urllib.error.HTTPError` with the server's status."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(address + path, data, headers), timeout=120) as answer:
        return json.load(answer)


def status(address: str, path: str, key: str = "") -> int:
    """The HTTP status of a GET."""
    try:
        ask(address, path, key=key)
    except urllib.error.HTTPError as error:
        return error.code
    return 200


def models(address: str) -> set[str]:
    """The names that the server answers to."""
    return {one["id"] for one in ask(address, "/v1/models")["data"]}


def chat(address: str, model: str, question: str, max_tokens: int) -> Any:
    """The answer to one question, greedy."""
    body = {"model": model, "messages": [{"role": "user", "content": question}]}
    return ask(address, "/v1/chat/completions", {**body, "max_tokens": max_tokens, "temperature": 0})


def log_probabilities(address: str, model: str, text: str) -> list[float]:
    """Of each token of `text` but the first, given those before."""
    body = {"model": model, "prompt": text, "max_tokens": 1, "echo": True, "logprobs": 0, "temperature": 0}
    (choice,) = ask(address, "/v1/completions", body)["choices"]
    found: list[float | None] = choice["logprobs"]["token_logprobs"][:-1]  # the last is the one token that it must add
    assert found[0] is None
    return [one for one in found if one is not None]


def by_transformers(model: Path, adapter: Path | None, text: str) -> list[float]:
    """The same on this machine, in float32."""
    import torch

    from lingoss.models import load_model, load_tokenizer

    tokenizer: Any = load_tokenizer(model)
    loaded: Any = load_model(model, adapter)
    ids = torch.tensor([tokenizer(text, add_special_tokens=False)["input_ids"]])
    with torch.inference_mode():
        rows = loaded(ids).logits[0].log_softmax(-1)
    return [float(rows[place, token]) for place, token in enumerate(ids[0, 1:])]
