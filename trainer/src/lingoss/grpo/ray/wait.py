# SPDX-License-Identifier: MIT-0
"""`python -m lingoss.grpo.ray.wait GPUS SECONDS`: wait until the Ray cluster has that many GPUs.

Ray starts a job as soon as its head is there. A framework that is started then waits for its placement group without a
word, for ever if the layout asks for more than there is. A process of its own, because `ray.init` is the framework's.
"""

import sys
import threading
import time
from collections.abc import Callable

_LOOK = 5.0  # seconds


def gpus_of(nodes: list[dict[str, object]]) -> int:
    """GPUs of the living nodes in Ray's list of nodes."""
    living = [node.get("Resources") for node in nodes if node.get("Alive")]
    return sum(int(found.get("GPU", 0)) for found in living if isinstance(found, dict))


def wait(needed: int, seconds: float, count: Callable[[], int], look: float = _LOOK) -> int:
    """GPUs that are there when they are enough, or when the time is over."""
    pause, end, told = threading.Event(), time.monotonic() + seconds, -1
    while (there := count()) < needed and time.monotonic() < end:
        if there != told:
            print(f"waiting for GPUs: {there} of {needed}", file=sys.stderr, flush=True)
            told = there
        pause.wait(min(look, max(0.0, end - time.monotonic())))
    return there


def main(arguments: list[str]) -> None:
    """Print the number of GPUs that are there, as the last line."""
    import ray  # type: ignore[import-not-found]

    ray.init(logging_level="ERROR")
    print(wait(int(arguments[0]), float(arguments[1]), lambda: gpus_of(ray.nodes())), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
