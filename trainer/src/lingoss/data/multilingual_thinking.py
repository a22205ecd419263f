# SPDX-License-Identifier: MIT-0
"""HuggingFaceH4/Multilingual-Thinking (Apache-2.0) from local files, as training examples.

Published columns: reasoning_language (an English name), developer, user, analysis, final, and messages, a list of
{role, content, thinking}. The card says that only the reasoning was translated, so what a row teaches is not what its
column `reasoning_language` suggests: question, reasoning and answer language are detected, each by itself.

A conversation becomes one example for each assistant turn that has thoughts, with the turns before it as history:
chat templates drop the thoughts of earlier turns, so training on the whole conversation would teach answers without.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lingoss import languages
from lingoss.data import jsonl
from lingoss.data.identify import NO_LANGUAGE, Detect, default_detect, main_language
from lingoss.data.rows import BadRow, Example, Loaded, Turn, short_digest
from lingoss.errors import LingossError

FAMILY = "multilingual-thinking"
TRAIN, VALIDATION = 949, 50  # of 1,000 published rows; no split is published, this one is ours


def load(path: Path | str, detect: Detect | None = None) -> Loaded[Example]:
    """All examples of a folder of parquet or JSON-lines files, or of one file; rows are numbered through, from 1.

    `bad` has every row that cannot be used; `notes` remarks on rows that were kept, such as reasoning in another
    language than the row claims.

    Raises:
        LingossError: nothing to read, or a file that is no parquet at all.
    """
    detect = detect or default_detect()
    rows: list[Example] = []
    bad: list[BadRow] = []
    notes: list[BadRow] = []
    first_seen: dict[str, int] = {}
    for number, row in enumerate(_rows(Path(path)), 1):
        try:
            if isinstance(row, str):
                raise LingossError(row)
            examples, remarks = _examples(row, detect)
            first = first_seen.setdefault(examples[0].item, number)
            if first != number:
                raise LingossError(f"the same as row {first}")
        except LingossError as error:
            bad.append(BadRow(number, str(error)))
            continue
        rows += examples
        notes += [BadRow(number, remark) for remark in remarks]
    return Loaded(str(path), rows, bad, notes)


def split(
    examples: Sequence[Example], seed: int = 0, train: int = TRAIN, validation: int = VALIDATION
) -> tuple[list[Example], list[Example]]:
    """(train, validation) by conversation, so that no conversation is on both sides.

    Conversations are ranked by a hash of seed and content: the first `validation` validate, the next `train` train,
    the rest is left out (one of the 1,000 published). With fewer conversations both parts shrink alike. The order of
    the source is kept, and which side a conversation is on does not depend on where it stands.
    """
    items = sorted({example.item for example in examples}, key=lambda item: (short_digest([seed, item]), item))
    share = min(1.0, len(items) / (train + validation))
    held = set(items[: round(validation * share)])
    used = set(items[len(held) : len(held) + train])
    return (
        [example for example in examples if example.item in used],
        [example for example in examples if example.item in held],
    )


def _rows(path: Path) -> Iterator[dict[str, Any] | str]:
    """Rows, or for a line that is none the reason why."""
    files = sorted(f for f in path.rglob("*") if f.suffix in (".parquet", ".jsonl")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise LingossError(f"{path} holds no .parquet or .jsonl file: download the data set to a folder and name that")
    for file in files:
        if file.suffix == ".parquet":
            yield from _parquet_rows(file)
        else:
            yield from (row.error if isinstance(row, jsonl.BadLine) else row for _, row in jsonl.read(file))


def _parquet_rows(file: Path) -> Iterator[dict[str, Any]]:
    from pyarrow import ArrowException, parquet

    try:
        with parquet.ParquetFile(file) as source:
            for batch in source.iter_batches():
                yield from batch.to_pylist()
    except (ArrowException, OSError) as error:
        raise LingossError(f"cannot read {file} as parquet: {error}") from error


def _examples(row: Mapping[str, Any], detect: Detect) -> tuple[list[Example], list[str]]:
    """The examples of one row, and remarks on what is unusual about it."""
    claimed = _claimed(row)
    turns = _turns(row)
    item = short_digest([FAMILY, turns])
    examples: list[Example] = []
    notes: list[str] = []
    history: list[Turn] = []
    for role, content, thinking in turns:
        if role == "assistant" and thinking:
            place = len(examples)
            examples.append(_example(item, place, history[:-1], history[-1][1], thinking, content, detect))
        elif role == "assistant":
            notes.append(f"the answer {content[:40]!r} has no `thinking`; it is history only")
        history.append((role, content))
    if not examples:
        raise LingossError("no assistant message has `thinking`")
    if strange := sorted({example.reasoning_language for example in examples} - {claimed}):
        notes.append(f"claims {claimed}, but reasons in {', '.join(strange)}; kept with the detected language")
    return examples, notes


def _example(
    item: str, place: int, history: Sequence[Turn], question: str, thinking: str, final: str, detect: Detect
) -> Example:
    reasoning_language = _clear_language(thinking, "reasoning", detect)
    asked = main_language(question, detect)
    if asked is None:
        raise LingossError(f"the language of the question cannot be told: {question[:60]!r}")
    # An answer such as "42" is in no language; it fits the reasoning's as well as any.
    neutral = detect(final).label == "neutral"
    return Example(
        id=short_digest([item, place]),
        item=item,
        family=FAMILY,
        question=question,
        question_language=asked,
        reasoning_language=reasoning_language,
        answer_language=reasoning_language if neutral else _clear_language(final, "answer", detect),
        split="sft",
        history=tuple(history),
        reasoning=thinking,
        answer=final,
    )


def _clear_language(text: str, part: str, detect: Detect) -> str:
    """What is to be taught must be in one language; a mixed text would teach mixing."""
    label = detect(text).label
    if label in NO_LANGUAGE:
        raise LingossError(f"the {part} is in no clear language ({label})")
    return label


def _claimed(row: Mapping[str, Any]) -> str:
    name = row.get("reasoning_language")
    if not isinstance(name, str):
        raise LingossError(f"`reasoning_language` must be text, found {type(name).__name__}")
    return languages.find(name).code


def _turns(row: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(role, content, thinking) of every message; the single columns stand in where there are no messages.

    The instruction is the column `developer`: the first message repeats it behind a line that asks for the reasoning
    language, which is the task of our own instruction.
    """
    messages = row.get("messages")
    if messages is None:
        names = ("user", "analysis", "final")
        user, analysis, final = (_content(row.get(name), f"`{name}`") for name in names)
        messages = [{"role": "user", "content": user}, {"role": "assistant", "content": final, "thinking": analysis}]
    if not isinstance(messages, list) or not all(isinstance(message, Mapping) for message in messages):
        raise LingossError(f"`messages` must be a list of objects, found {type(messages).__name__}")
    turns = [_turn(message, place) for place, message in enumerate(messages, 1)]
    talk = [turn for turn in turns if turn[0] in ("user", "assistant")]
    if [role for role, _, _ in talk] != ["user", "assistant"] * (len(talk) // 2) or not talk:
        raise LingossError(f"roles must be user and assistant in turn, found {', '.join(role for role, _, _ in turns)}")
    developer = row.get("developer")
    if isinstance(developer, str) and developer.strip():
        talk.insert(0, ("system", developer.strip(), ""))
    return talk


def _turn(message: Mapping[str, Any], place: int) -> tuple[str, str, str]:
    role, thinking = message.get("role"), message.get("thinking")
    if role not in ("system", "developer", "user", "assistant"):
        raise LingossError(f"message {place} has the role {role!r}")
    if thinking is not None and not isinstance(thinking, str):
        raise LingossError(f"`thinking` of message {place} must be text, found {type(thinking).__name__}")
    return role, _content(message.get("content"), f"`content` of message {place}"), (thinking or "").strip()


def _content(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise LingossError(f"{what} must be text, found {type(value).__name__}")
    if not value.strip():
        raise LingossError(f"{what} is empty")
    return value.strip()
