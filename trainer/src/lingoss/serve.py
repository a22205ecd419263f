# SPDX-License-Identifier: MIT-0
"""Stage serve: find the run that is worth serving, and become vLLM's OpenAI-compatible server for it.

Arguments are those of vLLM 0.26.0 (`vllm/entrypoints/openai/cli_args.py`, `vllm/config/lora.py`).
"""

import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lingoss import runs
from lingoss.checkpoints.adapter import CONFIG
from lingoss.config import ServeConfig
from lingoss.data import chat
from lingoss.errors import LingossError
from lingoss.prepare import base_of, prepared
from lingoss.runs.files import read_json
from lingoss.vllm_server import become

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Values that vLLM takes for --max-lora-rank."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is served: `model` is what vLLM loads, `adapter` what it adds to it; `hub_id` names the base model."""

    run: runs.RunInfo
    why: str
    model: Path
    adapter: Path | None
    hub_id: str


def run(config: ServeConfig) -> None:
    """Become `vllm serve` for the chosen run; does not return.

    Raises:
        LingossError: there is no run to serve, or no vLLM here.
    """
    choice = choose(config)
    arguments = command(config, choice)
    if config.host not in ("127.0.0.1", "localhost", "::1") and not os.environ.get("VLLM_API_KEY"):
        print("no VLLM_API_KEY is set: whoever reaches this port may use the model", file=sys.stderr, flush=True)
    become(arguments, f"serving {choice.run.name}, {choice.why}")


def plan(config: ServeConfig) -> dict[str, Any]:
    """What `run` would do: the run, why it, and the exact command."""
    choice = choose(config)
    return {"run": choice.run.name, "why": choice.why, "command": shlex.join(command(config, choice))}


def choose(config: ServeConfig) -> Choice:
    """The run that `parent` names; with auto the newest accepted GRPO run, else the newest SFT run.

    Raises:
        LingossError: there is none, it is not finished, or some of it is gone.
    """
    if config.parent == "auto":
        found, why = _best(config.root)
    else:
        found, why = runs.find_run(config.root, config.parent), "which parent names"
    found.done_record()  # raises for a run that is not finished
    if found.problems:
        raise LingossError(f"run {found.name} is not whole: {'; '.join(found.problems[:3])}")
    if found.stage == "prepare":
        source = prepared(config.root, found.name)
        return Choice(found, why, source.model, None, source.hub_id)
    if (found.path / "model" / "config.json").is_file():
        return Choice(found, why, found.path / "model", None, found.name)
    if not (found.path / "adapter" / CONFIG).is_file():
        raise LingossError(f"run {found.name} holds no model: name a finished run of sft, grpo or prepare (the base)")
    source = base_of(config.root, found)
    return Choice(found, why, source.model, found.path / "adapter", source.hub_id)


def command(config: ServeConfig, choice: Choice) -> list[str]:
    """The exact command line. Clients ask for the model by `config.name`, whichever kind of run it is."""
    made = ["vllm", "serve", str(choice.model.absolute()), "--host", config.host, "--port", str(config.port)]
    if choice.adapter is None:
        made += ["--served-model-name", config.name]
    else:
        adapter = {"name": config.name, "path": str(choice.adapter.absolute())}
        made += ["--served-model-name", choice.hub_id, "--enable-lora", "--lora-modules", json.dumps(adapter)]
        made += ["--max-lora-rank", str(_rank(choice.adapter / CONFIG))]
    made += ["--tensor-parallel-size", str(config.tensor_parallel)]
    if config.max_model_len is not None:
        made += ["--max-model-len", str(config.max_model_len)]
    # vLLM writes and reads Harmony itself; any other model must see the template that it was trained with.
    if (template := choice.run.config.get("template")) not in (None, "gpt-oss"):
        made += ["--chat-template", str(chat.FOLDER / f"{template}.jinja")]
    return [*made, *config.vllm_args]


def _best(root: Path) -> tuple[runs.RunInfo, str]:
    """The run to serve and the reason."""
    found = sorted((one for one in runs.list_runs(root) if one.done), key=lambda one: one.finished or "")
    decisions = _decisions(found)
    candidates = [one for one in found if one.stage == "grpo"]
    for one in reversed(candidates):
        if decisions.get(one.name) == "accept":
            return one, "the newest accepted GRPO run"
    newest = runs.newest_finished(one for one in found if one.stage == "sft")
    if newest is None:
        raise LingossError(
            f"no finished SFT run and no accepted GRPO run below {Path(root) / 'runs'}: run `lingoss sft` first, or serve "
            "the base model with parent=latest:prepare"
        )
    if not candidates:
        return newest, "the newest SFT run"
    last = candidates[-1].name
    state = "kept out by evaluation" if last in decisions else "not evaluated yet (`lingoss evaluate`)"
    return newest, f"the newest SFT run; {last} is {state}"


def _decisions(found: Sequence[runs.RunInfo]) -> dict[str, str]:
    """{GRPO run: accept or keep} by the last evaluation that judged it; `found` is in the order of finishing."""
    decisions = {}
    for one in found:
        verdict, _ = read_json(one.path / "accept.json") if one.stage == "evaluate" else (None, None)
        match verdict:
            case {"decision": str(decision), "runs": [str(candidate), *_]}:
                decisions[candidate] = decision
    return decisions


def _rank(path: Path) -> int:
    """The smallest value of vLLM's list that is enough for the adapter."""
    found, problem = read_json(path)
    if found is None or not isinstance(found.get("r"), int):
        raise LingossError(f"{path} tells no rank r ({problem or 'no such key'}): restore it, or train again")
    needed = max([found["r"], *(found.get("rank_pattern") or {}).values()])
    fitting = next((one for one in RANKS if one >= needed), None)
    if fitting is None:
        raise LingossError(
            f"the adapter has rank {needed}, and vLLM serves at most {RANKS[-1]}: `lingoss export --merged`"
        )
    return fitting
