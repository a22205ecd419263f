# SPDX-License-Identifier: MIT-0
"""Prompts as the parquet that veRL reads: messages, the request as ground truth, and whose reward it is."""

from collections.abc import Iterable
from pathlib import Path

from lingoss.data import Prompt, chat
from lingoss.rewards import request_to_json
from lingoss.runs.files import writing

SOURCE = "lingoss"


def write_parquet(path: Path, prompts: Iterable[Prompt], format: str) -> None:
    """One row for each prompt, in order. veRL renders the messages with our template (`write_tokenizer`).

    Raises:
        LingossError: the file cannot be written.
    """
    import pyarrow as pa
    from pyarrow import parquet

    rows = [
        {
            "data_source": SOURCE,
            "prompt": chat.messages(prompt, format),
            "ability": prompt.family,
            "reward_model": {"style": "rule", "ground_truth": request_to_json(prompt.request())},
            "extra_info": {"id": prompt.id, "index": number},
        }
        for number, prompt in enumerate(prompts)
    ]
    partial = path.with_name(f".{path.name}.partial")
    with writing(path):
        parquet.write_table(pa.Table.from_pylist(rows), partial)
        partial.replace(path)


def write_tokenizer(model: Path, target: Path, template: str) -> None:
    """The model's tokenizer with our pinned chat template, in a folder of its own. Raises LingossError."""
    from lingoss.models import load_tokenizer

    tokenizer = load_tokenizer(model)
    tokenizer.chat_template = chat.template(template)
    with writing(target):
        tokenizer.save_pretrained(target)
        for name in ("config.json", "generation_config.json"):  # veRL asks the same folder what model it is
            if (model / name).is_file():
                (target / name).write_bytes((model / name).read_bytes())
