# SPDX-License-Identifier: MIT-0
"""What a model folder holds: its name at the hub, and one digest of the files that decide what it computes."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from lingoss.errors import LingossError

CARD = "lingoss-model.json"


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

    These are its safetensors, their index, its configuration and its tokenizer; an adapter folder counts alike. Reads
    every byte: 0.2 s for 270 MB, a minute for 42 GB, which the loader then finds in the page cache.

    Raises:
        LingossError: `path` is no folder with weights, or cannot be read.
    """
    folder = Path(path)
    names = sorted(p.name for p in folder.iterdir() if _decides(p.name)) if folder.is_dir() else []
    if not any(name.endswith(".safetensors") for name in names):
        raise LingossError(f"{folder} holds no model (no *.safetensors); give a converted model or an adapter folder")
    whole = json.dumps({name: _file_digest(folder / name) for name in names}, sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def _decides(name: str) -> bool:
    return name.endswith((".safetensors", ".safetensors.index.json")) or name in (
        "config.json",
        "adapter_config.json",
        "tokenizer.json",
    )


def _file_digest(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise LingossError(f"cannot read {path}: {error.strerror or error}") from error
