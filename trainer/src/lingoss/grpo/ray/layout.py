# SPDX-License-Identifier: MIT-0
"""The nodes of the Ray cluster that a run may use, told by the chart, and whether a step divides among their GPUs."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from lingoss.config import GrpoConfig
from lingoss.errors import LingossError

TRAINER_NODES, ROLLOUT_NODES, GPUS_PER_NODE = "LINGOSS_TRAINER_NODES", "LINGOSS_ROLLOUT_NODES", "LINGOSS_GPUS_PER_NODE"


@dataclass(frozen=True, slots=True)
class Layout:
    """Worker nodes, all with as many GPUs. `rollout_nodes` 0: the training nodes draw the completions too."""

    trainer_nodes: int
    rollout_nodes: int
    gpus_per_node: int

    @property
    def trainer_gpus(self) -> int:
        """GPUs that train."""
        return self.trainer_nodes * self.gpus_per_node

    @property
    def rollout_gpus(self) -> int:
        """GPUs that only draw completions."""
        return self.rollout_nodes * self.gpus_per_node

    @property
    def gpus(self) -> int:
        """All GPUs that the run takes."""
        return self.trainer_gpus + self.rollout_gpus

    def __str__(self) -> str:
        rollout = f" and {self.rollout_nodes} for rollouts" if self.rollout_nodes else ""
        return f"{self.trainer_nodes} nodes to train{rollout}, {self.gpus_per_node} GPUs each: {self.gpus} GPUs"


def layout_of(environment: Mapping[str, str] | None = None) -> Layout:
    """The layout that the chart writes into the environment of Ray's head.

    Raises:
        LingossError: a variable is missing or no number, or there is nothing to train on.
    """
    found = os.environ if environment is None else environment
    trainer, rollout, gpus = (_number(found, name) for name in (TRAINER_NODES, ROLLOUT_NODES, GPUS_PER_NODE))
    if not trainer or not gpus:
        raise LingossError(
            f"{TRAINER_NODES}={trainer} and {GPUS_PER_NODE}={gpus} leave no GPU to train on: engines openrlhf and verl "
            "need GPUs"
        )
    return Layout(trainer, rollout, gpus)


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "0" if name == ROLLOUT_NODES else "")
    if not text:
        raise LingossError(
            f"{name} is not set, so nobody knows the Ray cluster: the chart sets it; on a cluster of your own export "
            f"{TRAINER_NODES}, {ROLLOUT_NODES} and {GPUS_PER_NODE}"
        )
    if not text.isdigit():
        raise LingossError(f"{name}={text[:40]!r} is no number")
    return int(text)


def require_enough(layout: Layout, there: int) -> None:
    """Refuse a layout that the cluster cannot hold. `there`: GPUs of its living nodes.

    Raises:
        LingossError: names both numbers.
    """
    if there < layout.gpus:
        raise LingossError(
            f"{layout.gpus} GPUs are asked for ({layout}) and the Ray cluster has {there}: lower "
            "kuberay.trainer.nodes or kuberay.rollout.nodes, or give it more nodes"
        )


def require_shares(config: GrpoConfig, gpus: int, whole: int) -> None:
    """Refuse a step whose completions do not divide among `gpus`, in pieces of `whole` completions.

    Raises:
        LingossError: says the nearest number of prompts that does.
    """
    completions = config.prompts_per_step * config.num_generations
    if completions % (gpus * whole) == 0:
        return
    least = math.lcm(gpus * whole, config.num_generations) // config.num_generations
    prompts = max(1, round(config.prompts_per_step / least)) * least
    pieces = f" in pieces of per_device_batch={whole}" if whole > 1 else ""
    smaller = ", lower per_device_batch," if whole > 1 else ""
    raise LingossError(
        f"a step's {completions} completions do not divide among {gpus} GPUs{pieces}: set "
        f"prompts_per_step={prompts}{smaller} or train on another number of nodes (kuberay.trainer.nodes)"
    )


def require_tensor_parallel(config: GrpoConfig, layout: Layout) -> None:
    """Refuse copies of vLLM that would not fill their nodes or would reach over two of them.

    Raises:
        LingossError: says which sizes fit.
    """
    size, gpus = config.rollout.tensor_parallel, layout.gpus_per_node
    if gpus % size:
        fits = ", ".join(str(n) for n in range(1, gpus + 1) if gpus % n == 0)
        raise LingossError(
            f"rollout.tensor_parallel={size} does not divide the {gpus} GPUs of a node, and a copy of vLLM across "
            f"nodes would be many times slower: set it to one of {fits}"
        )
