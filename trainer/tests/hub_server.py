# SPDX-License-Identifier: MIT-0
"""A Hub on this machine: the endpoints that a download of pinned files uses, over real HTTP, with refusals and stalls.

File listing `/api/<kind>s/<id>/tree/<commit>`, and `/<id>/resolve/<commit>/<file>` with HEAD, GET and ranges, headers as
huggingface_hub 1.33 reads them.
"""

import hashlib
import http.server
import json
import re
import threading
from dataclasses import dataclass, field
from typing import Any, Self

COMMIT = "c0ffee" + "0" * 34
_PATH = re.compile(r"(?:/api)?/(?:(models|datasets)/)?([^/]+/[^/]+)/(tree|resolve)/([^/?]+)(?:/([^?]*))?")


@dataclass
class Repo:
    """A repository at COMMIT. `refuse`: (status, X-Error-Code, X-Error-Message) for everybody without `token`; the list of
    a gated repository's files is open to all, as on the true Hub."""

    files: dict[str, bytes]
    token: str | None = None
    refuse: tuple[int, str, str] = (401, "GatedRepo", "Access to it is restricted.")
    status: int = 200
    """Anything else is the answer to every request."""


@dataclass
class Request:
    """What was asked for; `start` is the first byte of a range."""

    method: str
    path: str
    start: int
    authorization: str | None


@dataclass
class Hub:
    """The server. `stall`: (file name, bytes after which the answer stops until `released`)."""

    repos: dict[str, Repo] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    stall: tuple[str, int] | None = None
    stalled: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def asked(self, name: str, method: str = "GET") -> list[Request]:
        """The requests for one file, in order."""
        return [one for one in self.requests if one.method == method and one.path.endswith(f"/{name}")]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        first = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start = int(first[1]) if first else 0
        authorization = self.headers.get("Authorization")
        self.hub.requests.append(Request(self.command, self.path.partition("?")[0], start, authorization))
        found = _PATH.match(self.path)
        repo = self.hub.repos.get(f"{found[1] or 'models'}/{found[2]}") if found else None
        if found is None or repo is None:
            # The true Hub tells nobody without a token whether a repository exists.
            return self._error(404 if authorization else 401, "RepoNotFound", "Repository not found")
        if repo.status != 200:
            return self._error(repo.status, "", "in trouble")
        listed = found[3] == "tree" and repo.refuse[1] == "GatedRepo"
        if repo.token and authorization != f"Bearer {repo.token}" and not listed:
            return self._error(*repo.refuse)
        if found[4] != COMMIT:
            return self._error(404, "RevisionNotFound", "Invalid rev id")
        if found[3] == "tree":
            entries = [_entry(name, data) for name, data in repo.files.items()]
            return self._send(200, json.dumps(entries).encode(), {"Content-Type": "application/json"})
        name = found[5]
        if name not in repo.files:
            return self._error(404, "EntryNotFound", "Entry not found")
        data = repo.files[name]
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{_oid(data)}"', "Accept-Ranges": "bytes"}
        if first is None:
            return self._send(200, data, headers, name)
        if start >= len(data):
            return self._send(416, b"", {"Content-Range": f"bytes */{len(data)}"})
        last = min(int(first[2]) if first[2] else len(data) - 1, len(data) - 1)
        headers["Content-Range"] = f"bytes {start}-{last}/{len(data)}"
        return self._send(206, data[start : last + 1], headers, name)

    def _error(self, status: int, code: str, message: str) -> None:
        headers = {"X-Error-Code": code, "X-Error-Message": message} if code else {}
        self._send(status, json.dumps({"error": message}).encode(), headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str], name: str = "") -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        hub = self.hub
        try:
            if hub.stall and hub.stall[0] == name and len(body) > hub.stall[1]:
                count = hub.stall[1]
                self.wfile.write(body[:count])
                self.wfile.flush()
                hub.stalled.set()
                hub.released.wait()
                body = body[count:]
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):  # the client was killed
            self.close_connection = True


def _oid(data: bytes) -> str:
    """The digest of a large file, the git object of a small one."""
    return hashlib.sha256(data).hexdigest() if _large(data) else _blob(data)


def _blob(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _large(data: bytes) -> bool:
    return len(data) > 10_000


def _entry(name: str, data: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "path": name, "size": len(data), "oid": _blob(data)}
    if _large(data):
        entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
    return entry
