# SPDX-License-Identifier: MIT-0
"""The bake file: read by our own reader as docker's would, and in agreement with the Dockerfiles and the chart."""

import dataclasses
import json
import string
from pathlib import Path

import bake
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from images.dockerfiles import FILES, IMAGES, ROOT, defaults, stages

FILE = IMAGES / "docker-bake.hcl"
ALL = ["toolbox", "toolbox-train", "trainer", "openrlhf"]


def read(**environment: str) -> bake.Bake:
    return bake.read(FILE, environment)


def test_groups() -> None:
    assert [one.name for one in read().targets("all")] == ALL
    assert [one.name for one in read().targets("default")] == ["toolbox", "trainer"]


def test_the_environment_wins_over_defaults() -> None:
    (target,) = read(PREFIX="registry/team/", TAG="7", PYTHON_BASE="mine:1").targets("toolbox-train")
    assert target.tags == ["registry/team/lingoss/toolbox-train:7"]
    assert (target.target, target.dockerfile) == ("toolbox-train", "images/toolbox/Dockerfile")
    assert target.args == {"BASE": "mine:1", "VERSION": "7", "REVISION": "unknown"}


def test_buildx_reads_the_same() -> None:
    """buildx.json is what Docker's buildx 0.29.1 made of the file: `docker buildx bake -f FILE --print all`, its "target".

    The variables stand in its environment, so that a new pin changes nothing here.
    """
    environment = {"PREFIX": "r/", "TAG": "7", "REVISION": "v", "PYTHON_BASE": "p:1", "CUDA_BASE": "c:1"}
    environment |= {"CUDA_COMPILER": "d:1", "EFA": "2", "EFA_SHA256": "s", "NETWORK": "system"}
    expected = json.loads((Path(__file__).parent / "buildx.json").read_text(encoding="utf-8"))
    ours = {one.name: dataclasses.asdict(one) for one in bake.read(FILE, environment).targets("all")}
    assert {name: {key: one[key] for key in one if key != "name"} for name, one in ours.items()} == expected
    assert set(environment) == set(read().variables)


def test_arguments_are_inherited_one_by_one() -> None:
    (trainer,), (openrlhf,) = read().targets("trainer"), read().targets("openrlhf")
    assert openrlhf.args == trainer.args | {"COMPILER": read().variables["CUDA_COMPILER"]}


@pytest.mark.parametrize("name", ALL)
def test_dockerfile_knows_target_and_arguments(name: str) -> None:
    (target,) = read().targets(name)
    file = ROOT / target.dockerfile
    assert target.target in stages(file)
    assert set(target.args) <= set(defaults(file))


@pytest.mark.parametrize("name", ALL)
def test_pins_are_those_of_the_dockerfile(name: str) -> None:
    (target,) = read().targets(name)
    own = defaults(ROOT / target.dockerfile)
    for argument in ("BASE", "COMPILER", "NETWORK", "EFA"):
        if argument in target.args:
            # `make lock-images` adds a digest here, which a Dockerfile does without.
            assert target.args[argument].partition("@")[0] == own[argument], argument


def test_every_dockerfile_is_built_and_every_argument_set() -> None:
    targets = read().targets("all")
    assert {ROOT / one.dockerfile for one in targets} == set(FILES)
    for one in targets:
        inner = {"FRESH", "SSL_CERT_FILE", "UV_NO_CACHE", "UV_PYTHON", "MAX_JOBS"}
        assert set(defaults(ROOT / one.dockerfile)) - set(one.args) <= inner


def test_chart_asks_for_what_is_built() -> None:
    values = yaml.safe_load((ROOT / "charts" / "lingoss" / "values.yaml").read_text(encoding="utf-8"))
    chart = yaml.safe_load((ROOT / "charts" / "lingoss" / "Chart.yaml").read_text(encoding="utf-8"))
    local = yaml.safe_load((ROOT / "values" / "local-cpu.yaml").read_text(encoding="utf-8"))
    built = {one.tags[0] for one in read().targets("all")}
    asked = {image["repository"] for image in values["global"]["images"].values()}
    asked |= {image["repository"] for image in local["global"]["images"].values()}
    assert {f"{repository}:{chart['appVersion']}" for repository in asked} == built


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("function f {}", "a text in quotes was expected"),
        ('matrix "a" {}', "block matrix is unknown"),
        ('target "a" { context = "." ', "a block does not end"),
        ('target "a" { context "." }', "context must be followed by ="),
        ('target "a" { tags = ["${NONE}"] }', "variable NONE is not defined above its use"),
        ('variable "A" { default = 1 }', "line 1 cannot be read"),
        ('target "a" [', "a block must begin with {"),
    ],
)
def test_what_it_does_not_know_is_refused(text: str, message: str) -> None:
    with pytest.raises(bake.BakeError, match=message.replace("{", r"\{")):
        bake.Bake(text, {})


def test_a_target_that_lacks_something_is_refused() -> None:
    with pytest.raises(bake.BakeError, match="target a: dockerfile is not there, or no str"):
        bake.Bake('target "a" { context = "." }', {}).targets("a")
    with pytest.raises(bake.BakeError, match="there is no image b: known are a"):
        bake.Bake('target "a" { context = "." }', {}).targets("b")


NAMES = st.text(string.ascii_letters, min_size=1, max_size=6)
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="$"), max_size=12)


@given(
    variables=st.dictionaries(NAMES, TEXTS, max_size=3),
    args=st.dictionaries(NAMES, TEXTS, max_size=3),
    tags=st.lists(TEXTS, max_size=3),
)
def test_what_is_written_is_read(variables: dict[str, str], args: dict[str, str], tags: list[str]) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    lines = [f'variable "{name}" {{ default = {quoted(value)} }} # {name} }}' for name, value in variables.items()]
    pairs = "\n".join(f"{name} = {quoted(value)}" for name, value in args.items())
    every = ", ".join([*map(quoted, tags), *(f'"<${{{name}}}>"' for name in variables)])
    lines.append('target "t" { context = "." dockerfile = "d" target = "s" platforms = []')
    lines.append(f"args = {{ {pairs} }}\ntags = [{every}] }}")
    found = bake.Bake("\n".join(lines), {})
    (target,) = found.targets("t")
    assert found.variables == variables
    assert target == bake.Target("t", ".", "d", "s", tags + [f"<{v}>" for v in variables.values()], [], args)


def test_no_file_of_a_build_is_left_out_of_its_context() -> None:
    """.dockerignore lets in what the Dockerfiles copy, and nothing that may hold secrets or weighs gigabytes."""
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert not {".venv", "runs", "demo", ".git", "values"} & set(allowed)
    for file in FILES:
        for stage in stages(file).values():
            for rest in stage.all("COPY"):
                for source in [part for part in rest.split() if not part.startswith("--")][:-1]:
                    if "--from" not in rest:
                        assert (ROOT / source).exists(), source
                        assert any(Path(source).is_relative_to(one) for one in allowed), source
