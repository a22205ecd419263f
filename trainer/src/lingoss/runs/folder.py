# SPDX-License-Identifier: MIT-0
"""The run folder while its stage works: lock, status with heartbeat, metrics, and the DONE.json that ends it."""

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Literal, Protocol, Self, get_args

from lingoss.errors import LingossError, StopError
from lingoss.runs.digests import file_digest, weight_digests
from lingoss.runs.files import read_json, remove_temporaries, write_json
from lingoss.runs.home import make_home
from lingoss.runs.ids import run_id, run_name
from lingoss.runs.lineage import inherited
from lingoss.runs.lock import BEAT, Lock, LockLostError, now_iso
from lingoss.runs.metrics import Metrics

State = Literal["pending", "running", "done", "failed", "stopped"]

STATUS_INTERVAL = 1.0  # seconds between writes of status.json for mere progress; the heartbeat writes the rest
JOIN = 10.0  # seconds that the end of a run waits for its heartbeat's last write
TRAINING_STAGES = ("sft", "grpo")  # they leave weights behind
_SIGNAL_EXITS = (None, 0, 128 + signal.SIGINT, 128 + signal.SIGTERM)

_log = logging.getLogger("lingoss.runs")


class RunConfig(Protocol):
    """What a run folder needs to know of a config; `lingoss.config.StageConfig` has it."""

    @property
    def run(self) -> str: ...
    @property
    def lock_wait(self) -> float: ...
    def identity(self) -> dict[str, Any]: ...
    def resolved(self) -> dict[str, Any]: ...


def open_run(
    root: Path,
    stage: str,
    config: RunConfig,
    parents: Sequence[str] = (),
    data_digest: str = "",
    lock_wait: float | None = None,
) -> "RunFolder":
    """The folder of the run that `config` describes, to be used in a `with` statement.

    Before that it only knows its names (`id`, `path`, `done`), so a dry run touches nothing. On entry it takes the
    lock, waiting up to `lock_wait` seconds (default: the config's), and starts the heartbeat; a run that is `done` is
    not locked, and its caller should return at once. `parents` are run names. On exit without `finish` the state
    becomes "stopped" ("pending" stays: another process is to go on), or "failed" with the reason when an exception
    passes. Raises LingossError on entry when the folder is held, read-only or on a full disk.
    """
    return RunFolder(Path(root), stage, config, tuple(parents), data_digest, lock_wait)


