# SPDX-License-Identifier: MIT-0
"""The operators of a test cluster, as programs of its sandbox: kwok, KubeRay, Kueue, and the HyperPod stand-in.

KubeRay and Kueue are the released programs with their released definitions; they run outside pods, so their webhooks
are reached by address.
"""

from __future__ import annotations

import base64
import json
import shutil
import sys
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from harness import cache, nodes, programs
from harness.api import Api, ApiError, Object, wait
from harness.cache import HarnessError
from harness.cluster import LocalCluster
from harness.components import NODE
from harness.hyperpod.definition import GROUP, KIND, PLURAL, definition
from harness.sandbox import Process

HERE = Path(__file__).parent
INSTALLED = HERE.parents[1] / "operators"
WEBHOOK_PORT = 19443
# Kueue's own webhooks, and those of the kinds that it manages here. The rest of its manifest is for kinds that the
# cluster does not have, or for frameworks that are off.
MANAGED = ("-batch-v1-job", "-ray-io-v1-rayjob", "-ray-io-v1-raycluster", "-kueue-x-k8s-io-")
CONVERTED = ("localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters")


def furnish(cluster: LocalCluster) -> None:
    """What the scenarios expect of a cluster: a real node that is kept for them, simulated ones, and the operators."""
    nodes.reserve(cluster.api, NODE)
    kwok(cluster)
    kuberay(cluster)
    kueue(cluster)
    hyperpod(cluster)


