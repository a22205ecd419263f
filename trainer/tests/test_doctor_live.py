# SPDX-License-Identifier: MIT-0
"""`lingoss doctor` in a pod or on a laptop, and `--image`: each check on a machine with the fault, and on one without."""

import http.server
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lingoss.cli import main
from lingoss.doctor import caches, compiler, image, live, locks, page
from lingoss.doctor.cause import causes
from lingoss.doctor.check import Check
from lingoss.doctor.live import gpu, hub, limits, network, programs, timing, volume
from lingoss.doctor.live.machine import Machine
from lingoss.errors import LingossError


def machine(top: Path, files: dict[str, str] | None = None, **environment: str) -> Machine:
    """A machine with these files and no other ones."""
    for name, text in (files or {}).items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text, encoding="utf-8")
    return Machine(top, environment)


def states(checks: Iterator[Check]) -> list[tuple[str, str]]:
    return [(check.state, check.cause) for check in checks]


DRIVER = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}.95.05  Tue Sep 23 10:11:16 UTC 2026\n"


@pytest.mark.parametrize(
    ("branch", "cuda", "expected"),
    [
        (550, 13, ("failed", "driver-too-old")),
        (580, 13, ("ok", "")),
        (550, 12, ("ok", "")),
        (550, None, ("ok", "")),
        (550, 99, ("skipped", "")),
    ],
)
def test_driver(
    branch: int, cuda: int, expected: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "cuda_wanted", lambda: cuda)
    here = machine(tmp_path, {"proc/driver/nvidia/version": DRIVER.format(branch)})
    assert states(gpu.driver(here)) == [expected]


def test_open_kernel_module_is_read_and_no_driver_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "cuda_wanted", lambda: 13)
    text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build\n"
    assert states(gpu.driver(machine(tmp_path, {"proc/driver/nvidia/version": text}))) == [("failed", "driver-too-old")]
    assert states(gpu.driver(Machine(tmp_path / "other"))) == [("skipped", "")]


@pytest.mark.parametrize(
    ("status", "output", "expected"),
    [
        (0, "0, NVIDIA L40S, 10, 46068, 0\n1, NVIDIA L40S, 10, 46068, 0\n", ("ok", "")),
        (0, "0, NVIDIA L40S, 10, 46068, 3\n", ("failed", "gpu-fault")),
        (0, "0, NVIDIA A10G, 10, 23028, [N/A]\n", ("ok", "")),
        (18, "Failed to initialize NVML: Driver/library version mismatch", ("failed", "driver-too-old")),
        (15, "Unable to determine the device handle for GPU0: GPU is lost.", ("failed", "gpu-fault")),
    ],
)
def test_answer_of_nvidia_smi(status: int, output: str, expected: tuple[str, str]) -> None:
    check = gpu.read_health(status, output, "")
    assert (check.state, check.cause) == expected


def test_efa(tmp_path: Path) -> None:
    assert states(network.efa(machine(tmp_path / "a", FI_PROVIDER="efa"))) == [("failed", "efa-unavailable")]
    assert states(network.efa(machine(tmp_path / "a", FI_EFA_USE_DEVICE_RDMA="1"))) == [("failed", "efa-unavailable")]
    assert states(network.efa(machine(tmp_path / "a"))) == [("skipped", "")]
    device = {"dev/infiniband/uverbs0": "", "sys/class/infiniband/efa_0/node_guid": ""}
    assert states(network.efa(machine(tmp_path / "b", device))) == [("ok", ""), ("failed", "ofi-plugin-missing")]
    plugin = {"opt/x/lib/libnccl-net.so": ""}
    here = machine(tmp_path / "b", plugin, LD_LIBRARY_PATH="/none:/opt/x/lib")
    assert states(network.efa(here)) == [("ok", ""), ("ok", "")]


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("eth", ["eth0", "eth1"]),
        ("=eth0", ["eth0"]),
        ("eth0,lo", ["eth0", "lo"]),
        ("^lo,pod", ["eth0", "eth1"]),
        ("^=eth0", ["eth1", "lo", "pod-id-link0"]),
        ("ib", []),
    ],
)
def test_names_of_interfaces_as_nccl_reads_them(value: str, left: list[str]) -> None:
    assert network.chosen(value, ["eth0", "eth1", "lo", "pod-id-link0"]) == left


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"NCCL_SOCKET_IFNAME": "eth0"}, [("ok", "")]),
        ({"NCCL_SOCKET_IFNAME": "eth7"}, [("failed", "network-interface-wrong")]),
        ({"NCCL_SOCKET_IFNAME": "lo"}, [("failed", "network-interface-wrong")]),
        ({"NCCL_SOCKET_IFNAME": "^lo,docker"}, [("warning", "network-interface-wrong")]),
        ({"GLOO_SOCKET_IFNAME": "^lo"}, [("failed", "network-interface-wrong")]),
        ({}, [("ok", "")]),
    ],
)
def test_interface(environment: dict[str, str], expected: list[tuple[str, str]], tmp_path: Path) -> None:
    interfaces = {f"sys/class/net/{name}/mtu": "9001" for name in ("eth0", "lo", "pod-id-link0")}
    assert states(network.interface(machine(tmp_path, interfaces, **environment))) == expected


