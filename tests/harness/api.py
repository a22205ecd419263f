# SPDX-License-Identifier: MIT-0
"""A client of the Kubernetes API in the standard library: what tests and stand-ins need, without a process per call."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml

Object = dict[str, Any]
T = TypeVar("T")
MERGE, APPLY, JSON = "application/merge-patch+json", "application/apply-patch+yaml", "application/json"


class ApiError(Exception):
    """The server's answer to a refused request; `code` is the HTTP status, the text is the server's message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def _credentials(user: Object) -> Object:
    """A kubeconfig's user with what its `exec` program prints, if it has one (EKS does)."""
    if "exec" not in user:
        return user
    call = user["exec"]
    printed = subprocess.run([call["command"], *(call.get("args") or [])], check=True, capture_output=True, text=True)
    status = json.loads(printed.stdout)["status"]
    return {
        "token": status.get("token"),
        "client-certificate-data": _encoded(status.get("clientCertificateData")),
        "client-key-data": _encoded(status.get("clientKeyData")),
    }


def _encoded(text: str | None) -> str | None:
    return base64.b64encode(text.encode()).decode() if text else None


class Api:
    """One cluster as one user, read from a kubeconfig's current context.

    A resource is named by `api_version` and `kind`, as in its manifest; the server says the rest (plural, namespaced).
    Every call raises `ApiError` when the server refuses, so a missing object is `ApiError.code == 404`.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        current = next(c["context"] for c in config["contexts"] if c["name"] == config["current-context"])
        cluster = next(c["cluster"] for c in config["clusters"] if c["name"] == current["cluster"])
        user = _credentials(next(u["user"] for u in config["users"] if u["name"] == current["user"]))
        self._server: str = cluster["server"].rstrip("/")
        self._token: str | None = user.get("token")
        self._kinds: dict[tuple[str, str], tuple[str, bool]] = {}
        with tempfile.TemporaryDirectory() as folder:

            def file(source: Object, name: str) -> str | None:
                if data := source.get(f"{name}-data"):
                    path = Path(folder) / name
                    path.write_bytes(base64.b64decode(data))
                    return str(path)
                return str(kubeconfig.parent / source[name]) if source.get(name) else None

            self._tls = ssl.create_default_context(cafile=file(cluster, "certificate-authority"))
            if certificate := file(user, "client-certificate"):
                self._tls.load_cert_chain(certificate, file(user, "client-key"))

    def raw(self, method: str, path: str, body: Any = None, content: str = JSON, **query: str) -> Object:
        """One request; `path` as in the server's own paths. Answers what the server sends, `{}` if that is not JSON."""
        url = f"{self._server}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": content, "Accept": JSON}, method=method)
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with urllib.request.urlopen(request, context=self._tls, timeout=60) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            text = error.read()
            try:
                message = json.loads(text)["message"]
            except (ValueError, KeyError, TypeError):
                message = text.decode(errors="replace").strip() or error.reason
            raise ApiError(error.code, message) from None
        result: Object = json.loads(text) if text.startswith(b"{") else {}
        return result

    def path(self, api_version: str, kind: str, namespace: str | None = None, name: str | None = None) -> str:
        """The server's path of a kind, or of one object of it; without namespace: all namespaces.

        Raises:
            LookupError: the cluster does not serve this kind.
        """
        if (api_version, kind) not in self._kinds:
            root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
            try:
                served = self.raw("GET", root)["resources"]
            except ApiError as error:
                if error.code != 404:
                    raise
                served = []
            for item in served:
                if "/" not in item["name"]:
                    self._kinds[api_version, item["kind"]] = (f"{root}|{item['name']}", item["namespaced"])
        if (api_version, kind) not in self._kinds:
            raise LookupError(f"the cluster does not serve {kind} of {api_version}")
        place, namespaced = self._kinds[api_version, kind]
        root, plural = place.split("|")
        middle = f"/namespaces/{namespace}" if namespaced and namespace else ""
        return f"{root}{middle}/{plural}" + (f"/{name}" if name else "")

    def _path_of(self, thing: Object) -> str:
        meta = thing["metadata"]
        return self.path(thing["apiVersion"], thing["kind"], meta.get("namespace") or "default", meta["name"])

    def get(self, api_version: str, kind: str, namespace: str | None, name: str) -> Object:
        """One object."""
        return self.raw("GET", self.path(api_version, kind, namespace, name))

    def list(self, api_version: str, kind: str, namespace: str | None = None, **query: str) -> list[Object]:
        """The objects of a kind; `query` e.g. labelSelector, fieldSelector. Items carry apiVersion and kind."""
        items = self.raw("GET", self.path(api_version, kind, namespace), **query).get("items") or []
        return [{"apiVersion": api_version, "kind": kind} | item for item in items]

    def create(self, thing: Object) -> Object:
        """Create from a manifest; an unknown field is refused, as kubectl and Helm do."""
        path = self._path_of(thing).rsplit("/", 1)[0]
        return self.raw("POST", path, thing, fieldValidation="Strict")

    def apply(self, thing: Object, owner: str = "lingoss-test") -> Object:
        """Server-side apply of a manifest; `owner` (the field manager) takes over fields that others set."""
        return self.raw("PATCH", self._path_of(thing), thing, APPLY, fieldManager=owner, force="true")

    def merge(self, thing: Object, patch: Object, subresource: str = "") -> Object:
        """Merge `patch` into an object, or into one of its subresources such as `status`."""
        return self.raw("PATCH", self._path_of(thing) + (f"/{subresource}" if subresource else ""), patch, MERGE)

    def delete(self, thing: Object, policy: str = "Background", grace: int | None = None) -> None:
        """Delete an object if it is there; `policy` Background, Foreground or Orphan, `grace` in seconds."""
        options: Object = {"propagationPolicy": policy}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        try:
            self.raw("DELETE", self._path_of(thing), options)
        except ApiError as error:
            if error.code != 404:
                raise


def wait(what: str, seconds: float, check: Callable[[], T | None]) -> T:
    """Poll until `check` answers something true, and answer that.

    Raises:
        TimeoutError: after `seconds`; the text names `what` and the last thing that `check` said or raised.
    """
    deadline = time.monotonic() + seconds
    while True:
        last: object = None
        try:
            result = check()
            if result:
                return result
            last = result
        except (ApiError, LookupError, OSError) as error:
            last = error
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {seconds:.0f} s still waiting for {what} (last answer: {last!r})")
        time.sleep(0.1)
