# SPDX-License-Identifier: MIT-0
"""Does the rollout engine mean the policy that is trained? Log-probabilities of the same tokens from both, compared.

Numbers in, a report out; `probe` asks engine and trainer. Both read fixed texts token by token (which shows the
weights), and the trainer reads what the engine drew as a rollout (which shows the sampling parameters).

The tolerance belongs to the model: engine and trainer round differently, and how much that moves a log-probability
depends on the weights. On SmolLM2 a bfloat16 engine lies 0.03 from a float32 trainer; a gpt-oss of random weights,
whose experts are chosen by ties, 0.38. So it is a multiple of what the trainer shows against itself when it computes
the same tokens in another batch shape and in the engine's number format.

A stale adapter can hide below any tolerance, since a few steps move the policy less than rounding does. So the report
also says how far the engine stands on the way from each other known policy (0) to the trained one (1): a regression
over all tokens, whose error shrinks with their number where the mean difference does not.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lingoss.errors import LingossError

Rows = Sequence[Sequence[float]]
"""One row of log-probabilities (natural, of the token that stands there) for each text."""
Layer = Literal["ids", "base", "adapter", "sampling", "precision"]
"""What broke. `ids`: they do not speak of the same tokens. `base`: weights that are no known policy's. `adapter`: it
has not arrived, only in part, or is an older one. `sampling`: the weights agree and the drawing does not. `precision`:
the same weights with more rounding than the tolerance grants."""

FACTOR = 3.0
"""Tolerance over the trainer's own scatter. Engine and trainer round independently and by different kernels (measured
on SmolLM2: 1.4 times that scatter); two swapped tensors in one of its thirty layers move 70 times as much."""
FLOOR = 0.02
"""Smallest tolerance: in one number format and shape the trainer repeats itself exactly, and no engine does."""
_SIGMAS = 3.0
_ARRIVED = 0.8  # of the way: the engine's rounding was measured to shift it by 0.05
_ALMOST = 0.97  # of the way, where rounding does not explain the difference
_LEAST = -1e4
_COARSE = 4.0  # times the tolerance: up to here a difference without direction is called rounding (8 bits reach 3)


@dataclass(frozen=True, slots=True)
class Way:
    """Where the engine stands on the way from the policy `name` (0) to the trained one (1), with standard error.
    `distance` is the mean absolute difference between these two in the trainer. The error is infinite when the two say
    the same of every token."""

    name: str
    fraction: float
    error: float
    distance: float

    @property
    def tells(self) -> bool:
        """Whether the two policies could be told apart."""
        return self.error * _SIGMAS < 0.5


@dataclass(frozen=True, slots=True)
class Drawn:
    """What the engine drew as a rollout: its own log-probabilities, and the trainer's of the same tokens at several
    temperatures. `temperature` is the configured one; its rows must be among them."""

    engine: Rows
    trainer: Mapping[float, Rows]
    temperature: float


@dataclass(frozen=True, slots=True)
class ParityReport:
    """`layer` is None when engine and trainer agree. Differences are engine less trainer in nats a token: `difference`
    is the mean of their absolute values, `largest` the largest; `drawn` the mean over what the engine drew (None
    without). `tolerance` holds for both means."""

    layer: Layer | None
    sentence: str
    tokens: int
    difference: float
    largest: float
    drawn: float | None
    tolerance: float
    ways: tuple[Way, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is not finite becomes None."""
        plain = asdict(self)
        plain["ways"] = [{key: _finite(value) for key, value in way.items()} for way in plain["ways"]]
        return {key: _finite(value) for key, value in plain.items()}

    def raise_if_broken(self) -> None:
        """Raises LingossError with the sentence when engine and trainer do not agree."""
        if self.layer is not None:
            raise LingossError(f"the rollout engine does not mean the policy that is trained: {self.sentence}")


def own_tolerance(trainer: Rows, again: Rows) -> float:
    """The tolerance for a model whose trainer gives these two answers about the same tokens: in its own way, and in
    another batch shape and the engine's number format.

    Raises:
        ValueError: the answers are about different tokens, or not finite.
    """
    first, second = _flat(trainer), _flat(again)
    if first.shape != second.shape or not np.isfinite(first - second).all():
        raise ValueError("the trainer's two answers must be finite and about the same tokens")
    return max(FLOOR, FACTOR * float(np.abs(first - second).mean()))


