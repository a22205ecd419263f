# SPDX-License-Identifier: MIT-0
"""Run folders on the shared volume: names, lock, status, metrics, DONE, and who came from whom."""

from lingoss.runs.digests import file_digest, verify, weight_digests
from lingoss.runs.files import folder_size, free_bytes, gigabytes, require_space, write_json
from lingoss.runs.folder import RunFolder, open_run
from lingoss.runs.ids import canonical_json, run_id, run_name
from lingoss.runs.lineage import find_parent, lineage
from lingoss.runs.lock import LockLostError
from lingoss.runs.metrics import read_metrics
from lingoss.runs.read import RunInfo, find_run, list_runs, newest_finished, read_run
from lingoss.runs.table import HEADERS, RunRow, run_rows

__all__ = [
    "HEADERS",
    "LockLostError",
    "RunFolder",
    "RunInfo",
    "RunRow",
    "canonical_json",
    "file_digest",
    "find_parent",
    "find_run",
    "folder_size",
    "free_bytes",
    "gigabytes",
    "lineage",
    "list_runs",
    "newest_finished",
    "open_run",
    "read_metrics",
    "read_run",
    "require_space",
    "run_id",
    "run_name",
    "run_rows",
    "verify",
    "weight_digests",
    "write_json",
]
