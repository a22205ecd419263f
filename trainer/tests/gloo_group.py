# SPDX-License-Identifier: MIT-0
"""A function of a test on real ranks: some processes of one gloo group, forked from one that has imported torch."""

import multiprocessing
import multiprocessing.connection
import os
import pickle
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIMIT = 180.0
"""Seconds that all ranks together may take."""


def on_ranks(count: int, work: Callable[..., Any], *given: Any) -> list[Any]:
    """What `work(*given)`, a function of a module, returned on each rank.

    As soon as one rank fails the others are ended (they wait for it) and its traceback is raised.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch.distributed.fsdp", "torch.distributed.checkpoint", "peft", "transformers"])
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=_rank, args=(rank, count, folder, work, given)) for rank in range(count)]
        for one in ranks:
            one.start()
        deadline = time.monotonic() + LIMIT
        try:
            running = list(ranks)
            while running and not any(one.exitcode for one in ranks):
                left = deadline - time.monotonic()
                assert left > 0, f"{len(running)} of {count} ranks did not end in {LIMIT:.0f} s"
                multiprocessing.connection.wait([one.sentinel for one in running], timeout=left)
                running = [one for one in ranks if one.is_alive()]
        finally:
            for one in ranks:
                one.kill()
                one.join()
        for rank in range(count):
            problem = Path(folder, f"problem-{rank}")
            assert not problem.exists(), f"rank {rank}: {problem.read_text()}"
        for rank, one in enumerate(ranks):
            assert one.exitcode == 0, f"rank {rank} ended with {one.exitcode}"
        return [pickle.loads(Path(folder, f"result-{rank}").read_bytes()) for rank in range(count)]


def _rank(rank: int, count: int, folder: str, work: Callable[..., Any], given: tuple[Any, ...]) -> None:
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    try:
        distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=count)
        result = work(*given)
        distributed.barrier()
        Path(folder, f"result-{rank}").write_bytes(pickle.dumps(result))
        distributed.destroy_process_group()
    except BaseException:
        Path(folder, f"problem-{rank}").write_text(traceback.format_exc())
        os._exit(1)