class RunFolder:
    """A run folder; made by `open_run`."""

    def __init__(
        self,
        root: Path,
        stage: str,
        config: RunConfig,
        parents: tuple[str, ...],
        data_digest: str,
        lock_wait: float | None = None,
        beat: float = BEAT,
    ) -> None:
        self.root, self.stage, self.config = root, stage, config
        self.parents, self.data_digest = parents, data_digest
        self.id = run_id(stage, config.identity(), parents, data_digest, config.run)
        self.name = run_name(stage, self.id)
        self.path = root / "runs" / self.name
        self._lock_wait = config.lock_wait if lock_wait is None else lock_wait
        self._beat = beat
        self._lock = Lock(self.path)
        self._metrics = Metrics(self.path / "metrics.jsonl")
        self._status: dict[str, Any] = {}
        self._written = 0.0
        self._mutex = threading.Lock()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._owner: int | None = None  # pid of the process that holds the lock
        self._sigterm: Any = None

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints go; the trainer creates it."""
        return self.path / "checkpoints"

    @property
    def adapter(self) -> Path:
        """Where the trained adapter goes."""
        return self.path / "adapter"

    @property
    def model(self) -> Path:
        """Where the weights of a full-parameter run go, instead of an adapter."""
        return self.path / "model"

    @property
    def done(self) -> bool:
        """Whether the run is finished."""
        return (self.path / "DONE.json").exists()

    def announce(self) -> None:
        """Make the folder of a run that is pending until a process opens it. What is there already stays."""
        make_home(self.path, self.stage)
        waiting = {"state": "pending", "heartbeat": None, "host": None, "pid": None}
        for name, content in (
            ("config.json", self.config.resolved()),
            ("status.json", {**self._first_status({}), **waiting}),
        ):
            # No lock is taken: a process that opens the run meanwhile writes both again.
            if not (self.path / name).exists():
                write_json(self.path / name, content)

    def __enter__(self) -> Self:
        if self._is_done():
            return self
        make_home(self.path, self.stage)
        self._lock.acquire(self._lock_wait)
        self._owner = os.getpid()
        try:
            if self._is_done():  # by the process that this one waited for
                self._release()
                return self
            remove_temporaries(self.path)
            write_json(self.path / "config.json", self.config.resolved())
            self._status = self._first_status(read_json(self.path / "status.json")[0] or {})
            self._write_status()
            self._thread = threading.Thread(target=self._heartbeat, name=f"heartbeat {self.name}", daemon=True)
            self._thread.start()
            self._catch_sigterm()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A forked child (a data loader's worker) that leaves the block must not end its parent's run.
        if self._owner != os.getpid():
            return
        try:
            if not isinstance(error, LockLostError) and self._status["state"] != "done":
                if error is not None or self._status["state"] != "pending":
                    self._status["state"], self._status["reason"] = _ending(error)
                with self._mutex:
                    self._write_status()
        except LingossError as problem:
            _log.warning("the end of run %s was not noted: %s", self.name, problem)
        finally:
            self._release()

    def check(self) -> None:
        """Raise LockLostError when another process has taken this run over. Every method that writes calls it."""
        if self._status.get("state") == "done" or (self._owner is None and self.done):
            raise LingossError(f"run {self.name} cannot be written: it is done")
        if self._owner != os.getpid():
            raise LingossError(f"run {self.name} cannot be written: it is not open in this process")
        self._lock.check()

    def status(self, state: State | None = None, step: int | None = None, total: int | None = None) -> None:
        """Tell where the run is. None keeps what was told before.

        Changes of state or total are on disk when this returns; mere steps once a second. "done" is for `finish` alone.
        """
        if state is not None and (state not in get_args(State) or state == "done"):
            raise LingossError(f"state {state!r} cannot be set: use pending, running, failed or stopped, and finish()")
        self.check()
        news = {"state": state, "step": step, "total": total}
        with self._mutex:
            urgent = any(
                value is not None and value != self._status[key] for key, value in news.items() if key != "step"
            )
            self._status.update({key: value for key, value in news.items() if value is not None})
            if urgent or time.monotonic() - self._written >= STATUS_INTERVAL:
                self._write_status()

    def metric(self, row: Mapping[str, Any]) -> None:
        """Append a row to metrics.jsonl, with the time unless the row has one; `step` makes it removable on resume."""
        self.check()
        self._metrics.append({"time": now_iso(), **row})

    def truncate_metrics(self, step: int) -> None:
        """Remove the rows after `step`, from which the run resumes, and a torn last line."""
        self.check()
        self._metrics.truncate(step)

    def finish(
        self,
        final_step: int,
        digests: Mapping[str, str] | None = None,
        lineage: Mapping[str, Any] | None = None,
        *,
        check: Callable[[Path], None] | None = None,
        **extra: Any,
    ) -> None:
        """Write DONE.json, as the last file of the run.

        `digests` are {path relative to the run folder: sha256}; files of `adapter/` and `model/` are added, and all are
        compared with the disk. `lineage` adds to what is known already (parents, chain, data digest, base model of the
        parents). `check(run folder)` raises LingossError when the tensors are not right. Raises LingossError, and
        the run stays unfinished, when the final step is not the planned one, a digest is missing or differs, a training
        run has no weights, or `check` does.
        """
        self.check()
        total = self._status["total"]
        if total is None:
            raise LingossError(
                f"run {self.name} cannot be done: its planned steps were never told, call status(total=...)"
            )
        if final_step != total:
            raise LingossError(f"run {self.name} is not done: it is at step {final_step} of {total}; start it again")
        found = weight_digests(self.path)
        if self.stage in TRAINING_STAGES and not any(name.endswith(".safetensors") for name in found):
            raise LingossError(f"run {self.name} is not done: there are no weights in {self.adapter} or {self.model}")
        for name, digest in (digests or {}).items():
            actual = found.setdefault(name, file_digest(self.path / name))
            if actual != digest:
                raise LingossError(f"run {self.name} is not done: {name} has digest {actual[:12]}, not {digest[:12]}")
        if check is not None:
            check(self.path)
        record = {
            "stage": self.stage,
            "id": self.id,
            "final_step": final_step,
            "planned_steps": total,
            "digests": found,
            "lineage": {**inherited(self.root, self.parents), "data_digest": self.data_digest, **(lineage or {})},
            "started": self._status["started"],
            "finished": now_iso(),
            **extra,
        }
        self._metrics.close()
        with self._mutex:
            self._status.update(state="done", step=final_step)
            try:
                self._write_status()
                write_json(self.path / "DONE.json", record)
            except BaseException:
                self._status["state"] = "running"
                raise

    def _first_status(self, earlier: Mapping[str, Any]) -> dict[str, Any]:
        """The status of a run that this process starts, or goes on with after the `earlier` one."""
        step, total, started = (earlier.get(key) for key in ("step", "total", "started"))
        return {
            "stage": self.stage,
            "id": self.id,
            "state": "running",
            "step": step if isinstance(step, int) else 0,
            "total": total if isinstance(total, int) else None,
            "heartbeat": now_iso(),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "started": started if isinstance(started, str) else now_iso(),
            "parents": list(self.parents),
            "data_digest": self.data_digest,
            "reason": None,
        }

    def _is_done(self) -> bool:
        record, problem = read_json(self.path / "DONE.json")
        if problem:
            raise LingossError(f"{self.path}: {problem}: restore it, or delete it to let the run finish again")
        return record is not None

    def _write_status(self) -> None:
        self._lock.check()
        self._status["heartbeat"] = now_iso()
        write_json(self.path / "status.json", self._status)
        self._written = time.monotonic()

    def _heartbeat(self) -> None:
        troubled = False
        while not self._ending.wait(self._beat):
            try:
                self._lock.beat()
                with self._mutex:
                    self._write_status()
                troubled = False
            except LockLostError:
                return  # the next write of the main thread raises it
            except LingossError as problem:
                if not troubled:  # once, not every few seconds; a full disk may get space again
                    _log.warning("no heartbeat of run %s: %s", self.name, problem)
                troubled = True

    def _catch_sigterm(self) -> None:
        """Let SIGTERM leave the `with` block, unless the program has its own idea of it."""

        def leave(number: int, frame: FrameType | None) -> None:
            raise SystemExit(128 + number)

        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._sigterm = leave
            signal.signal(signal.SIGTERM, leave)

    def _release(self) -> None:
        self._ending.set()
        if self._thread is not None:
            self._thread.join(timeout=JOIN)  # a dead file system may hold it; being a daemon it does no harm
        try:
            self._metrics.close()
        except LingossError as problem:
            _log.warning("%s", problem)
        self._lock.release()
        self._owner = None
        if self._sigterm is not None and signal.getsignal(signal.SIGTERM) is self._sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._sigterm = None


def _ending(error: BaseException | None) -> tuple[State, str | None]:
    """State and reason of a run that ends without DONE."""
    if error is None or isinstance(error, KeyboardInterrupt | GeneratorExit):
        return "stopped", None
    if isinstance(error, SystemExit):
        stopped = error.code in _SIGNAL_EXITS
        return ("stopped", None) if stopped else ("failed", f"exit status {error.code}"[:300])
    told = " ".join(str(error).split())
    if isinstance(error, StopError):
        return "stopped", told[:300]
    return "failed", (told if isinstance(error, LingossError) else f"{type(error).__name__}: {told}")[:300]
