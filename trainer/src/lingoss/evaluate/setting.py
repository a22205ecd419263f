# SPDX-License-Identifier: MIT-0
"""What an evaluation is decided by before anything is drawn: base, models, prompts, and where the samples lie.

Shared by the parts of the stage, which run in different pods and must mean the same run. Nothing here loads torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lingoss import runs
from lingoss.config import EvaluateConfig
from lingoss.config.evaluate import ALL_FINISHED
from lingoss.data import Prompt
from lingoss.errors import LingossError
from lingoss.evaluate.samples import SAMPLES, Key, count_rows, drawn, read_card
from lingoss.evaluate.sampling import completion_length
from lingoss.prepare import Prepared, base_of, prepared

TRAINED = ("sft", "grpo")
BASE = "base"


@dataclass(frozen=True, slots=True)
class Subject:
    """A model to evaluate: the base, or what a finished run trained, an adapter for the base or a `model` of its own."""

    name: str
    stage: str
    model: Path
    adapter: Path | None = None
    run: str | None = None
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draw:
    """`k` samples of each prompt from one model. They lie in `folder`, which later evaluations share."""

    subject: Subject
    prompts: Sequence[Prompt]
    k: int
    temperature: float
    max_new_tokens: int
    folder: Path

    @property
    def wanted(self) -> set[Key]:
        """(prompt id, sample) of every sample."""
        return {(prompt.id, sample) for prompt in self.prompts for sample in range(self.k)}

    @property
    def is_whole(self) -> bool:
        """Whether every sample has a text."""
        enough = count_rows(self.folder) >= len(self.prompts) * self.k  # spares reading the file while it grows
        return enough and self.wanted <= drawn(self.folder / SAMPLES)

    @property
    def has_ended(self) -> bool:
        """Whether the samples can be scored: all are there, or generation ended and some stay errors."""
        card = read_card(self.folder)
        return card is not None and ("finished" in card or self.is_whole)


@dataclass(frozen=True)
class Setting:
    """An evaluation's inputs. `left_out` says in one line which finished runs belong to another base, else ""."""

    config: EvaluateConfig
    source: Prepared
    subjects: Sequence[Subject]
    prompts: Sequence[Prompt]
    asked: Sequence[Prompt]
    left_out: str = ""

    @property
    def judged(self) -> Subject:
        """What GRPO would start from: the gate is about this one."""
        return [subject for subject in self.subjects if subject.stage != "grpo"][-1]

    @cached_property
    def heldout(self) -> list[Draw]:
        """The samples that are compared, in the order of the subjects."""
        drawing = self.config.generate
        sampling = drawing.k, drawing.temperature, drawing.max_new_tokens
        return [self._draw(subject, self.prompts, *sampling) for subject in self.subjects]

    @cached_property
    def gate(self) -> Draw:
        """The samples that the gate counts: GRPO's prompts, drawn as GRPO would."""
        asked = self.config.gate
        return self._draw(self.judged, self.asked, asked.k, asked.temperature, self._gate_length)

    @property
    def draws(self) -> list[Draw]:
        """Everything to be drawn, in order."""
        return [*self.heldout, self.gate]

    @property
    def _gate_length(self) -> int:
        """Longest completion of the gate: what GRPO would take."""
        if self.config.gate.max_completion_length:
            return self.config.gate.max_completion_length
        if self.judged.run is None or self.judged.stage != "sft":
            return self.config.generate.max_new_tokens
        try:
            return completion_length(runs.find_run(self.config.root, self.judged.run))
        except LingossError:  # made by hand or by another version: GRPO will ask for a length of its own
            return self.config.generate.max_new_tokens

    def _draw(
        self, subject: Subject, prompts: Sequence[Prompt], k: int, temperature: float, max_new_tokens: int
    ) -> Draw:
        from lingoss.data import digest, prompt_digest

        config = self.config
        sampling = [config.seed, k, temperature, max_new_tokens, config.format, config.dtype]
        place = digest([prompt_digest(prompts), [*sampling, self.source.model_digest]])[:12]
        folder = Path(config.root) / "evaluations" / f"{subject.name}-{place}"
        return Draw(subject, prompts, k, temperature, max_new_tokens, folder)

    def folder(self) -> runs.RunFolder:
        """The run's folder, not opened yet: named by settings, evaluated runs, prompts and detector."""
        from lingoss import detect
        from lingoss.data import digest, prompt_digest

        parents = (self.source.run, *(subject.run for subject in self.subjects if subject.run))
        data_digest = digest([prompt_digest(self.prompts), prompt_digest(self.asked), detect.version()])
        return runs.open_run(self.config.root, "evaluate", self.config, parents, data_digest)


def resolve(config: EvaluateConfig) -> Setting:
    """Find base, models and prompts.

    Raises:
        LingossError: no prepared model, a run that is not finished or has another base, prompts that cannot be read.
    """
    reference = "latest:prepare" if config.parent == "auto" else config.parent
    source = prepared(config.root, runs.find_run(config.root, reference).name)
    subjects, left_out = _subjects(config, source)
    return Setting(config, source, subjects, _prompts(config, source), _gate_prompts(config), left_out)


