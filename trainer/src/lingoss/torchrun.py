# SPDX-License-Identifier: MIT-0
"""torchrun with two things mended: `python -m lingoss.torchrun` takes its arguments.

- torch 2.11 kills ranks 30 seconds after it has passed a SIGTERM on, however long the pod's grace period is (newer
  releases have an option). Here it waits LINGOSS_STOP_SECONDS. After a fault 30 seconds stay: ranks that have lost one of
  them wait for it and have nothing to save.
- It makes one store for the ranks at the first start and gives it to all later ones (`next_rendezvous`), which then read
  addresses of processes that are gone, or ask a node that is. Here each start has a store of its own.
"""

import os
import sys
from typing import Any

VARIABLE = "LINGOSS_STOP_SECONDS"


def main() -> None:
    """Run torchrun with these changes."""
    from torch.distributed.elastic.multiprocessing.api import PContext, SignalException
    from torch.distributed.run import main as torchrun

    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    close, seconds = PContext.close, float(os.environ.get(VARIABLE, 0))

    def patient(self: Any, death_sig: Any = None, timeout: float = 30) -> None:
        """`close` of torch; the agent calls it while it handles the signal that it was sent."""
        if seconds and isinstance(sys.exc_info()[1], SignalException):
            timeout = seconds
        close(self, death_sig, timeout)  # type: ignore[arg-type]  # whole seconds are no need of it

    PContext.close = patient  # type: ignore[method-assign,assignment]
    torchrun()


if __name__ == "__main__":
    main()
