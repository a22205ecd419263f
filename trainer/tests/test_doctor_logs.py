# SPDX-License-Identifier: MIT-0
"""`lingoss doctor --logs`: provoked logs, phrases of the programs, and how files are put on one time line."""

import gzip
import io
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor_phrases import HARMLESS, PHRASES
from lingoss.cli import main
from lingoss.doctor.cause import causes
from lingoss.doctor.logs import diagnose, source

CASES = Path(__file__).parent / "cases" / "logs"
OWN = [json.loads(line) for line in (CASES / "own_log_cases.jsonl").read_text().splitlines()]


def diagnosed(folder: Path, **files: str) -> tuple[str, str | None, int | None]:
    """Cause, file and line for files given by name without .log."""
    for name, text in files.items():
        (folder / f"{name}.log").write_text(text, encoding="utf-8")
    found = diagnose([str(folder)])
    return found.cause, found.first and found.first.file, found.first and found.first.line


@pytest.mark.parametrize("case", OWN, ids=[case["id"] for case in OWN])
def test_provoked_failure(case: dict) -> None:
    found = diagnose([str(CASES / case["id"] / name) for name in case["files"]]).to_dict()
    assert found["cause"] == case["cause"]
    if case["cause"] == "none":
        assert found["first"] is None
        assert found["evidence"] is None
        return
    first = case["first"]
    lines = (CASES / case["id"] / first["file"]).read_text(encoding="utf-8").splitlines()
    proof = next(n for n, line in enumerate(lines, 1) if n >= first["line"] and case["evidence"] in line)
    assert found["first"]["file"] == first["file"]
    assert first["line"] <= found["first"]["line"] <= proof


def test_provoked_logs_stay_small() -> None:
    assert sum(file.stat().st_size for file in CASES.rglob("*") if file.is_file()) < 60_000


@pytest.mark.parametrize(("cause", "line"), [(cause, line) for cause, lines in PHRASES.items() for line in lines])
def test_phrase_has_its_cause(cause: str, line: str, tmp_path: Path) -> None:
    assert diagnosed(tmp_path, log=f"starting\n{line}\n") == (cause, "log.log", 2)


@pytest.mark.parametrize("line", HARMLESS)
def test_harmless_line_is_no_failure(line: str, tmp_path: Path) -> None:
    assert diagnosed(tmp_path, log=line + "\n") == ("none", None, None)


def test_quiet_first_failure_wins_over_loud_later_ones(tmp_path: Path) -> None:
    timeout = (
        "[rank{0}]:[E1206 22:40:12.7 ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=9, OpType=ALLREDUCE) ran for 600061 milliseconds before timing out.\n"
    )
    quiet = (
        "2026-12-06 22:30:11,000 step 8\n[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB\n"
    )
    ranks = {f"rank-{rank}": timeout.format(rank) * 20 for rank in range(3)}
    assert diagnosed(tmp_path, **ranks, **{"rank-3": quiet}) == ("gpu-out-of-memory", "rank-3.log", 2)


def test_killed_peer_explains_resets_that_were_written_before_the_kernel_told_of_it(tmp_path: Path) -> None:
    found = diagnosed(
        tmp_path,
        kernel="[Fri Oct 16 14:00:05 2026] Memory cgroup out of memory: Killed process 7 (python3)\n",
        peer="2026-10-16 14:00:04,900 ERROR ConnectionResetError: [Errno 104] Connection reset by peer\n",
    )
    assert found == ("host-out-of-memory", "kernel.log", 1)


def test_of_two_failures_of_programs_the_earlier_one_counts(tmp_path: Path) -> None:
    late, early = (
        "2026-10-16 14:09:00 OSError: [Errno 98] Address already in use\n",
        "W1016 14:00:00.1 7 x] size mismatch for w\n",
    )
    assert diagnosed(tmp_path, a=late, b=early) == ("checkpoint-shape-mismatch", "b.log", 1)


def test_ages_of_events_count_from_their_first_time(tmp_path: Path) -> None:
    events = (
        "  Warning  FailedMount  10m (x2 over 13m)  kubelet  Unable to attach or mount volumes: timed out\n"
        '  Warning  FailedMount  2m (x11 over 18m)  kubelet  MountVolume.SetUp failed for volume "pv" : no route\n'
    )
    assert diagnosed(tmp_path, events=events) == ("volume-mount-failed", "events.log", 2)


STEP = "{'loss': 0.7, 'grad_norm': 1.0, 'epoch': 0.1}\n"


def test_what_the_work_survived_is_no_failure(tmp_path: Path) -> None:
    assert diagnosed(tmp_path, log="OSError: [Errno 5] Input/output error, retrying\n" + STEP * 2)[0] == "none"


