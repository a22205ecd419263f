# SPDX-License-Identifier: MIT-0
"""A Kubernetes cluster for tests: one started here, with one real node, or a throw-away one of the user's."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from harness import api, cache, components, helm, images, programs
from harness.cache import HarnessError
from harness.programs import program
from harness.sandbox import Process, Sandbox
from harness.unpacked import clone

T = TypeVar("T")


class OnlyLocalError(HarnessError):
    """Asked of a cluster of the user's what only a local one can do; a test that needs it is skipped there."""


def existing() -> bool:
    """Whether the tests are to use a cluster of the user's. Raises `HarnessError` for a word that means nothing."""
    chosen = os.environ.get("LINGOSS_TEST_CLUSTER", "")
    if chosen not in ("", "existing"):
        raise HarnessError(f"LINGOSS_TEST_CLUSTER={chosen}: it may be `existing`, or unset for a local cluster")
    return bool(chosen)


class Cluster:
    """What both kinds of cluster can do. `kubeconfig` is an administrator's, `folder` is for scratch files."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self.kubeconfig, self.folder = kubeconfig, folder
        self.api = api.Api(kubeconfig)

    @classmethod
    @contextmanager
    def start(cls) -> Iterator[Cluster]:
        """The user's cluster with `LINGOSS_TEST_CLUSTER=existing` and KUBECONFIG, else a local one, then torn down."""
        if existing():
            kubeconfig = os.environ.get("KUBECONFIG")
            if not kubeconfig:
                raise HarnessError("LINGOSS_TEST_CLUSTER=existing needs KUBECONFIG, the file of a throw-away cluster")
            with tempfile.TemporaryDirectory(prefix="lingoss-") as folder:
                yield cls(Path(kubeconfig), Path(folder))
            return
        local = LocalCluster.boot()
        try:
            yield local
        finally:
            local.stop()

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True, seconds: float = 120) -> str:
        """Stdout of kubectl; raises `HarnessError` with its stderr if it fails and `check` is set."""
        return self._tool([helm.kubectl(), *arguments], stdin, check, seconds).stdout

    def helm(
        self, *arguments: str, version: int = 4, check: bool = True, seconds: float = 600
    ) -> subprocess.CompletedProcess[str]:
        """Run Helm 4 (or 3) with folders of its own; raises `HarnessError` with its stderr if it fails and `check`."""
        return self._tool([helm.helm3() if version == 3 else helm.helm4(), *arguments], None, check, seconds)

    def environment(self) -> dict[str, str]:
        """The environment for programs that use this cluster: KUBECONFIG and Helm's folders."""
        homes = {f"HELM_{part}_HOME": str(self.folder / "helm" / part.lower()) for part in ("CACHE", "CONFIG", "DATA")}
        return {**os.environ, **homes, "KUBECONFIG": str(self.kubeconfig)}

    def _tool(
        self, argv: Sequence[str | Path], stdin: str | None, check: bool, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, check=False, env=self.environment(), timeout=seconds
        )
        if check and done.returncode:
            shown = " ".join(map(str, argv[1:]))
            raise HarnessError(f"{Path(argv[0]).name} {shown}: {done.stderr.strip() or done.stdout.strip()}")
        return done

    def wait(self, what: str, check: Callable[[], T | None], seconds: float = 60) -> T:
        """What `check` answers as soon as that is true; `TimeoutError` names `what` and its last answer."""
        return api.wait(what, seconds, check)

    def process(self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None) -> Process:
        """Start a program that serves the cluster, such as an operator; it ends with the cluster."""
        raise OnlyLocalError(f"a cluster of yours must bring {name} itself")

    def load(self, archive: Path) -> None:
        """Make an image archive known to the nodes."""
        raise OnlyLocalError(f"a cluster of yours cannot take {archive}: give its nodes the image yourself")

    def image(self, recipe: images.Recipe) -> str:
        """Build an image (see `images.archive`) and import it into the real node; returns its reference."""
        self.load(images.archive(recipe))
        return recipe.reference

    def volume(self, name: str, size: str = "10Gi", owner: int = 1000) -> Path:
        """Make a PersistentVolume `name` (ReadWriteMany, no class) and return its folder, owned by `owner`.

        A host path without node affinity: simulated nodes bind it too, and a test can plant files in the folder. On a
        cluster of the user's that needs `LINGOSS_TEST_VOLUMES`, a folder that its real node sees under the same path.
        """
        folder = self._volumes() / name
        folder.mkdir(parents=True)
        os.chown(folder, owner, owner)
        spec = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "hostPath": {"path": str(folder), "type": "Directory"},
        }
        self.api.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
        return folder

    def _volumes(self) -> Path:
        """Where volumes' folders lie."""
        chosen = os.environ.get("LINGOSS_TEST_VOLUMES")
        if not chosen:
            raise OnlyLocalError("LINGOSS_TEST_VOLUMES is not set: a folder that this machine and the real node share")
        return Path(chosen)


