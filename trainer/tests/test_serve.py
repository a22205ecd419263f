# SPDX-License-Identifier: MIT-0
"""Stage serve: which run it takes, and the exact command that it becomes."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import vllm_at
from lingoss import runs, serve
from lingoss.cli import main
from lingoss.config import ServeConfig, stage_type
from lingoss.data import chat
from lingoss.errors import LingossError


def finished(root: Path, stage: str, *parents: str, label: str = "1", **more: Any) -> str:
    """The name of a finished run with a small adapter (or, with `files`, with those files in their places)."""
    values = {"root": root, "run": label, **more.get("config", {})}
    config = stage_type(stage).model_validate(values)
    adapter = {"adapter/adapter_config.json": json.dumps({"r": 16}), "adapter/adapter_model.safetensors": "x"}
    files = more.get("files", adapter if stage in ("sft", "grpo") else {})
    with runs.open_run(root, stage, config, parents) as folder:
        for name, text in files.items():
            (folder.path / name).parent.mkdir(parents=True, exist_ok=True)
            (folder.path / name).write_text(text)
        folder.status("running", total=1)
        folder.finish(1, **more.get("extra", {}))
    return folder.name


@pytest.fixture
def base(tmp_path: Path) -> str:
    """The name of a finished prepare run."""
    (tmp_path / "models" / "tiny-0123").mkdir(parents=True)
    model = {"path": "models/tiny-0123", "digest": "0" * 64, "hub_id": "owner/tiny", "revision": None}
    return finished(tmp_path, "prepare", extra={"prepared": {"model": model, "prompts": {}, "datasets": {}}})


def judged(root: Path, candidate: str, current: str, decision: str, label: str = "1") -> None:
    """An evaluation that compared the two."""
    verdict = {"decision": decision, "failed": [], "metrics": {}, "runs": [candidate, current]}
    finished(root, "evaluate", candidate, current, label=label, files={"accept.json": json.dumps(verdict)})


def chosen(root: Path, **settings: Any) -> str:
    return serve.choose(ServeConfig(root=root, **settings)).run.name


def test_auto_takes_the_newest_sft_run(base: str, tmp_path: Path) -> None:
    finished(tmp_path, "sft", base)
    newest = finished(tmp_path, "sft", base, label="2")
    assert chosen(tmp_path) == newest


def test_auto_takes_a_grpo_run_once_it_is_accepted(base: str, tmp_path: Path) -> None:
    sft = finished(tmp_path, "sft", base)
    first = finished(tmp_path, "grpo", sft)
    config = ServeConfig(root=tmp_path)
    assert chosen(tmp_path) == sft
    assert serve.choose(config).why == f"the newest SFT run; {first} is not evaluated yet (`lingoss evaluate`)"
    judged(tmp_path, first, sft, "accept")
    assert (chosen(tmp_path), serve.choose(config).why) == (first, "the newest accepted GRPO run")
    second = finished(tmp_path, "grpo", sft, label="2")
    judged(tmp_path, second, sft, "keep", label="2")
    assert chosen(tmp_path) == first
    judged(tmp_path, first, sft, "keep", label="3")  # the last word counts
    assert (chosen(tmp_path), serve.choose(config).why) == (
        sft,
        f"the newest SFT run; {second} is kept out by evaluation",
    )
    judged(tmp_path, second, sft, "accept", label="4")
    assert chosen(tmp_path) == second


def test_parent_names_any_run(base: str, tmp_path: Path) -> None:
    sft = finished(tmp_path, "sft", base)
    grpo = finished(tmp_path, "grpo", sft)
    assert [chosen(tmp_path, parent=one) for one in (sft, grpo, "latest:grpo", base)] == [sft, grpo, grpo, base]


def test_the_command_for_an_adapter(base: str, tmp_path: Path) -> None:
    sft = finished(tmp_path, "sft", base, config={"template": "chatml", "format": "think"})
    config = ServeConfig(
        root=tmp_path, host="0.0.0.0", port=8080, max_model_len=4096, tensor_parallel=4, vllm_args=["--enforce-eager"]
    )
    assert serve.command(config, serve.choose(config)) == [
        "vllm",
        "serve",
        str(tmp_path / "models" / "tiny-0123"),
        "--host",
        "0.0.0.0",
        "--port",
        "8080",
        "--served-model-name",
        "owner/tiny",
        "--enable-lora",
        "--lora-modules",
        json.dumps({"name": "lingoss", "path": str(tmp_path / "runs" / sft / "adapter")}),
        "--max-lora-rank",
        "16",
        "--tensor-parallel-size",
        "4",
        "--max-model-len",
        "4096",
        "--chat-template",
        str(chat.FOLDER / "chatml.jinja"),
        "--enforce-eager",
    ]
    assert "generation" in (chat.FOLDER / "chatml.jinja").read_text()


def test_harmony_is_left_to_vllm(base: str, tmp_path: Path) -> None:
    finished(tmp_path, "sft", base, config={"template": "gpt-oss", "format": "harmony"})
    config = ServeConfig(root=tmp_path)
    command = serve.command(config, serve.choose(config))
    assert "--chat-template" not in command
    assert command[-2:] == ["--tensor-parallel-size", "1"]


def test_whole_models_are_served_directly(base: str, tmp_path: Path) -> None:
    files = {"model/config.json": "{}", "model/model.safetensors": "x"}
    sft = finished(tmp_path, "sft", base, files=files)
    for parent, model in ((sft, tmp_path / "runs" / sft / "model"), (base, tmp_path / "models" / "tiny-0123")):
        config = ServeConfig(root=tmp_path, parent=parent, name="mine")
        command = serve.command(config, serve.choose(config))
        assert command[2] == str(model)
        assert command[command.index("--served-model-name") + 1] == "mine"
        assert "--enable-lora" not in command


@pytest.mark.parametrize(
    ("adapter", "rank"),
    [({"r": 1}, "1"), ({"r": 8}, "8"), ({"r": 9}, "16"), ({"r": 8, "rank_pattern": {"down_proj": 33}}, "64")],
)
def test_the_rank_is_one_that_vllm_takes(adapter: dict[str, Any], rank: str, base: str, tmp_path: Path) -> None:
    files = {"adapter/adapter_config.json": json.dumps(adapter), "adapter/adapter_model.safetensors": "x"}
    finished(tmp_path, "sft", base, files=files)
    config = ServeConfig(root=tmp_path)
    command = serve.command(config, serve.choose(config))
    assert command[command.index("--max-lora-rank") + 1] == rank


def test_too_large_a_rank_is_refused(base: str, tmp_path: Path) -> None:
    files = {"adapter/adapter_config.json": '{"r": 513}', "adapter/adapter_model.safetensors": "x"}
    finished(tmp_path, "sft", base, files=files)
    config = ServeConfig(root=tmp_path)
    with pytest.raises(LingossError, match=r"rank 513, and vLLM serves at most 512: `lingoss export --merged`"):
        serve.command(config, serve.choose(config))


def test_refusals_say_what_to_do(base: str, tmp_path: Path) -> None:
    with pytest.raises(
        LingossError, match=r"run `lingoss sft` first, or serve the base model with parent=latest:prepare$"
    ):
        chosen(tmp_path)
    sft = finished(tmp_path, "sft", base)
    judged(tmp_path, "grpo-000000000000", sft, "keep")
    with pytest.raises(LingossError, match=r"holds no model: name a finished run of sft, grpo or prepare"):
        chosen(tmp_path, parent="latest:evaluate")
    (tmp_path / "runs" / sft / "adapter" / "adapter_config.json").unlink()
    with pytest.raises(LingossError, match=rf"run {sft} is not whole: adapter/adapter_config.json is missing"):
        chosen(tmp_path)
    (tmp_path / "runs" / sft / "DONE.json").unlink()
    with pytest.raises(LingossError, match=rf"run {sft} is not finished"):
        chosen(tmp_path, parent=sft)


@pytest.mark.parametrize("argument", ["--api-key", "--api-key=secret"])
def test_a_key_on_the_command_line_is_refused(argument: str) -> None:
    with pytest.raises(ValueError, match="give the key in the environment variable VLLM_API_KEY"):
        ServeConfig(vllm_args=[argument, "secret"])


def test_dry_run_prints_the_command(base: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import yaml

    sft = finished(tmp_path, "sft", base)
    assert main(["serve", "--set", f"root={tmp_path}", "--dry-run"]) == 0
    plan = yaml.safe_load(capsys.readouterr().out.partition("# plan\n")[2])
    config = ServeConfig(root=tmp_path)
    assert shlex.split(plan["command"]) == serve.command(config, serve.choose(config))
    assert (plan["run"], plan["why"]) == (sft, "the newest SFT run")


def test_without_vllm_one_line_says_where_it_is(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finished(tmp_path, "sft", base)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["serve", "--set", f"root={tmp_path}"]) == 2
    assert capsys.readouterr().err == (
        "lingoss serve: vllm is not installed here: serve in the trainer image (images/trainer), or on a machine with "
        "`pip install vllm==0.26.0`; --dry-run prints the command\n"
    )


def test_it_becomes_vllm_offline_and_without_the_token(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finished(tmp_path, "sft", base)
    program, seen = vllm_at(tmp_path, monkeypatch)
    assert main(["serve", "--set", f"root={tmp_path}", "--set", "host=0.0.0.0"]) == 0
    ((path, command, environment),) = seen
    assert (path, command[:2]) == (str(program), ["vllm", "serve"])
    assert {
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_API_KEY": "key_secret",
    }.items() <= environment.items()
    assert "HF_TOKEN" not in environment
    assert "secret" not in " ".join(command)
    printed = capsys.readouterr()
    assert "secret" not in printed.out + printed.err
    assert printed.err == ""
    monkeypatch.delenv("VLLM_API_KEY")
    main(["serve", "--set", f"root={tmp_path}", "--set", "host=0.0.0.0"])
    assert capsys.readouterr().err == "no VLLM_API_KEY is set: whoever reaches this port may use the model\n"
