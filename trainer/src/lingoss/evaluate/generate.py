# SPDX-License-Identifier: MIT-0
"""Sample completions of one model for a set of prompts: one JSON line a sample, resumable, with a card beside them.

    <folder>/samples.jsonl   rows that `score` reads; bad prompts are rows with `error`
    <folder>/run.json        what made them: model, prompts, sampling, versions, hardware, times

What can be repeated: each sample has a random stream of its own, fixed by seed, prompt id and sample number. On the same
machine, with the same threads and batch size, the same call gives the same texts. Another grouping into batches (a
resumed run, another `batch_tokens`) rounds the logits differently in their last bits, so now and then a text differs.
"""

import contextlib
import os
import platform
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lingoss import __version__, runs
from lingoss.data import Prompt, jsonl, prompt_digest
from lingoss.errors import LingossError
from lingoss.evaluate.batching import Task, batches
from lingoss.evaluate.engine import Engine
from lingoss.evaluate.samples import CARD, SAMPLES, Row, drawn, is_good, key, read_card
from lingoss.models import model_card, model_digest
from lingoss.models.load import DTYPES
from lingoss.models.memory import keep_freed_memory, release
from lingoss.progress import Progress
from lingoss.runs.lock import BEAT, Lock
from lingoss.transcript import chat_format


def generate(
    model: Path,
    prompts: Sequence[Prompt],
    folder: Path,
    *,
    format: str,
    adapter: Path | None = None,
    k: int = 1,
    temperature: float = 1.0,
    max_new_tokens: int = 1024,
    batch_tokens: int = 16384,
    seed: int = 0,
    dtype: str = "float32",
    threads: int | None = None,
    lock_wait: float = 0.0,
) -> Mapping[str, Any]:
    """Draw `k` samples of each prompt into `folder` and return the card; what is there already is not drawn again.

    Rows are appended and synced after each batch, so a kill or Ctrl-C loses one batch. Error rows of an earlier call are
    tried again. `batch_tokens` bounds prompt and new tokens of all rows in a batch, and with them the memory. `lock_wait`:
    seconds to wait for another process that holds the folder, or died on another host while it did.

    Raises:
        LingossError: the folder holds samples of another model, prompt set or sampling; prompt ids repeat; the model or
            adapter cannot be loaded; greedy with more than one sample.
    """
    if temperature == 0 and k > 1:
        raise LingossError(f"temperature 0 gives {k} times the same sample: use k=1 or a temperature above 0")
    if min(k, max_new_tokens, batch_tokens) < 1 or temperature < 0:
        raise LingossError(f"k={k}, max_new_tokens={max_new_tokens} and batch_tokens={batch_tokens} must be positive")
    if not prompts:
        raise LingossError("no prompts to generate from")
    if repeated := [name for name, count in Counter(prompt.id for prompt in prompts).items() if count > 1]:
        raise LingossError(f"prompt ids repeat: {', '.join(repeated[:5])}; every prompt needs an id of its own")
    chat_format(format)  # refused before anything is written
    if dtype not in DTYPES:
        raise LingossError(f"unknown dtype {dtype!r}; use one of {', '.join(DTYPES)}")
    identity = {
        "model_digest": model_digest(model),
        "adapter_digest": model_digest(adapter) if adapter else None,
        "prompt_digest": prompt_digest(prompts),
        "format": format,
        "k": k,
        "temperature": temperature,
        "max_new_tokens": max_new_tokens,
        "seed": seed,
        "dtype": dtype,
    }
    wanted = {(prompt.id, sample) for prompt in prompts for sample in range(k)}
    card = _claim(folder, identity)
    if card and wanted <= drawn(folder / SAMPLES):
        return card
    with _alone(folder, lock_wait):
        _claim(folder, identity)
        done = _drop_errors(folder / SAMPLES) & wanted
        card = identity | _origin(model, prompts) | {"batch_tokens": batch_tokens, "started": _now()}
        runs.write_json(folder / CARD, card)
        keep_freed_memory()
        start = time.monotonic()
        with Engine(model, adapter, format, dtype, threads) as engine, _writer(folder) as out:
            loaded = time.monotonic()
            tokens = _draw_all(engine, out, prompts, done, identity, batch_tokens)
        seconds = time.monotonic() - loaded
        release()
        card |= {
            "finished": _now(),
            "threads": engine.threads,
            "load_seconds": round(loaded - start, 1),
            "seconds": round(seconds, 1),
            "new_tokens": tokens,
            "tokens_per_s": round(tokens / max(seconds, 1e-9), 1),
            "resumed_with": len(done),
        }
        runs.write_json(folder / CARD, card)
    return card


