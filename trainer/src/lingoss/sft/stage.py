# SPDX-License-Identifier: MIT-0
"""The stage: from a config to a finished run folder, or to one that goes on exactly where it was stopped."""

import sys
from collections.abc import Callable
from contextlib import ExitStack

from lingoss import runs
from lingoss.config import SftConfig
from lingoss.models import offline
from lingoss.models.memory import keep_freed_memory, release
from lingoss.sft.setting import resolve
from lingoss.sft.share import share_out
from lingoss.sft.stops import Stops, elastic_events, signals, stop_early
from lingoss.sft.work import Work
from lingoss.sft.world import World
from lingoss.stopping import StopRequest

_WATCH_FIRST = 30.0
"""Seconds by which an exchange between ranks outlasts the watchdog, which tells more."""


def run(config: SftConfig) -> runs.RunInfo:
    """Train, or resume, or find that it is done. The folder's lock is held while it works.

    Started by a launcher (torchrun, hyperpodrun), every process calls this; rank 0 alone holds the folder and tells.

    SIGTERM (and SIGUSR1, an elastic agent's) finishes the current step, saves and returns a run in state "stopped";
    Ctrl-C does the same and then raises KeyboardInterrupt. Started again, a stopped or killed run ends with the adapter
    that an undisturbed one has (on the same machine with the same number of threads and processes: equal tensors).

    Raises:
        LingossError: bad input, too little disk, a loss that is not finite, or a checkpoint that cannot be written.
            With several processes it has been told, and each ends by SystemExit.
    """
    offline()
    keep_freed_memory()
    with stop_early(), World.join(config.hang_seconds + _WATCH_FIRST, config.lock_wait) as world:
        setting = world.agree(lambda: resolve(config))
        share = world.agree(lambda: share_out(config.global_batch, config.per_device_batch, world.size))
        elastic = world.agree(elastic_events)
        request = StopRequest(signals(elastic), tell=world.first)
        stops = Stops(request, elastic)
        folder = setting.folder()
        info = carry_out(folder, lambda _: Work(setting, folder, world, share, stops).do(), world, request)
        if info.state == "stopped":
            stops.settle()
    return info


def carry_out(
    folder: runs.RunFolder,
    work: Callable[[StopRequest], None],
    world: World | None = None,
    request: StopRequest | None = None,
) -> runs.RunInfo:
    """Do a training run's work, unless it is done, under its folder's lock and heeding signals; tells how it ended.

    Of several ranks, rank 0 holds the folder.
    """
    world = World() if world is None else world
    request = StopRequest() if request is None else request  # (one that nobody has signalled is false)
    with ExitStack() as held:
        done = world.first_does(lambda: held.enter_context(folder).done)
        if not done:
            with request, world.one_error():
                work(request)
            request.raise_if_interrupted()
    release()
    info = runs.read_run(folder.path)
    if world.first:
        print(f"{info.name} is {info.state}: {info.path}", file=sys.stderr)
    return info
