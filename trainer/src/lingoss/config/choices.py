# SPDX-License-Identifier: MIT-0
"""What other rooms define (formats, templates, languages, reward weights), looked up when a config is made."""

import difflib
from dataclasses import fields
from pathlib import Path

import lingoss


def formats() -> tuple[str, ...]:
    """Names of the chat formats."""
    from lingoss import transcript

    return transcript.formats()


def templates() -> tuple[str, ...]:
    """Names of the pinned chat templates, one `data/templates/<name>.jinja` each."""
    folder = Path(lingoss.__file__).parent / "data" / "templates"
    return tuple(sorted(path.stem for path in folder.glob("*.jinja")))


def reward_weights() -> dict[str, float]:
    """The numbers of `lingoss.score.Rules` with their defaults."""
    from lingoss import score

    return {field.name: float(field.default) for field in fields(score.Rules) if isinstance(field.default, int | float)}


def nearest(word: str, options: tuple[str, ...]) -> str | None:
    """The option that looks most like `word`, or None when none does."""
    close = difflib.get_close_matches(word[:80].lower(), options, n=1, cutoff=0.5)
    return close[0] if close else None


def _known(what: str, value: str, options: tuple[str, ...]) -> str:
    if value in options:
        return value
    close = nearest(value, options)
    raise ValueError(
        f"{value[:80]!r} is no {what}: known are {', '.join(options)}" + (f"; nearest: {close}" if close else "")
    )


def known_format(value: str) -> str:
    """`value` itself, or ValueError with the known formats."""
    return _known("chat format", value, formats())


def known_template(value: str) -> str:
    """`value` itself, or ValueError with the known templates."""
    return _known("chat template", value, templates())


def known_language(value: str) -> str:
    """`value` itself; raises what `lingoss.languages` raises on a code that it does not know."""
    from lingoss import languages

    languages.get(value)
    return value


# Where a credit begins and where it is full, or a fault is tolerated and ruins everything.
_RISING = (
    ("share_floor", "share_full"),
    ("repetition_tolerated", "repetition_ruinous"),
    ("copy_tolerated", "copy_ruinous"),
)


def known_weights(given: dict[str, float]) -> dict[str, float]:
    """All reward weights, with those of `given` in place of their defaults.

    Raises ValueError on a name that is none, a negative value, and on bounds that would turn the reward around.
    """
    weights = reward_weights()
    for name, value in given.items():
        _known("reward weight", name, tuple(weights))
        if not value >= 0:
            raise ValueError(f"{name} = {value:g} must not be negative: the reward lies between 0 and 1")
    weights |= given
    for low, high in _RISING:
        if weights[low] >= weights[high]:
            raise ValueError(f"{low} = {weights[low]:g} must be less than {high} = {weights[high]:g}")
    if not weights["correctness"] + weights["language"]:
        raise ValueError("correctness and language are both 0, so no completion could earn anything: raise one of them")
    return weights
