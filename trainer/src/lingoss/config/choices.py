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


def known_weights(given: dict[str, float]) -> dict[str, float]:
    """All reward weights, with those of `given` in place of their defaults. ValueError on a name that is none."""
    weights = reward_weights()
    for name in given:
        _known("reward weight", name, tuple(weights))
    return {**weights, **given}
