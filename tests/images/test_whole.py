# SPDX-License-Identifier: MIT-0
"""What takes minutes and gigabytes: the toolbox built and run, and the trainer's set installed whole. Not part of CI.

python -m pytest -c tests/pytest.ini --rootdir tests tests/images -m full
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import images
from images.dockerfiles import IMAGES, ROOT

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
UV = ROOT / ".venv" / "bin" / "uv"
SILENT = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
# What a set that lingoss was not developed with could break: parsers, grading, detection, rewards, statistics.
TESTS = ("test_transcript_*.py", "test_grade_*.py", "test_detect_cases.py", "test_rewards.py", "test_statistics.py")


def run(*command: str | Path, **variables: str) -> str:
    """Standard output; the end of both streams when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


def buildah(*arguments: str) -> str:
    """What buildah prints, on the harness's store."""
    return run(*images._command(), *arguments)


@pytest.fixture(scope="module")
def toolbox() -> Iterator[str]:
    """A container of the toolbox, built on this machine's base."""
    archive = images.toolbox(images.TOOLBOX)
    assert archive.stat().st_size < 600_000_000  # layers are not compressed in it
    name = buildah("from", f"docker-archive:{archive}").strip()
    yield name
    buildah("rm", name)


def test_toolbox_starts_within_a_second_and_writes_nothing(toolbox: str) -> None:
    inside = ("run", "--isolation", "chroot", "--user", "1000:1000", toolbox, "--")
    seconds = []
    for _ in range(3):
        start = time.monotonic()
        assert "first steps" in buildah(*inside, "lingoss", "--help")
        seconds.append(time.monotonic() - start)
    assert min(seconds) < 1
    probe = "for place in / /etc /opt/lingoss; do test -w $place && echo $place; done; id -un; command -v pip gcc; true"
    assert buildah(*inside, "sh", "-c", probe).split() == ["lingoss"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The trainer image's environment, made by the commands of its Dockerfile: 8 GB, hard-linked to uv's cache."""
    place = tmp_path_factory.mktemp("trainer")
    found = subprocess.run([UV, "python", "find", "3.12"], capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("no Python 3.12 here")
    run(found.stdout.strip(), "-m", "venv", place / "tools")
    pip = place / "tools" / "bin" / "pip"
    hashed = ("--quiet", "--no-deps", "--require-hashes")
    run(pip, "install", *hashed, "-r", ROOT / "trainer/bootstrap.lock", "-r", IMAGES / "build.lock")
    lock = IMAGES / "trainer" / "requirements.lock"
    names = "antlr4-python3-runtime|hyperpod-elastic-agent"
    (place / "sources.lock").write_text(run("python3", IMAGES / "pick.py", lock, names), encoding="utf-8")
    run(pip, "wheel", *hashed, "--no-build-isolation", "-r", place / "sources.lock", "--wheel-dir", place / "wheels")
    run(found.stdout.strip(), "-m", "venv", "--without-pip", place / "env")
    python = place / "env" / "bin" / "python"
    install = (UV, "pip", "install", "--quiet", "--python", python, "--no-deps")
    run(*install, "--offline", *(place / "wheels").glob("*.whl"), UV_LINK_MODE="hardlink")
    run(*install, "--only-binary", ":all:", "--require-hashes", "--requirements", lock, UV_LINK_MODE="hardlink")
    run(UV, "pip", "check", "--python", python)
    yield place
    shutil.rmtree(place)


def test_trainer_set_imports_and_reads_as_it_should(environment: Path) -> None:
    python, source = environment / "env" / "bin" / "python", str(ROOT / "trainer" / "src")
    vocabulary = run(
        ROOT / ".venv/bin/python", "-c", "import os, sys; from pathlib import Path; from lingoss import vocab; "
        "print(vocab.o200k(Path(sys.argv[1])).parent)", environment,
    ).strip()  # fmt: skip
    variables = {
        **SILENT,
        **OFFLINE,
        "PYTHONPATH": source,
        "TIKTOKEN_ENCODINGS_BASE": vocabulary,
        "OMP_NUM_THREADS": "1",
    }
    lock = IMAGES / "trainer" / "requirements.lock"
    told = run(python, "-m", "lingoss", "doctor", "--image", "--lock", lock, **variables)
    assert told.splitlines()[-1] == "8 ok"
    run(
        UV,
        "pip",
        "install",
        "--quiet",
        "--python",
        python,
        "--target",
        environment / "pytest",
        "pytest",
        "hypothesis",
        "pytest-timeout",
    )
    variables["PYTHONPATH"] = f"{source}:{environment / 'pytest'}"
    files = [str(file) for pattern in TESTS for file in sorted((ROOT / "trainer" / "tests").glob(pattern))]
    told = run(python, "-m", "pytest", "-q", "-c", ROOT / "trainer/pyproject.toml", *files, **variables)
    assert " passed" in told.splitlines()[-1]
