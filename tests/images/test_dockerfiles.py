# SPDX-License-Identifier: MIT-0
"""What every image must keep to, read from the Dockerfiles; hadolint is part of `make lint`."""

import importlib
import re
import runpy
from pathlib import Path

import pick
import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.dockerfiles import FILES, IMAGES, Stage, defaults, instructions, stages
from lingoss import languages
from lingoss.detect.words import WORDFREQ_CODES

FINAL = {"toolbox": ["toolbox", "toolbox-train"], "trainer": ["trainer"], "openrlhf": ["openrlhf"]}
LAST = [(file, name) for file in FILES for name in FINAL[file.parent.name]]
GPU = [file for file in FILES if file.parent.name != "toolbox"]


def chain(file: Path, name: str) -> list[Stage]:
    """A stage and all that it starts from, the base last; ${NETWORK} is followed."""
    found = stages(file)
    made = [found[name]]
    while True:
        start = re.sub(r"\$\{(\w+)\}", lambda match: defaults(file)[match[1]], made[-1].start)
        if start not in found:
            return made
        made.append(found[start])


def environment(file: Path, name: str) -> dict[str, str]:
    """The variables of an image."""
    pairs = [pair for stage in reversed(chain(file, name)) for rest in stage.all("ENV") for pair in rest.split()]
    return dict(pair.split("=", 1) for pair in pairs)


@pytest.mark.parametrize(("file", "name"), LAST)
def test_an_image_ends_as_its_user_in_its_own_check(file: Path, name: str) -> None:
    words = [(word, rest) for word, rest in stages(file)[name].instructions if word not in ("ARG", "LABEL")]
    assert words[-3:] == [
        ("USER", "1000:1000"),
        ("WORKDIR", "/tmp"),
        ("RUN", "lingoss doctor --image && find /tmp -mindepth 1 -delete"),
    ]
    assert words[0] == ("COPY", "--from=package /opt/lingoss /opt/lingoss")  # our code is the last layer


