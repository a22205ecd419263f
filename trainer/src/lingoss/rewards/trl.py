# SPDX-License-Identifier: MIT-0
"""The reward as TRL's GRPOTrainer (1.16) calls it: one object, called once for each batch of completions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lingoss.errors import LingossError
from lingoss.rewards.label import COLUMNS, request_of
from lingoss.rewards.parallel import verdicts
from lingoss.rewards.safe import at, attempt, numbers
from lingoss.score import DEFAULT, Request, Rules, Verdict
from lingoss.transcript import Transcript, chat_format, parse_ids
from lingoss.transcript import stop_ids as stop_ids_of

Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True, slots=True)
class Scored:
    """The batch of the last call, in TRL's order. An exception stands for what could not be read."""

    transcripts: Sequence[Transcript | Exception]
    requests: Sequence[Request | Exception]
    finish_reasons: Sequence[str]
    verdicts: Sequence[Verdict]


class Reward:
    """Callable reward: `Reward("harmony", rules, tokenizer)`, with the request's five values as dataset columns.

    TRL decodes completions without special tokens, which hides Harmony's channels, so only `completion_ids` are read.
    A completion is cut when its last token (padding apart) is no stop token, unless the rollout gives its own
    `finish_reason` column.
    """

    def __init__(
        self,
        format: str,
        rules: Rules = DEFAULT,
        tokenizer: Any = None,
        stop_ids: Iterable[int] = (),
    ) -> None:
        """`tokenizer` decodes ordinary ids; `stop_ids`: the ids that end a completion, added to those of `tokenizer`.

        Raises:
            LingossError: unknown format; or no stop id is known, so that every completion would count as cut.
        """
        self.format, self.rules = format, rules
        self.step_seconds: float | None = None  # the trainer's latest; from it on scoring may run in other processes
        self.last = Scored((), (), (), ())
        self._decode: Decode | None = None
        self._padding: int | None = None
        known = set(map(int, stop_ids))
        chat_format(format)  # raises for an unknown one, with or without a tokenizer
        if tokenizer is not None:
            self._decode = lambda ids: str(tokenizer.decode(list(ids), skip_special_tokens=False))
            self._padding = tokenizer.pad_token_id
            known |= stop_ids_of(format, tokenizer)
        if not known:
            raise LingossError(f"no stop token of format {format!r} is known: give the tokenizer or stop_ids")
        self.stop_ids = frozenset(known)

    def check(self, columns: Iterable[str]) -> None:
        """Whether the data set has what a request needs.

        Raises:
            LingossError: names the missing columns. A call could only count the rows as failed.
        """
        if missing := [name for name in COLUMNS if name not in set(columns)]:
            raise LingossError(f"the prompts have no column {', '.join(missing)}, which the reward reads")

    def __call__(
        self,
        prompts: Any = None,
        completions: Any = None,
        completion_ids: Any = None,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float]:
        """The reward of each completion, in order. Never raises on any value."""
        count = next((len(given) for given in (completion_ids, completions, prompts) if isinstance(given, list)), 0)
        given = completion_ids if isinstance(completion_ids, list) else [None] * count
        ids = [attempt(self._without_padding, one) for one in given]
        rows = [{name: at(columns.get(name), row) for name in COLUMNS} for row in range(count)]
        reasons = [self._finish(one, at(columns.get("finish_reason"), row)) for row, one in enumerate(ids)]
        transcripts = [
            one if isinstance(one, Exception) else attempt(parse_ids, one, self.format, why, self._decode)
            for one, why in zip(ids, reasons, strict=True)
        ]
        requests = [attempt(request_of, row) for row in rows]
        found = verdicts(transcripts, requests, self.rules, self.step_seconds)
        self.last = Scored(transcripts, requests, reasons, found)
        self._log(found, log_extra, log_metric)
        return [one.reward for one in found]

    def _without_padding(self, ids: Any) -> list[int]:
        kept = [int(number) for number in ids]
        while kept and kept[-1] == self._padding and self._padding not in self.stop_ids:
            kept.pop()
        return kept

    def _finish(self, ids: list[int] | Exception, said: Any) -> str:
        if isinstance(said, str) and said in ("stop", "length"):
            return said
        stopped = not isinstance(ids, Exception) and bool(ids) and ids[-1] in self.stop_ids
        return "stop" if stopped else "length"

    def _log(self, found: Sequence[Verdict], log_extra: Any, log_metric: Any) -> None:
        """Each number as a column of TRL's table of completions, and its mean as a metric."""
        shown = [numbers(one) for one in found]
        for name in shown[0] if shown else ():
            values = [row[name] for row in shown]
            if callable(log_extra) and name.startswith("term/"):
                log_extra(name, values)
            if callable(log_metric):
                log_metric(name, sum(values) / len(values))
        if callable(log_extra) and shown:
            log_extra("grade", [one.grade or "" for one in found])
