# SPDX-License-Identifier: MIT-0
"""The report: what it says, that it loads nothing, and that no text of a model can break it."""

import base64
import errno
import hashlib
import html.parser
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from lingoss.errors import LingossError
from lingoss.evaluate import wording
from lingoss.evaluate.accept import accept
from lingoss.evaluate.compare import compare
from lingoss.evaluate.gate import GateSettings, gate
from lingoss.evaluate.hacks import hacks
from lingoss.evaluate.report import Curve, ReportData, markdown, plots, terminal, training, write
from lingoss.evaluate.report import html as page_of
from lingoss.evaluate.report.headline import accept_sentence, does_not_show, shows
from lingoss.evaluate.report.samples import payload
from lingoss.evaluate.rows import read_run
from lingoss.evaluate.summary import Rate, summarise
from lingoss.evaluate.visible import visible
from synthetic import LANGUAGES, detection, outcomes, realistic, run, scored

EVIL = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)> \u202egnol\u202c \ud800 \x00 <!-- {{7*7}} | [bold]"
)


def data_of(*runs: Any, **parts: Any) -> ReportData:
    return ReportData(runs=runs, summaries=[summarise(one, draws=300) for one in runs], **parts)


def practised(step: int) -> dict[str, float]:
    """A row of a GRPO run whose reward rises from 0.2 to 0.6 in French and stays at 0.5 in German."""
    row = {"step": float(step), "reward/fr": 0.2 + 0.4 * (step - 1) / 39, "reward/de": 0.5, "term/language": 0.1}
    row |= {
        "reward": (row["reward/fr"] + 0.5) / 2,
        "informative": 0.25,
        "informative_groups": 4.0,
        "tokens": 80.0 - step,
    }
    return row | {"informative/fr": 0.5, "informative/de": 0.0, "correct": float("nan"), "kl_rollout": 1e-4}


@pytest.fixture(scope="module")
def full() -> ReportData:
    base, sft, grpo = realistic("base", 0.1, 0.05), realistic("sft", 0.8, 0.1), realistic("grpo", 0.85, 0.15)
    gated = gate(realistic("sft-gate", 0.5, 0.3, items=4, samples=8), GateSettings(waive_prompts=True)).to_dict()
    return data_of(
        base,
        sft,
        grpo,
        comparisons=compare([base, sft, grpo], draws=300),
        gates=[("sft", gated)],
        acceptance=accept(grpo, sft).to_dict(),
        curves=[
            Curve("sft", [{"step": step, "loss": 3 / step, "tokens": 9 * step} for step in range(1, 41)]),
            Curve("grpo", [{"step": 0.0, "validation/joint": 0.1}, *map(practised, range(1, 41))], "Step 40 it is."),
        ],
        hacks=hacks(sft, grpo),
        training_languages={("en", "fr", "fr"): 12},
        notes=["A model of 135 million parameters learns the form, not arithmetic."],
    )