@pytest.mark.parametrize(("file", "name"), LAST)
def test_all_caches_lie_in_the_one_writable_folder(file: Path, name: str) -> None:
    found = environment(file, name)
    folders = ("HOME", "XDG_CACHE_HOME", "LINGOSS_CACHE", "HF_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    assert all(found[variable] == "/tmp" or found[variable].startswith("/tmp/") for variable in folders)
    assert found["PYTHONDONTWRITEBYTECODE"] == "1"
    assert {found[variable] for variable in ("HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK", "VLLM_NO_USAGE_STATS")} == {
        "1"
    }
    offline = {found.get("HF_HUB_OFFLINE"), found.get("TRANSFORMERS_OFFLINE")}
    assert offline == ({"1"} if file in GPU else {None})  # prepare's download runs in the toolbox


@pytest.mark.parametrize(("file", "name"), LAST)
def test_labels_say_what_it_is(file: Path, name: str) -> None:
    text = " ".join(stages(file)[name].all("LABEL"))
    assert f'image.title="lingoss {name}"' in text
    assert 'image.licenses="MIT-0"' in text
    assert 'image.version="${VERSION}"' in text
    assert 'image.revision="${REVISION}"' in text


@pytest.mark.parametrize(("file", "name"), LAST)
def test_no_secret_and_no_tool_of_the_build_stays(file: Path, name: str) -> None:
    for stage in chain(file, name):
        for rest in stage.all("COPY"):
            assert "/tools" not in rest
        for rest in [*stage.all("ENV"), *stage.all("ARG")]:
            assert not re.search(r"TOKEN|PASSWORD|SECRET|_KEY", rest.replace("TIKTOKEN", ""))


def test_shared_stages_are_the_same_everywhere() -> None:
    found = [stages(file) for file in FILES]
    for name in ("vocabulary", "package"):
        assert len({str(one[name].instructions) for one in found}) == 1, name
    assert {str(one["tools"].instructions).replace(" images/pick.py", "") for one in found} == {
        str(stages(IMAGES / "toolbox" / "Dockerfile")["tools"].instructions)
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_everything_that_is_installed_was_checked(file: Path) -> None:
    """By hash from a lock, or offline from what was; bases by a tag that is no alias; nothing fetched by ADD."""
    seen = 0
    for word, rest in instructions(file):
        assert word != "ADD"
        for command in re.findall(r"(?:uv pip|bin/pip) (?:install|wheel) .*?(?=&&|$)", rest):
            seen += 1
            checked = "--require-hashes" in command and "--no-deps" in command
            assert checked or ("--offline" in command and ".whl" in command), command
    assert seen >= 4
    for name in ("BASE", "COMPILER"):
        if base := defaults(file).get(name):
            tag = base.partition("@")[0].rpartition(":")[2]
            assert re.match(r"\d+\.\d+\.\d+-", tag), base


def test_trimming_keeps_the_word_lists_of_all_languages() -> None:
    import wordfreq

    text = (IMAGES / "toolbox" / "trim.sh").read_text(encoding="utf-8")
    kept = set(re.findall(r"large_(\w+)\.\*", text))
    known = {WORDFREQ_CODES.get(code, code) for code in languages.builtin()}
    assert kept == known & set(wordfreq.available_languages("large"))


def test_what_is_warmed_is_what_there_is() -> None:
    modules = runpy.run_path(str(IMAGES / "toolbox" / "warm.py"))["MODULES"]
    assert {"statsmodels.stats.proportion", "pyarrow.parquet", "math_verify"} <= set(modules)
    for module in modules:
        assert importlib.import_module(module).__name__ == module


@pytest.mark.parametrize("file", GPU, ids=lambda file: file.parent.name)
def test_layers_take_each_pin_once(file: Path) -> None:
    """The patterns of the layers divide the lock: no pin in two of them, and each takes some."""
    lock = (file.parent / "requirements.lock").read_text(encoding="utf-8")
    dependencies = " ".join(stages(file)["dependencies"].all("RUN"))
    patterns = re.findall(r"pick\.py requirements\.lock '([^']+)'", dependencies)
    assert len(patterns) == 3
    taken = [match[1] for one in patterns for match in pick.PIN.finditer(pick.pick(lock, one))]
    assert len(taken) == len(set(taken))
    assert {"torch", "triton", "vllm", "ray", "nvidia-cublas", "nvidia-nccl-cu13"} <= set(taken)
    (sources,) = re.findall(
        r"pick\.py (?:/locks/)?requirements\.lock '([^']+)' >", " ".join(stages(file)["sources"].all("RUN"))
    )
    assert not set(taken) & set(sources.split("|"))
    assert len(pick.PIN.findall(pick.pick(lock, sources))) == len(sources.split("|"))


PINS = st.lists(
    st.tuples(st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True), st.integers(1, 3)), unique_by=lambda p: p[0]
)


@given(PINS, st.data())
def test_pick_takes_whole_pins(pins: list[tuple[str, int]], data: st.DataObject) -> None:
    blocks = {
        n: f"{n}==1.0 \\\n" + " \\\n".join(f"    --hash=sha256:{at:064x}" for at in range(k)) + "\n" for n, k in pins
    }
    lock = "# a lock\n" + "".join(blocks.values())
    assert [match[0] for match in pick.PIN.finditer(lock)] == list(blocks.values())
    if blocks:
        name = data.draw(st.sampled_from(sorted(blocks)))
        assert pick.pick(lock, re.escape(name)) == blocks[name]
    with pytest.raises(ValueError, match="no pin is called"):
        pick.pick(lock, "NONE")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_nothing_is_mounted_over_what_an_image_must_have(file: Path) -> None:
    """buildah takes a mount's folder out of the image afterwards, and a user who is not root cannot make /tmp again."""
    mounts = re.findall(r"--mount=\S*?target=([^,\s]+)", file.read_text(encoding="utf-8"))
    assert mounts
    assert not {"/tmp", "/var/tmp", "/run"} & {mount.rstrip("/") for mount in mounts}