def test_names(tmp_path: Path) -> None:
    assert states(network.names(machine(tmp_path, MASTER_ADDR="10.0.0.1"))) == [("skipped", "")]
    assert states(network.names(machine(tmp_path, MASTER_ADDR="localhost"))) == [("ok", "")]
    absent = machine(tmp_path, PET_RDZV_ENDPOINT="sft-0.lingoss.invalid:29400")
    assert states(network.names(absent)) == [("failed", "name-resolution-failed")]


def test_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert states(limits.shared_memory(machine(tmp_path / "none"))) == [("failed", "shared-memory-too-small")]
    here = machine(tmp_path, {"dev/shm/x": "", "dev/nvidia0": ""})

    def sized(total: int, free: int) -> list[tuple[str, str]]:
        figures = os.statvfs_result((4096, 4096, total // 4096, free // 4096, free // 4096, 9, 9, 9, 0, 255))
        monkeypatch.setattr(limits.os, "statvfs", lambda path: figures)
        return states(limits.shared_memory(here))

    assert sized(64 << 20, 64 << 20) == [("failed", "shared-memory-too-small")]
    assert sized(64 << 30, 1 << 20) == [("failed", "shared-memory-too-small")]
    assert sized(64 << 30, 60 << 30) == [("ok", "")]


def test_a_tiny_dev_shm_for_real(tmp_path: Path) -> None:
    command = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=64m none /dev/shm && exec "$@"', "sh"]
    code = "from lingoss.doctor.live import limits, machine; print([c.evidence for c in limits.shared_memory(machine.Machine())])"
    done = subprocess.run([*command, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("mounts are not allowed here")
    assert done.stdout == "['0.06 GiB, 0.06 GiB free']\n", done.stderr


def test_memory(tmp_path: Path) -> None:
    cgroup = "sys/fs/cgroup/memory."

    def limited(top: str, maximum: str, current: int, cache: int, killed: int) -> list[tuple[str, str]]:
        files = {"max": maximum, "current": f"{current}\n", "stat": f"anon 1\ninactive_file {cache}\n"}
        files["events"] = f"oom 4\noom_kill {killed}\n"
        return states(limits.memory(machine(tmp_path / top, {cgroup + name: text for name, text in files.items()})))

    gib = 1 << 30
    assert limited("a", f"{64 * gib}\n", 10 * gib, 0, 0) == [("ok", "")]
    assert limited("b", f"{64 * gib}\n", 63 * gib, 0, 0) == [("warning", "host-out-of-memory")]
    assert limited("c", f"{64 * gib}\n", 63 * gib, 40 * gib, 0) == [("ok", "")]  # cached files are given back
    assert limited("d", "max\n", 63 * gib, 0, 0) == [("ok", "")]
    assert limited("e", f"{64 * gib}\n", gib, 0, 2) == [("failed", "host-out-of-memory")]


def test_limits_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {resource.RLIMIT_NOFILE: (1024, 4096), resource.RLIMIT_MEMLOCK: (65536, 65536)}
    monkeypatch.setattr(limits.resource, "getrlimit", lambda which: values[which])
    here = machine(tmp_path, {"dev/infiniband/uverbs0": ""})
    too_low = "process-limit-too-low"
    assert states(limits.ulimits(here)) == [("warning", too_low), ("failed", too_low)]
    values.update({resource.RLIMIT_NOFILE: (1024, 1 << 20), resource.RLIMIT_MEMLOCK: (-1, -1)})
    assert states(limits.ulimits(here)) == [("ok", ""), ("ok", "")]


def causes_of(root: Path | None) -> dict[str, tuple[str, str]]:
    return {check.name: (check.state, check.cause) for check in volume.volume(root)}


def test_volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume, "LEAST_FREE", 0)
    monkeypatch.setattr(volume, "SLOW", 0.0)
    assert causes_of(None) == {"volume": ("skipped", "")}
    assert causes_of(tmp_path / "absent") == {"volume": ("failed", "volume-mount-failed")}
    assert causes_of(tmp_path) == {"release": ("ok", ""), "room": ("ok", ""), "writing": ("ok", "")}
    (tmp_path / "other" / "runs").mkdir(parents=True)
    assert causes_of(tmp_path)["release"] == ("failed", "volume-of-another-release")
    (tmp_path / "runs").mkdir()
    assert causes_of(tmp_path)["release"] == ("ok", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "runs"]  # nothing of it stays


def test_full_and_slow_volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume, "LEAST_FREE", 1 << 62)
    monkeypatch.setattr(volume, "SLOW", 1e15)
    found = causes_of(tmp_path)
    assert found["room"] == ("warning", "disk-full")
    assert found["writing"] == ("warning", "filesystem-unavailable")


@pytest.mark.parametrize(
    ("mount", "expected"),
    [
        ("mount -t tmpfs -o size=4m none {0}", {"room": "disk-full", "writing": "disk-full"}),
        ("mount --bind {0} {0} && mount -o remount,bind,ro {0}", {"writing": "filesystem-unavailable"}),
    ],
)
def test_volume_with_a_real_fault(mount: str, expected: dict[str, str], tmp_path: Path) -> None:
    script = f'{mount.format(tmp_path)} && exec "$@"'
    asked = [sys.executable, "-m", "lingoss", "doctor", "--root", str(tmp_path), "--json"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *asked],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if not done.stdout:
        pytest.skip(f"mounts are not allowed here: {done.stderr.strip()[:200]}")
    assert done.returncode == 1
    found = {check["name"]: check["cause"] for check in json.loads(done.stdout)["checks"] if check["state"] == "failed"}
    assert {name: found.get(name) for name in expected} == expected


class _Hub(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = self.headers.get("Authorization") in (None, "Bearer hf_good")
        self.send_response(200 if known else 401)
        self.end_headers()
        self.wfile.write(b'{"name": "a-user"}')

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = http.server.HTTPServer(("127.0.0.1", 0), _Hub)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HF_HUB_OFFLINE": "1"}, [("ok", "")]),
        ({"HF_HUB_OFFLINE": "1", "HF_TOKEN": "hf_good"}, [("warning", "")]),
        ({"HF_TOKEN": "hf_good\n"}, [("ok", "")]),
        ({"HF_TOKEN": "hf_secret_bad"}, [("failed", "hub-access-denied")]),
        ({"HF_TOKEN": "hf_secret bad"}, [("failed", "hub-access-denied")]),
        ({}, [("skipped", ""), ("ok", "")]),
        ({"HF_ENDPOINT": "http://127.0.0.1:9"}, [("skipped", ""), ("failed", "hub-unreachable")]),
        ({"HF_ENDPOINT": "file:///etc"}, [("skipped", ""), ("failed", "hub-unreachable")]),
    ],
)
def test_hub(environment: dict[str, str], expected: list[tuple[str, str]], endpoint: str, tmp_path: Path) -> None:
    checks = list(hub.hub(machine(tmp_path, **{"HF_ENDPOINT": endpoint, **environment})))
    assert states(iter(checks)) == expected
    assert "secret" not in "".join(check.evidence + check.remedy.replace("Secret", "") for check in checks)


def test_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = machine(tmp_path)
    assert states(timing.clock(here, None)) == [("skipped", "")]
    assert states(timing.clock(here, tmp_path)) == [("ok", "")]
    now = time.time
    monkeypatch.setattr(timing.time, "time", lambda: now() - 600)
    [check] = timing.clock(here, tmp_path)
    assert (check.state, check.cause) == ("failed", "credentials-rejected")
    assert "600 s behind" in check.evidence


def test_caches_follow_the_variables_of_their_programs(tmp_path: Path) -> None:
    found = {
        cache.name: cache.folder
        for cache in caches.folders({"HOME": "/h", "XDG_CACHE_HOME": "/x", "TRITON_HOME": "/t"})
    }
    assert found["Hugging Face"] == Path("/x/huggingface")
    assert found["Triton"] == Path("/t/.triton/cache")
    assert found["vLLM"] == Path("/x/vllm")
    assert {c.name: c.folder for c in caches.folders({"HOME": "/h"})}["Triton"] == Path("/h/.triton/cache")


def test_cache_that_cannot_be_written_names_its_variable(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    checks = list(programs.writable(machine(tmp_path, HF_HOME=str(file / "hf"), HOME=str(tmp_path))))
    assert [(check.name, check.cause) for check in checks] == [("Hugging Face cache", "path-not-writable")]
    assert "HF_HOME" in checks[0].evidence
    assert not (tmp_path / ".cache").exists()


def test_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "/nowhere/cc")
    with pytest.raises(LingossError, match="/nowhere/cc"):
        compiler.probe()
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LingossError, match="neither CC nor gcc nor clang"):
        compiler.probe()


