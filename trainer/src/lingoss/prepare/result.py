# SPDX-License-Identifier: MIT-0
"""What a finished prepare run brought, as later stages read it back from its DONE.json, under `prepared`:

model     {path, digest, hub_id, revision}      path relative to the root
prompts   {set: {path, digest, rows}}
datasets  {name: {path, digest}}
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lingoss import runs
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
