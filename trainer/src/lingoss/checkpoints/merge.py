# SPDX-License-Identifier: MIT-0
"""Base and adapter as one model, file by file: in float32, rounded once, with one weight of the base in memory.

Stopped in the middle it goes on: files that are whole and belong to the same base and adapter are kept.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lingoss import __version__, runs
from lingoss.checkpoints.adapter import CONFIG, RECORD, WEIGHTS, require_new
from lingoss.checkpoints.lora import Change, changes
from lingoss.checkpoints.tensors import tensor_shapes
from lingoss.errors import LingossError
from lingoss.models import ModelCard, model_card, shards, write_model_card
from lingoss.models.convert import INDEX, KINDS, SHARD, cast, converted, copy_surroundings
from lingoss.models.shards import Spec, Stored
from lingoss.progress import Bytes
from lingoss.runs.files import read_json, writing

# Counts changes of the merging itself, so that what an older one left behind is not continued.
RECIPE = 1
STATE = ".merge.json"
"""In an unfinished folder: what is being merged, and the digests of the files that are written."""


def merged_size(base: Path, dtype: str) -> int:
    """Bytes that the merged model's weights will take in number format `dtype` (bfloat16 or float32)."""
    return shards.total_size(_planned(shards.stored_tensors(base), dtype))


def merge(base: Path, adapter: Path, partial: Path, dtype: str = "bfloat16", shard: int = SHARD) -> dict[str, str]:
    """Write the model in `base` with the PEFT adapter in `adapter` merged in to the folder `partial`, and go on there.

    Each changed weight is base + scaling * B A in float32, rounded once to `dtype` (bfloat16 or float32); every other
    is the base's. Tokenizer, template and configuration come along. Each file is read back and compared with what was
    computed. Returns {file: sha256} of the weights. The caller renames the folder when it is content.

    Raises:
        LingossError: the adapter does not fit the base, is no plain LoRA, the base is quantised, or there is too
            little space.
    """
    if dtype not in KINDS:
        raise LingossError(f"a merged model cannot be {dtype}: use one of {', '.join(KINDS)}")
    tensors = shards.stored_tensors(base)
    specs = _planned(tensors, dtype)
    config, found = _adapter(adapter)
    model_type = str(_json(base / "config.json").get("model_type", ""))
    shapes = {name: spec.shape for name, spec in specs.items()}
    plan = {
        one.weight: one
        for one in changes(config, {name: t.spec.shape for name, t in found.items()}, shapes, model_type)
    }
    files = shards.in_shards(specs, shard)
    done = _resume(partial, _inputs(base, adapter, dtype, shard))
    left = sum(shards.total_size(held) for file, held in files.items() if file not in done)
    runs.require_space(partial, left + 50_000_000, "the merged model")
    with writing(partial), Bytes("merge", shards.total_size(specs)) as report:
        copy_surroundings(base, partial, dtype)
        for file, held in files.items():
            if file in done and shards.is_complete(partial / file, held):
                report(shards.total_size(held))
                continue
            done[file] = _write(partial / file, held, _tensors(tensors, found, plan, held, report))
            _note(partial, done)
        if len(files) > 1:
            (partial / INDEX).write_text(shards.index(files), encoding="utf-8")
        (partial / STATE).unlink()
    return {file: done[file] for file in files}


def merge_folder(base: Path, adapter: Path, target: Path, dtype: str, name: str) -> dict[str, str]:
    """`merge` to the new folder `target`, which appears whole, with a record of what it was made of in lingoss.json.

    `name` is what the adapter is called there.

    Raises:
        LingossError: as `merge`; or `target` exists.
    """
    require_new(target)
    partial = target.absolute().with_name(f".{target.absolute().name}.partial")
    weights = merge(base, adapter, partial, dtype)
    card = model_card(base)
    with writing(target):
        write_model_card(partial, ModelCard(f"{card.hub_id} + {name}", None, "lingoss checkpoints merge"))
        others = [path for path in sorted(partial.iterdir()) if path.name not in weights]
        record = {
            "kind": "merged",
            "lingoss": __version__,
            "base": {"hub_id": card.hub_id, "revision": card.revision},
            "adapter": {"name": name, **{file: runs.file_digest(adapter / file) for file in (WEIGHTS, CONFIG)}},
            "digests": {**weights, **{path.name: runs.file_digest(path) for path in others}},
        }
        runs.write_json(partial / RECORD, record)
        for path in partial.iterdir():
            path.chmod(0o644)
        partial.rename(target)
    return weights


def _planned(tensors: Mapping[str, Stored], dtype: str) -> dict[str, Spec]:
    found = {name: tensor.spec for name, tensor in tensors.items()}
    planned = converted(found, dtype)
    if packed := sorted(planned.keys() - found.keys()):
        raise LingossError(f"{packed[0]} of the base is quantised: merge into the copy that `lingoss prepare` makes")
    return planned


