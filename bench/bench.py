# SPDX-License-Identifier: MIT-0
"""Measure what the project promises and print each figure beside its bar. Exit status 1 when a bar is missed.

make bench                     everything but the test suite, about a minute on one core
make bench ARGS=--with-tests   also times `make test`
make bench ARGS='--json out.json'   the figures as [{name, value, unit, bar, met, date, command}]
"""

import argparse
import datetime
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "trainer" / "tests" / "cases"


@dataclass(frozen=True)
class Figure:
    """One measured number and what it must reach."""

    name: str
    value: float
    unit: str
    bar: str
    met: bool


def cases(name: str) -> list[dict]:
    return [json.loads(line) for line in (CASES / f"{name}_cases.jsonl").open(encoding="utf-8")]


def language() -> Iterator[Figure]:
    """Identification, verification and mixing on the handed cases."""
    from lingoss.detect import STRICT_SHARE, detect

    rows = cases("language")
    for kind in ("plain", "math", "code", "doc"):
        of_kind = [row for row in rows if row["kind"] == kind]
        right = sum(detect(row["text"]).label in (row["lang"], *row.get("also", ())) for row in of_kind)
        yield share(f"language, {kind}: right", right, len(of_kind), ">= 97 %", 97.0)
    neutral = [row for row in rows if row["kind"] == "neutral"]
    yield share(
        "language, neutral: found neutral",
        sum(detect(row["text"]).label == "neutral" for row in neutral),
        len(neutral),
        "no bar",
    )

    short = [row for row in rows if row["kind"].startswith("short")]
    rejected = accepted = honest = false = 0
    latin = ("en", "fr", "de", "es", "it", "pt", "nl")
    for row in short:
        valid = (row["lang"], *row.get("also", ()))
        for target in valid:
            honest += 1
            rejected += not detect(row["text"], target).accepted
        for target in latin if row["lang"] in latin else ():
            if target not in valid:
                false += 1
                accepted += bool(detect(row["text"], target).accepted)
    yield share("short answers: false reject", rejected, honest, "0 %", ceiling=0.0)
    yield share("short answers: false accept", accepted, false, "<= 4 %", ceiling=4.0)

    mixed = [row for row in rows if row["kind"] == "mixed"]
    caught = sum((detect(row["text"], main_language(row)).target_share or 0.0) < STRICT_SHARE for row in mixed)
    yield Figure("mixed documents caught", caught, f"of {len(mixed)}", f">= {len(mixed) - 2}", caught >= len(mixed) - 2)
    clean = [row for row in rows if row["kind"] == "doc"]
    flagged = sum((detect(row["text"], row["lang"]).target_share or 0.0) < STRICT_SHARE for row in clean)
    yield Figure("clean documents flagged as mixed", flagged, f"of {len(clean)}", "0", flagged == 0)


def main_language(row: dict) -> str:
    """The language with the most characters in a mixed document."""
    letters: dict[str, int] = {}
    for start, end, code in row["spans"]:
        letters[code] = letters.get(code, 0) + end - start
    return max(letters, key=lambda code: letters[code])


def share(name: str, k: int, n: int, bar: str, floor: float | None = None, ceiling: float | None = None) -> Figure:
    value = 100 * k / n
    met = (floor is None or value >= floor) and (ceiling is None or value <= ceiling)
    return Figure(f"{name} ({k}/{n})", value, "%", bar, met)


def rewards() -> Iterator[Figure]:
    """The handed pairs of honest and gaming texts, and the transcripts."""
    from lingoss.score import Request, score
    from lingoss.transcript import parse

    rows = cases("reward")
    held = 0
    for row in rows:
        asked = Request(**row["request"])
        honest, gaming = (score(parse(row[who], row["format"]), asked).reward for who in ("honest", "adversarial"))
        held += honest > gaming if row["relation"] == "gt" else honest >= gaming
    yield Figure("reward pairs in the right order", held, f"of {len(rows)}", "all", held == len(rows))

    rows = [row for row in cases("transcript") if not row["expect"]["note"].startswith("debatable:")]
    right = 0
    for row in rows:
        found, expected = parse(row["text"], row["format"]), row["expect"]
        right += (found.reasoning, found.answer, found.format_ok, found.truncated) == (
            expected["reasoning"] or "", expected["answer"] or "", expected["format_ok"], expected["truncated"],
        )  # fmt: skip
    yield Figure("transcripts right, debatable ones apart", right, f"of {len(rows)}", "all", right == len(rows))


