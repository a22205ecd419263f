# SPDX-License-Identifier: MIT-0
"""Any checkpoint as a PEFT adapter: from its tensors and its configuration alone, bit-equal to what training held."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lingoss import runs
from lingoss.checkpoints.adapter import CONFIG, WEIGHTS, new_folder, require_new, write_config
from lingoss.checkpoints.lora import require_adapter
from lingoss.checkpoints.manifest import check_tensors
from lingoss.errors import LingossError
from lingoss.models import shards
from lingoss.models.shards import Spec
from lingoss.progress import Bytes
from lingoss.runs.files import writing


@dataclass(frozen=True, slots=True)
class Converted:
    """An adapter folder that was written: from which kind of checkpoint, how many tensors and bytes, and its digest."""

    path: Path
    kind: str
    tensors: int
    bytes: int
    sha256: str


def convert(source: Path, target: Path, config: Mapping[str, Any] | None = None) -> Converted:
    """Write the adapter that `source` holds to the new folder `target`, as PEFT would have.

    `source` is what `sources.adapter_source` reads. `config` is PEFT's adapter_config.json; it is needed when none lies
    in the checkpoint. Rank, alpha and layers come from there, and the rank must be that of the tensors. One tensor at a
    time is in memory; what was written is read back and compared with the checkpoint, part by part.

    Raises:
        LingossError: the checkpoint is bad, there is no configuration or another adapter's, `target` exists, or there
            is too little space.
    """
    from lingoss.checkpoints.sharded import as_bytes, as_tensor, digest, read_whole
    from lingoss.checkpoints.sources import adapter_source

    require_new(target)
    found = adapter_source(source)
    described = config if config is not None else found.documents.get(CONFIG)
    if described is None:
        raise LingossError(
            f"{source} holds no {CONFIG}, and its rank and alpha are not guessed: give PEFT's file with --adapter-config"
        )
    if not isinstance(described, Mapping):
        raise LingossError(f"the {CONFIG} of {source} is no JSON object")
    layout = dict(sorted(found.layout.items()))
    shapes = {name: one.shape for name, one in layout.items()}
    require_adapter(described, shapes)
    specs = {name: Spec(one.dtype, one.shape) for name, one in layout.items()}
    size = shards.total_size(specs)
    runs.require_space(target, size + 1_000_000, "the adapter")
    with writing(target), new_folder(target) as partial, Bytes("convert", 2 * size) as report:

        def pieces() -> Iterator[Any]:
            for name, one in layout.items():
                piece = as_bytes(read_whole(name, one, found.read))
                yield piece
                report(piece.nbytes)

        shards.write(partial / WEIGHTS, specs, pieces())
        write_config(partial, {**described, "inference_mode": True})
        check_tensors(partial / WEIGHTS, shapes)
        written = shards.read_header(partial / WEIGHTS)
        for name, one in layout.items():
            whole = as_tensor(written[name])
            for chunk in one.chunks:
                expected = chunk.sha256 or digest(found.read(name, chunk))
                if digest(whole[chunk.slices]) != expected:
                    raise LingossError(f"{name} was not written as the checkpoint has it; is the disk failing?")
            report(whole.nbytes)
        sha256 = runs.file_digest(partial / WEIGHTS)
    return Converted(target, found.kind, len(layout), size, sha256)