def test_mxfp4_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"torch": "2.11.0", "triton": "3.6.0"}
    monkeypatch.setattr(programs, "package", lambda name: versions.get(name, ""))
    assert states(programs.mxfp4(machine(tmp_path / "cpu"))) == [("skipped", "")]
    here = machine(tmp_path, {"dev/nvidia0": ""})
    assert states(programs.mxfp4(here)) == [("failed", "mxfp4-kernels-missing")]
    versions["kernels"] = "0.11.0"
    assert states(programs.mxfp4(here)) == [("ok", "")]


def test_everything_at_once_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    start = time.monotonic()
    checks = list(live.checks(tmp_path))
    assert time.monotonic() - start < 30
    assert {check.name for check in checks} >= {
        "driver",
        "EFA",
        "/dev/shm",
        "memory",
        "room",
        "Hub",
        "clock",
        "MXFP4 kernels",
    }
    assert all(check.cause in causes() for check in checks if check.cause)
    assert all(check.evidence for check in checks)
    assert all(check.remedy for check in checks if check.state == "failed")
    code = "import sys; from lingoss.doctor import live; list(live.checks(None)); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_check_that_this_kernel_does_not_allow_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(machine: Machine) -> Iterator[Check]:
        raise PermissionError(13, "Permission denied", "/sys/x")
        yield

    monkeypatch.setattr(limits, "memory", refuse)
    [check] = [check for check in live.checks(None, machine(tmp_path, HF_HUB_OFFLINE="1")) if check.name == "memory"]
    assert check.state == "skipped"
    assert "/sys/x" in check.evidence


