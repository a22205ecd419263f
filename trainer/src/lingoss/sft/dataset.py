# SPDX-License-Identifier: MIT-0
"""From examples to tokens: rendered with our pinned template, masked to the assistant's turn, and none lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lingoss.data import Example, chat
from lingoss.errors import LingossError

if TYPE_CHECKING:
    from datasets import Dataset

IGNORED = -100
"""The label of a token that is read but not learned (torch's cross entropy)."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """One example as token ids and labels of the same length; `IGNORED` where nothing is learned."""

    ids: list[int]
    labels: list[int]

    @property
    def trained(self) -> int:
        """Number of tokens that the loss counts."""
        return sum(label != IGNORED for label in self.labels)


def encode(row: Example, format: str, template: str, tokenizer: Any) -> Encoded:
    """Render one example and tokenise it; the labels are the assistant's turn with its stop token.

    The mask comes from the template's `{% generation %}` block, as character ranges that are mapped to tokens here, so
    that the text is the one that generation continues and a token across a border is an error, not a guess.

    Raises:
        LingossError: nothing of the row would be learned, or a token lies half inside the assistant's turn.
    """
    rendered = chat.render(chat.messages(row, format), chat.template(template))
    encoding = tokenizer(rendered.text, add_special_tokens=False, return_offsets_mapping=True)
    ids, offsets = list(encoding["input_ids"]), encoding["offset_mapping"]
    labels = [IGNORED] * len(ids)
    for start, end in rendered.trained:
        for position, (left, right) in enumerate(offsets):
            if left < end and right > start:
                if left < start or right > end:
                    raise LingossError(
                        f"row {row.id}: the token {rendered.text[left:right]!r} lies half inside the assistant's turn, "
                        f"so template {template} and this tokenizer do not go together"
                    )
                labels[position] = ids[position]
    encoded = Encoded(ids, labels)
    if not encoded.trained:
        raise LingossError(f"row {row.id}: no token would be learned; has it a reasoning or an answer?")
    return encoded


def encode_all(rows: Sequence[Example], format: str, template: str, tokenizer: Any) -> list[Encoded]:
    """`encode` of every row, in order; a row that is in the mix several times is tokenised once.

    Raises:
        LingossError: as `encode`, for the first such row.
    """
    known: dict[Example, Encoded] = {}
    for row in rows:
        if row not in known:
            known[row] = encode(row, format, template, tokenizer)
    encoded = [known[row] for row in rows]
    require_all(len(rows), len(encoded))
    return encoded


def fit_length(encoded: Sequence[Encoded], rows: Sequence[Example], max_length: int | None, context: int) -> int:
    """The length that every row fits into: the longest row's when `max_length` is null.

    Raises:
        LingossError: rows are longer than `max_length` or than the model's `context`; names them. Nothing is cut:
            a row without its end teaches not to stop, and TRL drops one without any assistant token in silence.
    """
    longest = max(len(one.ids) for one in encoded)
    limit = min(max_length or longest, context)
    if longest <= limit:
        return limit
    over = [(place, len(one.ids)) for place, one in enumerate(encoded) if len(one.ids) > limit]
    shown = ", ".join(f"{place + 1} (id {rows[place].id}, {count} tokens)" for place, count in over[:5])
    what = f"max_length={limit}" if max_length and max_length <= context else f"the model's context of {context} tokens"
    cure = f"set max_length={longest} or null" if longest <= context else "take these rows out of the data"
    raise LingossError(f"{len(over)} of {len(encoded)} rows are longer than {what}: {shown}; {cure}")


def histogram(encoded: Sequence[Encoded]) -> dict[str, int]:
    """Token counts of the rows: sum, learned, and the usual quantiles of length."""
    lengths = sorted(len(one.ids) for one in encoded)
    at = {"shortest": 0.0, "median": 0.5, "p90": 0.9, "p99": 0.99, "longest": 1.0}
    quantiles = {name: lengths[round(share * (len(lengths) - 1))] for name, share in at.items()}
    return {"tokens": sum(lengths), "learned": sum(one.trained for one in encoded), **quantiles}


def to_dataset(encoded: Sequence[Encoded]) -> "Dataset":
    """The form that TRL takes as prepared: columns `input_ids` and `labels`."""
    from datasets import Dataset

    return Dataset.from_dict({"input_ids": [one.ids for one in encoded], "labels": [one.labels for one in encoded]})


def require_all(expected: int, found: int) -> None:
    """Refuse to train on fewer rows than were given.

    Raises:
        LingossError: rows were lost.
    """
    if expected != found:
        raise LingossError(
            f"{expected - found} of {expected} rows were lost in preparation; this is a fault, report it"
        )
