# SPDX-License-Identifier: MIT-0
"""The HTTP contract of `hyperpod-elastic-agent` 1.1.3, as its released source has it (`server/server.py`).

    GET  /status      state (lower case), reason, message, assigned_rank, agent_version, transitions
    POST /start       rank, nnodes, faultCount, master_addr, master_port; optional rankIps, ipVersion, progress,
                      log_monitoring_configuration
    POST /stop        is_graceful (SIGUSR1, else --shutdown-signal), timeout (then SIGKILL; 0 or none: --shutdown-timeout)
    POST /update      as /start without progress; answers as /status; moves no process
    POST /shutdown    the agent ends

The agent answers 200 to an order that its state does not allow and only logs it, so look at /status first: /start
wants `ready`; /stop wants running, faulted or completed and ends in `ready`.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

State = Literal["init", "ready", "running", "completed", "faulted", "stopping", "shutdown", "gone", "silent"]
TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Status:
    """What an agent says. `gone`: nobody listens there. `silent`: no answer in time, which on a busy node is no news."""

    state: State
    rank: int | None = None
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands in the group of ranks that begins."""

    rank: int
    nnodes: int
    faults: int
    master: str  # host:port of rank 0's store

    def body(self, addresses: Sequence[str], log_rules: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The request's body. `addresses` are the nodes' IPs by rank."""
        host, _, port = self.master.rpartition(":")
        body: dict[str, Any] = {"rank": self.rank, "nnodes": self.nnodes, "faultCount": self.faults}
        body |= {"master_addr": host, "master_port": port, "ipVersion": f"{self.faults}-{self.nnodes}"}
        body |= {"rankIps": [{"rank": rank, "ip": address} for rank, address in enumerate(addresses)]}
        return body | ({"log_monitoring_configuration": list(log_rules)} if log_rules else {})


class Agent:
    """The agent that listens at `address` (host:port). Orders return False when nobody was there to take them."""

    def __init__(self, address: str) -> None:
        self.address = address

    @property
    def host(self) -> str:
        """The address without its port."""
        return self.address.rpartition(":")[0]

    def status(self) -> Status:
        """How it is."""
        try:
            said = self.ask("/status")
        except TimeoutError:
            return Status("silent")
        except OSError:
            return Status("gone")
        rank = said.get("assigned_rank")
        return Status(
            said["status"], None if rank is None else int(rank), said.get("reason", ""), said.get("message", "")
        )

    def start(self, place: Place, addresses: Sequence[str] = (), log_rules: Sequence[Mapping[str, Any]] = ()) -> bool:
        """Begin its ranks."""
        return self._order("/start", {**place.body(addresses, log_rules), "progress": {}})

    def update(self, place: Place, addresses: Sequence[str] = ()) -> bool:
        """Tell a running group of new addresses."""
        return self._order("/update", place.body(addresses, ()))

    def stop(self, graceful: bool, timeout: int | None = None) -> bool:
        """End its ranks; the agent stays."""
        return self._order("/stop", {"is_graceful": graceful, "timeout": timeout})

    def shutdown(self) -> bool:
        """End the agent, and with it its pod."""
        return self._order("/shutdown", {})

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """One request; the answer's JSON, empty for an empty one. Raises OSError (HTTPError for a refusal)."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{self.address}{path}", data=data, headers={"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                text = answer.read()
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError as error:
            raise error.reason if isinstance(error.reason, OSError) else error from error
        answered: dict[str, Any] = json.loads(text) if text else {}
        return answered

    def _order(self, path: str, body: Mapping[str, Any]) -> bool:
        try:
            self.ask(path, body)
        except urllib.error.HTTPError:
            raise
        except OSError:
            return False
        return True
