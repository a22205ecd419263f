# SPDX-License-Identifier: MIT-0
"""The languages we know: one YAML file each, and a short table for the rest that the detector can recognise.

Adding a language means adding `<code>.yaml` beside this file. A code without a file still works when fastText's
lid.176 model knows it: it then has a name and a script, and no words.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from lingoss.errors import LingossError

__all__ = ["Language", "UnknownLanguage", "builtin", "find", "get"]

# The order in which people will read tables; files added later follow in alphabetical order.
_FIRST = ("en", "fr", "de", "es", "it", "pt", "nl", "zh", "ja", "ar", "hi", "ko")


class UnknownLanguage(LingossError):
    """Neither a built-in language nor one that the detector knows."""


@dataclass(frozen=True, slots=True)
class Language:
    """What the other rooms need to know about one language.

    `words` holds lists and tables for grading and for judging short texts (see any of the YAML files); it is empty
    for a language without a file.
    """

    code: str
    name: str
    native_name: str
    scripts: tuple[str, ...]
    decimal: str
    groups: tuple[str, ...]
    relatives: tuple[str, ...]
    words: Mapping[str, Any]


def builtin() -> tuple[str, ...]:
    """Codes of all languages that have a file."""
    return _builtin()


def get(code: str) -> Language:
    """The language with this ISO code; a region ("pt-BR") is ignored.

    Raises UnknownLanguage, naming the nearest code, when neither a file nor the detector knows it.
    """
    base = re.split("[-_]", code.strip().lower(), maxsplit=1)[0] if isinstance(code, str) else ""
    found = _load(base) if base else None
    if found is None:
        raise UnknownLanguage(_complaint(code))
    return found


def find(name_or_code: str) -> Language:
    """The language with this code, English name or own name: "fr", "French" and "français" are the same.

    Raises UnknownLanguage, naming the nearest name.
    """
    key = name_or_code.strip().casefold() if isinstance(name_or_code, str) else ""
    code = _names().get(key)
    if code is not None:
        return get(code)
    try:
        return get(name_or_code)
    except UnknownLanguage:
        raise UnknownLanguage(_complaint(name_or_code)) from None


def _complaint(asked: object) -> str:
    near = difflib.get_close_matches(str(asked)[:80].casefold(), list(_names()), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r} ({_names()[near[0]]})?" if near else f"known are {', '.join(_builtin())}."
    return f"unknown language {str(asked)[:80]!r}: {hint}"


@cache
def _builtin() -> tuple[str, ...]:
    stems = (item.name[:-5] for item in files(__name__).iterdir() if item.name.endswith(".yaml"))
    found = {stem for stem in stems if not stem.startswith("_")}
    return tuple(code for code in _FIRST if code in found) + tuple(sorted(found - set(_FIRST)))


@cache
def _others() -> dict[str, list[str]]:
    table: dict[str, list[str]] = _read("_others.yaml")
    return table


@cache
def _names() -> dict[str, str]:
    """Every name and code, case-folded, to its code; built-in languages win over the table."""
    names = {name.casefold(): code for code, (name, _) in _others().items()}
    names.update({code: code for code in _others()})
    for code in _builtin():
        language = _load(code)
        assert language is not None
        aliases = language.words.get("aliases", ())
        names.update({n.casefold(): code for n in (code, language.name, language.native_name, *aliases)})
    return names


@cache
def _load(code: str) -> Language | None:
    if code in _builtin():
        data = _read(f"{code}.yaml")
        return Language(
            code=data["code"],
            name=data["name"],
            native_name=data["native_name"],
            scripts=tuple(data["scripts"]),
            decimal=data["decimal"],
            groups=tuple(data["groups"]),
            relatives=tuple(data["relatives"]),
            words=data["words"],
        )
    if code in _others():
        name, script = _others()[code]
        return Language(code, name, name, (script,), ".", (",",), (), {})
    return None


def _read(name: str) -> Any:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is ten times faster where it was built
    return yaml.load(files(__name__).joinpath(name).read_text(encoding="utf-8"), Loader=loader)