def compare(
    engine: Rows,
    trainer: Rows,
    tolerance: float,
    *,
    known: Mapping[str, Rows] | None = None,
    drawn: Drawn | None = None,
    ids: tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]] | None = None,
) -> ParityReport:
    """Compare and name the first layer that broke, from the tokens upwards.

    `trainer` is what the policy should say, `known` what other policies say of the same tokens (the base model, the
    adapter that training started from), `ids` how engine and trainer each turn the fixed texts into tokens.

    Raises:
        ValueError: the trainer's own rows differ in shape or are not finite.
    """
    known = known or {}
    shape = [len(row) for row in trainer]
    if not sum(shape) or any([len(row) for row in rows] != shape for rows in known.values()):
        raise ValueError("the trainer's rows must be about the same tokens, at least one")
    if not all(np.isfinite(_flat(rows)).all() for rows in (trainer, *known.values())):
        raise ValueError("the trainer's log-probabilities must be finite")
    if fault := _other_tokens(engine, shape, ids):
        return ParityReport("ids", fault, sum(shape), math.nan, math.nan, None, tolerance)
    apart = _flat(engine) - _flat(trainer)
    if bad := _impossible(engine):
        fault = f"{bad} of the engine's {len(apart)} log-probabilities are none, so its weights are damaged"
        return ParityReport("base", fault, len(apart), math.nan, math.nan, None, tolerance)
    difference, largest = float(np.abs(apart).mean()), float(np.abs(apart).max())
    ways = tuple(_way(name, engine, trainer, rows) for name, rows in known.items())
    off = None if drawn is None else _mean_apart(drawn.engine, drawn.trainer[drawn.temperature])
    numbers = f"mean difference {difference:.3g} over {len(apart)} tokens, tolerance {tolerance:.3g}"
    layer, sentence = _weights(difference, tolerance, engine, trainer, known, ways)
    if layer is None and drawn is not None and not _within(off, tolerance, drawn):
        layer, sentence = "sampling", _sampling(drawn, tolerance)
        numbers = f"weights agree: {numbers}"
    if layer is None:
        sentence = _agreement(ways)
    return ParityReport(layer, f"{sentence} ({numbers})", len(apart), difference, largest, off, tolerance, ways)


def _other_tokens(
    engine: Rows, shape: list[int], ids: tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]] | None
) -> str | None:
    """Why engine and trainer do not speak of the same tokens; None when they do."""
    for place, (theirs, ours) in enumerate(zip(*ids, strict=True) if ids else (), start=1):
        if list(theirs) != list(ours):
            at = next(
                (i for i, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b), min(len(theirs), len(ours))
            )
            found, wanted = (row[at] if at < len(row) else "nothing" for row in (theirs, ours))
            return (
                f"the engine's tokenizer differs: token {at + 1} of text {place} is {found} there and {wanted} in the "
                "trainer; both must load the same model folder"
            )
    lengths = [len(row) for row in engine]
    if lengths != shape:
        return f"the engine tells of {sum(lengths)} tokens in {len(lengths)} texts, the trainer of {sum(shape)} in {len(shape)}"
    return None


def _weights(
    difference: float,
    tolerance: float,
    engine: Rows,
    trainer: Rows,
    known: Mapping[str, Rows],
    ways: Sequence[Way],
) -> tuple[Layer | None, str]:
    """The layer of the weights that broke, and how it shows."""
    for way in ways:
        if way.tells and way.fraction + _SIGMAS * way.error < 0.5 and _mean_apart(engine, known[way.name]) <= tolerance:
            return "adapter", (
                f"the engine still runs {way.name}: the trained adapter has not arrived, it stands at "
                f"{_at(way)} of the way, and the two differ by {way.distance:.3g}"
            )
    limit = _ARRIVED if difference <= tolerance else _ALMOST
    part = next((way for way in ways if _cut_short(way, limit, engine, known[way.name], trainer, tolerance)), None)
    if part is not None:
        return "adapter", (
            f"only a part of the trained weights has arrived: the engine stands at {_at(part)} of the way from {part.name}"
        )
    if difference <= tolerance:
        return None, ""
    if difference <= _COARSE * tolerance and all(way.fraction > 0.5 for way in ways if way.tells):
        return "precision", (
            "the engine rounds more than its dtype explains (is it quantised?), or runs a base that is close to this one"
        )
    others = " nor ".join(["the trained policy's", *(f"those of {way.name}" for way in ways)])
    return "base", (
        f"the engine's weights are neither {others}: it was started from another base model, or tensors were mixed up "
        "on the way"
        if ways
        else f"the engine's weights are not {others}: it was started from another base model, tensors were mixed up on "
        "the way, or the adapter has not arrived"
    )


