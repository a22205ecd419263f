# SPDX-License-Identifier: MIT-0
"""What a node of each instance type offers to pods, as its kubelet would report it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Instance:
    """Allocatable figures of one instance type.

    GPUs and EFA devices: the instance table of the sagemaker-hyperpod CLI 3.12.0 (EFA counts agree with EC2's list of
    network cards). `cpu` in cores and `memory_gib`: that table's host size less the CLI's reservation for kubelet and
    system, rounded down. `pods`: HyperPod's limit (one network interface per node serves pods).
    """

    gpus: int
    efa: int
    cpu: int
    memory_gib: int
    pods: int

    def allocatable(self) -> dict[str, str]:
        """The figures as a node's `status.allocatable`."""
        return {
            "cpu": str(self.cpu),
            "memory": f"{self.memory_gib}Gi",
            "ephemeral-storage": "400Gi",
            "pods": str(self.pods),
            "nvidia.com/gpu": str(self.gpus),
            "vpc.amazonaws.com/efa": str(self.efa),
        }


INSTANCES = {
    "ml.g5.12xlarge": Instance(gpus=4, efa=1, cpu=44, memory_gib=164, pods=29),  # 48 / 192
    "ml.g6e.12xlarge": Instance(gpus=4, efa=1, cpu=44, memory_gib=342, pods=29),  # 48 / 384
    "ml.g6e.48xlarge": Instance(gpus=8, efa=4, cpu=179, memory_gib=1414, pods=49),  # 192 / 1536
    "ml.p4d.24xlarge": Instance(gpus=8, efa=4, cpu=89, memory_gib=1056, pods=49),  # 96 / 1152
    "ml.p5.48xlarge": Instance(gpus=8, efa=32, cpu=179, memory_gib=1890, pods=49),  # 192 / 2048
    "ml.p5en.48xlarge": Instance(gpus=8, efa=16, cpu=179, memory_gib=1890, pods=49),  # 192 / 2048
    # What local-cpu asks of its one node beside the system's pods (1.2 CPUs and 7.5 GiB), and the hooks' own pods.
    "cpu": Instance(gpus=0, efa=0, cpu=3, memory_gib=10, pods=110),
}

# What the system pods of a node ask for together. AWS's health monitoring agent alone takes 500m and 512Mi (its chart);
# network, proxy, GPU, EFA and FSx plug-ins and a log agent come on top. A pod of ours gets what is left.
SYSTEM_PODS = {"cpu": "1", "memory": "2Gi"}
