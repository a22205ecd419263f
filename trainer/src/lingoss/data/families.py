# SPDX-License-Identifier: MIT-0
"""Problem families: one YAML file each in `families/`, found by file name. See `docs/data.md` for the form."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from lingoss import languages as registry
from lingoss.data.canonical import canonical
from lingoss.data.expressions import names
from lingoss.errors import LingossError

FOLDER = Path(__file__).with_name("families")
WORDS = Path(__file__).with_name("words")

Split = Literal["sft", "grpo", "heldout"]
M = TypeVar("M", bound=BaseModel)


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Lines = Annotated[tuple[str, ...], Field(min_length=1), BeforeValidator(_as_tuple)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Variable(_Strict):
    """Whole numbers to draw from: a range with a step, or a list."""

    min: int = 0
    max: int = 0
    step: int = Field(default=1, ge=1)
    choices: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.choices and self.model_fields_set != {"choices"}:
            raise ValueError("give either choices or min, max and step")
        if not self.choices and self.max <= self.min:
            raise ValueError(f"max {self.max} is not above min {self.min}")
        return self

    def values(self) -> tuple[int, ...]:
        """All values, in order."""
        return self.choices or tuple(range(self.min, self.max + 1, self.step))


class Result(_Strict):
    """What a drawn answer must be like; other draws are thrown away."""

    min: int = 1
    max: int = 999
    decimals: int = Field(default=0, ge=0, le=2)  # three decimals would read like a thousands mark elsewhere

    @model_validator(mode="after")
    def _unambiguous(self) -> Self:
        if self.max > 999:
            raise ValueError(
                "results above 999 read differently where the thousands mark is a point; scale the problem"
            )
        return self


class Text(_Strict):
    """The problem in one language. Where there are two texts for two answers, the answer's index picks one."""

    question: str
    reasoning: Lines
    answer: Lines
    options: tuple[str, ...] = ()  # word answers that no list of shared words has


class Family(_Strict):
    """One kind of problem. Everything drawn is a whole number; words are looked up by their index."""

    name: str
    split: Split
    validation: bool = False  # a GRPO family that is kept for choosing checkpoints, never trained on
    kind: Literal["number", "word"]
    steps: int = Field(ge=1, le=9)  # operations needed: how difficult it is
    reviewed_by: tuple[str, ...] = ()  # native speakers, as "code: name"
    variables: Mapping[str, Variable]
    constraints: tuple[str, ...] = ()
    answer: str
    options: str = ""  # the list of shared words that a word answer is an index of
    result: Result = Field(default_factory=Result)
    text: Mapping[str, Text]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.validation and self.split != "grpo":
            raise ValueError("validation families belong to the grpo split")
        known = {*self.variables, "answer"}
        for source in (self.answer, *self.constraints):
            if unknown := sorted(names(source) - known):
                raise ValueError(f"{source!r} reads {', '.join(unknown)}; variables: {', '.join(sorted(known))}")
        has_own = [bool(text.options) for text in self.text.values()]
        if (self.kind == "word") != bool(self.options or any(has_own)) or (self.options and any(has_own)):
            raise ValueError(
                "a word family names a list in `options` or has options in the texts; a number family neither"
            )
        if any(has_own) and not all(has_own):
            raise ValueError("`options` in the texts of every language or of none")
        return self


class Words(BaseModel):
    """What the families share in one language: plural rules, and lists of words that are parallel across languages."""

    model_config = ConfigDict(frozen=True)

    plural: tuple[str, ...]  # conditions on n: the first that holds picks the form, else the last form
    lists: Mapping[str, tuple[str, ...]]


def load(path: Path) -> Family:
    """One family from its file; its name is the file's.

    Raises:
        LingossError: the file cannot be read or breaks a rule; the message names file and rule.
    """
    return _checked(Family, {"name": path.stem, **_mapping(path)}, path)


@functools.cache
def families() -> tuple[Family, ...]:
    """All packaged families, by name.

    Raises:
        LingossError: a file is broken, or two families ask for the same sum in other words.
    """
    found = tuple(load(path) for path in sorted(FOLDER.glob("*.yaml")))
    sums: dict[str, str] = {}
    for family in found:
        twin = sums.setdefault(canonical(family.answer), family.name)
        if twin != family.name:
            raise LingossError(
                f"families {twin} and {family.name} have the same answer expression up to the names of variables; "
                "a split by family would not separate them"
            )
    return found


@functools.cache
def words(code: str) -> Words:
    """The shared words of one language.

    Raises:
        LingossError: there is no such file.
    """
    path = WORDS / f"{code}.yaml"
    if not path.is_file():
        have = ", ".join(sorted(file.stem for file in WORDS.glob("*.yaml")))
        raise LingossError(f"no problem families in {code!r}, only in {have}; add words/{code}.yaml and texts")
    fields = _mapping(path)
    known = registry.get(code).words
    lists = {
        "weekdays": [day[0] for day in known["weekdays"]],
        "no_yes": [known["no"][0], known["yes"][0]],
        "false_true": [known["false"][0], known["true"][0]],
        **{name: values for name, values in fields.items() if name != "plural"},
    }
    return _checked(Words, {"plural": fields.get("plural"), "lists": lists}, path)


def languages(chosen: tuple[Family, ...] | None = None) -> tuple[str, ...]:
    """Languages in which every one of the families has a text, sorted."""
    texts = [set(family.text) for family in chosen or families()]
    return tuple(sorted(set.intersection(*texts)))


def review(chosen: tuple[Family, ...] | None = None) -> str:
    """One line for reports: how many families a native speaker has read."""
    chosen = chosen or families()
    reviewed = sum(bool(family.reviewed_by) for family in chosen)
    return f"{reviewed} of {len(chosen)} families reviewed by a native speaker"


def _mapping(path: Path) -> dict[str, Any]:
    try:
        # The C loader is six times as fast; it is missing where PyYAML was built without libyaml.
        found = yaml.load(path.read_text(encoding="utf-8-sig"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise LingossError(f"cannot read {path}: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise LingossError(f"{path} must hold a mapping, found {type(found).__name__}")
    return found


def _checked(kind: type[M], fields: dict[str, Any], path: Path) -> M:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise LingossError(f"{path.name}: {where + ': ' if where else ''}{first['msg']}") from error