def _sampling(drawn: Drawn, tolerance: float) -> str:
    """What the engine's own tokens say about how they were drawn."""
    means = {value: _mean_apart(drawn.engine, rows) for value, rows in drawn.trainer.items()}
    best = min(means, key=lambda value: means[value])
    if bad := _impossible(drawn.engine):
        return f"{bad} of the log-probabilities that the engine drew its tokens with are none"
    told = f"what the engine draws differs by {means[drawn.temperature]:.3g} at temperature {drawn.temperature:g}"
    # A filter looks a little like cold sampling, which explains far more when that is what it is.
    if best != drawn.temperature and means[best] <= min(means[drawn.temperature] / 3, _scaled(tolerance, best)):
        return f"{told} and by {means[best]:.3g} at {best:g}: it samples with temperature {best:g}"
    apart = _flat(drawn.engine) - _flat(drawn.trainer[drawn.temperature])
    if np.mean(apart > -tolerance) > 0.95:
        return (
            f"{told}, its tokens always being the likelier ones: a filter (top-p, top-k or min-p) narrows its "
            "distribution"
        )
    return f"{told}: it samples with other parameters (a penalty, a filter, or raw instead of processed logprobs)"


def _agreement(ways: Sequence[Way]) -> str:
    blind = [way for way in ways if not way.tells]
    seen = [f"{_at(way)} of the way from {way.name}" for way in ways if way.tells]
    sentence = "engine and trainer agree" + (f"; it stands at {' and '.join(seen)}" if seen else "")
    if blind:
        names = " and ".join(f"{way.name} (which differs by {way.distance:.2g})" for way in blind)
        sentence += f"; whether it runs the trained policy or {names} is too close to tell"
    return sentence


def _way(name: str, engine: Rows, trainer: Rows, other: Rows) -> Way:
    """Least squares through the origin; the error is a jackknife over texts, whose tokens are not independent."""
    pairs = [
        (np.asarray(e) - np.asarray(o), np.asarray(t) - np.asarray(o))
        for e, t, o in zip(engine, trainer, other, strict=True)
    ]
    above = np.array([float(moved @ whole) for moved, whole in pairs])
    below = np.array([float(whole @ whole) for _, whole in pairs])
    distance = _mean_apart(trainer, other)
    if below.sum() <= 0:
        return Way(name, 1.0, math.inf, distance)
    fraction = float(above.sum() / below.sum())
    rest = below.sum() - below
    if len(pairs) < 2 or (rest <= 0).any():
        return Way(name, fraction, math.inf, distance)
    with np.errstate(over="ignore"):  # nearly equal policies and a broken engine
        without = (above.sum() - above) / rest
        spread = float(np.mean((without - without.mean()) ** 2))
    error = math.sqrt((len(pairs) - 1) * spread)
    return Way(name, fraction, error, distance)


def _cut_short(way: Way, limit: float, engine: Rows, other: Rows, trainer: Rows, tolerance: float) -> bool:
    """Whether the engine stops plainly short of the trained policy, near the line that joins the two."""
    if not way.tells or way.fraction + _SIGMAS * way.error >= limit:
        return False
    start = _flat(other)
    beside = _flat(engine) - start - way.fraction * (_flat(trainer) - start)
    return float(np.abs(beside).mean()) <= _COARSE * tolerance


def _at(way: Way) -> str:
    return f"{way.fraction:.2f} ± {way.error:.2f}"


def _impossible(rows: Rows) -> int:
    """How many values are no log-probabilities: not finite, positive beyond rounding, or absurd."""
    values = _flat(rows)
    return int((~((values > _LEAST) & (values < 1e-3))).sum())


def _within(off: float | None, tolerance: float, drawn: Drawn) -> bool:
    return off is not None and not _impossible(drawn.engine) and off <= _scaled(tolerance, drawn.temperature)


def _scaled(tolerance: float, temperature: float) -> float:
    """Below temperature 1 differences of logits count for more."""
    return tolerance / min(1.0, temperature)


def _mean_apart(first: Rows, second: Rows) -> float:
    with np.errstate(over="ignore"):
        return float(np.abs(_flat(first) - _flat(second)).mean())


def _flat(rows: Rows) -> npt.NDArray[np.float64]:
    return np.array([value for row in rows for value in row], dtype=np.float64)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
