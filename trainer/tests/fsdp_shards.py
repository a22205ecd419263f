# SPDX-License-Identifier: MIT-0
"""`torchrun fsdp_shards.py MODEL ADAPTER FOLDER`: shards as veRL 0.9.1 writes them (`FSDPCheckpointManager`, FSDP2), by
the real libraries: PEFT as its FSDP engine uses it, `fully_shard` over the ranks, and its lines of `save_checkpoint`.

FOLDER/adapter has the adapter alone, FOLDER/full all weights. The tensors are changed by a known amount first: A of the
adapter + 1, every weight x 2.
"""

import os
import sys
from pathlib import Path
from typing import Any


def main(model: str, adapter: str, folder: str) -> None:
    """Write this rank's files."""
    import torch
    from peft import PeftModel
    from torch import distributed
    from torch.distributed.fsdp import fully_shard
    from transformers import AutoModelForCausalLM

    distributed.init_process_group("gloo")
    for kind in ("adapter", "full"):
        base: Any = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
        module = PeftModel.from_pretrained(base, adapter, is_trainable=True) if kind == "adapter" else base
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if kind == "full":
                    parameter.mul_(2)
                elif "lora_A" in name:
                    parameter.add_(1)
        for layer in base.model.layers:
            fully_shard(layer)
        fully_shard(module)
        state = module.state_dict()
        if kind == "adapter":
            state = {key: value for key, value in state.items() if "lora_" in key or ".adapter_" in key}
        _save(state, Path(folder) / kind, distributed.get_rank(), distributed.get_world_size())
        distributed.barrier()
    distributed.destroy_process_group()


def _save(state: Any, target: Path, rank: int, world: int) -> None:
    import torch

    target.mkdir(parents=True, exist_ok=True)
    torch.save(state, target / f"model_world_size_{world}_rank_{rank}.pt")
    torch.save({"state": {}}, target / f"optim_world_size_{world}_rank_{rank}.pt")
    torch.save({"rng": 0}, target / f"extra_state_world_size_{world}_rank_{rank}.pt")


if __name__ == "__main__":
    os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", TRANSFORMERS_VERBOSITY="error")
    main(*sys.argv[1:])
