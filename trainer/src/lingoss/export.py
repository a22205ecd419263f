# SPDX-License-Identifier: MIT-0
"""Take a trained model out of a run: the adapter, or the base with the adapter merged in, with a model card.

The card says what was measured on it, from the newest evaluation that has this run, and what was not.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lingoss import __version__, runs
from lingoss.checkpoints import check_tensors, tensor_shapes
from lingoss.checkpoints.adapter import CONFIG, RECORD, WEIGHTS
from lingoss.checkpoints.merge import merge
from lingoss.data import chat
from lingoss.errors import LingossError
from lingoss.models import ModelCard, load_tokenizer, write_model_card
from lingoss.prepare import Prepared, base_of

_TABLE = (
    ("format_ok", "form kept"),
    ("reasoning", "reasoning in the language asked for"),
    ("answer", "answer in the language asked for"),
    ("strict", "all three"),
    ("correct", "right answer"),
)


@dataclass(frozen=True, slots=True)
class _Subject:
    run: runs.RunInfo
    base: Prepared
    record: Mapping[str, Any]
    template: str
    languages: Sequence[str]


def export_run(root: Path, reference: str, output: Path, merged: bool = False) -> list[Path]:
    """Write the adapter of a finished run (or the merged model) to `output`; returns the files.

    The folder appears whole, after what was written has been read back and compared. A merged model has the number
    format of the base, and merging goes on where it was stopped.

    Raises:
        LingossError: `output` is not empty, the run is not finished or has changed since, or there is too little space.
    """
    subject = _subject(root, reference)
    if output.exists() and not output.is_dir():
        raise LingossError(f"{output} is a file: name a new folder")
    if output.exists() and any(output.iterdir()):
        raise LingossError(f"{output} is not empty, and export never overwrites: name a new folder")
    partial = output.absolute().with_name(f".{output.absolute().name}.partial")
    try:
        if merged:
            _write_merged(subject, partial)
        else:
            _write_adapter(subject, partial)
        _write_card(root, subject, partial, merged)
        for path in partial.iterdir():
            path.chmod(0o644)
        os.replace(partial, output)
    except OSError as error:
        raise LingossError(f"cannot write {output}: {error.strerror or error}") from error
    finally:
        if not merged:  # a merged model that is not ready stays aside, and the same command goes on with it
            shutil.rmtree(partial, ignore_errors=True)
    return sorted(output.iterdir())


def _subject(root: Path, reference: str) -> _Subject:
    run = runs.find_run(root, reference)
    record = run.done_record()
    if not (run.path / "adapter" / WEIGHTS).is_file():
        raise LingossError(f"run {run.name} has no adapter to export: name a finished run of sft or grpo")
    if problems := runs.verify(run.path):
        raise LingossError(f"run {run.name} is not what it was when it finished: {'; '.join(problems[:3])}")
    base = base_of(root, run)
    config = run.config
    languages = config.get("data", {}).get("languages") or config.get("languages") or []
    return _Subject(run, base, record, str(config.get("template", "chatml")), languages)


def _write_adapter(subject: _Subject, target: Path) -> None:
    source = subject.run.path / "adapter"
    runs.require_space(target, (source / WEIGHTS).stat().st_size + 10_000_000, "the export")
    shutil.rmtree(target, ignore_errors=True)  # of an export that was killed
    target.mkdir(parents=True)
    for name in (WEIGHTS, CONFIG):
        shutil.copyfile(source / name, target / name)
        if runs.file_digest(target / name) != subject.record["digests"][f"adapter/{name}"]:
            raise LingossError(f"{name} was not copied faithfully to {target.parent}; is the disk failing?")
    check_tensors(target / WEIGHTS, tensor_shapes(source / WEIGHTS))
    (target / "chat_template.jinja").write_text(chat.template(subject.template), encoding="utf-8")


def _write_merged(subject: _Subject, target: Path) -> None:
    stored = json.loads((subject.base.model / "config.json").read_text(encoding="utf-8")).get("dtype", "float32")
    merge(subject.base.model, subject.run.path / "adapter", target, stored)
    tokenizer: Any = load_tokenizer(subject.base.model)
    tokenizer.chat_template = chat.template(subject.template)
    tokenizer.save_pretrained(target)
    write_model_card(target, ModelCard(f"{subject.base.hub_id} + {subject.run.name}", None, "lingoss export --merged"))


def _write_card(root: Path, subject: _Subject, target: Path, merged: bool) -> None:
    digests = {path.name: runs.file_digest(path) for path in sorted(target.iterdir())}
    summaries = _summaries(root, subject.run.name)
    record = {
        "run": subject.run.name,
        "kind": "merged" if merged else "adapter",
        "lineage": subject.record["lineage"],
        "digests": digests,
        "measured": summaries,
        "lingoss": __version__,
    }
    runs.write_json(target / RECORD, record)
    (target / "README.md").write_text(
        model_card_text(subject.run, subject.record, subject.languages, digests, summaries, merged), encoding="utf-8"
    )


def _summaries(root: Path, name: str) -> list[dict[str, Any]]:
    """Base and run in the newest finished evaluation that measured this run; empty when none did."""
    for run in reversed(runs.list_runs(root)):
        path = run.path / "summary.json"
        if run.stage == "evaluate" and run.done and path.exists():
            try:
                found = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if any(one.get("run") == name for one in found):
                return [one for one in found if one.get("run") in ("base", name)]
    return []


def model_card_text(
    run: runs.RunInfo,
    record: Mapping[str, Any],
    languages: Sequence[str],
    digests: Mapping[str, str],
    summaries: Sequence[Mapping[str, Any]],
    merged: bool,
) -> str:
    """The card as Markdown with the front matter that model hubs read."""
    base = (record["lineage"].get("base") or {}) if isinstance(record.get("lineage"), Mapping) else {}
    hub_id, revision = str(base.get("hub_id", "unknown")), base.get("revision")
    front = ["---", f"base_model: {hub_id}", "library_name: " + ("transformers" if merged else "peft")]
    front += ["language:", *(f"- {code}" for code in languages), "tags:", "- lingoss", "---"]
    kind = "The base model with a LoRA adapter merged in" if merged else "A LoRA adapter"
    at = f" at revision `{revision}`" if revision else ""
    lines = [
        *front,
        f"# {run.name}",
        "",
        f"{kind} that teaches {hub_id}{at} to reason and to answer in the language it is asked for "
        f"({', '.join(languages) or 'languages not recorded'}). Made by lingoss {__version__}, "
        f"{record.get('final_step')} optimizer steps.",
        "",
        "## Measured",
        "",
        *_measured(summaries),
        "",
        "## Digests (sha256)",
        "",
        *(f"- `{name}`: `{digest}`" for name, digest in digests.items()),
        f"- base model: `{base.get('digest', 'unknown')}`",
        f"- training data: `{record['lineage'].get('data_digest', 'unknown')}`",
        "",
        f"`{RECORD}` has the whole lineage. Use the chat template that lies beside the weights: the model was trained on it.",
    ]
    return "\n".join(lines) + "\n"


def _measured(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The table of rates with 95 % intervals, all languages together and then strict compliance by language."""
    if not summaries:
        return ["Not measured: no finished evaluation has this run. `lingoss evaluate` measures it; then export again."]
    names = [str(one["run"]) for one in summaries]
    first = summaries[-1]
    lines = [
        f"Prompt set `{first.get('prompt_set') or 'own'}`, {first['cells']['all']['all']['prompts']} prompts, "
        f"{first['samples_per_prompt']} sample(s) each; k/n (95 % interval).",
        "",
        f"| | {' | '.join(names)} |",
        "|---|" + "---|" * len(names),
    ]
    for metric, title in _TABLE:
        lines.append(f"| {title} | {' | '.join(_cell(one, 'all', metric) for one in summaries)} |")
    for code in [code for code in first["cells"] if code != "all"]:
        lines.append(f"| all three, {code} | {' | '.join(_cell(one, code, 'strict') for one in summaries)} |")
    return [
        *lines,
        "",
        "Compliance with a language is not quality: read the line of right answers beside it. "
        "The texts were not judged by native speakers.",
    ]


def _cell(summary: Mapping[str, Any], language: str, metric: str) -> str:
    rate = summary["cells"].get(language, {}).get("all", {}).get("rates", {}).get(metric)
    return (
        f"{rate['k']}/{rate['n']} ({100 * rate['low']:.0f} to {100 * rate['high']:.0f} %)" if rate else "none counted"
    )
