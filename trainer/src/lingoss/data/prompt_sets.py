# SPDX-License-Identifier: MIT-0
"""The named prompt sets and the training rows, drawn from the problem families by one crossed plan.

For each requested language a third of the questions is in that language, a third in English (in another language when
English is requested) and a third in another language. About every tenth row asks for reasoning in a language other
than the answer's. Training rows of GRPO and the set `validation` come from different families, and none of them from
the families of `heldout` and `core`.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from lingoss.data import families as registry
from lingoss.data.draws import Draw, distinct, draw
from lingoss.data.families import Family
from lingoss.data.rows import Example, Prompt
from lingoss.data.texts import render
from lingoss.errors import LingossError

FIVE = ("en", "fr", "de", "es", "it")
VALIDATION = "validation"
"""The set by which GRPO chooses its checkpoint, and the `split` of its prompts."""
NAMES = ("core", "core-crossed", VALIDATION, "heldout")

# The topics of the public evaluation that this project answers, in its order.
CORE = (
    "percent-of-number",
    "train-distance",
    "price-after-discount",
    "next-term",
    "doubled-workers",
    "rectangle-area",
    "ball-probability",
    "celsius-to-fahrenheit",
    "trip-fuel",
    "weekday-later",
)
CORE_SEED = 1_000_000  # far from the seeds of `heldout`, so that no core problem is one of its problems
SEED_SPAN = 1_000_000  # each user-chosen seed owns that many draws of a family
VALIDATION_DRAWS = 13  # 13 draws of 5 families: 65 prompts per language, enough for the gate's 64
SLICE = 10  # every tenth row of a family asks for two different languages
HELDOUT_DRAWS = 20  # 20 draws of 12 families: 240 prompts per language


def prompt_set(name: str, languages: Sequence[str] = FIVE) -> list[Prompt]:
    """A fixed set of prompts; any first part of it is spread over families and languages.

    `core`: one problem of each public topic, question, reasoning and answer in one language. `core-crossed`: the same
    problems with the question in another language. `validation`: for choosing checkpoints. `heldout`: for reports.

    Raises:
        LingossError: unknown name, a language that the families lack, or too few languages to cross.
    """
    if name not in NAMES:
        raise LingossError(f"unknown prompt set {name!r}; there are {', '.join(NAMES)}")
    if name in ("core", "core-crossed"):
        return _core(languages, crossed=name == "core-crossed")
    validation = name == VALIDATION
    chosen = _chosen("grpo", validation=True) if validation else _chosen("heldout")
    drawn = _grid(chosen, VALIDATION_DRAWS if validation else HELDOUT_DRAWS)
    plan = _Plan(_codes(languages, chosen))
    return [
        _prompt(problem, *triple, split=name)
        for number, problem in enumerate(drawn)
        for triple in plan.triples(number % len(chosen), number // len(chosen))
    ]


def grpo_prompts(n_per_language: int, seed: int = 0, languages: Sequence[str] = FIVE) -> list[Prompt]:
    """Prompts to train on with GRPO: its families without those of `validation`; `n_per_language` for each answer
    language. Another seed draws other problems.

    Raises:
        LingossError: a count or seed below zero, or a language that the families lack.
    """
    return [_prompt(*row, split="grpo") for row in _training(_chosen("grpo"), n_per_language, seed, languages)]


def sft_examples(n_per_language: int, seed: int = 0, languages: Sequence[str] = FIVE) -> list[Example]:
    """Examples to train on with SFT, with reasoning and answer in the requested languages.

    Raises:
        LingossError: a count or seed below zero, or a language that the families lack.
    """
    return [
        Example(
            **asdict(_prompt(problem, question, reasoning, answer, split="sft")),
            reasoning=render(problem, reasoning, names=question).reasoning,
            answer=render(problem, answer, names=question).answer,
        )
        for problem, question, reasoning, answer in _training(_chosen("sft"), n_per_language, seed, languages)
    ]


def _prompt(problem: Draw, question: str, reasoning: str, answer: str, split: str) -> Prompt:
    return Prompt(
        id=problem.id(question, reasoning, answer),
        item=problem.item,
        family=problem.family.name,
        question=render(problem, question).question,
        question_language=question,
        reasoning_language=reasoning,
        answer_language=answer,
        gold=render(problem, answer, names=question).gold,
        split=split,
    )


def _core(languages: Sequence[str], crossed: bool) -> list[Prompt]:
    known = {family.name: family for family in registry.families()}
    chosen = tuple(known[name] for name in CORE)
    codes = _codes(languages, chosen)
    if crossed and len(codes) < 2:
        raise LingossError("core-crossed needs at least two languages")
    rows = []
    for number, family in enumerate(chosen):
        problem = draw(family, CORE_SEED)
        for place, target in enumerate(codes):
            others = [code for code in codes if code != target]
            question = others[(number + place) % len(others)] if crossed else target
            rows.append(_prompt(problem, question, target, target, split="core-crossed" if crossed else "core"))
    return rows


def _chosen(split: str, validation: bool = False) -> tuple[Family, ...]:
    return tuple(f for f in registry.families() if f.split == split and f.validation == validation)


def _codes(languages: Sequence[str], chosen: tuple[Family, ...]) -> tuple[str, ...]:
    """Sorted and without repeats, so that the order in which languages are listed changes nothing.

    A language needs a text in every family of a set: with fewer, its figures would stand for other problems.
    """
    if not languages:
        raise LingossError(f"no language given; the problem families have {', '.join(registry.languages(chosen))}")
    for code in languages:
        if lacking := [family.name for family in chosen if code not in family.text]:
            shown = ", ".join(lacking[:3]) + (", …" if len(lacking) > 3 else "")
            raise LingossError(
                f"{len(lacking)} of {len(chosen)} problem families of this set have no text in {code} ({shown}); "
                f"all have {', '.join(registry.languages(chosen))}"
            )
    return tuple(sorted(set(languages)))


def _grid(chosen: tuple[Family, ...], draws: int) -> list[Draw]:
    """`draws` problems of each family; one of each before the second of any."""
    columns = [list(itertools.islice(distinct(family), draws)) for family in chosen]
    return [problem for row in zip(*columns, strict=True) for problem in row]


def _training(
    chosen: tuple[Family, ...], n_per_language: int, seed: int, languages: Sequence[str]
) -> Iterator[tuple[Draw, str, str, str]]:
    """Rows in the order problem, language; each row has a problem of its own, so numbers vary as much as they can."""
    if n_per_language < 0 or seed < 0:
        raise LingossError(f"n_per_language={n_per_language} and seed={seed} must not be negative")
    streams = [distinct(family, seed * SEED_SPAN) for family in chosen]
    plan = _Plan(_codes(languages, chosen))
    for number in range(n_per_language):
        family = number % len(streams)
        for triple in plan.triples(family, number // len(streams)):
            yield next(streams[family]), *triple


class _Plan:
    """Deals out language triples; where there is a choice of languages, each takes its turn."""

    def __init__(self, codes: tuple[str, ...]) -> None:
        self._codes = codes
        self._questions = {target: itertools.cycle(self._question_choices(target)) for target in codes}
        self._reasonings = {target: itertools.cycle(self._others(target) or [target]) for target in codes}

    def triples(self, family: int, draw_number: int) -> Iterator[tuple[str, str, str]]:
        """(question, reasoning, answer) language of one problem for each requested language.

        The three kinds of question and the slice with unequal languages move on with the draw, the family and the
        language, so that none of them falls on the same families every time.
        """
        for place, target in enumerate(self._codes):
            turn = family + draw_number + place
            kind = turn % 3
            if kind == 0:
                question = target
            elif kind == 1 and target != "en":
                question = "en"
            else:
                question = next(self._questions[target])
            reasoning = next(self._reasonings[target]) if turn % SLICE == SLICE - 1 else target
            yield question, reasoning, target

    def _others(self, target: str) -> list[str]:
        return [code for code in self._codes if code != target]

    def _question_choices(self, target: str) -> list[str]:
        return [code for code in self._others(target) if code != "en"] or ["en"]
