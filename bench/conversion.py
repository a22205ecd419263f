# SPDX-License-Identifier: MIT-0
"""A checkpoint as four ranks leave it of gpt-oss-20b with a LoRA adapter, random numbers in true shapes, and its conversion.

python bench/conversion.py make FOLDER attention|experts     writes FOLDER/checkpoint-50 (48 MB or 1.1 GB)
python bench/conversion.py convert FOLDER                    converts and verifies it: {seconds, gigabytes} as JSON
"""

import hashlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

RANKS, RANK, LAYERS, EXPERTS = 4, 8, 24, 32
HIDDEN, QUERY, KEY, INNER = 2880, 4096, 512, 2880  # width; 64 and 8 heads of 64; an expert's inner width
CONFIG = {
    "peft_type": "LORA",
    "r": RANK,
    "lora_alpha": 16,
    "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"],
    "base_model_name_or_path": "openai/gpt-oss-20b",
}


def adapter(experts: bool) -> Iterator[tuple[str, tuple[int, int]]]:
    """Names and shapes of the adapter's tensors."""
    for layer in range(LAYERS):
        stem = f"base_model.model.model.layers.{layer}"
        sides = [("q_proj", QUERY, HIDDEN), ("k_proj", KEY, HIDDEN), ("v_proj", KEY, HIDDEN), ("o_proj", HIDDEN, QUERY)]
        for name, out, width in sides:
            yield f"{stem}.self_attn.{name}.lora_A.weight", (RANK, width)
            yield f"{stem}.self_attn.{name}.lora_B.weight", (out, RANK)
        for name, out, width in (
            (("experts.base_layer", 2 * INNER, HIDDEN), ("experts", HIDDEN, INNER)) if experts else ()
        ):
            yield f"{stem}.mlp.{name}.lora_A.weight", (RANK * EXPERTS, width)
            yield f"{stem}.mlp.{name}.lora_B.weight", (out, RANK * EXPERTS)


def make(folder: Path, experts: bool) -> None:
    """Write the checkpoint: weights and Adam's two moments in float32, each cut into four along its first side."""
    from lingoss.checkpoints.layout import Chunk, Sharded
    from lingoss.checkpoints.manifest import record, write_manifest
    from lingoss.models import shards

    target = folder / "checkpoint-50"
    target.mkdir(parents=True)
    draw = np.random.default_rng(0)
    layout: dict[str, Sharded] = {}
    files = [f"shard-{rank:05d}-of-{RANKS:05d}.safetensors" for rank in range(RANKS)]
    held: list[dict[str, tuple[Chunk, shards.Spec]]] = [{} for _ in files]
    numbers: list[list[np.ndarray]] = [[] for _ in files]
    for name, (rows, columns) in adapter(experts):
        for kind in ("adapter/", "optimizer/exp_avg/", "optimizer/exp_avg_sq/"):
            chunks = []
            for rank, file in enumerate(files):
                part = draw.standard_normal((rows // RANKS, columns), np.float32)
                digest = hashlib.sha256(part.data).hexdigest()
                chunk = Chunk(file, (rank * (rows // RANKS), 0), part.shape, digest)
                held[rank][chunk.key(kind + name)] = (chunk, shards.Spec("F32", part.shape))
                numbers[rank].append(part)
                chunks.append(chunk)
            layout[kind + name] = Sharded("F32", (rows, columns), tuple(chunks))
    known = {}
    for rank, file in enumerate(files):
        shards.write(target / file, {key: spec for key, (_, spec) in held[rank].items()}, numbers[rank])
        known[file] = record(target / file)
    config = {**CONFIG, "target_parameters": ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"] if experts else None}
    (target / "adapter_config.json").write_text(json.dumps(config))
    write_manifest(target, 50, layout, known)


def convert(folder: Path) -> None:
    """Convert it as a user does, in a process of its own, and print what that took."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "lingoss", "checkpoints", "convert", folder / "checkpoint-50", folder / "adapter"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(json.dumps({"seconds": time.perf_counter() - start, "gigabytes": peak / 1e9}))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), sys.argv[3] == "experts")
    else:
        convert(Path(sys.argv[2]))
