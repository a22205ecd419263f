# SPDX-License-Identifier: MIT-0
"""Does this clock agree with others? The API server's answer and a new file on the volume carry theirs."""

import email.utils
import http.client
import os
import ssl
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from lingoss.doctor.check import Check
from lingoss.doctor.live.machine import Machine, found

ALLOWED = 60.0
"""Seconds. AWS refuses signatures that are five minutes off; heartbeats of runs are judged by minutes."""
_SECONDS = 5.0


def clock(machine: Machine, root: Path | None) -> Iterator[Check]:
    """The largest difference to a clock of somebody else, in seconds."""
    others = {}
    server = machine.environment.get("KUBERNETES_SERVICE_HOST")
    if server and (at := _of_server(server, int(machine.environment.get("KUBERNETES_SERVICE_PORT", "443")))):
        others["the API server"] = at
    if root and (shift := _of_volume(root)) is not None:
        others[f"the file server of {root}"] = shift
    if not others:
        yield Check("clock", "skipped", "no other clock here to compare with (no API server, no volume)")
        return
    name, shift = max(others.items(), key=lambda row: abs(row[1]))
    text = f"{abs(shift):.0f} s {'behind' if shift > 0 else 'ahead of'} {name}"
    if abs(shift) > ALLOWED:
        yield found("clock", "credentials-rejected", f"this clock is {text}")
    else:
        yield Check("clock", "ok", f"within {ALLOWED:.0f} s of {' and '.join(others)}")


def _of_server(host: str, port: int) -> float | None:
    """Seconds that the server's clock is ahead. It tells its time even to those whom it refuses, so nothing is trusted."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=context)
    try:
        connection.request("GET", "/version")
        date = connection.getresponse().getheader("Date")
        return email.utils.parsedate_to_datetime(date).timestamp() - time.time() if date else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()


def _of_volume(root: Path) -> float | None:
    try:
        with tempfile.NamedTemporaryFile(dir=root, prefix=".lingoss-doctor-") as probe:
            probe.write(b"lingoss")
            probe.flush()
            os.fsync(probe.fileno())
            return os.stat(probe.name).st_mtime - time.time()
    except OSError:
        return None