def _base_digest(root: Path, run: runs.RunInfo) -> str:
    """Digest of the base model that a finished run belongs to: from its lineage, else from its prepare run.

    Raises:
        LingossError: the run is not finished, or neither is known.
    """
    lineage = run.done_record().get("lineage")
    base = lineage.get("base") if isinstance(lineage, dict) else None
    found = base.get("digest") if isinstance(base, dict) else None
    return found if isinstance(found, str) else base_of(root, run).model_digest


def _subjects(config: EvaluateConfig, source: Prepared) -> tuple[list[Subject], str]:
    """The base model first, then the runs in the order in which they finished; and which had to be left out."""
    found: list[runs.RunInfo] = []
    foreign: list[runs.RunInfo] = []
    if config.runs == (ALL_FINISHED,):
        for run in runs.list_runs(config.root):
            if run.done and run.stage in TRAINED:
                (found if fits(config.root, run, source) else foreign).append(run)
    else:
        found = _named(config, source)
        found += [run for run in _origins(config.root, found) if run.name not in {one.name for one in found}]
    found.sort(key=lambda run: run.finished or "")
    told = ""
    if foreign:
        names = ", ".join(f"{run.name} ({_prepare_name(config.root, run)})" for run in foreign)
        told = f"left out, because their base model is not that of {source.run}: {names}; parent=<prepare run> has them"
    return [Subject(BASE, BASE, source.model), *(_subject(run, source) for run in found)], told


def _origins(root: Path, found: Sequence[runs.RunInfo]) -> list[runs.RunInfo]:
    """The SFT runs that GRPO runs came of: what each of those must be compared with."""
    names = dict.fromkeys(name for run in found if run.stage == "grpo" for name in run.parents)
    origins = [runs.find_run(root, name) for name in names]
    return [run for run in origins if run.stage == "sft" and run.done]


def _subject(run: runs.RunInfo, source: Prepared) -> Subject:
    whole = run.path / "model"  # GRPO may train all weights: then there is no adapter
    model, adapter = (whole, None) if whole.is_dir() else (source.model, run.path / "adapter")
    return Subject(run.name, run.stage, model, adapter, run.name, run.parents)


def _named(config: EvaluateConfig, source: Prepared) -> list[runs.RunInfo]:
    found = [runs.find_run(config.root, reference) for reference in config.runs if reference != BASE]
    for run in found:
        run.done_record()  # raises for a run that is not finished
        if run.stage not in TRAINED:
            raise LingossError(f"run {run.name} holds no model: name {BASE}, or runs of {' or '.join(TRAINED)}")
        if not fits(config.root, run, source):
            own = _prepare_name(config.root, run)
            raise LingossError(
                f"run {run.name} was trained on the model of {own}, not on that of {source.run}, the base of this "
                f"evaluation: set parent={own}, or take the run out of `runs`"
            )
    return found


def fits(root: Path, run: runs.RunInfo, source: Prepared) -> bool:
    """Whether the run's weights belong to the model that `source` brought; two prepare runs may bring the same."""
    try:
        return _base_digest(root, run) == source.model_digest
    except LingossError:  # nobody knows what it belongs to, so it is put on no base
        return False


def _prepare_name(root: Path, run: runs.RunInfo) -> str:
    found = (one.name for one in runs.lineage(root, run) if one.stage == "prepare")
    return next(found, "an unknown prepare run")


def _prompts(config: EvaluateConfig, source: Prepared) -> list[Prompt]:
    """The prepared sets restricted to the languages and the limit, then the user's files."""
    from lingoss.data.files import read_prompts

    wanted = config.prompts
    rows: list[Prompt] = []
    for name in wanted.sets:
        if name not in source.prompts:
            raise LingossError(
                f"prepare run {source.run} brought no prompt set {name}: it has {', '.join(source.prompts)}"
            )
        rows += _first(read_prompts(source.prompts[name]), wanted.languages, wanted.limit)
    for path in wanted.files:
        rows += read_prompts(path)[: wanted.limit]
    if not rows:
        raise LingossError(
            f"no prompt is left: sets {', '.join(wanted.sets)} for languages {', '.join(wanted.languages)}"
        )
    return rows


def _gate_prompts(config: EvaluateConfig) -> list[Prompt]:
    """`gate.prompts_per_language` prompts for each language, of the kind that GRPO would train on."""
    from lingoss.data import grpo_prompts
    from lingoss.data.files import read_prompts

    gate, languages = config.gate, config.prompts.languages
    if not gate.files:
        return grpo_prompts(gate.prompts_per_language, config.seed, languages)
    rows = _first([row for path in gate.files for row in read_prompts(path)], languages, gate.prompts_per_language)
    if not rows:
        raise LingossError(f"gate.files hold no prompt that asks for an answer in {', '.join(languages)}")
    return rows


def _first(rows: Sequence[Prompt], languages: Sequence[str], limit: int | None) -> list[Prompt]:
    taken = dict.fromkeys(languages, 0)
    kept = []
    for row in rows:
        if row.answer_language in taken and (limit is None or taken[row.answer_language] < limit):
            taken[row.answer_language] += 1
            kept.append(row)
    return kept
