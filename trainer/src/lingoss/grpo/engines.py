# SPDX-License-Identifier: MIT-0
"""The engines that run on Ray, by name; each is a room of its own."""

from lingoss.grpo.ray.stage import Make


def engine(name: str) -> Make:
    """What makes the engine of that name, imported only now: each brings what the other does not need."""
    if name == "openrlhf":
        from lingoss.grpo.openrlhf import OpenRlhf

        return OpenRlhf
    from lingoss.grpo.verl import Verl

    return Verl
