# SPDX-License-Identifier: MIT-0
"""Reading runs that others write or have left behind: everything is listed, with its problems, and nothing raises."""

import difflib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lingoss.errors import LingossError
from lingoss.runs.files import read_json
from lingoss.runs.ids import split_name
from lingoss.runs.lock import STALE

STATES = ("pending", "running", "done", "failed", "stopped")


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run as its folder tells it. `state` is "unknown" for what is no run folder or cannot be read."""

    path: Path
    name: str
    stage: str = ""
    id: str = ""
    state: str = "unknown"
    step: int | None = None
    total: int | None = None
    heartbeat: str | None = None
    host: str | None = None
    pid: int | None = None
    started: str | None = None
    finished: str | None = None
    parents: tuple[str, ...] = ()
    data_digest: str = ""
    reason: str | None = None
    record: Mapping[str, Any] | None = None
    """The content of DONE.json; None unless the run is finished."""
    problems: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Whether the run is finished."""
        return self.record is not None

    def done_record(self) -> Mapping[str, Any]:
        """The content of DONE.json. Raises LingossError when the run is not finished."""
        if self.record is None:
            raise LingossError(
                f"run {self.name} is not finished ({self.state}): start it again, it goes on where it was"
            )
        return self.record

    @property
    def age(self) -> float | None:
        """Seconds since the last heartbeat; None when there was none."""
        return seconds_since(self.heartbeat)

    @property
    def is_alive(self) -> bool:
        """Whether a process works on it now: it is running, with a fresh heartbeat."""
        return self.state == "running" and self.age is not None and self.age <= STALE

    @property
    def config(self) -> dict[str, Any]:
        """The resolved config; empty when it is missing or unreadable."""
        return read_json(self.path / "config.json")[0] or {}


def seconds_since(iso: str | None) -> float | None:
    """Seconds since an ISO time, at least 0; None when it is none."""
    try:
        return max(0.0, time.time() - datetime.fromisoformat(iso or "").timestamp())
    except (ValueError, OverflowError, OSError):
        return None


def read_run(path: Path) -> RunInfo:
    """The run in a folder. Never raises on its content: what is wrong is in `problems`."""
    parts = split_name(path.name)
    if parts is None:
        return RunInfo(path, path.name, problems=("no run folder: its name is not <stage>-<12 hexadecimal digits>",))
    problems = []
    records: dict[str, dict[str, Any] | None] = {}
    for name in ("config.json", "status.json", "DONE.json"):
        records[name], problem = read_json(path / name)
        if problem:
            problems.append(problem)
        elif records[name] is None and name != "DONE.json":
            problems.append(f"{name} is missing")
    done, status = records["DONE.json"], records["status.json"] or {}
    state = status.get("state") if status.get("state") in STATES else "unknown"
    if done is not None:
        state = "done"
        digests = done.get("digests")
        missing = [name for name in digests if not (path / name).exists()] if isinstance(digests, dict) else []
        problems.extend(f"{name} is missing" for name in missing)
    elif state == "done":
        state = "stopped"
        problems.append("status.json says done, but DONE.json is missing: start the run again")
    elif records["config.json"] is not None and problems == ["status.json is missing"]:
        state = "pending"
    lineage = (done or {}).get("lineage")
    parents = status.get("parents", lineage.get("parents") if isinstance(lineage, dict) else ())
    return RunInfo(
        path=path,
        name=path.name,
        stage=parts[0],
        id=parts[1],
        state=str(state),
        step=_whole((done or {}).get("final_step", status.get("step"))),
        total=_whole((done or {}).get("planned_steps", status.get("total"))),
        heartbeat=_text(status.get("heartbeat")),
        host=_text(status.get("host")),
        pid=_whole(status.get("pid")),
        started=_text(status.get("started", (done or {}).get("started"))),
        finished=_text((done or {}).get("finished")),
        parents=tuple(parent for parent in parents if isinstance(parent, str)) if isinstance(parents, list) else (),
        data_digest=_text(status.get("data_digest")) or "",
        reason=_text(status.get("reason")),
        record=done,
        problems=tuple(problems),
    )


def list_runs(root: Path) -> list[RunInfo]:
    """Every folder in `<root>/runs`, oldest start first, what is no run last. No such folder: no runs."""
    folder = Path(root) / "runs"
    try:
        found = [read_run(path) for path in folder.iterdir() if _is_folder(path)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LingossError(f"{folder} cannot be listed ({error.strerror}): check root") from error
    return sorted(found, key=lambda run: (run.state == "unknown", run.started or "", run.name))


def find_run(root: Path, ref: str) -> RunInfo:
    """The run that `ref` means: a name, an id, a unique beginning of either, or `latest:<stage>` (newest finished).

    Raises LingossError, with the candidates, when there is none or more than one.
    """
    runs = [run for run in list_runs(root) if run.id]
    ref = ref.strip()
    if ref.startswith("latest:"):
        return _latest(runs, ref.removeprefix("latest:"), root)
    exact = [run for run in runs if ref in (run.name, run.id)]
    found = exact or [run for run in runs if ref and (run.name.startswith(ref) or run.id.startswith(ref))]
    if len(found) == 1:
        return found[0]
    if found:
        raise LingossError(f"{ref!r} means {len(found)} runs: {_names(found)}; write more of the name")
    close = difflib.get_close_matches(ref[:80], [run.name for run in runs], n=1)
    hint = f"; nearest: {close[0]}" if close else ""
    raise LingossError(f"no run {ref[:80]!r} below {Path(root) / 'runs'}: there are {_names(runs)}{hint}")


def newest_finished(runs: Iterable[RunInfo]) -> RunInfo | None:
    """The run that finished last; None when none has."""
    return max((run for run in runs if run.done), key=lambda run: (run.finished or "", run.name), default=None)


def _latest(runs: list[RunInfo], stage: str, root: Path) -> RunInfo:
    same = [run for run in runs if run.stage == stage]
    newest = newest_finished(same)
    if newest is None:
        others = f"unfinished are {_names(same)}" if same else f"there are {_names(runs)}"
        raise LingossError(f"no finished run of stage {stage[:80]!r} below {Path(root) / 'runs'}: {others}")
    return newest


def _names(runs: list[RunInfo]) -> str:
    names = [f"{run.name} ({run.state})" for run in runs[-10:]]
    more = f" and {len(runs) - 10} older" if len(runs) > 10 else ""
    return (", ".join(names) + more) if names else "none"


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
