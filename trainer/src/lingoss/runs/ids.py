# SPDX-License-Identifier: MIT-0
"""Names of runs: `<stage>-<run id>`, where the id is a digest of everything that changes the result."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from lingoss.errors import LingossError

ID_LENGTH = 12
_NAME = re.compile(r"([a-z][a-z0-9]{0,31})-([0-9a-f]{12})")


def canonical_json(value: Any) -> str:
    """JSON that is equal for equal values: sorted keys, no spaces, and 1e-4 = 0.0001, 1.0 = 1, -0.0 = 0.

    Raises LingossError on what has no such form (NaN, infinity, keys that are not text, other types).
    """
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise LingossError(f"{value} has no canonical form: a run id is made of finite numbers")
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        if bad := next((key for key in value if not isinstance(key, str)), None):
            raise LingossError(f"key {bad!r} has no canonical form: a run id is made of text keys")
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    raise LingossError(f"{type(value).__name__} has no canonical form: a run id is made of JSON values")


def run_id(
    stage: str, identity: Mapping[str, Any], parents: Iterable[str] = (), data_digest: str = "", run: str = "1"
) -> str:
    """12 hexadecimal digits of the sha256 of all that names a run.

    `identity` holds the config's fields that change the result; `parents` are run names or ids, whose order and
    repetition do not matter; `run` is the user's "do it again".
    """
    return hashlib.sha256(
        canonical_json(
            {
                "stage": stage,
                "identity": identity,
                "parents": sorted({bare_id(parent) for parent in parents}),
                "data": data_digest,
                "run": run,
            }
        ).encode("ascii")
    ).hexdigest()[:ID_LENGTH]


def run_name(stage: str, identifier: str) -> str:
    """The name of a run and of its folder."""
    return f"{stage}-{identifier}"


def split_name(name: str) -> tuple[str, str] | None:
    """(stage, id) of a run name, or None when it is none."""
    found = _NAME.fullmatch(name)
    return (found[1], found[2]) if found else None


def bare_id(name_or_id: str) -> str:
    """The id in a run name; anything else comes back unchanged."""
    parts = split_name(name_or_id)
    return parts[1] if parts else name_or_id