@pytest.mark.parametrize(
    ("trouble", "end"),
    [
        (
            "ModuleNotFoundError(\"No module named 'vllm._C'\")",
            "Processed prompts: 100%|####| 50/50 [00:41<00:00,  1.21it/s]",
        ),
        (
            "Lustre: fsx: Connection to fsx-MDT0000 was lost; in progress operations will wait",
            "Lustre: Connection restored to fsx",
        ),
        (
            "3m Warning Failed pod/a Failed to pull image: i/o timeout",
            "2m Normal Pulled pod/a Successfully pulled image x",
        ),
        (
            "'[Errno -2] Name or service not known' thrown while requesting HEAD https://huggingface.co/x",
            "{'train_runtime': 9.1}",
        ),
        (
            "The client socket has timed out after 60000ms while trying to connect to (a, 1).",
            "n NCCL INFO comm 0x1 Init COMPLETE",
        ),
        ("{'loss': 9.1, 'grad_norm': nan}", "{'loss': 8.7, 'grad_norm': 3.1}"),
    ],
)
def test_trouble_that_passed_is_no_failure(trouble: str, end: str, tmp_path: Path) -> None:
    assert diagnosed(tmp_path, ended=f"{trouble}\n{end}\n")[0] == "none"
    assert diagnosed(tmp_path, ended=f"{end}\n{trouble}\n")[0] not in ("none", "unknown")


def test_a_failure_after_the_last_step_stays(tmp_path: Path) -> None:
    assert diagnosed(tmp_path, log=STEP * 3 + "OSError: [Errno 5] Input/output error\n")[0] == "filesystem-unavailable"


def test_a_failure_of_one_pod_is_not_undone_by_another_pod(tmp_path: Path) -> None:
    pull = '20:27:09 Warning Failed pod/b Failed to pull image "x": not found\n'
    assert (
        diagnosed(tmp_path, events=pull + "20:28:00 Normal Started pod/a Started container c\n")[0]
        == "image-pull-failed"
    )
    assert diagnosed(tmp_path, events=pull + "20:28:00 Normal Started pod/b Started container c\n")[0] == "none"


def test_a_container_that_was_started_again_was_killed_all_the_same(tmp_path: Path) -> None:
    text = "    Reason: OOMKilled\n  Normal  Started  3s (x2 over 9m)  kubelet  Started container trainer\n"
    assert diagnosed(tmp_path, describe=text) == ("host-out-of-memory", "describe.log", 1)


def test_a_stop_on_purpose_stays_one_when_the_step_is_finished_first(tmp_path: Path) -> None:
    text = "2026-01-01 10:00:00 INFO Received SIGTERM, saving a checkpoint\n" + STEP * 3
    assert diagnosed(tmp_path, log=text) == ("stopped-by-signal", "log.log", 1)


def test_events_in_utc_and_programs_in_local_time_are_compared(tmp_path: Path) -> None:
    found = diagnosed(
        tmp_path,
        events="2026-04-17T21:22:11Z Warning OOMKilling node/n Memory cgroup out of memory: Killed process 7\n",
        rank="2026-04-17 14:22:12,000 ERROR torch.distributed.DistStoreError: Timed out after 60 seconds waiting for clients.\n",
    )
    assert found == ("host-out-of-memory", "events.log", 1)


def test_an_unresolved_hub_at_the_end_of_a_long_traceback_is_no_unresolved_pod(tmp_path: Path) -> None:
    frames = '  File "urllib3/connection.py", line 1, in connect\n' * 40
    text = "socket.gaierror: [Errno -3] Temporary failure in name resolution\n" + frames
    text += "MaxRetryError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /x\n"
    assert diagnosed(tmp_path, log=text)[0] == "hub-unreachable"


@pytest.mark.parametrize(("network", "cause"), [("Socket", "ofi-plugin-missing"), ("IB", "none")])
def test_a_missing_plugin_matters_where_nodes_use_sockets(network: str, cause: str, tmp_path: Path) -> None:
    text = "n:1:1 [0] NCCL INFO NET/Plugin: No plugin found (libnccl-net.so)\n"
    text += (
        f"n:1:1 [0] NCCL INFO Using network {network}\nn:1:1 [0] NCCL INFO comm 0x1 rank 8 nRanks 16 nNodes 2\n"
        + STEP * 3
    )
    assert diagnosed(tmp_path, log=text)[0] == cause


def test_rank_that_never_queued_the_collective_is_the_late_one(tmp_path: Path) -> None:
    line = "[rank{0}]:[E1206 22:30:1{0}.1 ProcessGroupNCCL.cpp:607] [Rank {0}] {1}\n"
    timeout = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=600000)"
    text = "".join(line.format(rank, timeout) for rank in range(3))
    text += line.format(3, "Received a dump signal. Last enqueued NCCL work: 11, last completed NCCL work: 11.")
    assert diagnosed(tmp_path, all=text) == ("collective-straggler", "all.log", 4)