def require(api: Api) -> None:
    """Refuse a cluster of the user's that lacks what `furnish` gives a local one; `HarnessError` names all of it."""
    kinds = ("rayjobs.ray.io", "clusterqueues.kueue.x-k8s.io", f"{PLURAL}.{GROUP}")
    found = {thing["metadata"]["name"] for thing in api.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")}
    lacking = [f"the definition {kind}" for kind in kinds if kind not in found]
    if not api.list("v1", "Node", labelSelector=f"{nodes.REAL}=true"):
        lacking.append(f"a real node with label and taint {nodes.REAL}")
    if lacking:
        raise HarnessError(
            f"this cluster lacks {', '.join(lacking)}; tests/harness/README.md says what the scenarios expect"
        )


def manifests(name: str) -> list[Object]:
    """The released definitions (and webhooks) of `kuberay` or `kueue`, from the module that the program is built from.

    They are kept as JSON, since the YAML (4 MB) takes seconds to read; without descriptions and without KubeRay's
    deprecated v1alpha1, which together are most of what the API server would work on at the start of each cluster.
    """
    if name == "kuberay":
        folder = programs.module_files("kubernetes", "github.com/ray-project/kuberay/ray-operator", "config/crd/bases")
    else:
        parts = ("config/components/crd/bases", "config/components/webhook/manifests.yaml")
        folder = programs.module_files("kueue", "sigs.k8s.io/kueue", *parts)

    def make(target: Path) -> None:
        things: list[Object] = []
        for file in sorted(folder.rglob("*.yaml")):
            things += map(_lean, yaml.load_all(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
        (target / "manifests.json").write_text(json.dumps(things))

    place = cache.entry("definitions", f"{name}-lean-{folder.name}", make)
    result: list[Object] = json.loads((place / "manifests.json").read_text())
    return result


def _lean(thing: Object) -> Object:
    if thing["kind"] == "CustomResourceDefinition":
        thing["spec"]["versions"] = [v for v in thing["spec"]["versions"] if v["name"] != "v1alpha1"]
        for version in thing["spec"]["versions"]:
            _drop_descriptions(version["schema"])
    return thing


def _drop_descriptions(node: Any) -> None:
    """Remove texts, not a property that is called description, whose value is a schema."""
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
        _drop_descriptions(child)
    if isinstance(node, dict) and isinstance(node.get("description"), str):
        del node["description"]


def define(api: Api, definitions: list[Object]) -> None:
    """Make CustomResourceDefinitions, or renew those that are there, and wait until the API server serves them."""
    for thing in definitions:
        try:
            api.create(thing)  # not apply: it keeps account of every field, of which these have thousands
        except ApiError as error:
            if error.code != 409:
                raise
            api.merge(thing, {"spec": thing["spec"]})
    for thing in definitions:
        name = thing["metadata"]["name"]
        wait(f"the definition {name} to be established", 120, lambda name=name: _established(api, name))  # type: ignore[misc]


def _established(api: Api, name: str) -> bool:
    found = api.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, name)
    states = found.get("status", {}).get("conditions") or []
    return any(state["type"] == "Established" and state["status"] == "True" for state in states)


def _until_ready(
    process: Process, cluster: LocalCluster, port: int, path: str = "/readyz", seconds: float = 120
) -> None:
    """Wait until a program of the sandbox answers on its health port, or say how it ended."""

    def answers() -> bool:
        process.check()
        with urllib.request.urlopen(f"http://{cluster.sandbox.address}:{port}{path}", timeout=2):
            return True

    wait(f"{process.name} to be ready (its log: {process.log})", seconds, answers)


def kwok(cluster: LocalCluster) -> Process:
    """kwok: keeps annotated nodes Ready and plays their pods' lives."""
    process = cluster.process(
        "kwok",
        [
            programs.program("kwok"),
            f"--kubeconfig={cluster.inside_kubeconfig}",
            f"--config={HERE / 'kwok' / 'stages.yaml'}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-lease-duration-seconds=40",
            "--server-address=0.0.0.0:10247",
            "--cidr=10.89.0.0/16",
            "--node-ip=10.89.255.254",  # nothing answers there
        ],
    )
    _until_ready(process, cluster, 10247, "/healthz")
    return process


def kuberay(cluster: LocalCluster) -> Process:
    """The KubeRay operator. It reaches Ray's dashboard through the API server, as it is in no pod."""
    define(cluster.api, manifests("kuberay"))
    process = cluster.process(
        "kuberay",
        [
            programs.program("kuberay-operator"),
            f"--kubeconfig={cluster.inside_kubeconfig}",
            "--enable-leader-election=false",
            "--use-kubernetes-proxy",
            "--reconcile-concurrency=4",  # a cluster that only simulates Ray must not hold up another
            "--metrics-addr=127.0.0.1:18080",
            "--health-probe-bind-address=:18082",
        ],
        {"ENABLE_WEBHOOKS": "false"},
    )
    _until_ready(process, cluster, 18082)
    return process


def kueue(cluster: LocalCluster) -> Process:
    """Kueue with its webhooks, for Jobs, RayJobs and RayClusters; start KubeRay first, whose kinds it watches."""
    api = cluster.api
    things = manifests("kueue")
    authority = base64.b64encode(cluster.authority.read_bytes()).decode()
    define(api, [_with_conversion(t, authority) for t in things if t["kind"] == "CustomResourceDefinition"])
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
    folder = cluster.folder / "kueue"
    folder.mkdir()
    for suffix in ("crt", "key"):
        shutil.copy(cluster.webhook_certificate.with_suffix(f".{suffix}"), folder / f"tls.{suffix}")
    # With certificates of others Kueue wants its metrics' ones at this fixed path; /etc is the sandbox's own.
    cluster.sandbox.run(["mkdir", "-p", "/etc/kueue/metrics"])
    cluster.sandbox.run(["cp", "-r", folder, "/etc/kueue/metrics/certs"])
    # What users get by `make operators`, but for what a program outside pods needs.
    values = yaml.safe_load((INSTALLED / "kueue.yaml").read_text(encoding="utf-8"))
    config = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"]) | {
        "namespace": "kueue-system",
        "health": {"healthProbeBindAddress": ":18181"},
        "metrics": {"bindAddress": "127.0.0.1:18443"},
        "webhook": {"port": WEBHOOK_PORT, "host": "127.0.0.1", "certDir": str(folder)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
    }
    (folder / "config.yaml").write_text(json.dumps(config, indent=1))  # JSON is YAML
    process = cluster.process(
        "kueue",
        [
            programs.program("kueue"),
            f"--config={folder / 'config.yaml'}",
            "--feature-gates=VisibilityOnDemand=false",
            f"--kubeconfig={cluster.inside_kubeconfig}",
        ],
    )
    _until_ready(process, cluster, 18181)
    # Only now: a webhook that nobody answers would refuse every Job.
    for thing in things:
        if thing["kind"] != "CustomResourceDefinition":
            api.apply(_by_address(thing, authority))
    wait("Kueue's webhooks to answer", 60, lambda: _answers(api))
    return process


def _answers(api: Api) -> bool:
    probe = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "probe"},
        "spec": {},
    }
    api.apply(probe)
    api.delete(probe)
    return True


def _with_conversion(thing: Object, authority: str) -> Object:
    if thing["spec"]["names"]["plural"] in CONVERTED:
        client = {"url": f"https://127.0.0.1:{WEBHOOK_PORT}/convert", "caBundle": authority}
        webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
        thing["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return thing


def _by_address(configuration: Object, authority: str) -> Object:
    """A webhook configuration with the managed kinds only, reached by address instead of by Service."""
    kept = []
    for hook in configuration["webhooks"]:
        path = hook["clientConfig"]["service"]["path"]
        if any(kind in path for kind in MANAGED):
            client = {"url": f"https://127.0.0.1:{WEBHOOK_PORT}{path}", "caBundle": authority}
            kept.append(hook | {"clientConfig": client})
    meta = {"name": f"kueue-{configuration['metadata']['name']}"}
    return configuration | {"metadata": meta, "webhooks": kept}


def hyperpod(cluster: LocalCluster, kind: str = KIND) -> Process:
    """The stand-in for AWS's training operator, with its definition in the given spelling of the kind."""
    define(cluster.api, [definition(kind)])
    return cluster.process(
        "hyperpod-stand-in",
        [
            sys.executable,
            "-m",
            "harness.hyperpod.stand_in",
            f"--kubeconfig={cluster.inside_kubeconfig}",
            f"--kind={kind}",
        ],
        {"PYTHONPATH": str(HERE.parent)},
    )
