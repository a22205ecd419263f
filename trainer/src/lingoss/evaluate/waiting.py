# SPDX-License-Identifier: MIT-0
"""Part report waits for part generate, which another pod runs. Whether that one lives is told by the run's status.

The run's lock is not held meanwhile: generate holds it while it draws.
"""

import signal
import time
from pathlib import Path

from lingoss import runs
from lingoss.errors import LingossError
from lingoss.evaluate.samples import count_rows
from lingoss.evaluate.setting import Draw, Setting
from lingoss.progress import Progress
from lingoss.runs.table import duration
from lingoss.stopping import StopRequest

POLL = 5.0  # seconds between looks at the samples
GIVE_UP = 1800.0  # seconds without a living maker, once there was one: time enough for a retry and for a lost node
TELL = 60.0  # seconds after which a line is written though nothing changed


def require_samples(setting: Setting) -> None:
    """Raise LingossError unless every sample folder can be scored."""
    missing = [draw for draw in setting.draws if not draw.has_ended]
    if missing:
        raise LingossError(
            f"{_names(missing)}: samples are missing ({_found(setting)} of {_total(setting)} are there): run "
            "`lingoss evaluate --part generate` first, or wait for it with --wait SECONDS"
        )


def wait_for_samples(setting: Setting, run: Path, seconds: float, poll: float = POLL, give_up: float = GIVE_UP) -> None:
    """Wait until every sample folder can be scored and no living process works on them.

    Progress goes to standard error whenever something changed, and once a minute. Raises LingossError, which says
    what is missing and what generate was last seen doing, after `seconds`, and already `give_up` seconds after generate
    has failed or died; KeyboardInterrupt or SystemExit (143) on
    Ctrl-C or SIGTERM, which would not end a container's first process by itself.
    """
    with StopRequest() as stop:
        _wait(setting, run, seconds, poll, give_up, stop)
    stop.raise_if_interrupted()
    if stop:
        raise SystemExit(128 + signal.SIGTERM)


def _wait(setting: Setting, run: Path, seconds: float, poll: float, give_up: float, stop: StopRequest) -> None:
    start = alive = time.monotonic()
    missing, told, last = list(setting.draws), None, start
    with Progress("wait for samples", _total(setting), "samples") as progress:
        while not stop:
            missing = [draw for draw in missing if not draw.has_ended]
            maker = runs.read_run(run)
            if not missing and not maker.is_alive:
                return
            waits_for, seen, found = _names(missing) or "the end of generate", describe(maker), _found(setting)
            now = time.monotonic()
            if maker.is_alive or maker.state not in ("failed", "running"):  # queued, or not begun
                alive = now
            if now - start >= seconds or now - alive >= give_up:
                waited = min(seconds, now - start)
                raise LingossError(
                    f"still waiting for {waits_for} after {waited:.0f} s: {found} of {_total(setting)} samples are "
                    f"there, generate {seen}: look at its job, then run this again or raise --wait"
                )
            news = (found, waits_for, maker.state, maker.is_alive)
            if news != told or now - last >= TELL:
                progress.advance(found - progress.done, waits_for=waits_for, generate=seen)
                told, last = news, now
            time.sleep(min(poll, max(0.0, start + seconds - now)))


def describe(maker: runs.RunInfo) -> str:
    """What generate was last seen doing, as the end of a sentence that begins with its name."""
    where = f"on {maker.host}" if maker.host else "somewhere"
    if maker.is_alive:
        return f"is running {where} (step {maker.step} of {maker.total})"
    if maker.state == "running" and maker.age is not None:
        return f"has given no sign of life for {duration(maker.age)} (last {where})"
    if maker.state == "failed":
        return f"failed {where} ({maker.reason})"
    if maker.state == "stopped":
        return f"was stopped {where}"
    return "has not begun" if maker.heartbeat is None else f"ended {where}"


def _names(draws: list[Draw]) -> str:
    return ", ".join(dict.fromkeys(draw.folder.name for draw in draws))


def _total(setting: Setting) -> int:
    return sum(len(draw.prompts) * draw.k for draw in setting.draws)


def _found(setting: Setting) -> int:
    return sum(count_rows(draw.folder) for draw in setting.draws)
