# SPDX-License-Identifier: MIT-0
"""The command line as a user meets it: what it prints, where errors go, and its exit status."""

import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lingoss import __version__
from lingoss.cli import main

FRENCH = "Le train part à huit heures et arrive à midi, donc il roule quatre heures."


def rows(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def lines(*values: object) -> str:
    return "".join((value if isinstance(value, str) else json.dumps(value)) + "\n" for value in values)


@pytest.fixture
def file(tmp_path: Path):
    def write(content: str | bytes) -> str:
        path = tmp_path / "rows.jsonl"
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return str(path)

    return write


def test_help_is_quick_and_names_every_command() -> None:
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "lingoss", "--help"], capture_output=True, text=True, check=True)
    assert time.perf_counter() - start < 2.0  # the bar of 0.5 s is measured by `make bench`, on a quiet machine
    for command in ("prepare", "sft", "generate", "score", "report", "compare", "gate", "power", "evaluate", "export"):
        assert f"\n    {command} " in done.stdout
    for command in ("runs", "demo", "detect"):
        assert f"\n    {command} " in done.stdout


def test_help_loads_nothing_heavy() -> None:
    code = "import sys, lingoss.cli; lingoss.cli.parser().format_help(); print([m for m in sys.modules if m.split('.')[0] in {heavy}])"
    heavy = {"torch", "transformers", "numpy", "pydantic", "rich", "scipy", "pandas", "fasttext"}
    done = subprocess.run([sys.executable, "-c", code.format(heavy=heavy)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"lingoss {__version__}\n"


@pytest.mark.parametrize("command", [[], ["detekt"], ["detect"], ["score", "a", "b"], ["sft", "--nonsense"]])
def test_wrong_use_is_refused_with_usage(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(command)
    assert stopped.value.code == 2
    assert "usage: lingoss" in capsys.readouterr().err


def test_detect(file, capsys: pytest.CaptureFixture[str]) -> None:
    source = file(
        lines({"id": 1, "text": FRENCH, "target": "fr"}, {"text": FRENCH, "target": "German"}, {"text": "42"})
    )
    assert main(["detect", source]) == 0
    first, second, third = rows(capsys.readouterr().out)
    assert (first["id"], first["detection"]["label"], first["detection"]["accepted"]) == (1, "fr", True)
    assert first["detection"]["segments"] == [[0, len(FRENCH), "fr"]]
    assert (second["detection"]["target"], second["detection"]["accepted"]) == ("de", False)
    assert (third["detection"]["label"], third["detection"]["accepted"]) == ("neutral", None)
    assert set(first["detection"]) == {
        "label", "target", "accepted", "target_share", "shares", "second", "letters", "abstained", "segments",
    }  # fmt: skip


def test_languages_restrict_the_candidates(file, capsys: pytest.CaptureFixture[str]) -> None:
    source = file(lines({"text": "Watoto wanacheza mpira uwanjani kila siku baada ya shule."}))
    assert main(["detect", source, "--languages", "en,sw"]) == 0
    assert rows(capsys.readouterr().out)[0]["detection"]["label"] == "sw"


def test_transcript(file, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "<|channel|>analysis<|message|>Je compte.<|end|><|start|>assistant<|channel|>final<|message|>Douze.<|return|>"
    )
    assert main(["transcript", file(lines({"format": "harmony", "text": text}))]) == 0
    assert rows(capsys.readouterr().out)[0]["parsed"] == {
        "reasoning": "Je compte.",
        "answer": "Douze.",
        "format_ok": True,
        "truncated": False,
    }


def test_score_gives_reward_and_terms(file, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {
        "question": "6 × 7?",
        "question_language": "en",
        "reasoning_language": "fr",
        "answer_language": "fr",
        "gold": "42",
    }
    text = "<think>Sept fois six, c'est six fois sept, et cela fait quarante-deux.</think>La réponse est 42."
    assert main(["score", file(lines({"format": "think", "text": text, "request": asked}))]) == 0
    verdict = rows(capsys.readouterr().out)[0]["verdict"]
    assert verdict["reward"] == pytest.approx(1.0)
    spent = dict.fromkeys(("relevance", "prose", "repetition", "prompt_copy"), 0)
    assert verdict["terms"] == pytest.approx({"correctness": 0.4, "language": 0.6, **spent})


@pytest.mark.parametrize("command", ["detect", "transcript", "score"])
def test_bad_rows_become_error_rows_and_the_rest_goes_on(
    command: str, file, capsys: pytest.CaptureFixture[str]
) -> None:
    good = {
        "text": FRENCH,
        "format": "plain",
        "request": {"question": "?", "question_language": "fr", "reasoning_language": "fr", "answer_language": "fr"},
    }
    source = file(lines(good, "{broken", [1, 2], {**good, "text": 7}, good))
    assert main([command, source]) == 1
    captured = capsys.readouterr()
    found = rows(captured.out)
    assert [row.get("line") for row in found] == [None, 2, 3, 4, None]
    assert all("error" in row for row in found[1:4])
    assert "`text` must be a string" in found[3]["error"]
    assert "3 bad row(s)" in captured.err


@pytest.mark.parametrize(
    ("content", "count", "status"),
    [
        (b"", 0, 0),
        (b"\n\n", 0, 0),
        (b'\xef\xbb\xbf{"text": "Bonjour tout le monde"}\r\n{"text": "Guten Morgen"}\r\n', 2, 0),
        (b'{"text": "a\\ud800b"}\n', 1, 0),
        (b'{"text": "Bonjour"}', 1, 0),
        (b'{"text": "nul\\u0000byte"}\n', 1, 0),
        (b"\x00\x00\n", 1, 1),
        (b'{"text": "\xff\xfe"}\n', 1, 1),
    ],
)
def test_odd_files(content: bytes, count: int, status: int, file, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", file(content)]) == status
    assert len(rows(capsys.readouterr().out)) == count


def test_a_line_of_ten_megabytes(file, capsys: pytest.CaptureFixture[str]) -> None:
    long = "Le chat dort sur le canapé. " * 375_000
    assert main(["detect", file(lines({"text": long, "target": "fr"}))]) == 0
    assert rows(capsys.readouterr().out)[0]["detection"]["label"] == "fr"


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines({"text": FRENCH}).encode())))
    assert main(["detect", "-"]) == 0
    assert rows(capsys.readouterr().out)[0]["detection"]["label"] == "fr"


def test_output_file_is_whole_or_absent(file, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.jsonl"
    assert main(["detect", file(lines({"text": FRENCH})), "-o", str(target)]) == 0
    assert rows(target.read_text(encoding="utf-8"))[0]["detection"]["label"] == "fr"
    assert capsys.readouterr().out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "rows.jsonl"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["detect", "missing.jsonl"], "cannot read missing.jsonl: No such file or directory"),
        (["detect", "."], "cannot read .: Is a directory"),
        (["detect", "-", "--languages", "en,klingon"], "klingon"),
        (["sft", "--config", "missing.yaml"], "missing.yaml: cannot be read"),
        (["sft", "--set", "lora.rnak=4"], "lora.rank"),
        (["runs", "--root", "/dev/null"], "cannot be listed"),
        (["export", "latest:sft", "out"], "no finished run of stage 'sft'"),
        (["generate", "--run", "base", "--prompts", "core", "-o", "out"], "no finished run of stage 'prepare'"),
        (["report", "nowhere"], "nowhere holds no verdicts.jsonl"),
        (["gate", "nowhere"], "nowhere holds no verdicts.jsonl"),
        (["compare", "nowhere"], "nowhere holds no verdicts.jsonl"),
        (["power", "--difference", "3"], "--difference must be a share"),
        (["evaluate"], "no finished run of stage 'prepare'"),
        (["generate", "--run", "base", "--prompts", "coree", "-o", "out"], "the prompt sets are core, core-crossed,"),
        (
            ["generate", "--run", "base", "--adapter", "a", "--prompts", "core", "-o", "out"],
            "--adapter goes with --model",
        ),
    ],
)
def test_refusals_are_one_line_and_exit_2(
    command: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"lingoss {command[0]}: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["gate", "folder", "--k", "0"], "argument --k: must be a whole number of at least 1, not '0'"),
        (["generate", "--limit", "-1"], "argument --limit: must be a whole number of at least 1, not '-1'"),
        (["generate", "--threads", "two"], "argument --threads: must be a whole number of at least 1, not 'two'"),
        (["generate", "--temperature", "-0.5"], "argument --temperature: must be 0 (greedy) or a positive number"),
        (["generate", "--temperature", "nan"], "argument --temperature: must be 0 (greedy) or a positive number"),
    ],
)
def test_numbers_out_of_range_are_refused(option: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(option)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_idle_threads_sleep_in_every_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "")  # so that what main sets is undone after the test
    monkeypatch.delenv("OMP_WAIT_POLICY")
    assert main(["runs", "--root", str(tmp_path)]) == 0
    assert os.environ["OMP_WAIT_POLICY"] == "passive"
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    assert main(["runs", "--root", str(tmp_path)]) == 0
    assert os.environ["OMP_WAIT_POLICY"] == "active"


