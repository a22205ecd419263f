# SPDX-License-Identifier: MIT-0
"""The stage, in two parts. `fetch` has the network and the token; `convert` works offline on what was fetched.

What fetch brought is noted in the run folder (`fetched.json`), so that convert finds it and a second fetch does nothing.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, overload

from lingoss import runs
from lingoss.config import PrepareConfig
from lingoss.config.prepare import Pinned
from lingoss.errors import LingossError, TemporaryError
from lingoss.prepare import hub
from lingoss.prepare.model import fetch_model, place_model
from lingoss.prepare.place import appear, data_files, gather, partial_of
from lingoss.prepare.preflight import check_root, check_space, make_folders
from lingoss.prepare.result import Prepared, prepared
from lingoss.prepare.sources import listings, local, needs, source_digest, tree_digest
from lingoss.progress import Bytes
from lingoss.runs.files import read_json

PARTS = {
    "fetch": "bring what comes over the network (the model as published, data sets) and the prompt sets; needs no torch",
    "convert": "put the model into the number format that is trained, from what fetch brought, and finish",
}
FETCHED = "fetched.json"


def cache_folder() -> Path:
    """Where converted models and vocabularies are kept between runs: $LINGOSS_CACHE, else the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("LINGOSS_CACHE") or Path(base) / "lingoss")


@overload
def run(config: PrepareConfig, part: Literal["convert"] | None = None) -> Prepared: ...
@overload
def run(config: PrepareConfig, part: str | None) -> Prepared | None: ...
def run(config: PrepareConfig, part: str | None = None) -> Prepared | None:
    """Bring everything and return it; a finished run is only read back. `part` is one of `PARTS`; None does both.

    The part fetch returns None unless the run is finished.

    Raises:
        LingossError: a source is missing, damaged or may not be read, or there is too little space.
        TemporaryError: the network failed; the same call goes on where it was.
    """
    from lingoss.data import digest

    if part is not None and part not in PARTS:
        raise LingossError(f"part {part!r}: stage prepare has the parts {', '.join(PARTS)}")
    model = source_digest(config.model)
    sources = {"model": model, "datasets": [source_digest(one) for one in config.datasets]}
    folder = runs.open_run(config.root, "prepare", config, data_digest=digest(sources), lock_wait=config.lock_wait)
    found: dict[str, hub.Listing] = {}
    if part != "convert" and not folder.done and _fetched(folder) is None:
        check_root(Path(config.root))
        found = listings(config)
        check_space(Path(config.root), needs(config, found, model), config.disk.reserve_gb)
    with folder:
        if not folder.done:
            folder.status("running", total=2 + len(config.datasets) + len(config.prompt_sets))
            brought = _fetched(folder)
            if brought is None and part != "convert":
                brought = _fetch(config, folder, found, here=part is None)
            if brought is None:
                raise LingossError(f"nothing was fetched for {folder.name}: first `lingoss prepare --part fetch`")
            if part == "fetch":
                print(f"fetched: {brought['model']['hub_id']} ({folder.name})", flush=True)
                return None
            _convert(config, folder, brought, model)
        result = prepared(config.root, folder.name)
    print(
        f"prepared: {result.hub_id} in {result.model}; prompt sets {', '.join(result.prompts)} ({result.run})",
        flush=True,
    )
    return result


def plan(config: PrepareConfig) -> dict[str, Any]:
    """What `run` would do: sources, prompt rows, disk needed in GB (null when the Hub cannot be asked)."""
    from lingoss.data import prompt_set

    counts = {name: len(prompt_set(name, config.languages)) for name in config.prompt_sets}
    try:
        wanted = needs(config, listings(config), source_digest(config.model))
        size = round(sum(need.missing for need in wanted) / 1e9, 2)
    except TemporaryError:
        size = None
    return {
        "model": f"{config.model.source} as {config.model.dtype}",
        "datasets": [one.source for one in config.datasets],
        "prompts": counts,
        "disk_gb": size,
        "free_gb": round(runs.free_bytes(config.root) / 1e9, 1),
    }


def _fetched(folder: runs.RunFolder) -> dict[str, Any] | None:
    """What an earlier fetch of this run noted; None when there was none or some of it is gone."""
    found, _ = read_json(folder.path / FETCHED)
    if found is None:
        return None
    entries = [found["model"], *found["datasets"].values(), *found["prompts"].values()]
    return found if all((folder.root / entry["path"]).exists() for entry in entries) else None


def _fetch(
    config: PrepareConfig, folder: runs.RunFolder, found: Mapping[str, hub.Listing], here: bool
) -> dict[str, Any]:
    """Fetch and note it; `here` says that the same process will convert."""
    make_folders(Path(config.root))
    brought: dict[str, Any] = {"datasets": {}, "prompts": {}}
    brought["model"] = fetch_model(config, found, cache_folder() if here else None)
    folder.status(step=1)
    for done, dataset in enumerate(config.datasets, 2):
        name, entry = _dataset(config, dataset, found)
        if name in brought["datasets"]:
            raise LingossError(f"two data sets are named {name}: rename one of their folders")
        brought["datasets"][name] = entry
        folder.status(step=done)
    for done, name in enumerate(config.prompt_sets, 2 + len(config.datasets)):
        brought["prompts"][name] = _prompt_set(config, folder, name)
        folder.status(step=done)
    runs.write_json(folder.path / FETCHED, brought)
    return brought


def _dataset(config: PrepareConfig, source: Pinned, found: Mapping[str, hub.Listing]) -> tuple[str, dict[str, Any]]:
    root = Path(config.root)
    if source.kind == "hub":
        files = found[source.source]
        path, name = hub.download_folder(root, source), files.name
        hub.download(source, files, path)
    else:
        path = local(source)
        name = path.stem
    digest = tree_digest(path)
    target = root / "data" / f"{name}-{digest[:12]}"
    if not target.exists():
        wanted = data_files(path)
        with Bytes(f"data set {name}", sum(one.stat().st_size for one in wanted)) as report:
            gather(path, wanted, partial_of(target), report)
        appear(partial_of(target), target)
    return name, {"path": str(target.relative_to(root)), "digest": digest}


def _prompt_set(config: PrepareConfig, folder: runs.RunFolder, name: str) -> dict[str, Any]:
    from lingoss.data import jsonl, prompt_digest, prompt_set

    rows = prompt_set(name, config.languages)
    path = folder.path / "prompts" / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    jsonl.write(path, (row.to_dict() for row in rows))
    return {"path": str(path.relative_to(Path(config.root))), "digest": prompt_digest(rows), "rows": len(rows)}


def _convert(config: PrepareConfig, folder: runs.RunFolder, brought: Mapping[str, Any], digest: str) -> None:
    model = place_model(config, brought["model"], digest, cache_folder())
    written = [Path(entry["path"]).relative_to(Path("runs") / folder.name) for entry in brought["prompts"].values()]
    folder.finish(
        2 + len(brought["datasets"]) + len(brought["prompts"]),
        {str(name): runs.file_digest(folder.path / name) for name in written},
        lineage={"base": {key: model[key] for key in ("hub_id", "revision", "digest")}},
        prepared={**brought, "model": model},
    )
