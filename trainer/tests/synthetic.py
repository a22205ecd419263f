# SPDX-License-Identifier: MIT-0
"""Scored rows made up for tests: the shape that `score` writes, every field chosen by the test."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from lingoss.evaluate.rows import ScoredRun, read_run

LANGUAGES = ("en", "fr", "de", "es", "it")
SENTENCES = {
    "en": ("We multiply the speed by the time.", "Each box holds twelve apples.", "So the total is thirty-six."),
    "fr": ("On multiplie la vitesse par le temps.", "Chaque caisse contient douze pommes.", "Le total est donc 36."),
    "de": ("Wir nehmen die Geschwindigkeit mal die Zeit.", "Jede Kiste enthält zwölf Äpfel.", "Es sind also 36."),
    "es": (
        "Multiplicamos la velocidad por el tiempo.",
        "Cada caja contiene doce manzanas.",
        "El total es entonces 36.",
    ),
    "it": ("Moltiplichiamo la velocità per il tempo.", "Ogni cassa contiene dodici mele.", "Il totale è quindi 36."),
}
ANSWERS = {
    "en": "The answer is {}.",
    "fr": "La réponse est {}.",
    "de": "Die Antwort ist {}.",
    "es": "La respuesta es {}.",
    "it": "La risposta è {}.",
}
QUESTIONS = {
    "en": "A train travels {} km in 3 hours. How fast is it?",
    "fr": "Un train parcourt {} km en 3 heures. Quelle est sa vitesse ?",
    "de": "Ein Zug fährt {} km in 3 Stunden. Wie schnell ist er?",
    "es": "Un tren recorre {} km en 3 horas. ¿A qué velocidad va?",
    "it": "Un treno percorre {} km in 3 ore. A che velocità va?",
}


def detection(target: str, sentences: Sequence[tuple[str, str]] = (), *, abstained: bool = False) -> dict[str, Any]:
    """What the detector says of `sentences`: (language or "neutral", text), joined by one space."""
    segments, shares, at = [], dict[str, float](), 0
    for language, text in sentences:
        segments.append([at, at + len(text), language])
        at += len(text) + 1
        if language not in ("neutral", "unknown"):
            shares[language] = shares.get(language, 0) + sum(map(str.isalpha, text))
    letters = int(sum(shares.values()))
    shares = {language: count / letters for language, count in shares.items()}
    ranked = sorted(shares, key=shares.__getitem__, reverse=True)
    label = "neutral" if not ranked else ranked[0] if shares[ranked[0]] >= 0.9 else "mixed"
    return {
        "label": "unknown" if abstained else label,
        "target": target,
        "accepted": bool(shares.get(target, 0.0) >= 0.5) and not abstained,
        "target_share": None if abstained or not letters else shares.get(target, 0.0),
        "shares": shares,
        "second": ranked[1] if len(ranked) > 1 else None,
        "letters": letters,
        "abstained": abstained,
        "segments": segments,
    }


def scored(
    prompt: str = "p0",
    language: str = "fr",
    *,
    question_language: str = "en",
    answer_language: str | None = None,
    item: str | None = None,
    sample: int = 0,
    reasoning: str | Sequence[str] | None = None,
    answer: str | None = None,
    grade: str | None = "correct",
    format_ok: bool = True,
    truncated: bool = False,
    abstained: bool = False,
    reward: float | None = None,
    terms: dict[str, float] | None = None,
    repetition: float = 0.0,
    new_tokens: int = 60,
    question: str | None = None,
    text: str | None = None,
) -> dict[str, Any]:
    """One row of verdicts.jsonl. `reasoning`: the language(s) of its sentences; `answer`: a language or "neutral"."""
    asked = answer_language or language
    spoken = [reasoning] * 3 if isinstance(reasoning, str) else list(reasoning or [language] * 3)
    thought = [(code, SENTENCES[code][i % 3]) for i, code in enumerate(spoken)]
    said = answer or asked
    final = [("neutral", "42")] if said == "neutral" else [(said, ANSWERS[said].format(42))]
    reasoning_found = detection(language, thought, abstained=abstained)
    answer_found = detection(asked, final)
    good = format_ok and not truncated
    spoken_well = min(
        reasoning_found["target_share"] or 0.0, 1.0 if said == "neutral" else answer_found["target_share"]
    )
    if terms is None:
        right = {"correct": 0.4, None: 0.0}.get(grade, 0.0) * good
        terms = {"correctness": right, "language": 0.6 * good * spoken_well, "repetition": 0.0, "prompt_copy": 0.0}
    written = f"<think>\n{' '.join(part for _, part in thought)}\n</think>\n{final[0][1]}"
    return {
        "id": f"{prompt}/{sample}",
        "prompt_id": prompt,
        "item": item or prompt,
        "family": "speed",
        "sample": sample,
        "format": "think",
        "text": written if text is None else text,
        "finish_reason": "length" if truncated else "stop",
        "request": {
            "question": question or QUESTIONS[question_language].format(126),
            "question_language": question_language,
            "reasoning_language": language,
            "answer_language": asked,
            "gold": None if grade is None else "42",
        },
        "crossed": not question_language == language == asked,
        "new_tokens": new_tokens,
        "verdict": {
            "format_ok": format_ok,
            "truncated": truncated,
            "reasoning": reasoning_found,
            "answer": answer_found,
            "grade": grade,
            "grade_rule": "number",
            "grade_value": "42",
            "lengths": {
                "reasoning_characters": 120,
                "reasoning_letters": reasoning_found["letters"],
                "answer_characters": len(final[0][1]),
            },
            "repetition": repetition,
            "prompt_copy": 0.0,
            "terms": terms,
            "reward": sum(terms.values()) if reward is None else reward,
        },
    }


def outcomes(pattern: str, language: str = "fr", prefix: str = "p", **fields: Any) -> Iterator[dict[str, Any]]:
    """One prompt a character: "1" strictly compliant, "0" reasoning in English (German where English was asked)."""
    for i, character in enumerate(pattern):
        other = "de" if language == "en" else "en"
        spoken = language if character == "1" else other
        yield scored(f"{prefix}{language}{i}", language, reasoning=spoken, **fields)


CARD = {"prompt_digest": "d" * 64, "prompt_set": "heldout", "detector": "lid.176.ftz 8f3472cf"}


def run(name: str, rows: Any, **card: Any) -> ScoredRun:
    return read_run(name, rows, {**CARD, **card})


def realistic(name: str, skill: float, right: float, *, items: int = 20, samples: int = 1, seed: int = 0) -> ScoredRun:
    """Five languages, two thirds crossed; `skill`: chance of each language obeyed, `right`: of a right answer."""
    draw = random.Random(f"{name}{seed}")
    rows = []
    for language in LANGUAGES:
        ease = {"en": 0.15, "fr": 0.03, "it": -0.12}.get(language, 0.0)
        for i in range(items):
            asked_in = LANGUAGES[(LANGUAGES.index(language) + i % 3) % 5]
            for sample in range(samples):
                obeyed = draw.random() < skill + ease
                mixed = draw.random() < 0.15
                thought = (
                    [language] * 3 if obeyed and not mixed else ["en" if language != "en" else "de"] * 2 + [language]
                )
                answer = "neutral" if draw.random() < 0.2 else language if draw.random() < skill + 0.2 else "en"
                cut = draw.random() < 0.08 * (1 - skill) + 0.01
                rows.append(
                    scored(
                        f"{language}-{i:03d}",
                        language,
                        question_language=asked_in,
                        item=f"speed-{i:03d}",
                        sample=sample,
                        reasoning=thought,
                        answer=answer,
                        grade=draw.choices(
                            ["correct", "incorrect", "unparsed", None], [right, 0.85 - right, 0.1, 0.05]
                        )[0],
                        format_ok=not cut and draw.random() < 0.4 + 0.6 * skill,
                        truncated=cut,
                        abstained=draw.random() < 0.04,
                        repetition=round(draw.random() * 0.2, 3),
                        new_tokens=draw.randint(30, 90),
                        question=QUESTIONS[asked_in].format(3 * (i + 20)),
                    )
                )
    return run(name, rows)
