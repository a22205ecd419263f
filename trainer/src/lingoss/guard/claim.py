# SPDX-License-Identifier: MIT-0
"""The claim of the release's volume, as the cluster knows it."""

from urllib.parse import quote

from lingoss.guard.api import Api, collection
from lingoss.guard.decide import MISSING, Claim


def find_claim(api: Api, namespace: str, name: str) -> Claim:
    """What the cluster says of one claim. Raises LingossError when the API server does not answer or denies access."""
    path = f"{collection('v1', namespace, 'persistentvolumeclaims')}/{quote(name, safe='')}"
    found = api.get(path)
    if found is None:
        return Claim(name, namespace, MISSING)
    if (found.get("metadata") or {}).get("deletionTimestamp"):
        return Claim(name, namespace, "being deleted")
    return Claim(name, namespace, str((found.get("status") or {}).get("phase") or "unknown"))
