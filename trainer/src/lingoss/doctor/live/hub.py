# SPDX-License-Identifier: MIT-0
"""The Hub: off where a pod is offline on purpose, else within reach and with a token that it knows."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator

from lingoss.doctor.check import Check
from lingoss.doctor.live.machine import Machine, found

_SECONDS = 8.0
_ON = {"1", "true", "yes", "on"}


def hub(machine: Machine) -> Iterator[Check]:
    """Offline variables, token and reach. The token goes to the Hub alone and is never printed."""
    token = machine.environment.get("HF_TOKEN", "").strip()
    if machine.environment.get("HF_HUB_OFFLINE", "").lower() in _ON:
        if token:
            yield Check(
                "Hub",
                "warning",
                "HF_HUB_OFFLINE is set, and a token is here all the same",
                "give the token to prepare alone",
            )
        else:
            yield Check("Hub", "ok", "off on purpose (HF_HUB_OFFLINE): models come from the volume")
        return
    endpoint = machine.environment.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    if not token:
        yield Check("Hub token", "skipped", "HF_TOKEN is not set: public models only; gated ones need a Secret with it")
    elif not (token.isascii() and token.isprintable()) or " " in token:
        yield found(
            "Hub token", "hub-access-denied", "HF_TOKEN holds characters that no token has: make the Secret again"
        )
        return
    yield _ask(endpoint, token)


def _ask(endpoint: str, token: str) -> Check:
    if not endpoint.startswith(("https://", "http://")):
        return found("Hub", "hub-unreachable", f"HF_ENDPOINT is no address: {endpoint}")
    request = urllib.request.Request(f"{endpoint}/api/whoami-v2" if token else f"{endpoint}/api/models?limit=1")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            told = json.loads(answer.read(1_000_000))
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            return found("Hub token", "hub-access-denied", f"{endpoint} refuses the token ({error.code})")
        return found("Hub", "hub-unreachable", f"{endpoint} answers {error.code}")
    except (OSError, ValueError, ssl.SSLError) as error:
        return found("Hub", "hub-unreachable", f"{endpoint}: {getattr(error, 'reason', None) or error}")
    who = f" as {told.get('name')}" if isinstance(told, dict) and told.get("name") else ""
    return Check("Hub", "ok", f"{endpoint} answers{who}")
