# SPDX-License-Identifier: MIT-0
"""How ranks share the global batch, which stays the same however many there are, and which examples each one gets."""

from collections.abc import Sequence
from dataclasses import dataclass

from lingoss.errors import LingossError

_SIZES_TOLD = 12


@dataclass(frozen=True, slots=True)
class Share:
    """What one of `ranks` does in a step: `pieces` micro-batches of `per_device` examples each."""

    ranks: int
    per_device: int
    pieces: int

    @property
    def examples(self) -> int:
        """Examples of one rank in a step."""
        return self.per_device * self.pieces


def processes(global_batch: int) -> list[int]:
    """Numbers of ranks that share the batch evenly: the smaller ones of them, at most a dozen."""
    return [size for size in range(1, min(global_batch, 4096) + 1) if global_batch % size == 0][:_SIZES_TOLD]


def share_out(global_batch: int, per_device_batch: int, ranks: int) -> Share:
    """The fewest equal micro-batches of at most `per_device_batch` examples that make up a rank's share.

    Raises:
        LingossError: the batch cannot be shared evenly; names the numbers of ranks among which it can.
    """
    if global_batch % ranks:
        shown = ", ".join(map(str, processes(global_batch)))
        raise LingossError(
            f"global_batch={global_batch} cannot be shared evenly by {ranks} processes: start {shown} of them "
            "(nodes x processes per node), or start another run with a global_batch that they divide"
        )
    each = global_batch // ranks
    per_device = next(size for size in range(min(per_device_batch, each), 0, -1) if each % size == 0)
    return Share(ranks, per_device, each // per_device)


def deal(steps: Sequence[Sequence[int]], share: Share, rank: int) -> list[list[int]]:
    """The micro-batches of `rank`, in order: a step's examples are cut into pieces, and the pieces dealt in turn.

    So a piece is the same however many ranks there are, and the longest examples do not all fall to one rank. In a
    short last step, a rank that got no piece while another did gets an idle one: an example of which nothing is
    learned, written as `~index`, so that all ranks do equally many.
    """
    dealt: list[list[int]] = []
    for step in steps:
        pieces = [list(step[at : at + share.per_device]) for at in range(0, len(step), share.per_device)]
        while len(pieces) % share.ranks:
            pieces.append([~step[-1]])
        dealt += pieces[rank :: share.ranks]
    return dealt


def collect(dealt: Sequence[Sequence[int]], share: Share) -> list[int]:
    """The examples of one step in order, from those that each rank worked on: the reverse of `deal`."""
    found: list[int] = []
    for at in range(0, share.examples, share.per_device):
        for one in dealt:
            found += [index for index in one[at : at + share.per_device] if index >= 0]
    return found
