# SPDX-License-Identifier: MIT-0
"""A trainer of thirty lines by the agent's own rules: what a rank must do under hyperpodrun, and nothing of lingoss.

    worker.py FOLDER STEPS SECONDS       SECONDS a step takes; the environment's IGNORE=1 does not import the handler

Every step is one all-reduce and one line in FOLDER/steps.log of rank 0; the checkpoint is the number of the last step.
"""

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

folder, steps, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
if os.environ.get("IGNORE"):

    def elastic_event_detected() -> bool:
        """Of a trainer that does not know of elastic events."""
        return False
else:
    from hyperpod_elastic_agent.elastic_event_handler import elastic_event_detected

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
checkpoint = folder / "checkpoint"
at = torch.tensor([int(checkpoint.read_text()) if rank == 0 and checkpoint.exists() else 0])
dist.broadcast(at, 0)
for step in range(int(at) + 1, steps + 1):
    ranks = torch.ones(1)
    dist.all_reduce(ranks)
    time.sleep(seconds)
    if rank == 0:
        with (folder / "steps.log").open("a") as log:
            log.write(f"{step} {int(ranks)} {os.environ['TORCHELASTIC_RESTART_COUNT']}\n")
    print(f"step {step} of rank {rank}", flush=True)
    stop = elastic_event_detected()
    if rank == 0 and (stop or step == steps):
        checkpoint.write_text(str(step))
    if stop:
        print(f"stopped after step {step}", flush=True)
        break
dist.destroy_process_group()