def _draw_all(
    engine: Engine,
    out: jsonl.Writer,
    prompts: Sequence[Prompt],
    done: set[tuple[str, int]],
    identity: Mapping[str, Any],
    batch_tokens: int,
) -> int:
    """Generate every sample that is not `done`; returns the number of new tokens."""
    wanted = identity["k"] * len(prompts) - len(done)
    limit = identity["max_new_tokens"]
    tasks = []
    with Progress("generate", total=wanted, unit="samples") as progress:
        for prompt in prompts:
            left = tuple(sample for sample in range(identity["k"]) if (prompt.id, sample) not in done)
            if not left:
                continue
            try:
                tasks.append(Task(prompt, engine.encode(prompt, limit), left))
            except LingossError as error:
                for sample in left:
                    out.write({**_row(prompt, sample, identity), "error": str(error)})
                out.sync()
                progress.advance(len(left))
        tokens, start = 0, time.monotonic()
        for batch in batches(tasks, limit, batch_tokens):
            rows = _complete(engine, batch, identity, progress)
            for row in rows:
                out.write(row)
                tokens += row.get("new_tokens", 0)
            out.sync()
            rate = tokens / max(time.monotonic() - start, 1e-9)
            progress.advance(len(rows), tokens=tokens, tokens_per_s=round(rate, 1))
    return tokens


def _complete(engine: Engine, batch: Sequence[Task], identity: Mapping[str, Any], progress: Progress) -> list[Row]:
    """One row for each wanted sample; when the batch cannot be computed, they are error rows and the rest goes on."""
    from lingoss.evaluate.decoding import Draw, sample_seed

    wanted = [(place, task.prompt, sample) for place, task in enumerate(batch) for sample in task.samples]
    rows = [_row(prompt, sample, identity) for _, prompt, sample in wanted]
    draws = [Draw(place, sample_seed(identity["seed"], prompt.id, sample)) for place, prompt, sample in wanted]
    try:
        found = engine.complete(
            [task.ids for task in batch],
            draws,
            identity["max_new_tokens"],
            identity["temperature"],
            lambda share: progress.glimpse(share * len(rows)),
        )
    except (RuntimeError, MemoryError, ValueError, LookupError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        return [{**row, "error": f"generation failed: {reason}"} for row in rows]
    return [
        {**row, "text": text, "finish_reason": one.finish_reason, "seed": draw.seed, "new_tokens": len(one.ids)}
        for row, draw, (text, one) in zip(rows, draws, found, strict=True)
    ]


@contextlib.contextmanager
def _alone(folder: Path, wait: float) -> Iterator[None]:
    """Hold the folder, as a run holds its own: two calls at once would write every sample twice."""
    lock = Lock(folder)
    lock.acquire(wait)
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(BEAT):
            with contextlib.suppress(LingossError):  # a full disk now may have room at the next beat
                lock.beat()

    thread = threading.Thread(target=beat, name="heartbeat of generate", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        lock.release()


def _row(prompt: Prompt, sample: int, identity: Mapping[str, Any]) -> Row:
    """What a row of this prompt has before there is a text."""
    return {
        "id": f"{prompt.id}:{sample}",
        "prompt_id": prompt.id,
        "item": prompt.item,
        "family": prompt.family,
        "sample": sample,
        "format": identity["format"],
        "crossed": prompt.crossed,
        "request": {
            "question": prompt.question,
            "question_language": prompt.question_language,
            "reasoning_language": prompt.reasoning_language,
            "answer_language": prompt.answer_language,
            "gold": prompt.gold,
        },
    }


def _claim(folder: Path, identity: Mapping[str, Any]) -> Row | None:
    """Make the folder, or check that what is in it comes from the same model, prompts and sampling; returns its card."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LingossError(f"cannot make the folder {folder}: {error.strerror or error}") from error
    card = read_card(folder)
    if card is None:
        if (folder / SAMPLES).exists():
            raise LingossError(f"{folder / SAMPLES} has no {CARD} that tells what made it; give another folder")
        return None
    for name, value in identity.items():
        if card.get(name) != value:
            raise LingossError(
                f"{folder} holds samples with {name}={_short(card.get(name))}, not {_short(value)}; give another folder"
            )
    return card


def _writer(folder: Path) -> jsonl.Writer:
    """Synced by hand, once a batch."""
    return jsonl.Writer(folder / SAMPLES, sync_every=1 << 30)


def _drop_errors(samples: Path) -> set[tuple[str, int]]:
    """As `drawn`; error rows and torn lines are taken out of the file, to be tried again."""
    rows = [row for _, row in jsonl.read(samples)] if samples.exists() else []
    kept = [row for row in rows if not isinstance(row, jsonl.BadLine) and is_good(row)]
    if len(kept) < len(rows):
        jsonl.write(samples, kept)
    return {key(row) for row in kept}


def _origin(model: Path, prompts: Sequence[Prompt]) -> Row:
    """What the card tells beside the identity: names, versions, hardware."""
    from importlib.metadata import version

    base = model_card(model)
    return {
        "hub_id": base.hub_id,
        "revision": base.revision,
        "prompts": len(prompts),
        "prompt_set": "+".join(dict.fromkeys(prompt.split for prompt in prompts if prompt.split)),
        "versions": {"lingoss": __version__} | {name: version(name) for name in ("torch", "transformers", "peft")},
        "hardware": {"machine": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
    }


def _short(value: object) -> str:
    return str(value)[:16]


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
