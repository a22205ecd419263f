# SPDX-License-Identifier: MIT-0
"""Loading: file, then --set; every refusal is one line with place, key, value, what is allowed and what was meant."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lingoss import config
from lingoss.errors import LingossError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sft.yaml"


def refusal(stage: str, path: Path | None = None, *sets: str) -> str:
    with pytest.raises(LingossError) as caught:
        config.load(stage, path, sets)
    told = str(caught.value)
    assert "\n" not in told
    return told


def test_defaults_then_file_then_sets(file: Path) -> None:
    file.write_text("stage: sft\nseed: 7\nlora: {rank: 4, alpha: 8}\noptimizer:\n  learning_rate: 1e-4\n")
    found = config.load(
        "sft", file, ["lora.rank=32", "data.languages=[no, en]", "data.languages=[fr, de]", "max_steps=1e+02"]
    )
    assert found.seed == 7
    assert (found.lora.rank, found.lora.alpha, found.lora.dropout) == (32, 8.0, 0.0)
    assert found.optimizer.learning_rate == 1e-4
    assert found.data.languages == ("fr", "de")
    assert (found.max_steps, found.epochs) == (100, None)


@pytest.mark.parametrize(
    ("setting", "field", "expected"),
    [
        ("run=2", "run", "2"),
        ("run='007'", "run", "007"),
        ("parent=latest:prepare", "parent", "latest:prepare"),
        ("threads=null", "threads", None),
        ("threads=", "threads", None),
        ("gradient_checkpointing=true", "gradient_checkpointing", True),
        ("lock_wait=0", "lock_wait", 0.0),
        ("root=/mnt/a=b", "root", Path("/mnt/a=b")),
        (" seed = 3 ", "seed", 3),
    ],
)
def test_set_values_are_typed(setting: str, field: str, expected: object) -> None:
    assert getattr(config.load("sft", None, [setting]), field) == expected


def test_sets_reach_sections_that_the_file_leaves_empty(file: Path) -> None:
    file.write_text("lora:\n")
    assert config.load("sft", file, ["lora.rank=3"]).lora.rank == 3


def test_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert config.load("sft", None, ["root=~/runs"]).root == Path("/home/somebody/runs")


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("lora.rnak=3", "--set lora.rnak=3: unknown key lora.rnak; nearest known key: lora.rank"),
        ("learning_rate=1e-4", "unknown key learning_rate; nearest known key: optimizer.learning_rate"),
        ("loging.log_steps=3", "unknown key loging; nearest known key: logging"),
        ("data.sed=3", "nearest known key: seed"),
        ("lora.qqqqqq=1", "unknown key lora.qqqqqq; known here: rank, alpha, dropout, target_modules, experts"),
        ("num_generations=3", "num_generations is not a key of stage sft, but of stage grpo: remove it"),
        ("rollout.mode=server", "rollout is not a key of stage sft, but of stage grpo"),
        (
            "optimizer.schedule=linaer",
            "optimizer.schedule = linaer: must be one of 'linear', 'cosine' or 'constant'; nearest: linear",
        ),
        ("lora.rank=x", "--set lora.rank=x: lora.rank = x: must be a whole number"),
        ("lora.rank='3'", "must be a whole number"),
        ("lora.rank=true", "lora.rank = true: must be a whole number"),
        ("lora.rank=1.5", "lora.rank = 1.5: must be a whole number"),
        ("lora.rank=0", "lora.rank = 0: must be >= 1"),
        ("lora.rank.x=3", "--set lora.rank.x=3: lora.rank = a mapping: must be a whole number"),
        ("optimizer.learning_rate=.nan", "optimizer.learning_rate = .nan: must be a number"),
        ("optimizer.learning_rate=true", "must be a number"),
        ("optimizer.learning_rate=-1e-4", "optimizer.learning_rate = -0.0001: must be > 0"),
        (
            "gradient_checkpointing=yes",
            "gradient_checkpointing = yes: must be true or false (yes is a word in YAML 1.2)",
        ),
        ("gradient_checkpointing=1", "must be true or false"),
        ("data.languages=en", "data.languages = en: must be a list, as in [a, b]"),
        ("data.languages=[]", "data.languages = []: must hold at least one item"),
        ("data.languages=[en, fr, en]", "data.languages = [en, fr, en]: holds 'en' twice"),
        ("lora=3", "lora = 3: must be a section with keys of its own"),
        ("root=", "root = null: must be a path"),
        ("root=3", "root = 3: must be a path"),
        ("run=true", "run = true: must be text"),
        ("parent=[a]", "parent = [a]: must be text"),
        ("seed=010", "octal"),
        ("seed=[1", "--set seed=[1"),
        ("seed", "write --set key.path=value"),
        ("=3", "write --set key.path=value"),
        ("lora..rank=3", "write --set key.path=value"),
        ("format=thnik", "format = thnik: 'thnik' is no chat format: known are harmony, plain, think; nearest: think"),
        ("template=chatlm", "nearest: chatml"),
    ],
)
def test_refused_settings(setting: str, told: str) -> None:
    assert told in refusal("sft", None, setting)


def test_unknown_language_is_refused_by_the_registry() -> None:
    told = refusal("sft", None, "data.languages=[en, klingon]")
    assert told.startswith("--set data.languages=[en, klingon]: data.languages.1 = klingon: ")


def test_place_is_file_and_line(file: Path) -> None:
    file.write_text("seed: 1\nlora:\n  rnak: 3\n  alpha: much\n")
    told = refusal("sft", file)
    assert f"{file} line 3: unknown key lora.rnak; nearest known key: lora.rank" in told
    assert f"{file} line 4: lora.alpha = much: must be a number" in told


def test_a_set_that_replaces_a_line_takes_its_place(file: Path) -> None:
    file.write_text("lora:\n  rank: 3\n")
    assert refusal("sft", file, "lora={rank: no}") == "--set lora={rank: no}: lora.rank = no: must be a whole number"


def test_a_rule_over_several_keys_names_file_and_sets(file: Path) -> None:
    file.write_text("global_batch: 10\n")
    assert refusal("sft", file).startswith(f"{file}: global_batch=10 is not a multiple of per_device_batch=4")
    assert refusal("sft", file, "seed=1").startswith(f"{file} with --set: global_batch=10")


def test_only_the_first_complaints_are_told(file: Path) -> None:
    file.write_text("".join(f"other{number}: 1\n" for number in range(300)))
    told = refusal("sft", file)
    assert told.endswith("; and 295 more")
    assert len(told) < 4000


def test_dotted_keys_in_a_file(file: Path) -> None:
    file.write_text("lora.rank: 3\n")
    assert "nest it, as in `lora: {rank: ...}`" in refusal("sft", file)


def test_a_key_below_a_list(file: Path) -> None:
    file.write_text("data: {languages: [en]}\n")
    assert "data.languages has no keys below it, it is a list" in refusal("sft", file, "data.languages.0=fr")


def test_another_stages_config(file: Path) -> None:
    file.write_text("stage: grpo\nseed: 1\n")
    assert f"{file} line 1: this config is for stage grpo, not sft: run `lingoss grpo` with it" in refusal("sft", file)
    file.write_text("stage: [x]\n")
    assert "this config is for stage [x], not sft" in refusal("sft", file)
    file.write_text(config.dump(config.GrpoConfig()))
    assert config.load("grpo", file) == config.GrpoConfig()


def test_unknown_stage() -> None:
    assert "unknown stage stf: stages are prepare, sft, grpo, evaluate, serve; nearest: sft" in refusal("stf")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "holds no settings: write {}"),
        (b"# only a comment\n", "holds no settings"),
        (b"\xef\xbb\xbf", "holds no settings"),
        (b"- a\n- b\n", "must be a mapping (lines of `key: value`), but it is a list"),
        (b"sft\n", "but it is only sft"),
        (b"\0\1\2", "binary file"),
        (b"\xff\xfe\0", "UTF-16"),
        (b"seed: \xe9\n", "not UTF-8"),
        (b"seed: 1\nseed: 2\n", "line 2: key 'seed' is written twice"),
        (b'parent: "\\ud800"\n', "holds a lone surrogate"),
        (b'root: "a\\0b"\n', "holds a NUL character"),
        (b"? {a: 1}\n: 2\n", "a key must be a word"),
        (b"x" * 10_000_000, "more than 256 KiB"),
    ],
)
def test_bad_files(file: Path, content: bytes, told: str) -> None:
    file.write_bytes(content)
    assert told in refusal("sft", file)


def test_bom_and_crlf(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfseed: 3\r\nlora:\r\n  rank: 2\r\n")
    found = config.load("sft", file)
    assert (found.seed, found.lora.rank) == (3, 2)


def test_empty_mapping_means_defaults(file: Path) -> None:
    file.write_text("{}\n")
    assert config.load("sft", file) == config.SftConfig()


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    assert refusal("sft", tmp_path) == f"{tmp_path}: is a folder: name the YAML file in it"
    assert "cannot be read (No such file or directory)" in refusal("sft", tmp_path / "none.yaml")
    assert "cannot be read" in refusal("sft", tmp_path / "a\0b")
    assert "more than 256 KiB" in refusal("sft", Path("/dev/zero"))


def told_of(*sets: str) -> str:
    """The refusal of some settings; empty when they are fine. Any other error passes through."""
    try:
        config.load("sft", None, sets)
    except LingossError as error:
        return str(error)
    return ""


@given(st.lists(st.text(max_size=30), max_size=3))
def test_no_setting_ends_in_another_error(sets: list[str]) -> None:
    told = told_of(*sets)
    assert "\n" not in told
    told.encode()


@given(st.sampled_from(["lora", "data.languages", "seed", "root", "a.b"]), st.text(max_size=20))
def test_no_value_ends_in_another_error(key: str, text: str) -> None:
    told = told_of(f"{key}={text}")
    assert "\n" not in told
    told.encode()
