# SPDX-License-Identifier: MIT-0
"""Small runs that hold sharded state: a tiny model with a LoRA adapter under FSDP2 (or alone), and steps of AdamW.

What is here runs on the ranks of `gloo_group.on_ranks`, so it lives in a module of its own.
"""

from pathlib import Path
from typing import Any

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
RANK, ALPHA = 2, 6  # over three ranks one of them holds no row of A

State = dict[str, tuple[str, list[int], bytes]]


class Run:
    """A model and its optimizer on this rank, sharded when there is a process group."""

    def __init__(self, folder: Path, experts: bool = False) -> None:
        import torch
        from peft import get_peft_model
        from torch import distributed
        from torch.distributed.fsdp import fully_shard

        from lingoss.models import load_model

        torch.manual_seed(7)
        self.model: Any = get_peft_model(load_model(folder), lora(experts))
        for name, weight in self.model.named_parameters():
            if "lora_B" in name:  # zeros would hide a mistake
                torch.nn.init.normal_(weight, generator=torch.Generator().manual_seed(len(name)))
        if distributed.is_initialized():
            for layer in self.model.base_model.model.model.layers:
                fully_shard(layer)
            fully_shard(self.model)
        self.weights = [weight for weight in self.model.parameters() if weight.requires_grad]
        groups = [{"params": self.weights[::2], "weight_decay": 0.1}, {"params": self.weights[1::2]}]
        self.optimizer = torch.optim.AdamW(groups, lr=0.01)

    def steps(self, first: int, count: int) -> "Run":
        """Steps with gradients that are the same at every world size: drawn whole, each rank keeps its part."""
        import torch
        from torch.distributed.tensor import DTensor, Replicate

        for step in range(first, first + count):
            draw = torch.Generator().manual_seed(step)
            for weight in self.weights:
                whole = torch.randn(weight.shape, generator=draw)
                if isinstance(weight, DTensor):
                    mesh = weight.device_mesh
                    everywhere = DTensor.from_local(whole, mesh, [Replicate()], run_check=False)
                    weight.grad = everywhere.redistribute(mesh, weight.placements)
                else:
                    weight.grad = whole
            self.optimizer.step()
        return self

    def state(self) -> State:
        """All that training holds, whole: {name: (kind, shape, bytes)}."""
        from torch.distributed.tensor import DTensor

        from lingoss.checkpoints.sharded import KINDS, as_bytes
        from lingoss.checkpoints.training import held

        found = {}
        for name, tensor in held(self.model, self.optimizer)[0].items():
            whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
            found[name] = (KINDS[whole.dtype], list(whole.shape), as_bytes(whole).tobytes())
        return found


def lora(experts: bool) -> Any:
    """PEFT's configuration of the adapters here."""
    from peft import LoraConfig

    from lingoss.checkpoints.adapter import EXPERTS

    targets = list(EXPERTS) if experts else None
    return LoraConfig(
        r=RANK, lora_alpha=ALPHA, target_modules=ATTENTION, target_parameters=targets, task_type="CAUSAL_LM"
    )


def peft_file(experts: bool) -> dict[str, Any]:
    """What PEFT would write to adapter_config.json."""
    plain = {
        name: sorted(value) if isinstance(value, set) else value for name, value in lora(experts).to_dict().items()
    }
    return {**plain, "base_model_name_or_path": "x/y"}


def go_on(model: Path, folder: Path, first: int, count: int, experts: bool = False) -> tuple[Any, State, Any]:
    """Take up the checkpoint of step `first` (0: begin), take steps and save: (state loaded, state saved, documents)."""
    from lingoss.checkpoints import CheckpointStore

    run, store = Run(model, experts), CheckpointStore(folder, keep=9)
    loaded, documents = None, None
    if first:
        documents = store.load(store.path(first), run.model, run.optimizer)
        loaded = run.state()
    step = first + count
    state = run.steps(first, count).state()
    files = {"adapter_config.json": peft_file(experts), "trainer_state.json": {"step": step}}
    saved = store.save_sharded(step, run.model, run.optimizer, files)
    assert saved.path == store.path(step)
    return loaded, state, documents


def both_kinds(llama: Path, gpt_oss: Path, folder: Path) -> tuple[State, State]:
    """A checkpoint of each model at step 2: attention of the Llama, attention and experts of the GptOss."""
    return go_on(llama, folder / "llama", 0, 2)[1], go_on(gpt_oss, folder / "gpt-oss", 0, 2, experts=True)[1]


def loads(model: Path, checkpoint: Path, experts: bool = False) -> State:
    """What a run of this many ranks holds after loading that checkpoint."""
    from lingoss.checkpoints import CheckpointStore

    run = Run(model, experts)
    CheckpointStore(checkpoint.parent, keep=9).load(checkpoint, run.model, run.optimizer)
    return run.state()


def saves_badly(model: Path, folder: Path, fault: str) -> tuple[str, list[str]]:
    """Saves step 4 with a fault on the last rank only: what this rank is told, and what lies in the folder then."""
    import errno
    import os

    import torch
    from torch import distributed

    from lingoss.checkpoints import CheckpointStore
    from lingoss.errors import LingossError
    from lingoss.models import shards

    run, store = Run(model).steps(0, 1), CheckpointStore(folder, keep=9)
    if distributed.get_rank() == distributed.get_world_size() - 1:
        if fault == "nan":
            local = run.weights[0].detach().to_local()
            local[...] = torch.nan
        else:

            def full(path: Path, *given: Any) -> None:
                path.write_bytes(b"half")
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            shards.write = full  # type: ignore[assignment]
    try:
        store.save_sharded(4, run.model, run.optimizer, {})
        told = "nothing"
    except LingossError as error:
        told = str(error)
    distributed.barrier()
    return told, sorted(path.name for path in folder.iterdir())


def two_formats(model: Path, folder: Path) -> State:
    """Writes one state as our checkpoint of step 2, and as accelerate does with FSDP's SHARDED_STATE_DICT."""
    import torch.distributed.checkpoint as dcp
    from peft import get_peft_model_state_dict
    from torch.distributed.checkpoint.default_planner import DefaultSavePlanner

    from lingoss.checkpoints import CheckpointStore

    run = Run(model, experts=True).steps(0, 2)
    CheckpointStore(folder, keep=1).save_sharded(2, run.model, run.optimizer, {"adapter_config.json": peft_file(True)})
    dcp.save(  # accelerate 1.15, utils/fsdp_utils.py, save_fsdp_model
        {"model": get_peft_model_state_dict(run.model)},
        storage_writer=dcp.FileSystemWriter(folder / "theirs" / "pytorch_model_fsdp_0"),
        planner=DefaultSavePlanner(),
    )
    return run.state()
