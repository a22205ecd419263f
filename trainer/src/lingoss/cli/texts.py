# SPDX-License-Identifier: MIT-0
"""Commands over files of texts: `detect`, `transcript`, `score`. One JSON row in, the same row with the finding out."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lingoss.errors import LingossError

Row = dict[str, Any]


def add(commands: Any) -> None:
    """Add the three commands to the parser."""
    detect = _command(
        commands,
        "detect",
        _detect,
        "Which language is each text in, and is it the one asked for?",
        "rows:  {text, target?}      adds  detection: {label, target, accepted, target_share, shares, second, letters,\n"
        "                                  abstained, segments}\n\n"
        'example:  echo \'{"text": "Il fait beau.", "target": "fr"}\' | lingoss detect -',
    )
    detect.add_argument(
        "--languages",
        metavar="en,fr,…",
        help="candidates; any language fastText knows (default: the twelve that are built in)",
    )
    _command(
        commands,
        "transcript",
        _transcript,
        "Split raw model output into reasoning and answer, and say whether it is well formed and complete.",
        "rows:  {format: harmony|think|plain, text, finish_reason?: stop|length}\n"
        "       adds  parsed: {reasoning, answer, format_ok, truncated}\n\n"
        'example:  echo \'{"format": "think", "text": "<think>2 + 2 = 4.</think>4"}\' | lingoss transcript -',
    )
    score = _command(
        commands,
        "score",
        _score,
        "The verdict on each text: format, languages, correctness, and the reward with every term.",
        "rows:  {format, text, finish_reason?, request: {question, question_language, reasoning_language,\n"
        "        answer_language, gold}}\n"
        "       adds  verdict: {format_ok, truncated, reasoning, answer, grade, grade_rule, lengths, repetition,\n"
        "                       prompt_copy, relevance, prose, terms, reward}\n"
        "What `lingoss generate` writes is such a file; no model and no GPU is needed, so score as often as you like.\n"
        "Given the folder that `generate` made instead of a file, the verdicts are written into it.\n"
        "Languages may be codes or names; without `gold` no answer is graded.\n\n"
        'example:  echo \'{"format": "think", "text": "<think>Deux et deux font quatre.</think>Cela fait 4.",\n'
        '                 "request": {"question": "How much is 2 + 2?", "question_language": "en",\n'
        '                 "reasoning_language": "fr", "answer_language": "fr", "gold": 4}}\' | tr -d "\\n" | lingoss score -',
    )
    score.add_argument("--languages", metavar="en,fr,…", help="candidates of the detector")
    score.set_defaults(run=_score_file_or_folder)


def _command(
    commands: Any, name: str, work: Callable[[argparse.Namespace], Callable[[Row], Row]], title: str, rows: str
) -> argparse.ArgumentParser:
    """One command that maps rows; bad rows become error rows and the rest goes on."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=title,
        description=title,
        epilog=rows
        + "\n\nA malformed line becomes an error row with its line number; the rest goes on; exit status 1.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE.jsonl", help="JSON lines, UTF-8; - for standard input")
    parser.add_argument("-o", "--output", metavar="OUT.jsonl", help="where to write (default: standard output)")
    parser.set_defaults(run=lambda arguments: _map_rows(arguments, work(arguments)))
    return parser


def _map_rows(arguments: argparse.Namespace, work: Callable[[Row], Row]) -> int:
    from lingoss.data import jsonl

    bad = 0

    def rows() -> Iterator[Row]:
        nonlocal bad
        for usable, row in jsonl.mapped(_counted(jsonl.read(arguments.file), arguments.command), work):
            bad += not usable
            yield row

    if arguments.output:
        jsonl.write(Path(arguments.output), rows())
    else:
        for row in rows():
            sys.stdout.write(jsonl.dumps(row) + "\n")
        sys.stdout.flush()
    if bad:
        print(
            f"lingoss {arguments.command}: {bad} bad row(s), each written with its line number and `error`",
            file=sys.stderr,
        )
    return 1 if bad else 0


def _counted(rows: Iterator[Any], label: str) -> Iterator[Any]:
    """Yield `rows`; on a terminal, count them once work has gone on for a second. A pipe gets no noise."""
    start = shown = time.monotonic()
    for count, row in enumerate(rows, 1):
        yield row
        now = time.monotonic()
        if now - shown > 1.0 and sys.stderr.isatty():
            shown = now
            print(f"\r{label}: {count:,} rows, {count / (now - start):,.0f}/s ", end="", file=sys.stderr)
    if shown > start:
        print(file=sys.stderr)


def _candidates(arguments: argparse.Namespace) -> tuple[str, ...] | None:
    from lingoss import languages

    if not arguments.languages:
        return None
    return tuple(languages.get(code.strip()).code for code in arguments.languages.split(",") if code.strip())


def _detect(arguments: argparse.Namespace) -> Callable[[Row], Row]:
    from lingoss import languages
    from lingoss.data import jsonl
    from lingoss.detect import detect

    candidates = _candidates(arguments)

    def work(row: Row) -> Row:
        target = row.get("target")
        if target is not None:
            target = languages.find(jsonl.string(row, "target")).code
        return {**row, "detection": detect(jsonl.string(row, "text"), target, candidates).to_dict()}

    return work


def _transcript(arguments: argparse.Namespace) -> Callable[[Row], Row]:
    from lingoss.evaluate.scoring import parse_row

    def work(row: Row) -> Row:
        found = parse_row(row)
        return {
            **row,
            "parsed": {
                "reasoning": found.reasoning,
                "answer": found.answer,
                "format_ok": found.format_ok,
                "truncated": found.truncated,
            },
        }

    return work


def _score_file_or_folder(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.file)
    if not folder.is_dir():
        return _map_rows(arguments, _score(arguments))
    from lingoss.evaluate.scoring import score_folder
    from lingoss.score import Rules

    if arguments.output:
        raise LingossError(f"-o goes with a file; the verdicts on folder {folder} are written into it")
    run = score_folder(folder, folder.name, Rules(languages=_candidates(arguments) or ()))
    print(f"{len(run.rows)} rows scored, {len(run.errors)} error row(s): {folder / 'verdicts.jsonl'}")
    return 1 if run.errors else 0


def _score(arguments: argparse.Namespace) -> Callable[[Row], Row]:
    from lingoss.evaluate.scoring import score_row
    from lingoss.score import Rules

    rules = Rules(languages=_candidates(arguments) or ())
    return lambda row: score_row(row, rules)