def speed() -> Iterator[Figure]:
    """Verdicts a second on one core, on traces made of the handed documents, and how the cost grows."""
    from lingoss.score import Request, score
    from lingoss.transcript import parse

    documents = [row for row in cases("language") if row["kind"] == "doc"]

    def work(characters: int, count: int) -> float:
        """Seconds a verdict; every text is another rotation of the documents, so that no cache can answer."""
        texts = []
        for i in range(count):
            row = documents[i % len(documents)]
            sentences = row["text"].split(". ")
            turned = ". ".join(sentences[i % len(sentences) :] + sentences[: i % len(sentences)])
            body = "\n".join(f"{turned} ({i + j})" for j in range(1 + characters // max(1, len(turned))))[:characters]
            asked = Request("How much is 6 times 7?", "en", row["lang"], row["lang"], "42")
            texts.append((f"<think>{body}</think>42", asked))
        start = time.process_time()
        for text, asked in texts:
            score(parse(text, "think"), asked)
        return (time.process_time() - start) / count

    work(600, 60)  # word lists and model are loaded once
    one = statistics.median(work(600, 300) for _ in range(3))
    two = statistics.median(work(2000, 100) for _ in range(3))
    ten = statistics.median(work(6000, 60) for _ in range(3))
    yield Figure("verdicts per second, 600-character traces, one core", 1 / one, "/s", ">= 1,000", 1 / one >= 1000)
    yield Figure("a verdict on 600 characters, one core", 1000 * one, "ms", "no bar", True)
    yield Figure("a verdict on 2,000 characters, one core", 1000 * two, "ms", "no bar", True)
    yield Figure("cost of ten times the text", ten / one, "times", "<= 12 (linear)", ten / one <= 12)


def logs() -> Iterator[Figure]:
    """The doctor on its own provoked logs and harmless lines, and on 200 MB of two ranks' logs with one failure."""
    from lingoss.doctor.logs import diagnose

    sys.path.insert(0, str(CASES.parent))
    from doctor_phrases import HARMLESS

    rows = [json.loads(line) for line in (CASES / "logs" / "own_log_cases.jsonl").open(encoding="utf-8")]
    right = sum(diagnose([str(CASES / "logs" / row["id"])]).cause == row["cause"] for row in rows)
    yield share("provoked failures: cause right", right, len(rows), ">= 95 %", 95.0)
    with tempfile.TemporaryDirectory(prefix="lingoss-bench-") as folder:
        quiet = Path(folder) / "harmless.log"
        false = 0
        for line in HARMLESS:
            quiet.write_text(line + "\n", encoding="utf-8")
            false += diagnose([str(quiet)]).cause not in ("none", "unknown")
        yield Figure("harmless lines taken for a failure", false, f"of {len(HARMLESS)}", "0", false == 0)
        quiet.unlink()
        megabytes = 0.0
        for rank in range(2):
            file = Path(folder) / f"rank-{rank}.log"
            with file.open("w", encoding="utf-8") as stream:
                for step in range(600_000):
                    at = (
                        f"2026-05-26 {step // 36000:02d}:{step // 600 % 60:02d}:{step // 10 % 60:02d},{step % 1000:03d}"
                    )
                    stream.write(
                        f"[rank{rank}]: {at} INFO step {step} {{'loss': {1 / (step + 1):.6f}, 'grad_norm': 0.5}}\n"
                    )
                    if step % 2 == 0:
                        stream.write(
                            f"node-{rank}:12:{step} [0] NCCL INFO Channel {step % 32:02d}/0 : 0[0] -> 1[1] via P2P/IPC\n"
                        )
                    if step % 1000 == 0:
                        stream.write(
                            "Traceback (most recent call last):\nConnectionResetError: [Errno 104] Connection reset\n"
                        )
                if rank:
                    stream.write("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.63 GiB.\n")
            megabytes += file.stat().st_size / 1e6
        start = time.process_time()
        found = diagnose([folder])
        seconds = (time.process_time() - start) * 200 / megabytes
        met = seconds < 20 and found.cause == "gpu-out-of-memory"
        yield Figure("200 MB of logs read, one core", seconds, "s", "< 20, right", met)


def conversion() -> Iterator[Figure]:
    """A checkpoint of four ranks of gpt-oss-20b, in true shapes: verified, and converted to a PEFT adapter."""
    script = str(ROOT / "bench" / "conversion.py")
    for kind in ("attention", "experts"):
        with tempfile.TemporaryDirectory(prefix="lingoss-bench-") as folder:
            subprocess.run([sys.executable, script, "make", folder, kind], check=True)
            done = subprocess.run(
                [sys.executable, script, "convert", folder], check=True, stdout=subprocess.PIPE, text=True
            )
        found = json.loads(done.stdout)
        name = "20B checkpoint to adapter, attention" + (" and experts" if kind == "experts" else "")
        yield Figure(f"{name}: time", found["seconds"], "s", "< 60", found["seconds"] < 60)
        yield Figure(f"{name}: memory", found["gigabytes"], "GB", "< 4", found["gigabytes"] < 4)


def start_up() -> Iterator[Figure]:
    """Best of five fresh processes: what a user waits before the first word."""
    for name, code in (
        ("lingoss --help", ["-m", "lingoss", "--help"]),
        ("import lingoss.config", ["-c", "import lingoss.config"]),
    ):
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([sys.executable, *code], check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - start)
        yield Figure(f"start of `{name}`", min(seconds), "s", "< 0.5", min(seconds) < 0.5)


def test_suite() -> Iterator[Figure]:
    start = time.perf_counter()
    done = subprocess.run(["make", "test"], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
    minutes = (time.perf_counter() - start) / 60
    yield Figure(
        "`make test`, environment present", minutes, "min", "< 10, passing", minutes < 10 and done.returncode == 0
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--with-tests", action="store_true", help="also time `make test`")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    arguments = parser.parse_args()
    parts: list[Callable[[], Iterator[Figure]]] = [language, rewards, speed, logs, conversion, start_up]
    if arguments.with_tests:
        parts.append(test_suite)
    figures = []
    for part in parts:
        for figure in part():
            figures.append(figure)
            value = f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.4g}"
            print(
                f"{'ok    ' if figure.met else 'MISSED'}  {figure.name:<58} {value:>8} {figure.unit:<6} bar: {figure.bar}",
                flush=True,
            )
    if arguments.json:
        today = datetime.date.today().isoformat()
        arguments.json.write_text(
            json.dumps([{**vars(figure), "date": today, "command": "make bench"} for figure in figures], indent=1)
            + "\n"
        )
    missed = sum(not figure.met for figure in figures)
    print(f"{len(figures) - missed} of {len(figures)} bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
