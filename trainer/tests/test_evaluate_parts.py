# SPDX-License-Identifier: MIT-0
"""Stage evaluate in parts, as two pods run it: generate with torch, report without, the root read-only for both."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import readonly
from conftest import prepared_root
from lingoss import runs
from lingoss.config import EvaluateConfig
from lingoss.errors import LingossError
from lingoss.evaluate import run as evaluate
from lingoss.evaluate.setting import resolve
from lingoss.evaluate.waiting import describe, wait_for_samples
from test_evaluate_run import config, load
from test_runs_helpers import until

RUN = """
import json
from lingoss.config import EvaluateConfig
from lingoss.evaluate import run
from lingoss.runs import lineage, list_runs, run_rows
settings = EvaluateConfig.model_validate(json.loads({settings!r}))
found = run.run(settings, part={part!r}, wait={wait!r})
print("RESULT", found.state, [one.name for one in list_runs(settings.root)], len(lineage(settings.root, found.name)))
"""
REFUSED = """
import json
from lingoss.config import EvaluateConfig
from lingoss.evaluate import run
try:
    run.run(EvaluateConfig.model_validate(json.loads({settings!r})), part="open")
except Exception as error:
    print(type(error).__name__, error)
"""


def code(settings: EvaluateConfig, part: str, wait: float | None = None) -> str:
    head = readonly.NO_TORCH if part == "report" else ""
    return head + RUN.format(settings=settings.model_dump_json(), part=part, wait=wait)


def draw_all(settings: EvaluateConfig) -> None:
    """Sample folders that look finished, without a model."""
    for one in resolve(settings).draws:
        one.folder.mkdir(parents=True)
        (one.folder / "run.json").write_text('{"finished": "now"}')
        (one.folder / "samples.jsonl").write_text("")


@pytest.mark.slow
def test_two_processes_on_a_read_only_root(tiny_llama: Path, tmp_path: Path) -> None:
    """Report begins first and waits; generate holds the run meanwhile and lets go; report ends the run."""
    root = prepared_root(tiny_llama, tmp_path)
    settings = config(root)
    opened = evaluate.run(settings, part="open")
    assert (opened.state, opened.problems) == ("pending", ())
    assert opened.path.readlink() == Path("..") / "evaluations" / opened.name
    before = readonly.prefix(root)
    log, other = tmp_path / "report.log", tmp_path / "other.log"

    refused = readonly.start(before, REFUSED.format(settings=config(root, run="other").model_dump_json()), other)
    said, _ = refused.communicate(timeout=120)
    assert said.startswith("LingossError "), other.read_text()
    assert "run `lingoss evaluate --part open` where" in said

    report = readonly.start(before, code(settings, "report", 300), log)
    until(lambda: report.poll() is not None or "wait for samples" in log.read_text())
    generate = readonly.start(before, code(settings, "generate"), other)
    drawn, _ = generate.communicate(timeout=300)
    assert generate.returncode == 0, other.read_text()
    assert "evaluating base: 10 prompts, 1 sample(s) each" in drawn
    assert "gate for base: 20 prompts, 2 samples each" in drawn
    written, _ = report.communicate(timeout=300)
    assert report.returncode == 0, log.read_text()
    names = [runs.find_run(root, "latest:prepare").name, opened.name]
    assert f"RESULT done {names} 2" in written
    told = [json.loads(line) for line in log.read_text().splitlines() if line.startswith('{"task": "wait for samples"')]
    assert (told[0]["done"], told[0]["total"]) == (0, 50)
    assert told[0]["waits_for"].startswith("base-")
    assert told[0]["generate"] == "has not begun"

    done = runs.find_run(root, opened.name)
    assert load(done.path / "gate.json")["runs"] == ["base"]
    assert runs.verify(done.path) == []
    assert [row.state for row in runs.run_rows(root)] == ["done", "done"]
    assert {path.name for path in done.path.iterdir()} >= {"report.html", "report.md", "DONE.json"}
    again = readonly.start(before, code(settings, "generate"), other)
    said, _ = again.communicate(timeout=120)
    assert f"{opened.name} is done" in said, other.read_text()


def test_generate_scores_nothing_and_leaves_the_run_to_report(tiny_llama: Path, tmp_path: Path) -> None:
    settings = config(prepared_root(tiny_llama, tmp_path))
    found = evaluate.run(settings, part="generate")
    assert (found.state, found.step, found.total, found.reason) == ("pending", 2, 3, None)
    assert [row.state for row in runs.run_rows(tmp_path / "root")] == ["done", "pending"]
    for one in resolve(settings).draws:
        assert sorted(path.name for path in one.folder.iterdir()) == ["lock", "run.json", "samples.jsonl"]
        assert one.is_whole
    with resolve(settings).folder():  # report may hold the run by now: there is nothing to draw, so nothing to wait for
        evaluate.run(settings.model_copy(update={"lock_wait": 0.0}), part="generate")
    assert evaluate.run(settings, part="report").done


def test_parts_are_checked(tiny_llama: Path, tmp_path: Path) -> None:
    settings = config(prepared_root(tiny_llama, tmp_path))
    assert list(evaluate.PARTS) == ["open", "generate", "report"]
    with pytest.raises(LingossError, match="--part score: stage evaluate has the parts open, generate, report"):
        evaluate.run(settings, part="score")
    with pytest.raises(LingossError, match="--wait is for --part report alone"):
        evaluate.run(settings, part="generate", wait=1)
    with pytest.raises(LingossError, match=r"base-\w{12}, base-\w{12}: samples are missing \(0 of 50 are there\)"):
        evaluate.run(settings, part="report")
    assert not (tmp_path / "root" / "evaluations").exists()


def test_report_gives_up_in_one_line(tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = config(prepared_root(tiny_llama, tmp_path))
    capsys.readouterr()
    with pytest.raises(LingossError) as refusal:
        evaluate.run(settings, part="report", wait=0.2)
    first, second = (one.folder.name for one in resolve(settings).draws)
    assert str(refusal.value) == (
        f"still waiting for {first}, {second} after 0 s: 0 of 50 samples are there, generate has not begun: "
        "look at its job, then run this again or raise --wait"
    )
    (line,) = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (line["done"], line["total"], line["unit"]) == (0, 50, "samples")


def test_a_lost_generate_is_noticed(tiny_llama: Path, tmp_path: Path) -> None:
    settings = config(prepared_root(tiny_llama, tmp_path))
    found = evaluate.run(settings, part="open")
    status = load(found.path / "status.json")
    assert status["state"] not in ("running", "failed")  # else a generate that is queued would be given up
    status.update(state="running", heartbeat="2020-01-01T00:00:00+00:00", host="gpu-7", step=1, total=3)
    (found.path / "status.json").write_text(json.dumps(status))
    one = resolve(settings).draws[0]
    one.folder.mkdir(parents=True)
    (one.folder / "run.json").write_text("{}")
    (one.folder / "samples.jsonl").write_text("{}\n" * 7)
    with pytest.raises(
        LingossError, match=r"7 of 50 samples are there, generate has given no sign of life for \d+ d \(last on gpu-7\)"
    ):
        wait_for_samples(resolve(settings), found.path, 3600, give_up=0)


def test_report_waits_for_the_end_of_a_living_generate(tiny_llama: Path, tmp_path: Path) -> None:
    """It may be drawing errors of an earlier call again: what is scored must not change meanwhile."""
    settings = config(prepared_root(tiny_llama, tmp_path))
    draw_all(settings)
    setting = resolve(settings)
    with setting.folder() as held:
        held.status("running", 1, 3)
        with pytest.raises(LingossError, match=r"waiting for the end of generate after 0 s.*running on .*step 1 of 3"):
            wait_for_samples(setting, held.path, 0)
    wait_for_samples(setting, held.path, 0)


def test_sigterm_ends_the_waiting(tiny_llama: Path, tmp_path: Path) -> None:
    settings = config(prepared_root(tiny_llama, tmp_path))
    log = tmp_path / "log"
    waiting = readonly.start([], code(settings, "report", 600), log)
    until(lambda: waiting.poll() is not None or "wait for samples" in log.read_text())
    waiting.terminate()
    assert waiting.wait(timeout=60) == 143, log.read_text()


def test_the_command_line(tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from lingoss.cli import main

    root = prepared_root(tiny_llama, tmp_path)
    command = ["evaluate", "--set", f"root={root}", "--set", "prompts.sets=[core]", "--part"]
    assert main([*command, "open"]) == 0
    (found,) = [run for run in runs.list_runs(root) if run.stage == "evaluate"]
    assert (found.state, found.path.is_symlink()) == ("pending", True)
    capsys.readouterr()
    assert main([*command, "report", "--wait", "0"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("lingoss evaluate: still waiting for base-")
    assert "generate has not begun" in last


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"state": "failed", "reason": "out of memory", "host": "a"}, "failed on a (out of memory)"),
        ({"state": "stopped", "host": "a"}, "was stopped on a"),
        ({"state": "pending"}, "has not begun"),
        ({"state": "pending", "heartbeat": "2020-01-01T00:00:00+00:00", "host": "a"}, "ended on a"),
        ({"state": "unknown"}, "has not begun"),
    ],
)
def test_what_generate_was_last_seen_doing(status: dict[str, Any], told: str) -> None:
    assert describe(runs.RunInfo(Path("evaluate-0"), "evaluate-0", **status)) == told


def test_report_part_never_loads_torch() -> None:
    check = readonly.NO_TORCH + "import lingoss.evaluate.run, lingoss.guard; print('fine')"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("fine\n", 0), done.stderr


def other_model(model: Path, folder: Path) -> Path:
    """The same weights with another configuration: another model by its digest."""
    import shutil

    copy = folder / "other"
    shutil.copytree(model, copy)
    fields = load(copy / "config.json")
    (copy / "config.json").write_text(json.dumps({**fields, "note": "other"}))
    return copy


def plant(root: Path, stage: str, parents: tuple[str, ...], run: str = "1") -> str:
    """A finished training run with weights that nobody loads."""
    with runs.open_run(root, stage, config(root, run=run), parents) as folder:
        folder.status("running", 1, 1)
        folder.adapter.mkdir()
        (folder.adapter / "adapter_model.safetensors").write_bytes(run.encode())
        folder.finish(1)
    return folder.name


def test_runs_of_another_base_are_left_out(
    tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from lingoss import prepare
    from lingoss.config import PrepareConfig

    root = prepared_root(tiny_llama, tmp_path)
    first = runs.find_run(root, "latest:prepare").name
    old = plant(root, "sft", (first,))
    source = str(other_model(tiny_llama, tmp_path))
    prepare.run(
        PrepareConfig.model_validate({"root": root, "model": {"source": source}, "prompt_sets": ["core"], "run": "2"})
    )
    second = runs.find_run(root, "latest:prepare").name
    assert second != first
    new = plant(root, "sft", (second,), run="2")
    grown = plant(root, "grpo", (new,), run="2")

    setting = resolve(config(root))
    assert [subject.name for subject in setting.subjects] == ["base", new, grown]
    assert setting.source.run == second
    assert setting.judged.name == new
    line = f"left out, because their base model is not that of {second}: {old} ({first}); parent=<prepare run> has them"
    assert setting.left_out == line
    assert evaluate.plan(config(root))["note"] == line
    capsys.readouterr()
    evaluate.run(config(root), part="open")
    assert capsys.readouterr().out.splitlines()[0] == line

    other = resolve(config(root, parent=first))
    assert [subject.name for subject in other.subjects] == ["base", old]
    assert other.source.run == first
    with pytest.raises(LingossError, match=f"run {old} was trained on the model of {first}, not on that of {second}"):
        resolve(config(root, runs=[old]))


def test_two_prepare_runs_of_one_model_are_one_base(tiny_llama: Path, tmp_path: Path) -> None:
    from lingoss import prepare
    from lingoss.config import PrepareConfig

    root = prepared_root(tiny_llama, tmp_path)
    trained = plant(root, "sft", (runs.find_run(root, "latest:prepare").name,))
    earlier = {key: value for key, value in runs.find_run(root, "latest:prepare").config.items() if key != "root"}
    prepare.run(PrepareConfig.model_validate({**earlier, "root": root, "run": "2"}))
    setting = resolve(config(root))
    assert [subject.name for subject in setting.subjects] == ["base", trained]
    assert setting.left_out == ""


def test_a_run_without_a_known_base_is_put_on_none(tiny_llama: Path, tmp_path: Path) -> None:
    root = prepared_root(tiny_llama, tmp_path)
    orphan = plant(root, "sft", ())
    setting = resolve(config(root))
    assert [subject.name for subject in setting.subjects] == ["base"]
    assert f"{orphan} (an unknown prepare run)" in setting.left_out


def test_what_a_run_trained_is_what_is_drawn_from(tiny_llama: Path, tmp_path: Path) -> None:
    root = prepared_root(tiny_llama, tmp_path)
    prepare = runs.find_run(root, "latest:prepare").name
    sft = plant(root, "sft", (prepare,))
    with runs.open_run(root, "grpo", config(root), (sft,)) as folder:
        folder.status("running", 1, 1)
        folder.model.mkdir()
        (folder.model / "model.safetensors").write_bytes(b"weights")
        folder.finish(1)
    base, adapted, whole = resolve(config(root)).subjects
    assert (base.model.parent, base.adapter) == (root / "models", None)
    assert (adapted.model, adapted.adapter) == (base.model, root / "runs" / sft / "adapter")
    assert (whole.model, whole.adapter) == (root / "runs" / folder.name / "model", None)