LOCK = """\
numpy=={0} \\
    --hash=sha256:00
absent==1.0 ; sys_platform == 'never' \\
    --hash=sha256:00
"""


def test_lock(tmp_path: Path) -> None:
    import numpy

    file = tmp_path / "a.lock"
    file.write_text(LOCK.format(numpy.__version__))
    assert locks.pins([file]) == {"numpy": numpy.__version__}
    assert list(locks.differences(locks.pins([file]))) == []
    assert list(locks.differences({"numpy": "0.1", "not-there": "2"})) == [
        f"numpy is {numpy.__version__}, locked 0.1",
        "not-there 2 is missing",
    ]
    assert list(locks.differences({"numpy": f"{numpy.__version__}+cpu"})) == []
    file.write_text("nothing\n")
    with pytest.raises(LingossError, match="holds no line like"):
        locks.pins([file])
    with pytest.raises(LingossError, match="cannot be read"):
        locks.pins([tmp_path / "none"])


def test_imports_charge_a_crash_to_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "crashes.py").write_text("import os; os._exit(7)")
    (tmp_path / "raises.py").write_text("raise ImportError('libnuma.so.1: cannot open')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    check = image.imports(["json", "crashes", "raises", "csv"])
    assert check.state == "failed"
    assert check.evidence == "crashes: the process ended with 7; raises: ImportError libnuma.so.1: cannot open"
    assert image.imports(["json", "csv"]).state == "ok"


def test_image_without_a_lock_is_refused_and_one_with_faults_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(locks, "baked", list)
    assert main(["doctor", "--image"]) == 2
    assert "share/lingoss" in capsys.readouterr().err
    file = tmp_path / "a.lock"
    file.write_text("numpy==0.1\nvllm==9.9\n")
    for name in (*image.TELEMETRY, "TIKTOKEN_ENCODINGS_BASE"):
        monkeypatch.delenv(name, raising=False)
    assert main(["doctor", "--image", "--lock", str(file), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    failed = {check["name"]: check["cause"] for check in told["checks"] if check["state"] == "failed"}
    assert failed == {
        "versions": "dependency-mismatch",
        "imports": "dependency-mismatch",
        "vocabulary": "vocabulary-download-failed",
        "variables": "hub-unreachable",
    }


def test_every_cause_says_what_to_do() -> None:
    for cause in causes().values():
        assert cause.meaning.endswith("."), cause.name
        assert cause.remedy.endswith("."), cause.name
    assert len(causes()) >= 45


def test_page_is_what_the_causes_say() -> None:
    file = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
    assert file.read_text(encoding="utf-8") == page.page(), "run make docs"
