# SPDX-License-Identifier: MIT-0
"""One Helm release, used as its owner would: install, upgrade from stage to stage, uninstall."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import yaml

from cluster import planted, world
from cluster.world import ROOT
from harness import nodes
from harness.api import Object
from harness.cluster import Cluster

_NUMBERS = itertools.count()
CHART = ROOT / "charts" / "lingoss"
HERE = Path(__file__).parent


class Release:
    """A release of one layout in one namespace, with a volume of its own. `root` is its folder on the host."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        name: str,
        layout: str,
        values: Sequence[Path] = (),
        sets: Sequence[str] = (),
        helm: int = 4,
        volume: bool = True,
        chart: Path = CHART,
    ) -> None:
        self.cluster, self.api = cluster, cluster.api
        self.namespace, self.name, self.layout, self.version, self.chart = namespace, name, layout, helm, chart
        self.values = [ROOT / "values" / f"{layout}.yaml", *values, HERE / "simulated.yaml"]
        self.sets = list(sets)
        self.fullname = name if "lingoss" in name else f"{name}-lingoss"
        # A test may make a release of one name again; their folders must not meet.
        self.volume_name = f"{namespace}.{name}.{next(_NUMBERS)}"
        if volume:
            self.provide()

    def provide(self) -> None:
        """Make this release's volume, with a tiny model on it; its claim need not be there yet."""
        folder = self.cluster.volume(self.volume_name)
        # Kept for this release's claim: another pending claim would take it.
        pv: Object = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": self.volume_name}}
        claim = {
            "namespace": self.namespace,
            "name": f"{self.fullname}-data",
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
        }
        self.api.merge(pv, {"spec": {"claimRef": claim}})
        self.root = folder / self.name
        self.root.mkdir()
        planted.give(self.root)
        planted.model(self.root / "incoming" / "tiny")
        planted.give(self.root)

    # -- Helm ----------------------------------------------------------------------------------------------------------

    def install(self, *sets: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """`helm install` with the layout's values."""
        return self._helm("install", *self._files(), *_sets([*self.sets, *sets]), check=check)

    def upgrade(self, *sets: str, check: bool = True, flags: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """`helm upgrade --reset-then-reuse-values`, as the README says."""
        return self._helm("upgrade", "--reset-then-reuse-values", *flags, *_sets(sets), check=check)

    def stage(self, name: str, *sets: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Upgrade to a stage."""
        return self.upgrade(f"global.stage={name}", *sets, check=check)

    def rollback(self, revision: int, check: bool = True) -> subprocess.CompletedProcess[str]:
        """`helm rollback` to a revision."""
        command = ["rollback", self.name, str(revision), "--namespace", self.namespace]
        return self.cluster.helm(*command, version=self.version, check=check)

    def test(self) -> str:
        """`helm test`; what Helm and its pod said. Helm 4 prints the pod's log to stderr."""
        done = self.cluster.helm("test", self.name, "--namespace", self.namespace, version=self.version)
        return done.stdout + done.stderr

    def uninstall(self) -> subprocess.CompletedProcess[str]:
        """`helm uninstall`, waiting for what Helm itself waits for."""
        return self.cluster.helm("uninstall", self.name, "--namespace", self.namespace, version=self.version)

    def _files(self) -> list[str]:
        return [part for path in self.values for part in ("--values", str(path))]

    def _helm(self, verb: str, *options: str, check: bool) -> subprocess.CompletedProcess[str]:
        command = [verb, self.name, str(self.chart), "--namespace", self.namespace, *options]
        return self.cluster.helm(*command, version=self.version, check=check)

    # -- what the cluster holds ----------------------------------------------------------------------------------------

    def workload(self, part: str) -> Object:
        """The run-once object of a part."""
        found = [
            thing
            for thing in world.workloads(self.api, self.namespace, self.name)
            if thing["metadata"]["labels"]["app.kubernetes.io/component"] == part
            and not thing["metadata"].get("ownerReferences")
        ]
        assert len(found) == 1, (
            f"{len(found)} workloads of part {part} in {self.namespace}: {[t['metadata']['name'] for t in found]}"
        )
        return found[0]

    def config(self, stage: str) -> str:
        """The trainer's config of a stage as the cluster holds it."""
        maps = self.api.list("v1", "ConfigMap", self.namespace, labelSelector=f"app.kubernetes.io/instance={self.name}")
        found = [text for thing in maps for key, text in (thing.get("data") or {}).items() if key == f"{stage}.yaml"]
        assert len(found) == 1, f"{len(found)} configs of stage {stage} in {self.namespace}"
        return str(found[0])

    def objects(self, stage: str, *sets: str) -> list[Object]:
        """What an upgrade to a stage would bring to the cluster, hooks included."""
        command = [
            "template",
            "--is-upgrade",
            self.name,
            str(self.chart),
            "--namespace",
            self.namespace,
            *self._files(),
        ]
        command += _sets([*self.sets, *sets, f"global.stage={stage}", "global.checkCRDs=false"])
        return [
            thing for thing in yaml.safe_load_all(self.cluster.helm(*command, version=self.version).stdout) if thing
        ]

    def rendered(self, stage: str, *sets: str) -> str:
        """The trainer's config that a stage would have, before the cluster holds it."""
        things = self.objects(stage, *sets)
        texts = {
            text.strip()
            for thing in things
            for key, text in (thing.get("data") or {}).items()
            if key == f"{stage}.yaml"
        }
        (text,) = texts
        return str(text)

    def revisions(self) -> list[tuple[int, str]]:
        """Number and status of each revision that Helm remembers."""
        command = ["history", self.name, "--namespace", self.namespace, "--output", "json"]
        found = json.loads(self.cluster.helm(*command, version=self.version).stdout)
        return [(one["revision"], one["status"]) for one in found]

    def running(self, part: str, count: int) -> list[Object]:
        """Wait for exactly `count` running pods of a part."""
        return world.settled(self.cluster, self.namespace, self.name, part, count)

    def gpus(self) -> int:
        """GPUs that this release holds now."""
        return world.held(self.api, self.namespace, self.name)

    def done(self, part: str) -> None:
        """Wait until the run-once object of a part has ended well."""

        def check() -> bool:
            thing = self.workload(part)
            states = {c["type"]: c["status"] for c in (thing.get("status") or {}).get("conditions") or []}
            if states.get("Failed") == "True":
                raise AssertionError(f"{part} failed: {thing['status']}; {self.logs(part)}")
            return world.is_finished(thing)

        self.cluster.wait(f"{part} of {self.name} in {self.namespace} to finish", check, 120)

    def finish(self, part: str, code: int = 0) -> None:
        """End the simulated pods of a part with an exit status and, if that is 0, wait until its object is done."""
        selector = f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component={part}"
        assert nodes.finish(self.api, self.namespace, selector, code), f"no running pod of part {part}"
        if code == 0:
            self.done(part)

    def logs(self, part: str) -> str:
        """Logs of a part's pods on the real node."""
        selector = f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component={part}"
        return self.cluster.kubectl(
            "logs", "--namespace", self.namespace, "--selector", selector, "--all-containers", "--tail=-1", check=False
        )

    # -- the life of a model, with what simulated pods leave out -----------------------------------------------------------

    def prepare(self, *sets: str) -> None:
        """Install at stage prepare, which runs for real on the real node."""
        self.install(*sets)
        self.done("prepare")

    def trained(self) -> str:
        """Plant the SFT run of the config that the cluster holds; answers its name."""
        return planted.sft(self.root, self.config("sft"))

    def judged(self, run: str, outcome: str = "viable", accepted: str | None = None) -> str:
        """Plant the evaluation of the config that the cluster holds."""
        return planted.evaluation(self.root, self.config("evaluate"), run, outcome, accepted)

    def reinforced(self) -> str:
        """Plant the GRPO run of the config that the cluster holds."""
        return planted.grpo(self.root, self.config("grpo"))

    def gone(self) -> None:
        """Wait until nothing of the release is left but its claim."""
        kinds = (
            *world.RUN_ONCE,
            ("v1", "Pod"),
            ("ray.io/v1", "RayCluster"),
            ("apps/v1", "Deployment"),
            ("v1", "Service"),
            ("v1", "ConfigMap"),
            ("v1", "Secret"),
            ("v1", "ServiceAccount"),
            ("rbac.authorization.k8s.io/v1", "Role"),
            ("rbac.authorization.k8s.io/v1", "RoleBinding"),
            ("networking.k8s.io/v1", "NetworkPolicy"),
            ("policy/v1", "PodDisruptionBudget"),
        )

        def left() -> list[str]:
            found = []
            for version, kind in kinds:
                try:
                    things = self.api.list(version, kind, self.namespace)
                except LookupError:  # not installed on this cluster
                    continue
                for thing in things:
                    name = thing["metadata"]["name"]
                    ours = thing["metadata"].get("labels", {}).get("app.kubernetes.io/instance") == self.name
                    helm = kind == "Secret" and re.fullmatch(
                        rf"sh\.helm\.release\.v1\.{re.escape(self.name)}\.v\d+", name
                    )
                    if ours or helm or name.startswith(self.fullname):
                        found.append(f"{kind}/{name}")
            return found

        try:
            self.cluster.wait(f"nothing to be left of {self.name} in {self.namespace}", lambda: not left(), 90)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; left: {left()}") from None

    def claim(self) -> Object:
        """The claim."""
        return self.api.get("v1", "PersistentVolumeClaim", self.namespace, f"{self.fullname}-data")

    def remove(self) -> None:
        """Take away what a test left, in whatever state."""
        self.cluster.helm(
            "uninstall", self.name, "--namespace", self.namespace, "--no-hooks", version=self.version, check=False
        )
        for kind in ("PersistentVolumeClaim", "PersistentVolume"):
            name = f"{self.fullname}-data" if kind == "PersistentVolumeClaim" else self.volume_name
            self.api.delete({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": self.namespace}})


def _sets(sets: Sequence[str]) -> list[str]:
    """`a.b=c` as --set, and `a.b:=json` as --set-json."""
    options = []
    for one in sets:
        json_like = re.match(r"([\w.\-\\/\[\]]+):=(.*)", one, re.S)
        options += ["--set-json", f"{json_like[1]}={json_like[2]}"] if json_like else ["--set", one]
    return options


def layout(name: str) -> Object:
    """`global.layout` of a values file."""
    values: Object = yaml.safe_load((ROOT / "values" / f"{name}.yaml").read_text(encoding="utf-8"))
    found: Object = values["global"]["layout"]
    return found