class Page(html.parser.HTMLParser):
    """Elements with their attributes, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        else:
            self.words.append(data)

    @property
    def samples(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.scripts[0])
        return found


def test_headline_says_what_it_shows_and_what_not(full: ReportData) -> None:
    said, unsaid = " ".join(shows(full)), " ".join(does_not_show(full))
    base, sft = (wording.rate(found.cells["all"]["all"].rates["strict"]) for found in full.summaries[:2])
    assert f"From base to sft, strict language compliance went from {base} to {sft}" in said
    assert "From base to grpo" not in said
    assert "Right answers: base" in said
    assert "Gate for sft:" in said
    assert "sft stays the answer" in said
    assert unsaid.startswith("A model of 135 million")
    assert "Compliance is not quality" in unsaid
    assert "have no words" in unsaid
    assert "a true change of" in unsaid


def test_same_language_prompts_alone_are_called_out() -> None:
    found = data_of(run("r", outcomes("1" * 10, "fr", question_language="fr")))
    assert "hide missing control" in " ".join(does_not_show(found))
    assert "hide missing control" not in " ".join(does_not_show(data_of(run("r", outcomes("1" * 10)))))


@pytest.mark.parametrize(
    ("k", "n", "low", "high", "expected"),
    [
        (0, 60, 0.0, 0.06, "0 of 60, 0 % (at most 6 %)"),
        (60, 60, 0.94, 1.0, "60 of 60, 100 % (at least 94 %)"),
        (45, 60, 0.628, 0.842, "45 of 60, 75 % (63–84 %)"),
        (1, 999, 0.0002, 0.004, "1 of 999, 0.1 % (0.1–0.4 %)"),
        (998, 999, 0.996, 0.9998, "998 of 999, 99.9 % (99.6–99.9 %)"),
    ],
)
def test_rates_never_claim_a_bare_zero_or_hundred(k: int, n: int, low: float, high: float, expected: str) -> None:
    assert wording.rate(Rate(k, n, k / n, low, high, "Wilson")).replace("\u00a0", " ") == expected


def test_page_is_one_file_that_loads_nothing(full: ReportData) -> None:
    text = page_of.build(full)
    page = Page(text)
    assert page.open == []  # every element is closed, in order
    assert "http:" not in text
    assert "https:" not in text
    loads = {"src", "href", "srcset", "action", "data", "poster"}
    assert all(
        value and value.startswith("#")
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in loads
    )
    assert not re.search(r"url\(|@import|@font-face", text)
    policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in policy


def test_page_shows_every_part(full: ReportData) -> None:
    page = Page(page_of.build(full))
    words = " ".join(page.words)
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert {"figures", "comparisons", "decisions", "training", "tables", "languages", "samples", "provenance"} <= ids
    plots = [attributes for tag, attributes in page.elements if tag == "svg" and attributes.get("role") == "img"]
    assert len(plots) > 100
    assert all(attributes["aria-label"] for attributes in plots)
    rate = full.summaries[1].cells["fr"]["all"].rates["strict"]
    assert any(
        attributes["aria-label"] == f"sft, French: Strict compliance {wording.rate(rate)}" for attributes in plots
    )
    for part in ("Detector", "lid.176.ftz", "Crossed prompts", "exact McNemar", "Informative groups", "keep", "d" * 64):
        assert part.lower() in words.lower()
    assert len(page.samples["samples"]) == sum(len(one.rows) for one in full.runs)
    assert page.samples["runs"] == ["base", "sft", "grpo"]


def test_a_report_of_runs_alone_has_no_empty_sections() -> None:
    page = Page(page_of.build(data_of(run("only", outcomes("10")))))
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert not ids & {"comparisons", "decisions", "training"}


def test_samples_are_worst_first_with_their_faults() -> None:
    rows = [scored("good"), scored("cut", truncated=True), scored("wrong", reasoning="en", grade="incorrect")]
    found = Page(page_of.build(data_of(run("r", rows)))).samples["samples"]
    assert [sample["id"] for sample in found] == ["wrong", "cut", "good"]
    faults = {sample["id"]: sample["faults"] for sample in found}
    assert faults["good"] == []
    assert faults["cut"] == ["cut off"]
    assert faults["wrong"] == ["reasoning language", "answer wrong"]


def utf16(text: str, start: int, end: int) -> str:
    return text.encode("utf-16-le", "surrogatepass")[2 * start : 2 * end].decode("utf-16-le", "surrogatepass")


def test_segments_point_into_the_text_as_javascript_counts() -> None:
    reasoning = "🙂🙂 Oui. That is English."
    row = scored(text=f"<think>\n{reasoning}\n</think>\nLa réponse est 42.")
    row["verdict"]["reasoning"]["segments"] = [[0, 7, "fr"], [8, len(reasoning), "en"]]
    sample = Page(page_of.build(data_of(run("r", [row])))).samples["samples"][0]
    start, end = sample["reasoning"]["at"]
    shown = utf16(sample["text"], start, end)
    assert shown == reasoning
    assert [utf16(shown, a, b) for a, b, _ in sample["reasoning"]["segments"]] == ["🙂🙂 Oui.", "That is English."]
    assert utf16(sample["text"], *sample["answer"]["at"]) == "La réponse est 42."


def hostile(text: str) -> ReportData:
    row = scored(f"p{text}", text=f"<think>\n{text}\n</think>\n{text}", question=text, item=text)
    row["verdict"]["reasoning"] = detection("fr", [("fr", text)])
    row["verdict"]["grade_rule"], row["verdict"]["terms"] = text, {text: 1.0}
    found = run(f"r{text}", [row, {"line": 2, "error": text}], note={text: text})
    return data_of(
        found,
        title=text,
        notes=[text],
        gates=[(text, {"outcome": text, "languages": {}, "reasons": [text], "runs": []})],
    )


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    found = hostile(EVIL)
    text = page_of.build(found)
    page = Page(text)
    assert len(page.scripts) == 2
    assert not [tag for tag, _ in page.elements if tag == "img"]
    assert not re.search("[\x00\u202a-\u202e\u2066-\u2069]", text.replace(page.scripts[0], ""))
    assert EVIL in page.samples["samples"][0]["text"]
    assert "49" not in page.words
    write(tmp_path / "report.html", text)
    assert (tmp_path / "report.html").read_bytes().decode("utf-8") == text
    table = markdown.build(found)
    assert "<script" not in table
    assert "<img" not in table
    console = Console(width=120, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(terminal.build(found))
    printed = console.export_text()
    assert "[bold]" in printed
    assert "\u202e" not in printed


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.characters(codec=None), max_size=80))
def test_any_text_survives_the_embedding(text: str) -> None:
    row = scored(text=f"<think>\n{text}\n</think>\n{text}", question=text)
    embedded = payload(ReportData(runs=[run("r", [row])], summaries=[]))
    assert not set(embedded) & set("<>&")
    assert not re.search("[\ud800-\udfff]", embedded)
    found = json.loads(embedded)
    assert found["samples"][0]["text"].encode("utf-16", "surrogatepass") == row["text"].encode(
        "utf-16", "surrogatepass"
    )
    assert len(found["questions"]) == 1


def test_visible_names_what_cannot_be_seen() -> None:
    assert visible("a\u202eb\x00c\ud800d\ne\u200df") == "a⟦U+202E⟧b⟦U+0000⟧c⟦U+D800⟧d\ne\u200df"


def test_markdown_and_terminal_carry_the_same_figures(full: ReportData) -> None:
    rate = wording.rate(full.summaries[2].cells["it"]["crossed"].rates["strict"])
    table = markdown.build(full)
    assert f"| Italian | crossed | {rate}" in table
    assert "keep" not in table.splitlines()[0]
    widths = {line.count("|") for line in table.splitlines() if line.startswith("| ") and "Italian" in line}
    assert len(widths) == 2  # summary and comparison tables, every row as wide as its head
    console = Console(width=130, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(terminal.build(full))
    printed = console.export_text()
    found = full.summaries[2].cells["it"]["crossed"]
    assert terminal.short(found, "strict") in printed
    assert "sft stays the answer" in printed


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_have_enough_contrast(theme: str) -> None:
    css = page_of._file("page.css")
    light, dark = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    colours = dict(re.findall(r"--(\w+): (#\w+)", light if theme == "light" else dark))

    def luminance(code: str) -> float:
        digits = code[1:] if len(code) == 7 else "".join(2 * digit for digit in code[1:])
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        r, g, b = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    def contrast(one: str, other: str) -> float:
        bright, dim = sorted((luminance(colours[one]), luminance(colours[other])), reverse=True)
        return (bright + 0.05) / (dim + 0.05)

    tints = [f"l{i}" for i in range(8)] + ["none"]
    assert min(contrast("ink", ground) for ground in ["page", "card", *tints]) >= 7
    assert min(contrast(text, ground) for text in ("soft", "link") for ground in ("page", "card")) >= 4.5
    assert min(contrast(f"run{i}", "card") for i in range(4)) >= 3


def test_write_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "report.html"
    write(path, "old \ud800")
    assert path.read_text("utf-8") == "old \\ud800"

    def full_disk(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(LingossError, match="no space left"):
        write(path, "new")
    assert path.read_text("utf-8") == "old \\ud800"
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]
    with pytest.raises(LingossError, match="in the way"):
        write(path / "below.html", "x")


@pytest.mark.slow
def test_ten_thousand_long_samples(tmp_path: Path) -> None:
    words = "la vitesse d'un train est la distance divisée par le temps, donc nous calculons "
    rows = [
        scored(
            f"p{i // 4}",
            LANGUAGES[i // 4 % 5],
            sample=i % 4,
            item=f"i{i // 20}",
            text=f"<think>\n{i} {words * 25}\n</think>\n42",
        )
        for i in range(10_000)
    ]
    start = time.monotonic()
    found = read_run("large", rows)
    text = page_of.build(data_of(found))
    write(tmp_path / "report.html", text)
    assert time.monotonic() - start < 60
    assert 20e6 < (tmp_path / "report.html").stat().st_size < 32e6  # text, and at most half as much around it
    assert len(Page(text).samples["samples"]) == 10_000


def test_grpo_is_told_in_one_sentence_a_table_and_plots(full: ReportData) -> None:
    (curve,) = [curve for curve in full.curves if training.is_grpo(curve)]
    assert training.sentences(full) == [
        "grpo: the training reward went from 0.373 to 0.527 (first and last quarter of 40 steps); 25\u00a0% of the groups"
        " were informative. Step 40 it is."
    ]
    table = {trend.title: (trend.first, trend.last) for trend in training.trends(curve)}
    assert table["reward"] == ("0.373", "0.527")
    assert table["reward fr"] == ("0.246", "0.554")
    assert table["informative fr"] == ("50\u00a0%", "50\u00a0%")
    assert table["tokens a completion"] == ("74.5", "44.5")
    assert table["term language"] == ("0.1", "0.1")
    assert "right answers" not in table  # nothing finite
    assert [plot["name"] for plot in plots.curves(full.curves[0])] == ["loss"]
    nothing = data_of(*full.runs[:1], curves=[Curve("grpo", [{"step": 1, "informative": 0.0, "reward": "nan"}])])
    assert training.sentences(nothing) == []
    assert "Training of grpo" in markdown.build(nothing)
    drawn = {plot["name"]: plot for plot in plots.curves(curve)}
    assert "validation: compliant and right" not in drawn  # one point is no curve
    assert drawn["reward"]["alt"] == "reward from 0.35 at step 1 to 0.55 at step 40, between 0.35 and 0.55"
    (reward, informative) = plots.panels(curve)
    assert (reward["title"], [line["code"] for line in reward["lines"]]) == ("Reward", ["de", "fr"])
    assert reward["lines"][1]["ends"] == "0.20 to 0.60"
    # French begins at 0.2 of a panel that is 100 high, from 0 at the bottom to 1 at the top.
    assert re.search(r'points="0.00,80.00 .* 100.00,40.00"', str(reward["lines"][1]["svg"]))
    assert informative["lines"][0]["alt"] == "from 0.00 at step 1 to 0.00 at step 40"


def test_tricks_stand_in_every_dress(full: ReportData) -> None:
    assert full.hacks is not None
    names = [rise.meaning for rise in full.hacks.rises]
    page, text = page_of.build(full), markdown.build(full)
    console = Console(width=160)
    with console.capture() as captured:
        console.print(terminal.build(full))
    printed = captured.get()
    for name in names:
        assert name in page
        assert name in text
        assert name in printed
    assert "known tricks rose significantly" in " ".join(shows(full))
    assert "Training of grpo" in printed
    assert "## Training of grpo" in text
    assert "Reward by language" in page


def test_the_verdict_names_the_clauses_that_failed() -> None:
    found = {"decision": "keep", "runs": ["g", "s"], "failed": ["primary: a", "language fr, answer: b", "format: c"]}
    assert accept_sentence(found) == (
        "s stays the answer; g failed 3 clauses (primary; language fr; format). No gain is shown on these prompts."
    )
    found["failed"] = ["language fr, reasoning: a", "language fr, answer: b", "language de, answer: c", "length it: d"]
    assert accept_sentence(found) == "s stays the answer; g failed 4 clauses (language fr, de; length it)."
    assert accept_sentence({**found, "decision": "accept"}) == "g is accepted in place of s: every clause holds."


def test_a_trick_that_rose_is_named_in_the_headline() -> None:
    def repeating(name: str, many: int) -> Any:
        return run(name, [row for i in range(60) for row in [scored(f"p{i}", "fr", repetition=0.5 * (i < many))]])

    before, after = repeating("sft", 2), repeating("grpo", 30)
    found = data_of(before, after, hacks=hacks(before, after))
    assert training.tricks(found) == [
        "Tricks that rose from sft to grpo: the text repeats itself (3\u00a0% to 50\u00a0%)."
    ]
