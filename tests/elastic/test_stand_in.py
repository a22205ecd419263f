# SPDX-License-Identifier: MIT-0
"""The stand-in operator of the cluster tests with agents that really listen: its pods are hyperpodrun on this machine."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elastic.job import LOOK, HangError, Pod, agent_command
from elastic.training import Run, new_run
from elastic.warm import Server
from harness.hyperpod import stand_in
from harness.hyperpod.definition import KIND
from harness.hyperpod.plan import true_states

Object = dict[str, Any]


class OneJob:
    """An API server with one job, and a kubelet whose pods have the addresses 127.0.0.2 and on."""

    def __init__(self, server: Server, folder: Path, run: Run, environment: dict[str, str], job: Object) -> None:
        self.job, self.pods, self.running = job, list[Object](), dict[str, Pod]()
        self._server, self._folder, self._run, self._env = server, folder, run, environment
        folder.mkdir()

    def list(self, version: str, kind: str, **_: str) -> list[Object]:
        return self.pods if kind == "Pod" else [self.job]

    def create(self, pod: Object) -> Object:
        name, address = pod["metadata"]["name"], f"127.0.0.{len(self.running) + 2}"
        folder = self._folder / name
        command = agent_command(folder, stand_in.AGENT_PORT, self._run.command)
        command[command.index("--server-host=127.0.0.1")] = f"--server-host={address}"
        self.running[name] = Pod(self._server, folder, command, {**self._env, "NNODES": "2"})
        pod["spec"]["nodeName"], pod["status"] = "real-0", {"phase": "Running", "podIP": address}
        self.pods.append(pod)
        return pod

    def delete(self, pod: Object) -> None:
        self.pods.remove(pod)
        self.running[pod["metadata"]["name"]].signal(signal.SIGKILL)

    def merge(self, thing: Object, patch: Object, subresource: str = "") -> Object:
        for key, value in patch.items():
            self.job[key] = {**self.job.get(key, {}), **value}
        return self.job

    def until(self, what: str, condition: Callable[[], object], seconds: float = 90) -> None:
        """A new operator looks each time: whatever it has to know, it must have kept with the job."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise HangError(f"{what}: not within {seconds:g} s\n{self.job}")
            stand_in.Operator(self).step()  # type: ignore[arg-type]
            time.sleep(LOOK)


def test_a_job_runs_through_a_fault_to_its_end(
    server: Server, prepared: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    run = new_run(prepared, tmp_path, 8, checkpoint={"save_steps": 2})
    container = {"name": "sft", "image": "i"}
    spec = {"replicaSpecs": [{"name": "worker", "replicas": 2, "template": {"spec": {"containers": [container]}}}]}
    job = {
        "apiVersion": stand_in.API_VERSION,
        "kind": KIND,
        "metadata": {"name": "j", "namespace": "n", "uid": "u"},
        "spec": {**spec, "runPolicy": {"jobMaxRetryCount": 2}},
    }
    one = OneJob(server, tmp_path / "pods", run, environment, job)
    try:
        one.until("step 3", run.at(3))
        assert true_states(one.job["status"]) == {"Created", "Running"}
        one.running["j-worker-1"].ranks()[0].kill()
        one.until("an end", lambda: {"Completed", "Failed"} & true_states(one.job["status"]))
        one.until("no pod is left", lambda: not one.pods)
    finally:
        for pod in one.running.values():
            pod.kill()
    assert true_states(one.job["status"]) == {"Created", "Completed"}
    assert run.done
    assert '"faults": 1' in one.job["metadata"]["annotations"][stand_in.MEMORY]
