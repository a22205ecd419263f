# SPDX-License-Identifier: MIT-0
"""`make build-images` and `make push-images`: which builder, which command, what is written, and what is refused."""

import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import bake
import build
import pytest
import yaml

from images.dockerfiles import ROOT
from render import charts

DIGEST = "sha256:" + "ab" * 32
OTHER = "sha256:" + "cd" * 32
# Stands in for a builder on the PATH: notes how it was called, does what was asked of a push, and fails on demand.
PROGRAM = """\
#!{python}
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:], os.environ.get("TAG")]) + "\\n")
words = sys.argv[1:]
if "inspect" in words:
    print("Name: default\\nDriver: {driver}")
if "--digestfile" in words:
    open(words[words.index("--digestfile") + 1], "w").write({digest!r})
if "--metadata-file" in words and "--push" in words:
    with open(words[words.index("--metadata-file") + 1], "w") as file:
        json.dump({{words[-1]: {{"containerimage.digest": {digest!r}}}}}, file)
sys.exit({status})
"""

Builder = Callable[..., None]


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builder:
    """Put a stand-in for a builder onto an otherwise empty PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TAG", raising=False)

    def make(name: str, driver: str = "docker-container", status: int = 0) -> None:
        program = tmp_path / name
        log = str(tmp_path / "log")
        program.write_text(PROGRAM.format(python=sys.executable, log=log, driver=driver, digest=DIGEST, status=status))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    return make


@pytest.fixture
def values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the digests go in a test."""
    (tmp_path / "values").mkdir()
    monkeypatch.setattr(build, "ROOT", tmp_path)
    return tmp_path / "values"


def calls(tmp_path: Path) -> list[list[str]]:
    """How the stand-ins were called, without questions about themselves."""
    rows = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    return [row for row in rows if not {"inspect", "version"} & set(row)]


def test_docker_is_preferred_and_told_everything(builder: Builder, tmp_path: Path) -> None:
    builder("docker")
    builder("buildah")
    flags = ["--image", "toolbox", "--platform", "linux/amd64,linux/arm64", "--flags=--no-cache"]
    assert build.main(["build", "--tag", "7", *flags]) == 0
    (call,) = calls(tmp_path)
    assert call[:4] == ["docker", "buildx", "bake", "--file"]
    assert call[-4:] == ["--load", "--no-cache", "toolbox", "7"]
    assert [call[at + 1] for at, word in enumerate(call) if word == "--set"] == [
        "*.platform=linux/amd64",
        "*.platform=linux/arm64",
    ]


@pytest.mark.parametrize(("driver", "attested"), [("docker-container", True), ("docker", False)])
def test_docker_attests_what_it_pushes_where_it_can(
    builder: Builder, tmp_path: Path, values: Path, capsys: pytest.CaptureFixture[str], driver: str, attested: bool
) -> None:
    builder("docker", driver)
    assert build.main(["push", "--image", "toolbox", "--registry", "r.example/team"]) == 0
    (call,) = calls(tmp_path)
    assert ("*.attest=type=sbom" in call) == attested
    assert ("*.attest=type=provenance,mode=max" in call) == attested
    assert ("makes no SBOM" in capsys.readouterr().err) != attested


@pytest.mark.parametrize(("name", "word"), [("podman", "build"), ("buildah", "bud")])
def test_others_get_the_same_build(builder: Builder, tmp_path: Path, name: str, word: str) -> None:
    builder(name)
    assert build.main(["build", "--image", "openrlhf", "--registry", "r.example/team/", "--tag", "7"]) == 0
    (call,) = calls(tmp_path)
    (target,) = bake.read(build.FILE, {"PREFIX": "r.example/team/", "TAG": "7"}).targets("openrlhf")
    assert call[:2] == [name, word]
    arguments = dict(one.removeprefix("--build-arg=").split("=", 1) for one in call if one.startswith("--build-arg="))
    assert int(arguments.pop("FRESH")) > 0  # so that stages which others mount are never taken from its cache
    assert {**arguments, "REVISION": "unknown"} == target.args
    assert "--tag=r.example/team/lingoss/openrlhf:7" in call
    assert call[call.index("--target") + 1] == "openrlhf"
    assert call[call.index("--file") + 1] == str(ROOT / "images" / "openrlhf" / "Dockerfile")
    assert call[call.index("--format") + 1] == "docker"
    assert call[-2] == str(ROOT)


@pytest.mark.parametrize("name", ["docker", "buildah"])
def test_pushed_digests_are_what_the_chart_runs(builder: Builder, values: Path, name: str) -> None:
    builder(name)
    (values / "images.yaml").write_text(
        "# by hand\n" + json.dumps({"global": {"images": {"openrlhf": {"tag": "kept", "digest": OTHER}}}})
    )
    assert build.main(["push", "--registry", "localhost:5000/team", "--tag", "7"]) == 0
    found = yaml.safe_load((values / "images.yaml").read_text())["global"]["images"]
    entry = {"registry": "localhost:5000/team", "tag": "7", "digest": DIGEST}
    assert found == {
        "openrlhf": {"tag": "kept", "digest": OTHER},
        "toolbox": {**entry, "repository": "lingoss/toolbox"},
        "trainer": {**entry, "repository": "lingoss/trainer"},
    }
    rendered = charts.text("g6e-12xlarge", {"global.stage": "sft", "global.images": found})
    assert f"image: localhost:5000/team/lingoss/trainer:7@{DIGEST}" in rendered


def test_without_gpus_one_image_stands_for_all(builder: Builder, values: Path) -> None:
    builder("buildah")
    assert build.main(["push", "--image", "toolbox-train", "--registry", "r.example", "--tag", "7"]) == 0
    assert not (values / "images.yaml").exists()
    found = yaml.safe_load((values / "images-local-cpu.yaml").read_text())["global"]["images"]
    rendered = charts.text("local-cpu", {"global.stage": "prepare", "global.images": found})
    images = {line.split("image: ")[1] for line in rendered.splitlines() if "image: " in line}
    assert images == {f"r.example/lingoss/toolbox-train:7@{DIGEST}"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "--image", "toolbx"], "there is no image toolbx: known are toolbox, toolbox-train, trainer"),
        (["build", "--image", "trainer", "--platform", "linux/arm64"], "trainer is locked for linux/amd64 alone"),
        (["build", "--image", "toolbox", "--platform", "linux/amd64,linux/arm64"], "buildah builds one platform at a"),
        (["push", "--image", "toolbox"], "a push needs a registry: REGISTRY="),
    ],
)
def test_refusals(
    builder: Builder, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    builder("buildah")
    assert build.main(arguments) == 2
    told = capsys.readouterr().err
    assert message in told
    assert not (tmp_path / "log").exists()


def test_nothing_to_build_with(builder: Builder, capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["build"]) == 2
    reasons = "docker is not installed; podman is not installed; buildah is not installed"
    assert f"nothing here can build images: {reasons}. Install docker with buildx" in capsys.readouterr().err
    builder("docker", status=1)
    assert build.main(["build"]) == 2
    assert "docker has no buildx; podman" in capsys.readouterr().err


def test_a_failed_build_pushes_nothing(
    builder: Builder, tmp_path: Path, values: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder("podman", status=3)
    assert build.main(["push", "--registry", "r.example"]) == 1
    assert [call[1] for call in calls(tmp_path)] == ["build"]
    assert not list(values.iterdir())
    assert "toolbox failed with status 3 after" in capsys.readouterr().err
