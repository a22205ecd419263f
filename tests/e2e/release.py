# SPDX-License-Identifier: MIT-0
"""A release whose pods all run, as its owner sees it: jobs, logs, run folders, the server."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cluster import world
from cluster.release import Release
from cluster.world import ROOT
from harness import helm
from harness.api import Object
from harness.cluster import LocalCluster
from harness.sandbox import hierarchies
from lingoss import runs

HERE = Path(__file__).parent
USER = 1000


class Real(Release):
    """The layout local-cpu with the image that was built here. `root` is its folder as this machine sees it."""

    def __init__(self, cluster: LocalCluster, namespace: str, sets: Sequence[str] = (), size: str = "") -> None:
        """`size`: of a volume that can be full, such as `600m`; default: a folder of this machine's disk."""
        super().__init__(cluster, namespace, "lingoss", "local-cpu", sets=sets, volume=False)
        self.values = [ROOT / "values" / "local-cpu.yaml", HERE / "real.yaml"]
        self.local, self.size = cluster, size
        self.provide()

    def provide(self) -> None:
        """Make the volume, kept for this release's claim, and the release's folder on it, which belongs to its user."""
        folder = self.local.volume(self.volume_name)
        if self.size:
            options = f"size={self.size},uid={USER},gid={USER}"
            self.local.sandbox.run(["mount", "-t", "tmpfs", "-o", options, "full", folder])
            folder = Path(f"/proc/{self.local.sandbox.pid}/root{folder}")  # the mount is the cluster's, not ours
        claim = {"namespace": self.namespace, "name": f"{self.fullname}-data"}
        pv: Object = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": self.volume_name}}
        self.api.merge(pv, {"spec": {"claimRef": {**claim, "apiVersion": "v1", "kind": "PersistentVolumeClaim"}}})
        self.root = folder / self.name
        self.root.mkdir()
        give(self.root)

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def ends(self, part: str, seconds: float) -> Object:
        """Wait until the job of a part is complete and answer it; a failed one is told with the end of its log."""

        def check() -> Object | None:
            job = self.workload(part)
            states = {c["type"]: c for c in (job.get("status") or {}).get("conditions") or []}
            if states.get("Failed", {}).get("status") == "True":
                told = "\n".join(self.logs(part).splitlines()[-30:])
                raise AssertionError(f"{part}: {states['Failed'].get('message')}\n{told}")
            return job if states.get("Complete", {}).get("status") == "True" else None

        try:
            return self.cluster.wait(f"{part} of {self.namespace} to complete", check, seconds)
        except TimeoutError as error:
            log = "\n".join(self.logs(part).splitlines()[-15:])
            told = "\n".join(world.told(self.api, self.namespace))
            raise TimeoutError(f"{error}\n{told}\n{log}") from None

    def all_pods(self, part: str) -> list[Object]:
        """The pods of a part, ended ones too, the oldest first."""
        selector = f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component={part}"
        found = self.api.list("v1", "Pod", self.namespace, labelSelector=selector)
        return sorted(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def log(self, pod: Object, container: str = "") -> str:
        """The whole log of one container of a pod; default: its main one."""
        name = container or pod["spec"]["containers"][0]["name"]
        command = ["logs", "--namespace", self.namespace, pod["metadata"]["name"], "--container", name]
        return self.cluster.kubectl(*command)

    def exec(self, pod: Object, *command: str) -> str:
        """What a command prints in a running pod, both streams; its failure is no error here."""
        argv = [helm.kubectl(), "exec", "--namespace", self.namespace, pod["metadata"]["name"], "--", *command]
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=60, env=self.cluster.environment()
        )
        return done.stdout + done.stderr

    def processor_seconds(self, pod: Object) -> float:
        """Seconds of a core that the running main container of a pod has used."""
        (status,) = pod["status"]["containerStatuses"]
        identity = status["containerID"].removeprefix("containerd://")
        for place in hierarchies():
            for file in (place / self.local.sandbox.cgroup).rglob(f"{identity}/cpuacct.usage"):
                return int(file.read_text()) / 1e9
        raise AssertionError(f"no cgroup of {pod['metadata']['name']} counts its time")

    # -- runs ----------------------------------------------------------------------------------------------------------

    def run(self, stage: str) -> runs.RunInfo:
        """The one run of a stage, finished or not."""
        found = self.runs(stage)
        assert len(found) == 1, f"runs of {stage}: {[one.name for one in found]}"
        return found[0]

    def runs(self, stage: str) -> list[runs.RunInfo]:
        """The runs of a stage, oldest first; none of any stage may be damaged."""
        every = runs.list_runs(self.root)
        assert not [one.problems for one in every if one.problems], [(one.name, one.problems) for one in every]
        return [one for one in every if one.stage == stage]

    def lost(self, stage: str) -> str:
        """What `lingoss runs` notes of a run that gives no sign of life any more; empty for any other."""
        return next(
            (row.note for row in runs.run_rows(self.root) if row.name.startswith(stage) and row.state == "lost"), ""
        )

    def steps(self, stage: str) -> list[Object]:
        """The rows of training steps that the run of a stage has written so far; none before it exists."""
        folders = sorted((self.root / "runs").glob(f"{stage}-*"))
        return [row for row in runs.read_metrics(folders[-1]) if "loss" in row] if folders else []

    def reaches(self, stage: str, step: int, seconds: float = 180) -> int:
        """Wait until the run of a stage has made a step; answers the newest."""

        def check() -> int | None:
            rows = self.steps(stage)
            return rows[-1]["step"] if rows and rows[-1]["step"] >= step else None

        try:
            return self.cluster.wait(f"step {step} of {stage} in {self.namespace}", check, seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n" + "\n".join(world.told(self.api, self.namespace))) from None

    # -- the server ----------------------------------------------------------------------------------------------------

    @contextmanager
    def forwarded(self) -> Iterator[str]:
        """The address of the server on this machine, by the `kubectl port-forward` of the notes."""
        argv: list[str | Path] = [
            helm.kubectl(),
            "port-forward",
            "--namespace",
            self.namespace,
            "service/lingoss-serve",
            ":8000",
        ]
        with subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.cluster.environment()
        ) as forward:
            assert forward.stdout is not None
            assert forward.stderr is not None
            try:
                line = forward.stdout.readline()
                found = re.search(r"127\.0\.0\.1:(\d+)", line)
                assert found, line or forward.stderr.read()
                yield f"http://127.0.0.1:{found[1]}"
            finally:
                forward.terminate()

    def serves(self, seconds: float) -> Object:
        """Wait until the server's pod is ready and answer it."""

        def check() -> Object | None:
            for pod in self.all_pods("serve"):
                status = (pod["status"].get("containerStatuses") or [{}])[0]
                if status.get("restartCount", 0):
                    raise AssertionError(f"the server ended: {self.log(pod)[-3000:]}")
                if status.get("ready") and not pod["metadata"].get("deletionTimestamp"):
                    return pod
            return None

        return self.cluster.wait(f"the server of {self.namespace} to be ready", check, seconds)

    def save_logs(self) -> None:
        """Keep the logs of all pods beside the cluster's own, for whoever looks into a failure."""
        for pod in self.api.list("v1", "Pod", self.namespace):
            for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
                name = f"{self.namespace}.{pod['metadata']['name']}.{container['name']}.log"
                command = ["logs", "--namespace", self.namespace, pod["metadata"]["name"], "--container"]
                text = self.cluster.kubectl(*command, container["name"], check=False)
                if text:
                    (self.cluster.folder / "logs" / name).write_text(text)


def give(path: Path) -> None:
    """Give a file or folder to the user of the pods."""
    subprocess.run(["chown", "--recursive", f"{USER}:{USER}", str(path)], check=True)
