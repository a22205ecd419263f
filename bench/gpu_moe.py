# SPDX-License-Identifier: MIT-0
"""Find the tile sizes with which vLLM's Triton kernel multiplies the experts of gpt-oss-20b fastest on this GPU.

python bench/gpu_moe.py --out DIR

vLLM 0.26 has no such table for these shapes and says so ("Using default MoE config"). The table that this writes is
what VLLM_TUNED_CONFIG_FOLDER=DIR makes it read. Every candidate must give the result of vLLM's default to rounding.
A batch size is the number of tokens in one forward pass: of sequences, when each draws one token.
"""

import argparse
import contextlib
import itertools
import json
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXPERTS, TOP, WIDTH = 32, 4, 2880
SIZES = (1, 8, 16, 32, 64, 128, 192, 256, 384, 512, 1024, 2048, 4096)


def candidates(tokens: int) -> Iterator[dict[str, int]]:
    """Tile sizes worth a trial: few rows an expert want flat tiles, many want square ones."""
    rows = tokens * TOP / EXPERTS
    heights = [one for one in (16, 32, 64, 128) if rows / 4 <= one <= max(16, rows * 2)] or [128]
    for height, width, depth, warps, stages in itertools.product(
        heights, (64, 128, 256), (64, 128), (4, 8), (2, 3, 4, 5)
    ):
        shared = stages * depth * (height + width) * 2
        if shared > 220_000 or height * width // (warps * 32) > 128 or height * width // (warps * 32) < 4:
            continue
        yield {
            "BLOCK_SIZE_M": height,
            "BLOCK_SIZE_N": width,
            "BLOCK_SIZE_K": depth,
            "GROUP_SIZE_M": 16 if rows > 128 else 1,
            "SPLIT_K": 1,
            "num_warps": warps,
            "num_stages": stages,
        }


class Layer:
    """One layer's experts with random weights, and tokens that are spread over them as a router would."""

    def __init__(self) -> None:
        import torch

        torch.manual_seed(0)
        made: dict[str, Any] = {"device": "cuda", "dtype": torch.bfloat16}
        # vLLM holds its weights with 128 unused columns, so that rows do not all fall on the same memory channels.
        self.up = torch.randn(EXPERTS, 2 * WIDTH, WIDTH + 128, **made)[..., :WIDTH].mul_(0.02)
        self.down = torch.randn(EXPERTS, WIDTH, WIDTH + 128, **made)[..., :WIDTH].mul_(0.02)
        self._made = made

    def call(self, tokens: int) -> Any:
        """A function without arguments that multiplies `tokens` rows and returns (tokens, WIDTH)."""
        import torch
        from vllm.model_executor.layers.fused_moe.fused_moe import fused_experts

        hidden = torch.randn(tokens, WIDTH, **self._made)
        weights, chosen = torch.randn(tokens, EXPERTS, device="cuda").softmax(-1).topk(TOP)
        weights, chosen = weights.float(), chosen.to(torch.int32)
        return lambda: fused_experts(hidden, self.up, self.down, weights, chosen)


def seconds(call: Any, turns: int = 20) -> float:
    """Of one call inside a CUDA graph, as a rollout makes it; the weights are larger than the cache."""
    import torch

    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(turns):
            call()
    best = float("inf")
    for _ in range(3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) / 1000 / turns)
    return best


def compiled(share: list[dict[str, int]]) -> None:
    """Compile these candidates into Triton's cache on disk; in a process of its own, beside others."""
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers.fused_moe import override_config

    with set_current_vllm_config(VllmConfig()):
        call = Layer().call(16)
        for one in share:
            with override_config(one), contextlib.suppress(Exception):  # the trial itself tells what does not fit
                call()


def main() -> None:
    """Try all, write the best."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the table")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="batch sizes, in tokens")
    parser.add_argument("--processes", type=int, default=12, help="that compile side by side; 1 GB and a core each")
    asked = parser.parse_args()
    import torch
    import triton
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers.fused_moe import fused_moe, override_config

    asked.out.mkdir(parents=True, exist_ok=True)
    different = {json.dumps(one): one for tokens in asked.sizes for one in candidates(tokens)}
    shares = [list(different.values())[place :: asked.processes] for place in range(asked.processes)]
    with multiprocessing.get_context("spawn").Pool(asked.processes) as pool:
        pool.map(compiled, shares, chunksize=1)
    layer, table = Layer(), {}
    bytes_read = EXPERTS * 3 * WIDTH * WIDTH * 2
    with set_current_vllm_config(VllmConfig()):
        for tokens in asked.sizes:
            call = layer.call(tokens)
            default = fused_moe.get_default_config(tokens, EXPERTS, WIDTH, WIDTH, TOP, None)
            wanted, before = call().float(), seconds(call)
            best, found = before, default
            for one in candidates(tokens):
                with override_config(one):
                    try:
                        if (call().float() - wanted).abs().max() > 0.02 * wanted.abs().max():
                            print(f"{tokens:5} {one}: another result, left out", flush=True)
                            continue
                        taken = seconds(call)
                    except triton.runtime.errors.OutOfResources:
                        continue
                if taken < best:
                    best, found = taken, one
            table[str(tokens)] = found
            tiles = " ".join(str(value) for value in found.values())
            print(
                f"{tokens:5} tokens: {before * 1e6:8.0f} us by default, {best * 1e6:8.0f} us with {tiles}"
                f" ({bytes_read / best / 1e12:.2f} TB/s of weights if all are read)",
                flush=True,
            )
            name = fused_moe.get_config_file_name(EXPERTS, WIDTH, None)
            text = json.dumps({"triton_version": triton.__version__, **table}, indent=1)
            (asked.out / name).write_text(text + "\n", encoding="utf-8")
    print(f"{torch.cuda.get_device_name()}: {asked.out / name}")


if __name__ == "__main__":
    main()