class LocalCluster(Cluster):
    """Kubernetes 1.34 in a sandbox: control plane, DNS, and the real node `real-0` whose kubelet runs pods by runc."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        # For programs inside the sandbox (operators): its server is 127.0.0.1.
        self.inside_kubeconfig = sandbox.folder / "pki" / "local-admin.kubeconfig"
        self.webhook_certificate = sandbox.folder / "pki" / "webhook.crt"  # and .key; for 127.0.0.1; by pki/ca.crt
        self.authority = sandbox.folder / "pki" / "ca.crt"
        super().__init__(sandbox.folder / "pki" / "admin.kubeconfig", sandbox.folder)

    @classmethod
    def boot(cls, bound: bool = True, unpacked: Path | None = None) -> LocalCluster:
        """Start one, building what is missing first. `bound`: it dies with this process. `unpacked`: see `unpacked.root`.

        Raises `HarnessError` with the last lines of the program that failed; nothing stays behind then.
        """
        programs.debian()
        names = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"]
        programs.build([*names, "coredns"])
        pause = images.pause()
        start = time.monotonic()
        sandbox = Sandbox.start(bound)
        try:
            components.certificates(sandbox.folder / "pki", sandbox.address)
            cluster = cls(sandbox)
            cluster._start_control_plane()
            cluster._start_node(pause, unpacked)
        except TimeoutError as error:
            ends = [f"{process.name}:\n{process.tail(5)}" for process in sandbox.processes]
            sandbox.stop()
            raise HarnessError("\n".join([str(error), *ends])) from None
        except BaseException:
            sandbox.stop()
            raise
        cache.say(f"cluster {sandbox.number} is up: {time.monotonic() - start:.1f} s")
        return cluster

    def stop(self) -> None:
        """End it and remove every trace of it."""
        self.sandbox.stop()

    def wait(self, what: str, check: Callable[[], T | None], seconds: float = 60) -> T:
        """As `Cluster.wait`; fails at once, with the end of its log, if a program of the cluster has ended."""

        def watched() -> T | None:
            self.sandbox.check()
            return check()

        return api.wait(what, seconds, watched)

    def process(self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None) -> Process:
        """Start a program inside the sandbox: 127.0.0.1 is the API server's. Its log is `logs/<name>.log`."""
        return self.sandbox.process(name, argv, env)

    def load(self, archive: Path) -> None:
        """Import an image archive into the real node."""
        self._ctr("images", "import", str(archive))

    def _volumes(self) -> Path:
        return self.folder / "volumes"

    # -- start ---------------------------------------------------------------------------------------------------

    def _start_control_plane(self) -> None:
        folder, pki = self.sandbox.folder, self.sandbox.folder / "pki"
        self.process("etcd", [program("etcd"), *components.etcd(folder / "etcd")])
        self.process("kube-apiserver", [program("kube-apiserver"), *components.apiserver(pki)])
        # Not before: the controller manager ends if the first RBAC objects are not there yet.
        self.wait("the API server", self._ready, 120)
        self.process(
            "kube-controller-manager", [program("kube-controller-manager"), *components.controller_manager(pki)]
        )
        self.process("kube-scheduler", [program("kube-scheduler"), *components.scheduler(pki)])

    def _ready(self) -> bool:
        with_ok = subprocess.run(
            [helm.kubectl(), "--kubeconfig", self.kubeconfig, "get", "--raw", "/readyz"],
            capture_output=True,
            check=False,
        )
        return with_ok.stdout == b"ok"

    def _start_node(self, pause: Path, unpacked: Path | None) -> None:
        folder, pki = self.sandbox.folder, self.sandbox.folder / "pki"
        host = self.sandbox.run
        host(["ip", "link", "add", components.BRIDGE, "type", "bridge"])
        host(["ip", "address", "add", f"{components.NODE_ADDRESS}/24", "dev", components.BRIDGE])
        host(["ip", "link", "set", components.BRIDGE, "up"])
        host(["ip", "route", "add", components.SERVICE_NETWORK, "dev", components.BRIDGE])
        if unpacked:
            (folder / "containerd").mkdir()
            clone(unpacked, folder / "containerd" / "root")
        self.process(
            "containerd", [shutil.which("containerd") or "containerd", *components.containerd(folder / "containerd")]
        )
        self.wait("containerd", self._containerd_answers, 60)
        self.load(pause)
        kubelet = components.kubelet(folder / "kubelet", pki, self.sandbox.cgroup)
        self.process("kubelet", [program("kubelet"), *kubelet])
        self.process("kube-proxy", [program("kube-proxy"), *components.proxy(folder / "proxy", pki)])
        self.process("coredns", [program("coredns"), *components.coredns(folder / "coredns", pki)])
        for thing in components.dns_objects():
            self.api.apply(thing)
        self.wait("the default service account", lambda: self.api.get("v1", "ServiceAccount", "default", "default"))
        self.wait("the real node", self._node_ready)

    def _containerd_answers(self) -> bool:
        try:
            self._ctr("version")
        except HarnessError:
            return False
        return True

    def _ctr(self, *arguments: str) -> None:
        self.sandbox.run(["ctr", "--namespace", "k8s.io", *arguments], 600)

    def _node_ready(self) -> bool:
        node = self.api.get("v1", "Node", None, components.NODE)
        conditions = node["status"].get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
