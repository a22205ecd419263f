# SPDX-License-Identifier: MIT-0
"""What GRPO asks: prompts to train on, a validation slice to choose a checkpoint by, and which prompt comes when.

The training prompts come from families that neither SFT nor any prompt set of evaluation uses; the validation slice
from families of its own. `heldout`, on which the result is accepted or not, is touched by none of them.
"""

import functools
import hashlib
import math
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lingoss import runs
from lingoss.config import GrpoConfig, SftConfig
from lingoss.data import Prompt, digest, families, grpo_prompts, language_table, prompt_digest, prompt_set
from lingoss.data.prompt_sets import VALIDATION
from lingoss.errors import LingossError
from lingoss.grpo.overlap import overlaps

MEASURED = ("heldout", "core", "core-crossed")
"""Prompt sets on which models are compared and accepted; nothing may be trained on or chosen by them."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Which prompts a run sees when. `rows`: trained on. `validation`: never trained on, in a fixed order."""

    rows: Sequence[Prompt]
    validation: Sequence[Prompt]
    prompts_per_step: int
    seed: int
    counts: dict[str, int] = field(default_factory=dict)
    remarks: Sequence[str] = ()

    @functools.cached_property
    def digest(self) -> str:
        """sha256 of all rows, whatever their order: the data digest of the run id."""
        return digest([prompt_digest(self.rows), prompt_digest(self.validation)])

    def step(self, n: int) -> list[int]:
        """Indices into `rows` of optimizer step n, from 1 on, from seed and position alone; no index twice.

        One pass over the rows follows another. Within a pass the languages take turns in proportion to their rows, so
        a step's numbers of prompts of each language differ by at most one where the languages have equally many rows.
        """
        first = (n - 1) * self.prompts_per_step
        return [self._at(position) for position in range(first, first + self.prompts_per_step)]

    def spares(self, n: int) -> list[int]:
        """Indices of all other rows in the order in which dynamic sampling draws them at step n."""
        taken = set(self.step(n))
        rest = (index for index in range(len(self.rows)) if index not in taken)
        return sorted(rest, key=lambda index: _hash(self.seed, "spare", n, index))

    def passes(self, steps: int) -> float:
        """How often each row is asked in so many steps, on average."""
        return steps * self.prompts_per_step / len(self.rows)

    @functools.cached_property
    def _languages(self) -> tuple[str, ...]:
        return tuple(row.answer_language for row in self.rows)

    def _at(self, position: int) -> int:
        # Only whole steps are dealt out of a pass, so that no step meets a row twice; the few rows left over are
        # others in each pass.
        whole = len(self.rows) // self.prompts_per_step * self.prompts_per_step
        number, place = divmod(position, whole)
        return _one_pass(self._languages, self.seed, number)[place]


@functools.lru_cache(maxsize=2)
def _one_pass(languages: tuple[str, ...], seed: int, number: int) -> list[int]:
    """All rows once: each language's in the order of a hash, spread evenly over the pass."""
    by_language: dict[str, list[int]] = defaultdict(list)
    for index, language in enumerate(languages):
        by_language[language].append(index)
    placed = []
    for language, indices in by_language.items():
        indices.sort(key=lambda index: _hash(seed, "prompt", number, index))
        turn = _hash(seed, "language", language)
        placed += [((place + 0.5) / len(indices), turn, index) for place, index in enumerate(indices)]
    return [index for _, _, index in sorted(placed)]


def training_plan(config: GrpoConfig, sft: runs.RunInfo | None = None) -> Plan:
    """The prompts of a run. `sft` is the run that it starts from: what that was trained on is not asked again.

    Rows of your own files that SFT was trained on are left out and reported, and so are rows without a known answer
    unless `data.without_gold` is set. Rows of theirs with split "validation" join the validation slice.

    Raises:
        LingossError: a file cannot be read or has bad rows; a row is one that models are measured on; too few rows
            for one step.
    """
    data = config.data
    built_in = grpo_prompts(data.prompts_per_language, config.seed, data.languages) if data.prompts_per_language else []
    validation = _built_in_validation(config)
    own, remarks = _own_files(data.files)
    _refuse_measured(own, data.files)
    if sft is not None and own:
        own, remarks = _without(own, *_seen_by(config.root, sft), remarks)
    chosen_by = [row for row in own if row.split == VALIDATION]
    own = [row for row in own if row.split != VALIDATION]
    chosen_by, remarks = _without(chosen_by, built_in, "with split validation are trained on", remarks)
    validation += chosen_by
    own, remarks = _without(own, validation, "are in the validation slice", remarks)
    if not data.without_gold and (ungraded := [row for row in own if row.gold is None]):
        own = [row for row in own if row.gold is not None]
        remarks.append(f"{len(ungraded)} rows have no known answer and are left out: data.without_gold=true keeps them")
    known = {row.id for row in built_in}
    rows = [*built_in, *(row for row in own if row.id not in known)]
    _require_enough(config, rows, validation)
    counts = {
        "families": len(built_in),
        "files": len(rows) - len(built_in),
        "without_gold": sum(row.gold is None for row in rows),
        "validation": len(validation),
    }
    return Plan(rows, validation, config.prompts_per_step, config.seed, counts, remarks)


