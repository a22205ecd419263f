# SPDX-License-Identifier: MIT-0
"""An Indexed Job on this machine: the torchrun command that the chart renders, and a controller that restarts pods."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from elastic.job import LOOK, RANK, HangError, Pod, dump_stacks, free_port
from elastic.warm import Server
from render import charts

VALUES = {
    "global.stage": "sft",
    "sft.nodes": 2,
    "sft.processesPerNode": 1,
    "sft.startSeconds": 60,
    "sft.stopSeconds": 60,
}


class IndexedJob:
    """Two pods. `until` is where time passes: failed pods start again, and a condition is awaited.

    With `renamed`, each pod that starts has a host name of its own; then only a heartbeat that has stopped tells that the
    holder of a run folder's lock is gone.
    """

    def __init__(
        self, server: Server, folder: Path, command: Sequence[str], env: Mapping[str, str], renamed: bool = False
    ) -> None:
        (job,) = [one for one in charts.render(charts.BASE, VALUES) if one["kind"] == "Job" and _part(one) == "sft"]
        self._container: dict[str, Any] = job["spec"]["template"]["spec"]["containers"][0]
        self._server, self._folder, self._command = server, folder, list(command)
        self._env = {**env, "LINGOSS_STOP_SECONDS": charts.env(self._container)["LINGOSS_STOP_SECONDS"]}
        self._port, self._starts, self._renamed = free_port(), 0, renamed
        self.restarts = 0
        folder.mkdir(parents=True)
        self.pods = [self._start(index) for index in range(job["spec"]["completions"])]

    def __enter__(self) -> IndexedJob:
        return self

    def __exit__(self, *_: object) -> None:
        for pod in self.pods:
            pod.kill()

    @property
    def complete(self) -> bool:
        """Every index has succeeded."""
        return all(pod.status == 0 for pod in self.pods)

    def until(self, what: str, condition: Callable[[], object], seconds: float = 90, restart: bool = True) -> None:
        """Let the controller work (`restart=False`: it is away) until the condition holds.

        Raises:
            HangError: it did not come within `seconds`.
        """
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                dump_stacks(self.pods)
                raise HangError(f"{what}: not within {seconds:g} s\n{self._report()}")
            if restart:
                self.restart_failed()
            time.sleep(LOOK)

    def restart_failed(self) -> None:
        """What the Job controller does: a new pod for each index that failed; one that succeeded stays so."""
        for index, pod in enumerate(self.pods):
            if pod.status:
                self.restarts += 1
                self.pods[index] = self._start(index)

    def _start(self, index: int) -> Pod:
        """The chart's command, with this machine in the place of the cluster; every pod has an address of its own."""
        self._starts += 1
        script = self._container["command"][2]
        (line,) = [one for one in script.splitlines() if "lingoss.torchrun" in one]
        line = re.sub(r"\$LINGOSS_JOB-0\.\S+:29400", f"127.0.0.1:{self._port}", line)
        line = line.replace("$LINGOSS_JOB", "job").replace("$host", "true" if index == 0 else "false")
        words = shlex.split(line)
        launcher, rank = words[: words.index("-m", 4)], words[words.index("-m", 4) :]
        assert launcher[:4] == ["exec", "python", "-m", "lingoss.torchrun"]
        assert rank[:3] == ["-m", "lingoss", "sft"]
        address = f"--local-addr=127.0.0.{self._starts + 1}"
        command = ["lingoss.torchrun", *launcher[4:], address, "--no-python", *RANK, *self._command]
        name = {"WARM_HOST": f"pod-{index}-{self._starts}"} if self._renamed else {}
        return Pod(self._server, self._folder / f"pod-{index}", command, {**self._env, **name})

    def _report(self) -> str:
        return "\n".join(f"--- pod {index} ({pod.status}): {pod.log()[-6000:]}" for index, pod in enumerate(self.pods))


def _part(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"]["labels"]["app.kubernetes.io/component"])
