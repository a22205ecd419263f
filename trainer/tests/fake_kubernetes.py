# SPDX-License-Identifier: MIT-0
"""A small API server over HTTP for the guard's tests: it answers lists and claims, checks token and selector, fails on demand."""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "a-token"
PLURALS = {
    "Job": ("batch/v1", "jobs"),
    "RayJob": ("ray.io/v1", "rayjobs"),
    "HyperPodPyTorchJob": ("sagemaker.amazonaws.com/v1", "hyperpodpytorchjobs"),
    "Deployment": ("apps/v1", "deployments"),
    "Service": ("v1", "services"),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies"),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets"),
    "ConfigMap": ("v1", "configmaps"),
    "ServiceAccount": ("v1", "serviceaccounts"),
}
CLAIMS = "/api/v1/namespaces/team-a/persistentvolumeclaims/"


def workload(kind: str, name: str, component: str, release: str = "lingoss", **parts: Any) -> dict[str, Any]:
    """An object as the API server stores it; `parts` are spec, status and further metadata."""
    labels = {
        "app.kubernetes.io/name": "lingoss",
        "app.kubernetes.io/instance": release,
        "app.kubernetes.io/component": component,
    }
    metadata = {"name": name, "namespace": "team-a", "uid": "1", "labels": labels, **parts.pop("metadata", {})}
    return {"apiVersion": PLURALS[kind][0], "kind": kind, "metadata": metadata, "spec": {}, **parts}


def claim(phase: str, **metadata: Any) -> dict[str, Any]:
    metadata = {"name": "lingoss-data", "namespace": "team-a", "uid": "2", **metadata}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "status": {"phase": phase}}


def condition(kind: str, status: str = "True") -> dict[str, str]:
    return {"type": kind, "status": status, "lastTransitionTime": "2026-11-30T16:00:00Z"}


class Cluster:
    """What the server knows. `answers`: (status, body) in place of the first answers, one for each request."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.unknown: set[str] = {"RayJob", "HyperPodPyTorchJob"}
        self.answers: list[tuple[int, bytes]] = []
        self.asked: list[str] = []

    def add(self, *objects: dict[str, Any]) -> None:
        self.objects += objects
        self.unknown -= {one["kind"] for one in objects}

    def delete(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Delete one workload, as the API server does in the background."""
        self.asked.append(f"DELETE {path}")
        if self.answers:
            return self.answers.pop(0)
        plural, name = path.split("/")[-2:]
        found = [o for o in self.objects if o["metadata"]["name"] == name and PLURALS[o["kind"]][1] == plural]
        if not found or json.loads(body) != {"propagationPolicy": "Background"}:
            return 404, status(404, "not found")
        self.objects.remove(found[0])
        return 200, status(200, "")

    def answer(self, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        self.asked.append(path)
        if self.answers:
            return self.answers.pop(0)
        if headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, status(401, "Unauthorized")
        parts = urlsplit(path)
        for one in self.objects:
            if one["kind"] == "PersistentVolumeClaim" and parts.path == CLAIMS + one["metadata"]["name"]:
                return 200, json.dumps(one).encode()
        for kind, (group, plural) in PLURALS.items():
            prefix = f"/apis/{group}" if "/" in group else f"/api/{group}"
            if parts.path == f"{prefix}/namespaces/team-a/{plural}" and kind not in self.unknown:
                selector = parse_qs(parts.query)["labelSelector"][0]
                items = [one for one in self.objects if one["kind"] == kind and selected(one, selector)]
                body = {
                    "kind": f"{kind}List",
                    "apiVersion": group,
                    "metadata": {"resourceVersion": "7"},
                    "items": items,
                }
                return 200, json.dumps(body).encode()
        return 404, b"404 page not found\n"


def selected(one: dict[str, Any], selector: str) -> bool:
    """Equality and `in` of the label selector language."""
    for key, equal, several in re.findall(r"([\w./-]+)(?:=([^,]*)| in \(([^)]*)\))(?:,|$)", selector):
        if one["metadata"]["labels"].get(key) not in (several.split(",") if several else [equal]):
            return False
    return True


def status(code: int, message: str) -> bytes:
    return json.dumps(
        {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}
    ).encode()


@contextmanager
def serving(cluster: Cluster, context: Any = None) -> Iterator[int]:
    """The port of a server that answers for `cluster`; with an SSL context over TLS."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(*cluster.answer(self.path, self.headers))

        def do_DELETE(self) -> None:
            self._send(*cluster.delete(self.path, self.rfile.read(int(self.headers["Content-Length"]))))

        def _send(self, code: int, body: bytes) -> None:
            if code == 0:  # hang up
                self.close_connection = True
                return
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
