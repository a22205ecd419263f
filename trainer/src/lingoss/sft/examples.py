# SPDX-License-Identifier: MIT-0
"""The rows that a run trains on, as its config mixes them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lingoss.config import SftConfig
from lingoss.data import Example, sft_examples
from lingoss.errors import LingossError


@dataclass(frozen=True, slots=True)
class Mix:
    """One epoch of examples, the rows that each source gave, and what its loader remarked."""

    examples: Sequence[Example]
    counts: dict[str, int]
    remarks: Sequence[str] = field(default=())


Datasets = Mapping[str, Path]
"""What the prepare run brought, by name."""


def build_mix(config: SftConfig, datasets: Datasets | None = None) -> Mix:
    """Load every source that the config names; a source that is named twice is in the epoch twice.

    `datasets` is what the prepare run brought; None where there is none yet.

    Rows of Multilingual-Thinking that cannot be used are left out and reported, as its loader decides; of your own
    files every row must be usable. Rows of it that ask for a language outside `data.languages` are left out too.

    Raises:
        LingossError: a source cannot be read, has bad rows, or gives none.
    """
    sources = {name: _LOADERS[name](config, datasets or {}) for name in dict.fromkeys(config.data.sources)}
    examples = [row for name in config.data.sources for row in sources[name][0]]
    counts = {name: len(sources[name][0]) * times for name, times in Counter(config.data.sources).items()}
    for name, count in counts.items():
        if not count:
            raise LingossError(f"the source {name} gives no example in {', '.join(config.data.languages)}")
    return Mix(examples, counts, [remark for _, remarks in sources.values() for remark in remarks])


def _families(config: SftConfig, _: Datasets) -> tuple[list[Example], list[str]]:
    return sft_examples(config.data.examples_per_language, config.seed, config.data.languages), []


def _multilingual_thinking(config: SftConfig, datasets: Datasets) -> tuple[list[Example], list[str]]:
    from lingoss.data import multilingual_thinking

    path = config.data.multilingual_thinking
    assert path is not None  # the config refuses a mix that names an unset source
    if path == "prepared":
        path = next((found for name, found in datasets.items() if "multilingual-thinking" in name.lower()), None)
        if path is None:
            raise LingossError(
                f"data.multilingual_thinking is prepared, but the prepare run brought {', '.join(datasets) or 'no data set'}: "
                "add HuggingFaceH4/Multilingual-Thinking to the prepare stage's datasets, or set it to null"
            )
    loaded = multilingual_thinking.load(path)
    train, _ = multilingual_thinking.split(loaded.rows, config.seed)
    wanted = set(config.data.languages)
    kept = [row for row in train if {row.reasoning_language, row.answer_language} <= wanted]
    remarks = [f"{loaded.source}: {row}" for row in (*loaded.bad, *loaded.notes)]
    if len(kept) < len(train):
        remarks.append(
            f"{loaded.source}: {len(train) - len(kept)} rows are in languages that data.languages leaves out"
        )
    return kept, remarks


def _files(config: SftConfig, _: Datasets) -> tuple[list[Example], list[str]]:
    from lingoss.data.files import load_examples

    loaded = [load_examples(path) for path in config.data.files]
    rows = [row for one in loaded for row in one.strict()]
    return rows, [f"{one.source}: {note}" for one in loaded for note in one.notes]


_LOADERS: dict[str, Callable[[SftConfig, Datasets], tuple[list[Example], list[str]]]] = {
    "families": _families,
    "multilingual_thinking": _multilingual_thinking,
    "files": _files,
}
