# SPDX-License-Identifier: MIT-0
"""Values that other rooms define by adding a file (formats, templates, languages), looked up when a config is made."""

import difflib
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


def nearest(word: str, options: tuple[str, ...]) -> str | None:
    """The option that looks most like `word`, or None when none does."""
    close = difflib.get_close_matches(word[:80].lower(), options, n=1, cutoff=0.5)
    return close[0] if close else None


def _known(what: str, value: str, options: tuple[str, ...]) -> str:
    if value in options:
        return value
    close = nearest(value, options)
    raise ValueError(f"is no {what}: known are {', '.join(options)}" + (f"; nearest: {close}" if close else ""))


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