def _adapter(folder: Path) -> tuple[dict[str, Any], dict[str, Stored]]:
    if not (folder / WEIGHTS).is_file() or not (folder / CONFIG).is_file():
        raise LingossError(
            f"{folder} holds no adapter ({WEIGHTS} and {CONFIG}): `lingoss checkpoints convert` makes one of a checkpoint"
        )
    tensor_shapes(folder / WEIGHTS)
    return _json(folder / CONFIG), dict(shards.read_header(folder / WEIGHTS))


def _tensors(
    tensors: Mapping[str, Stored],
    found: Mapping[str, Stored],
    plan: Mapping[str, Change],
    specs: Mapping[str, Spec],
    report: Callable[[int], None],
) -> Iterator[tuple[str, Any]]:
    """(name, bytes) piece by piece, in the order of `specs`."""
    for name, spec in specs.items():
        pieces = _merged(tensors[name], spec, plan[name], found) if name in plan else cast(tensors[name], spec)
        for piece in pieces:
            yield name, piece
            report(piece.nbytes)


def _merged(base: Stored, spec: Spec, change: Change, found: Mapping[str, Stored]) -> Iterator[Any]:
    """The changed weight: whole for a linear layer, expert by expert for a stack, as PEFT multiplies them."""
    import torch

    from lingoss.checkpoints.sharded import TYPES, as_bytes, as_tensor

    a, b = as_tensor(found[change.a]).float(), as_tensor(found[change.b]).float()
    if not change.experts:
        parts: Iterator[torch.Tensor] = iter([(b @ a) * change.scaling])
    else:
        by_expert_a = a.reshape(change.experts, change.rank, a.shape[1])
        by_expert_b = b.reshape(b.shape[0], change.rank, change.experts)
        parts = (
            torch.einsum("o r, r i -> i o", by_expert_b[:, :, expert], by_expert_a[expert]) * change.scaling
            for expert in range(change.experts)
        )
    size = base.spec.size // (change.experts or 1)
    for number, delta in enumerate(parts):
        raw = torch.from_numpy(base.read(number * size, size))
        weight = raw.view(TYPES[base.spec.dtype]).reshape(delta.shape).float() + delta
        if not bool(torch.isfinite(weight).all()):
            raise LingossError(f"{change.weight} is not finite with the adapter merged in: the adapter is broken")
        yield as_bytes(weight.to(TYPES[spec.dtype]))


def _write(path: Path, specs: Mapping[str, Spec], pieces: Iterator[tuple[str, Any]]) -> str:
    """Write one file and compare it, tensor by tensor, with what was computed. Returns its sha256."""
    computed = {name: hashlib.sha256() for name in specs}

    def told() -> Iterator[Any]:
        for name, piece in pieces:
            computed[name].update(piece)
            yield piece

    shards.write(path, specs, told())
    path.chmod(0o644)
    whole = hashlib.sha256(shards.header(specs))
    for name, stored in shards.read_header(path).items():
        found = hashlib.sha256()
        for first, count in shards.spans(stored.spec.size, 1 << 26):
            piece = stored.read(first, count)
            found.update(piece.data)
            whole.update(piece.data)
        if found.digest() != computed[name].digest():
            raise LingossError(f"{name} in {path.name} is not what was merged; is the disk failing?")
    return whole.hexdigest()


def _inputs(base: Path, adapter: Path, dtype: str, shard: int) -> dict[str, Any]:
    """What decides the merged files, so that a folder of another base or adapter is never continued."""
    weights = {path.name: [path.stat().st_size, path.stat().st_mtime_ns] for path in sorted(base.glob("*.safetensors"))}
    parts = {name: runs.file_digest(adapter / name) for name in (WEIGHTS, CONFIG)}
    return {"recipe": RECIPE, "dtype": dtype, "shard": shard, "base": weights, "adapter": parts}


def _resume(partial: Path, inputs: Mapping[str, Any]) -> dict[str, str]:
    """The digests of the files that are written already. A folder of other inputs is emptied."""
    state, _ = read_json(partial / STATE)
    if state is None or state.get("inputs") != inputs:
        shutil.rmtree(partial, ignore_errors=True)
        with writing(partial):
            partial.mkdir(parents=True)
        runs.write_json(partial / STATE, {"inputs": inputs, "files": {}})
        return {}
    return dict(state["files"])


def _note(partial: Path, done: Mapping[str, str]) -> None:
    state, _ = read_json(partial / STATE)
    runs.write_json(partial / STATE, {**(state or {}), "files": dict(done)})


def _json(path: Path) -> dict[str, Any]:
    value, problem = read_json(path)
    if value is None:
        raise LingossError(f"{path} is missing or damaged: {problem or 'no such file'}")
    return value
