# SPDX-License-Identifier: MIT-0
"""What `run` would do, told without loading a model: rows, languages, tokens, steps, epochs, disk, memory."""

from typing import Any

from lingoss import runs
from lingoss.config import SftConfig
from lingoss.errors import LingossError
from lingoss.sft.examples import build_mix
from lingoss.sft.memory import GIB
from lingoss.sft.order import total_steps
from lingoss.sft.parallel import Room
from lingoss.sft.setting import Setting, context_length, examples_seen, resolve
from lingoss.sft.share import processes

_CHARACTERS_PER_TOKEN = 2.5  # of European text in SmolLM2's vocabulary, measured on the built-in families


def plan(config: SftConfig) -> dict[str, Any]:
    """Plain values for YAML. Tokens are counted with the parent's tokenizer; before there is one, they are estimated.

    Raises:
        LingossError: the data has faults, rows are too long, or the adapter does not fit the model.
    """
    try:
        setting = resolve(config)
    except LingossError as missing:
        # Bad data must be told; a missing parent only means that prepare has not been run yet.
        mix = build_mix(config)
        count = len(mix.examples)
        steps = total_steps(count, config.global_batch, config.epochs, config.max_steps)
        seen = examples_seen(config, count, steps)
        characters = sum(len(row.question) + len(row.reasoning) + len(row.answer) + 200 for row in mix.examples)
        tokens = {"tokens": int(characters / _CHARACTERS_PER_TOKEN), "counted": "estimate, before prepare"}
        return {"parent": str(missing), **_rows(config, mix.examples, mix.counts, steps, seen), "data": tokens}
    counted = _tokens(setting)
    return {
        "parent": setting.base.run,
        "base": setting.base.hub_id,
        **_folder(setting),
        **_rows(config, setting.mix.examples, setting.mix.counts, setting.steps, setting.trained_examples),
        "data": counted,
        "adapter_parameters": setting.size.parameters,
        "processes": processes(config.global_batch),
        "memory_of_a_card": _memory(setting, counted["longest"]),
        "disk": {
            "needed": runs.gigabytes(setting.size.needed(config.checkpoint.keep)),
            "one_checkpoint": runs.gigabytes(setting.size.checkpoint),
            "free": runs.gigabytes(runs.free_bytes(config.root)),
        },
    }


def _folder(setting: Setting) -> dict[str, Any]:
    folder = setting.folder()
    state = runs.read_run(folder.path).state if folder.path.is_dir() else "new"
    return {"run": folder.name, "state": "done" if folder.done else state}


def _rows(config: SftConfig, examples: Any, counts: dict[str, int], steps: int, seen: int) -> dict[str, Any]:
    from lingoss.data import language_table

    table = language_table(examples)
    return {
        "rows": {"all": table.total, **counts, "crossed": table.crossed, "two_languages": table.split_requests},
        "languages": table.to_rows(),
        "steps": steps,
        "epochs": round(seen / table.total, 3),
        "examples_seen": seen,
    }


def _memory(setting: Setting, length: int) -> dict[str, Any]:
    """By layout; refuses a config that no number of processes can train on a card of `card_gib`."""
    config = setting.config
    card = None if config.card_gib is None else int(config.card_gib * GIB)
    room = Room(setting, length, card)
    told = room.table()
    if card is not None:
        numbers = processes(config.global_batch)
        if config.parallelism == "single" or numbers == [1]:
            room.choose(1, launched=False)
        elif config.parallelism == "ddp":
            room.choose(numbers[1], launched=True)
        else:
            room.choose(numbers[-1], launched=True)
    return told


def _tokens(setting: Setting) -> dict[str, Any]:
    from lingoss.models import load_tokenizer
    from lingoss.sft.dataset import encode_all, fit_length, histogram

    config, rows = setting.config, setting.mix.examples
    encoded = encode_all(rows, config.format, config.template, load_tokenizer(setting.base.model))
    length = fit_length(encoded, rows, config.max_length, context_length(setting.base.model))
    return {**histogram(encoded), "max_length": length}
