# SPDX-License-Identifier: MIT-0
"""What a model folder holds: its name at the hub, and one digest of the files that decide what it computes."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from lingoss.errors import LingossError

CARD = "lingoss-model.json"
DIGESTS = ".lingoss-digests.json"
_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Where a local model folder came from. `hub_id` is what an exported adapter names as its base."""

    hub_id: str
    revision: str | None = None
    source: str = ""
    licence: str = ""


def write_model_card(folder: Path, card: ModelCard) -> None:
    """Write the origin of the model in `folder` beside its weights."""
    (folder / CARD).write_text(json.dumps(asdict(card), indent=2) + "\n", encoding="utf-8")


def model_card(folder: Path) -> ModelCard:
    """The origin of the model in `folder`; a folder without one is known by its own name only."""
    try:
        fields = json.loads((folder / CARD).read_text(encoding="utf-8"))
        return ModelCard(**fields)
    except FileNotFoundError:
        return ModelCard(hub_id=Path(folder).resolve().name)
    except (OSError, ValueError, TypeError) as error:
        raise LingossError(f"{folder / CARD} is damaged: {error}; remove it or run prepare again") from error


def model_digest(path: Path | str) -> str:
    """sha256 (64 hex digits) over the names and contents of what decides a model's output or an adapter's effect.

    These are its safetensors, their index, its configuration and its tokenizer; an adapter folder counts alike.
    Digests of single files are kept beside them by size and time, because hashing 42 GB takes a minute; where the
    folder cannot be written they are computed again.

    Raises:
        LingossError: `path` is no folder with weights.
    """
    folder = Path(path)
    names = [p.name for p in folder.iterdir() if _decides(p.name)] if folder.is_dir() else []
    if not any(name.endswith(".safetensors") for name in names):
        raise LingossError(f"{folder} holds no model (no *.safetensors); give a converted model or an adapter folder")
    known = _known_digests(folder)
    entries = {name: _file_digest(folder / name, known.get(name)) for name in sorted(names)}
    if entries != known:
        try:
            (folder / DIGESTS).write_text(json.dumps(entries) + "\n", encoding="utf-8")
        except OSError:
            pass  # a read-only volume: the digest is right, only not remembered
    whole = json.dumps({name: entry[2] for name, entry in entries.items()}, sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def _decides(name: str) -> bool:
    return name.endswith((".safetensors", ".safetensors.index.json")) or name in (
        "config.json",
        "adapter_config.json",
        "tokenizer.json",
    )


def _known_digests(folder: Path) -> dict[str, list[int | str]]:
    try:
        known = json.loads((folder / DIGESTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _file_digest(path: Path, known: object) -> list[int | str]:
    """[size, time in ns, sha256] of a file; the digest is taken from `known` when size and time are unchanged."""
    stat = path.stat()
    if isinstance(known, list) and len(known) == 3 and known[:2] == [stat.st_size, stat.st_mtime_ns]:
        return known
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_CHUNK):
            digest.update(block)
    return [stat.st_size, stat.st_mtime_ns, digest.hexdigest()]
