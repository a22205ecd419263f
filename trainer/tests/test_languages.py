# SPDX-License-Identifier: MIT-0
"""The registry of languages and the data in its files."""

from collections.abc import Iterator
from typing import Any

import pytest

from lingoss import languages
from lingoss.errors import LingossError
from lingoss.languages import Language, UnknownLanguage

BUILTIN = ("en", "fr", "de", "es", "it", "pt", "nl", "zh", "ja", "ar", "hi", "ko")
KEYS = {
    "aliases", "language_cues", "yes", "no", "true", "false", "weekdays", "months", "numbers", "units", "answer_cues",
    "hedges", "negations", "choice_cues", "names",
}  # fmt: skip


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def test_the_twelve_languages_are_there_in_order() -> None:
    assert languages.builtin() == BUILTIN


@pytest.mark.parametrize("code", BUILTIN)
def test_each_file_is_complete_and_holds_text(code: str) -> None:
    language = languages.get(code)
    assert language.code == code
    assert set(language.words) == KEYS
    assert language.scripts
    assert language.decimal in {".", ",", "٫"}
    assert all(len(mark) == 1 for mark in language.groups)
    # YAML 1.1 reads a bare yes or no as a boolean: a word list with one would lose an answer.
    for key in KEYS - {"numbers"}:
        texts = list(leaves(language.words[key]))
        assert texts, key
        assert all(isinstance(text, str) and text == text.strip() and text for text in texts), key


@pytest.mark.parametrize("code", BUILTIN)
def test_weeks_have_seven_days_and_years_twelve_months(code: str) -> None:
    words = languages.get(code).words
    for key, count in (("weekdays", 7), ("months", 12)):
        assert len(words[key]) == count
        every = [variant.lower() for variants in words[key] for variant in variants]
        assert len(every) == len(set(every)), "one name for two days"


@pytest.mark.parametrize("code", BUILTIN)
def test_number_words_cover_the_basics(code: str) -> None:
    numbers = languages.get(code).words["numbers"]
    assert all(isinstance(word, str) and isinstance(value, int | float) for word, value in numbers.items())
    assert not any(isinstance(value, bool) for value in numbers.values())
    basics = {*range(11), 100, 1000, 0.5, 0.25}
    if code not in ("zh", "ja", "ko"):  # these build what lies between from its parts
        basics |= {*range(20), 20, 30, 40, 50, 60, 70, 80, 90, 1_000_000 if code != "hi" else 100_000}
    else:
        basics |= {10_000, 100_000_000}
    assert basics - set(numbers.values()) == set()


def test_hindi_has_a_word_for_every_number_up_to_a_hundred() -> None:
    assert set(range(101)) <= set(languages.get("hi").words["numbers"].values())


def test_some_words_mean_what_they_should() -> None:
    for code, word, value in (
        ("fr", "quatre-vingts", 80),
        ("de", "zwölf", 12),
        ("es", "quinientos", 500),
        ("it", "duecento", 200),
        ("pt", "meia", 0.5),
        ("nl", "helft", 0.5),
        ("zh", "两", 2),
        ("ja", "半分", 0.5),
        ("ar", "خمسة عشر", 15),
        ("hi", "उनसठ", 59),
        ("ko", "스물", 20),
    ):
        assert languages.get(code).words["numbers"][word] == value
    assert languages.get("no").words == {}
    assert "no" in languages.get("en").words["no"]
    assert languages.get("ar").words["weekdays"][6][0] == "الأحد"
    assert languages.get("pt").words["weekdays"][0][0] == "segunda-feira"


@pytest.mark.parametrize(
    ("name", "code"),
    [("French", "fr"), ("français", "fr"), ("FR", "fr"), (" fr ", "fr"), ("Deutsch", "de"), ("中文", "zh"), ("Mandarin", "zh"),
     ("한국어", "ko"), ("Swahili", "sw"), ("pt-BR", "pt"), ("zh_Hant", "zh"), ("Norwegian", "no"), ("हिंदी", "hi")],
)  # fmt: skip
def test_find_takes_names_and_codes(name: str, code: str) -> None:
    assert languages.find(name).code == code


def test_a_language_without_a_file_has_a_name_and_a_script() -> None:
    swahili = languages.get("sw")
    assert swahili == Language("sw", "Swahili", "Swahili", ("Latin",), ".", (",",), (), {})
    assert languages.get("ru").scripts == ("Cyrillic",)


def test_every_language_of_the_model_is_known() -> None:
    from lingoss.detect.fasttext_model import _model

    labels = {label[9:] for _, label in _model().predict("a\n", 176, -1.0, "strict")}
    assert len(labels) == 176
    for code in labels:
        assert languages.get(code).code == code


def test_relatives_are_known_languages() -> None:
    for code in BUILTIN:
        for relative in languages.get(code).relatives:
            assert languages.get(relative).code == relative
            assert relative != code


@pytest.mark.parametrize("wrong", ["xx", "", "  ", "frenhc", "Klingon", "../en", "_others", "en.yaml", None, 7])
def test_an_unknown_language_is_refused_in_one_sentence(wrong: Any) -> None:
    for ask in (languages.get, languages.find):
        with pytest.raises(UnknownLanguage, match=r"^unknown language .*[.?]$") as caught:
            ask(wrong)
        assert isinstance(caught.value, LingossError)
        assert "\n" not in str(caught.value)


def test_the_nearest_name_is_offered() -> None:
    with pytest.raises(UnknownLanguage, match=r"did you mean 'french' \(fr\)"):
        languages.find("frenhc")