def test_ctrl_c_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, file, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lingoss.detect.detect", interrupt)
    assert main(["detect", file(lines({"text": FRENCH}))]) == 130
    assert "stopped; the same command goes on from here" in capsys.readouterr().err


def test_head_of_a_pipe_is_no_error(tmp_path: Path) -> None:
    source = tmp_path / "many.jsonl"
    source.write_text(lines({"text": FRENCH}) * 5000, encoding="utf-8")
    command = f"{sys.executable} -m lingoss detect {source} | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_runs_of_an_empty_root(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--root", str(tmp_path)]) == 0
    assert "no runs below" in capsys.readouterr().out


def test_runs_are_not_folded_in_a_pipe_and_notes_stand_below(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "runs" / "sft-0123456789ab"
    broken.mkdir(parents=True)
    assert main(["runs", "--root", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    heading = next(line for line in printed.splitlines() if "state" in line)
    assert "parent" not in heading  # no run has one
    assert "note" not in heading
    assert f"{broken.name}: " in printed.splitlines()[-1]


def test_power_prints_the_known_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "--difference", "0.08"]) == 0
    printed = capsys.readouterr().out
    assert "Prompts per language to see 8 points" in printed
    assert re.search(r"unpaired +50% -> 58%.* 608 ", printed)
    assert re.search(r"gains 8%, losses 0% +0.05 +98 ", printed)