def tell(plan: Plan) -> None:
    """Print the languages of the rows before anything is trained on them; rows without a known answer apart."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 160)  # a log: no column of a table is cut
    graded = [row for row in plan.rows if row.gold is not None]
    ungraded = [row for row in plan.rows if row.gold is None]
    for title, rows in (
        ("Prompts to train on", graded),
        ("Prompts without a known answer", ungraded),
        ("Validation prompts, never trained on", plan.validation),
    ):
        if rows:
            table = language_table(rows).rich()
            table.title = title
            console.print(table)


def _built_in_validation(config: GrpoConfig) -> list[Prompt]:
    """The first prompts of the set for each language that the families know; those may lack one of a file of yours."""
    chosen = tuple(family for family in families.families() if family.validation)
    known = [code for code in config.data.languages if code in families.languages(chosen)]
    return prompt_set(VALIDATION, known)[: config.validation.prompts_per_language * len(known)] if known else []


def _own_files(paths: Sequence[Path]) -> tuple[list[Prompt], list[str]]:
    from lingoss.data.files import load_prompts

    rows: list[Prompt] = []
    remarks: list[str] = []
    for path in paths:
        loaded = load_prompts(path)
        known = {row.id for row in rows}
        rows += [row for row in loaded.strict() if row.id not in known]
        remarks += [f"{loaded.source}: {note}" for note in loaded.notes]
    return rows, remarks


def _refuse_measured(rows: Sequence[Prompt], paths: Sequence[Path]) -> None:
    """A prompt that is trained on or chosen by cannot show afterwards that training helped."""
    if not rows:
        return
    measured = [prompt for name in MEASURED for prompt in prompt_set(name)]
    shown = {hit.row.id: str(hit) for hit in overlaps(rows, measured)}
    shown = {row.id: f"{row.id} (split {row.split})" for row in rows if row.split in MEASURED} | shown
    if shown:
        raise LingossError(
            f"{len(shown)} of {len(rows)} rows in {', '.join(map(str, paths))} are prompts that models are measured on: "
            f"{'; '.join([*shown.values()][:3])}{'; …' if len(shown) > 3 else ''}; take them out, or nothing could be "
            "accepted afterwards"
        )


def _without(
    rows: Sequence[Prompt], known: Sequence[Prompt], why: str, remarks: Sequence[str]
) -> tuple[list[Prompt], list[str]]:
    """The rows that overlap with none of the known ones, and the remarks with one more if some do."""
    hits = overlaps(rows, known)
    gone = {hit.row.id for hit in hits}
    told = [f"{len(gone)} rows {why} and are left out: {'; '.join(map(str, hits[:3]))}"] if gone else []
    return [row for row in rows if row.id not in gone], [*remarks, *told]


def _seen_by(root: Path, sft: runs.RunInfo) -> tuple[Sequence[Prompt], str]:
    """What the SFT run was trained on, built again from its config.

    Raises:
        LingossError: a source of it is gone, so that nobody can tell.
    """
    from lingoss.prepare import prepared
    from lingoss.sft.examples import build_mix

    try:
        base = prepared(root, sft.parents[0])
        mix = build_mix(SftConfig.model_validate(sft.config), base.datasets)
    except (LingossError, LookupError) as error:
        raise LingossError(f"cannot tell which of your rows {sft.name} was trained on: {error}") from error
    return mix.examples, f"are among what {sft.name} was trained on"


def _require_enough(config: GrpoConfig, rows: Sequence[Prompt], validation: Sequence[Prompt]) -> None:
    if not validation:
        raise LingossError(
            f"there is no validation prompt in {', '.join(config.data.languages)} to choose a checkpoint by: mark rows "
            f'of data.files with "split": "{VALIDATION}"'
        )
    needed, found = config.prompts_per_step, len(rows)
    if found < needed:
        without = ", set data.without_gold=true" if config.data.files and not config.data.without_gold else ""
        least = math.ceil(needed / len(config.data.languages))
        raise LingossError(
            f"{found} prompts are too few for a step of prompts_per_step={needed}: set data.prompts_per_language to "
            f"{least} or more, add files{without}, or lower prompts_per_step"
        )


def _hash(seed: int, *parts: object) -> bytes:
    return hashlib.sha256(repr((seed, *parts)).encode()).digest()
