# SPDX-License-Identifier: MIT-0
"""`score(transcript, request) -> Verdict`: the one pure function behind training rewards, evaluation and the gate.

    reward = format · (correctness + language · relevance · prose) · (not repeated) · (not copied)

Relevance and prose are 1 for reasoning about the question in sentences. Format is a gate, quality multiplies: a penalty
that were only subtracted could be paid for with another term (multiplicative gating: GR3, arXiv 2603.10535). What
follows from it, each a property in `tests/test_score.py`:

- a missing final channel, an empty answer or a truncated text earns nothing;
- language cannot buy what correctness did not earn: with a known answer, every wrong answer stays below every right one;
- the language term takes the *worse* of reasoning and answer, so one cannot pay for the other;
- a short right answer in the right language earns as much as a long one;
- "42" is neutral, not wrong: where the answer is known, a right neutral answer loses nothing;
- nothing raises, and the reward is in [0, 1].

Known to be open, because no rule without a model tells it from terse honest reasoning: fluent text that mentions two
numbers of the question, whatever it says about them; the question in other words; words in no order; and, without a
known answer, any fluent answer. docs/reward.md has the terms, what was measured and what is open.
"""

from dataclasses import dataclass, field
from typing import Any
from unicodedata import category

from lingoss import detect as detection
from lingoss import languages
from lingoss.detect import Detection, detect
from lingoss.grade import grade
from lingoss.score import unread
from lingoss.score.ngrams import copied, repetition, shuffled, units
from lingoss.score.prose import prose
from lingoss.score.relevance import relevance
from lingoss.transcript import Transcript


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked: three separate languages (codes), and the known answer or None."""

    question: str
    question_language: str
    reasoning_language: str
    answer_language: str
    gold: str | None = None

    @property
    def crossed(self) -> bool:
        """True when the question is not in the language asked for, the only prompts that show language control."""
        return not self.question_language == self.reasoning_language == self.answer_language


@dataclass(frozen=True, slots=True)
class Rules:
    """Weights and tolerances of the reward. The defaults are what every report and every run uses unless it says so."""

    correctness: float = 0.4  # weight of a right answer
    language: float = 0.6  # weight of the language; the point of this project, so it weighs more
    incorrect_language: float = 0.3  # a wrong answer keeps this part of the language term: it still teaches
    neutral_ungraded: float = 0.5  # "42" to a question without known answer: nothing was shown either way
    share_floor: float = 0.5  # at or below this target share the language counts nothing …
    share_full: float = detection.STRICT_SHARE  # … and from here on it counts fully
    reasoning_letters: int = 24  # a trace shorter than this counts in proportion ("Yes." is no reasoning)
    repetition_tolerated: float = 0.15
    repetition_ruinous: float = 0.55
    copy_tolerated: float = 0.5  # restating the question is fair; being little else is not
    copy_ruinous: float = 0.8
    ungraded_letters: int = 12  # without a known answer a shorter one shows too little of the language ("Oui.")
    languages: tuple[str, ...] = ()  # candidates of the detector beside the three of the request; () = all built in


DEFAULT = Rules()

# Rewards lie on a grid that float32 adds up without rounding: the mean of equal rewards is then the reward itself, where
# an engine that divides by a deviation of nothing but rounding (OpenRLHF adds 1e-9) would learn from noise.
_GRID = 4096

TERMS = ("correctness", "language", "relevance", "prose", "repetition", "prompt_copy")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything that was found out about one transcript. `sum(terms.values()) == reward`, to half of 1/4096.

    `repetition` and `prompt_copy`: shares that are bad; `relevance` and `prose`: shares that are good (see `score`).
    """

    format_ok: bool
    truncated: bool
    reasoning: Detection
    answer: Detection
    grade: str | None
    grade_rule: str
    grade_value: str | None
    lengths: dict[str, int]
    repetition: float
    prompt_copy: float
    relevance: float
    prose: float
    terms: dict[str, float] = field(default_factory=dict)
    reward: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The `verdict` object of a scored row (design: Rows)."""
        row = {name: getattr(self, name) for name in self.__slots__}
        return {**row, "reasoning": self.reasoning.to_dict(), "answer": self.answer.to_dict()}


def _ramp(value: float, low: float, high: float) -> float:
    """0 at or below `low`, 1 at or above `high`, straight in between."""
    return min(1.0, max(0.0, (value - low) / (high - low)))


def _language(found: Detection, rules: Rules) -> float:
    """Credit in [0, 1] for a text that must show the language: a neutral text shows none."""
    if not found.accepted:
        return 0.0
    return _ramp(found.target_share or 0.0, rules.share_floor, rules.share_full)


def _weighted_letters(found: Detection, text: str) -> float:
    """Letters, a Han, kana or Hangul one counted as 2.5: it carries about as much as a short Latin word.

    Vowel signs (Hindi) are letters too, at most one for each letter.
    """
    start = text[:200]
    if start.isascii() or max(start) < "\u0300":
        return found.letters
    wide = sum(1 for character in start if "\u3040" <= character <= "\ud7a3")
    signs = sum(1 for character in start if category(character) in ("Mn", "Mc"))
    return found.letters + 1.5 * min(wide, found.letters) + min(signs, found.letters)


def _aside(transcript: Transcript, request: Request, rules: Rules, candidates: tuple[str, ...] | None) -> float:
    """Credit in [0, 1] for text beside reasoning and answer: a few words and code are fine, thinking elsewhere is not."""
    found = detect(transcript.aside, request.reasoning_language, candidates)
    if found.letters < rules.reasoning_letters:
        return 1.0
    return _language(found, rules)


def score(transcript: Transcript, request: Request, rules: Rules = DEFAULT) -> Verdict:
    """Judge one transcript against what was asked. Pure; cost linear in the length of the text.

    Raises `lingoss.languages.UnknownLanguage` for a language code in the request that nobody knows, and nothing else.
    """
    candidates = (
        (*rules.languages, request.reasoning_language, request.answer_language, request.question_language)
        if rules.languages
        else None
    )
    reasoning = detect(transcript.reasoning, request.reasoning_language, candidates)
    answer = detect(transcript.answer, request.answer_language, candidates)
    graded = grade(transcript.answer, request.gold, request.answer_language, request.question)
    trace, said = units(transcript.reasoning), units(transcript.answer)
    repeated = max(repetition(transcript.reasoning, trace), repetition(transcript.answer, said))
    copy = max(
        copied(transcript.reasoning, request.question, trace),
        copied(transcript.answer, request.question, said),
        shuffled(trace, request.question),
    )

    neutral = answer.label == "neutral" and graded.grade == "correct"
    spoken = unread.alone(transcript.answer) if neutral else _language(answer, rules)
    if graded.grade is None:
        shown = 0.0 if answer.label == "neutral" else _weighted_letters(answer, transcript.answer)
        least = rules.neutral_ungraded
        enough = least + (1.0 - least) * min(1.0, shown / rules.ungraded_letters)
        spoken = least if answer.label == "neutral" else min(spoken, enough)
    about = sentences = 1.0
    thought = 1.0
    if transcript.format != "plain":  # a plain text has no reasoning to judge
        language = languages.get(request.reasoning_language).code
        about = relevance(transcript.reasoning, trace, language, request.question, said, request.gold, graded.value)
        sentences = prose(trace, language)
        weighted = _weighted_letters(reasoning, transcript.reasoning)
        thought = _language(reasoning, rules) * unread.beside(transcript.reasoning, reasoning.letters, weighted)
        if transcript.aside:
            thought *= _aside(transcript, request, rules, candidates)
        if reasoning.letters < rules.reasoning_letters:
            thought *= min(1.0, weighted / rules.reasoning_letters)

    if graded.grade is None:  # no known answer: language and format decide
        right, kept = 0.0, rules.correctness + rules.language
    elif graded.grade == "correct":
        right, kept = rules.correctness, rules.language
    else:
        right, kept = 0.0, rules.language * rules.incorrect_language

    terms = dict.fromkeys(TERMS, 0.0)
    if transcript.format_ok and not transcript.truncated:
        claimed, relevant, full = (min(spoken, thought * part) for part in (1.0, about, about * sentences))
        terms["correctness"], terms["language"] = right, kept * claimed
        terms["relevance"], terms["prose"] = kept * (relevant - claimed), kept * (full - relevant)
        earned = right + kept * full
        fresh = 1.0 - _ramp(repeated, rules.repetition_tolerated, rules.repetition_ruinous)
        own = 1.0 - _ramp(copy, rules.copy_tolerated, rules.copy_ruinous)
        terms["repetition"] = -earned * (1.0 - fresh)
        terms["prompt_copy"] = -earned * fresh * (1.0 - own)
    return Verdict(
        format_ok=transcript.format_ok,
        truncated=transcript.truncated,
        reasoning=reasoning,
        answer=answer,
        grade=graded.grade,
        grade_rule=graded.rule,
        grade_value=graded.value,
        lengths={
            "reasoning_characters": len(transcript.reasoning),
            "reasoning_letters": reasoning.letters,
            "answer_characters": len(transcript.answer),
            "answer_letters": answer.letters,
        },
        repetition=repeated,
        prompt_copy=copy,
        relevance=about,
        prose=sentences,
        terms=terms,
        reward=max(0.0, round(sum(terms.values()) * _GRID) / _GRID),
    )