def test_rank_in_another_collective_is_the_late_one(tmp_path: Path) -> None:
    line = (
        "[rank{0}]:[E1206 22:30:1{0}.1 x.cpp:607] [Rank {0}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=12, OpType={1})\n"
    )
    kinds = ("ALLREDUCE", "ALLREDUCE", "BROADCAST", "ALLREDUCE")
    text = "".join(line.format(rank, kind) for rank, kind in enumerate(kinds))
    assert diagnosed(tmp_path, all=text) == ("collective-straggler", "all.log", 3)


FAULT = b"NVRM: Xid (PCI:0000:53:00): 79, GPU has fallen off the bus.\n"


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("packed", gzip.compress(b"a\n\n" + FAULT), 3),
        ("two-members", gzip.compress(b"a\n") + gzip.compress(FAULT), 2),
        ("utf-16", ("a\n" + FAULT.decode()).encode("utf-16"), 2),
        ("binary-before", bytes(range(256)) * 4 + b"\n" + FAULT, 6),  # each block of all bytes has one line feed
        ("no-line-end", b"a\nb\n" + FAULT.rstrip(), 3),
        ("carriage-returns", b"1%\r2%\r3%\r\n" + FAULT, 2),
        ("one-huge-line", b"x" * 3_000_000 + FAULT, 1),
        ("colours", b"\x1b[31mNVRM: \x1b[0mXid (PCI:0000:53:00): 79, GPU\x1b[1m has fallen off the bus\x1b[0m\n", 1),
        ("docker", json.dumps({"log": FAULT.decode(), "stream": "stderr", "time": "2026-01-01T00:00:00Z"}).encode(), 1),
    ],
)
def test_odd_files_are_read(name: str, content: bytes, line: int, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    found = diagnose([str(file)])
    assert (found.cause, found.first.line if found.first else None) == ("gpu-fault", line)


def test_a_damaged_gzip_ends_where_it_is_no_longer_whole(tmp_path: Path) -> None:
    file = tmp_path / "cut.gz"
    file.write_bytes(gzip.compress(FAULT + random.Random(0).randbytes(100_000))[:60_000])
    assert diagnose([str(file)]).cause == "gpu-fault"


def test_lines_are_counted_across_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "WINDOW", 1000)
    file = tmp_path / "long.log"
    file.write_bytes(b"".join(b"line %d\n" % n for n in range(1, 5000)) + FAULT)
    found = diagnose([str(file)])
    assert found.first
    assert found.first.line == 5000


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=300),
            st.sampled_from([FAULT, b"\r", b"\n", b"loss: nan\n", b"\0", b"\xff\xfe", b"\x1f\x8b"]),
        ),
        max_size=12,
    )
)
def test_no_bytes_break_it_and_lines_exist(pieces: list[bytes]) -> None:
    content = b"".join(pieces)
    found = list(source._windows(io.BytesIO(content)))
    if not content.startswith((b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        lines = content.split(b"\n")
        for window in found:
            for i in range(window.seen, len(window)):
                piece = window.data[window.starts[i] : window.ends[i]]
                assert piece
                assert piece in lines[window.numbers[i] - 1]


def test_every_byte_string_gets_an_answer(tmp_path: Path) -> None:
    source_of = random.Random(7)
    names = list(causes())
    for n in range(60):
        file = tmp_path / f"{n}.log"
        words = [source_of.choice(PHRASES.get(source_of.choice(names)) or [""]) for _ in range(source_of.randint(0, 6))]
        text = " ".join(words).encode()
        at = source_of.randint(0, len(text))
        file.write_bytes(text[:at] + source_of.randbytes(source_of.randint(0, 400)) + text[at:])
        found = diagnose([str(file)])
        assert found.cause in names
        assert (found.first is None) == (found.evidence is None)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "node.log").write_bytes(b"a\n" + FAULT)
    assert main(["doctor", "--logs", str(tmp_path), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["cause"] == "gpu-fault"
    assert row["first"] == {"file": "node.log", "line": 2}
    assert "fallen off the bus" in row["evidence"]
    assert row["remedy"] == causes()["gpu-fault"].remedy
    assert main(["doctor", "--logs", str(tmp_path)]) == 0
    assert "first     node.log:2\n" in capsys.readouterr().out


def test_standard_input() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lingoss", "doctor", "--logs", "-", "--json"],
        input=b"a\n" + FAULT,
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["first"] == {"file": "-", "line": 2}


@pytest.mark.parametrize("arguments", [["--logs", "absent.log"], ["--lock", "x.lock"], ["--logs", ".", "--root", "."]])
def test_questions_that_cannot_be_answered(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1
