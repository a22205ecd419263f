# SPDX-License-Identifier: MIT-0
"""Requests to the Kubernetes API from inside a pod, with the standard library alone."""

import http.client
import json
import os
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lingoss.errors import LingossError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TIMEOUT = 10.0  # seconds for one request
PATIENCE = 60.0  # seconds of trying again; the hook ends after 120, and its pod has to start within them too
FORBIDDEN_PATIENCE = 10.0  # the hook's Role was made a moment ago: not every API server need know it yet
_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_BUSY = {429, 500, 502, 503, 504}
_DENIED = {401, 403}


class _Failed(Exception):
    """One attempt failed; `patience` is for how long it is worth trying again."""

    def __init__(self, reason: str, patience: float) -> None:
        super().__init__(reason)
        self.patience = patience


@dataclass(frozen=True)
class Api:
    """An API server. `account` is a folder with `token`, and `ca.crt` for https."""

    server: str
    account: Path
    patience: float = PATIENCE
    timeout: float = TIMEOUT

    def get(self, path: str) -> dict[str, Any] | None:
        """The object at `path`; None when there is no such resource (404). Fails as `request` does."""
        return self.request("GET", path)

    def delete(self, path: str) -> None:
        """Delete the object at `path`, and then what it owns; one that is not there is fine. Fails as `request` does."""
        self.request("DELETE", path, {"propagationPolicy": "Background"})

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """The server's answer; None when there is no such resource (404).

        Busy or unreachable servers are asked again for `patience` seconds. Raises LingossError, in one line, when that
        does not help, when access is denied, and on answers that are no JSON object.
        """
        start, pause = time.monotonic(), _PAUSE
        while True:
            try:
                return self._once(method, path, body)
            except _Failed as error:
                if time.monotonic() + pause - start >= min(error.patience, self.patience):
                    raise LingossError(f"{method} {path} at {self.server}: {error}") from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _once(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any] | None:
        # Read each time: the kubelet renews the token while the pod runs.
        headers = {"Authorization": f"Bearer {self._read('token').strip()}", "Accept": "application/json"}
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        # No proxy: a pod's proxy variables are for the world outside, and the token must not go there.
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if self.server.startswith("https:"):
            handlers.append(urllib.request.HTTPSHandler(context=self._context()))
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=self.timeout) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            patience = self.patience if error.code in _BUSY else FORBIDDEN_PATIENCE if error.code in _DENIED else 0.0
            raise _Failed(f"{error.code} {_message(error)}", patience) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise _Failed(f"its certificate is not trusted by {self.account / 'ca.crt'} ({reason})", 0.0) from error
            raise _Failed(f"no answer ({reason or type(reason).__name__})", self.patience) from error
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _Failed("the answer is not JSON: this is no Kubernetes API server", 0.0) from error
        if not isinstance(found, dict):
            raise _Failed(f"the answer is a JSON {type(found).__name__}, not an object", 0.0)
        return found

    def _read(self, name: str) -> str:
        try:
            return (self.account / name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise LingossError(f"{self.account / name} cannot be read ({error}): give the pod its account") from error

    def _context(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cadata=self._read("ca.crt"))
        except (ssl.SSLError, ValueError) as error:
            raise LingossError(f"{self.account / 'ca.crt'} holds no certificate ({error})") from error


def collection(group: str, namespace: str, plural: str) -> str:
    """Path of the objects of one kind in a namespace; `group` is the apiVersion, as batch/v1 or v1."""
    return f"/{'apis' if '/' in group else 'api'}/{group}/namespaces/{quote(namespace, safe='')}/{plural}"


def in_cluster() -> Api:
    """The API server of the cluster that this pod runs in. Raises LingossError outside of a pod."""
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    if not host or not port:
        raise LingossError("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: the guard runs in a pod")
    return Api(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}", ACCOUNT)


def _message(error: urllib.error.HTTPError) -> str:
    """The sentence of the Status object that the server sends with an error, else its status line."""
    try:
        told = json.loads(error.read(100_000))["message"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError, http.client.HTTPException):
        told = error.reason
    return " ".join(str(told).split())[:300]
