# SPDX-License-Identifier: MIT-0
"""Texts that pose as another language. A reward that believes one of them teaches a model to write it."""

import pytest

from lingoss.detect import STRICT_SHARE, Detection, detect

ENGLISH = "First we count the apples in the basket. Then we divide the total by the number of children. So each child gets seven."
FRENCH = "Nous comptons les pommes du panier et nous divisons le total par le nombre d'enfants."
WORDS = ENGLISH.split()


def strict(found: Detection) -> bool:
    assert found.accepted is not None
    assert found.target_share is not None
    return found.accepted and found.target_share >= STRICT_SHARE


def in_pairs(word: str) -> list[str]:
    return [word[at : at + 2] for at in range(0, len(word), 2)]


def shifted(first: int) -> str:
    """English in another alphabet of 26 letters that Unicode has."""
    return "".join(chr(first + ord(c) - ord("a")) if c.islower() else c for c in ENGLISH)


DISGUISED = {
    "plain": ENGLISH,
    "capitals": ENGLISH.upper(),
    "zero width": "\u200b".join(ENGLISH),
    "soft hyphens": "\u00ad".join(ENGLISH),
    "zero width joiners": "\u200d".join(ENGLISH),
    "struck through": "\u0336".join(ENGLISH),
    "cyrillic look-alikes": ENGLISH.translate(str.maketrans("aeopcTN", "аеорсТН")),
    "greek look-alikes": ENGLISH.translate(str.maketrans("ovunT", "ονυηΤ")),
    "bold": shifted(0x1D41A),
    "script letters": shifted(0x1D4EA),
    "circled": shifted(0x24D0),
    "full width": shifted(0xFF41),
    "right to left override": "\u202e" + ENGLISH[::-1],
    "reversed": ENGLISH[::-1],
    "spaced out": " ".join(ENGLISH.replace(" ", "")),
    "dashed": " ".join("-".join(word) for word in WORDS),
    "stars in words": " ".join("*".join(in_pairs(word)) for word in WORDS),
    "digits for letters": ENGLISH.translate(str.maketrans("eoi", "301")),
    "glued": ENGLISH.lower().replace(" ", ""),
    "fence": f"```\n{ENGLISH}\n```",
    "fence with language": f"```text\n{ENGLISH}\n```",
    "fence never closed": f"```python\n{ENGLISH}",
    "tildes": f"~~~\n{ENGLISH}\n~~~",
    "comments": "```python\n" + "\n".join(f"# {s}" for s in ENGLISH.split(". ")) + "\n```",
    "strings": '```python\nprint("First we count the apples in the basket")\nx = "Then we divide the total"\n```',
    "inline code": " ".join(f"`{s}`" for s in ENGLISH.split(". ")),
    "inline code of three words": " ".join(f"`{' '.join(WORDS[at : at + 3])}`" for at in range(0, len(WORDS), 3)),
    "inline code of one word": " ".join(f"`{word}`" for word in WORDS),
    "dollars": f"${ENGLISH}$",
    "double dollars": f"$${ENGLISH}$$",
    "parentheses of maths": rf"\({ENGLISH}\)",
    "brackets of maths": rf"\[{ENGLISH}\]",
    "text command": rf"$\text{{{ENGLISH}}}$",
    "text command a word": "$" + "".join(rf"\text{{{word}}} " for word in WORDS) + "$",
    "upright maths": "$" + r"\ ".join(rf"\mathrm{{{word}}}" for word in WORDS) + "$",
    "commands": " ".join(f"\\{word}" for word in WORDS),
    "html comment": f"<!-- {ENGLISH} -->",
    "tags": " ".join(f"<{word}>" for word in WORDS),
    "attribute": f'<b title="{ENGLISH}">x</b>',
    "snake case": "_".join(WORDS),
    "short snake case": " ".join("_".join(WORDS[at : at + 3]) for at in range(0, len(WORDS), 3)),
    "camel case": " ".join("".join(w.title() for w in WORDS[at : at + 4]) for at in range(0, len(WORDS), 4)),
    "dotted": " ".join(".".join(w.strip(".") for w in WORDS[at : at + 3]) for at in range(0, len(WORDS), 3)),
    "calls": " ".join(f"{word.strip('.')}()" for word in WORDS),
    "subscripts": " ".join(f"{word.strip('.')}_1" for word in WORDS),
    "numbered": " ".join(f"{word.strip('.')}{at}" for at, word in enumerate(WORDS)),
    "sum": " + ".join(WORDS),
    "path": "/".join(WORDS),
    "links": " ".join(f"https://{word.strip('.')}.com" for word in WORDS),
    "keys": " ".join(f'"{word.strip(".")}":' for word in WORDS),
}  # fmt: skip


@pytest.mark.parametrize("disguise", DISGUISED)
def test_english_in_disguise_behind_a_french_sentence_is_not_french(disguise: str) -> None:
    found = detect(f"{FRENCH}\n{DISGUISED[disguise]}", "fr")
    assert not strict(found)
    assert not found.accepted
    assert found.label != "fr"


@pytest.mark.parametrize("target", ["fr", "de", "ja", "ar", "hi", "ko", "zh"])
@pytest.mark.parametrize("disguise", DISGUISED)
def test_english_in_disguise_alone_is_nothing_else(disguise: str, target: str) -> None:
    assert not detect(DISGUISED[disguise], target).accepted


@pytest.mark.parametrize(
    "disguise", ["plain", "zero width", "bold", "fence", "dollars", "text command", "inline code of one word"]
)
def test_what_a_person_can_read_as_english_is_english(disguise: str) -> None:
    assert detect(DISGUISED[disguise]).label == "en"
    assert detect(DISGUISED[disguise], "en").accepted


SPRINKLED = [
    ("fr", "le la de et les un une des est que du pour dans sur par avec".split(), 1),
    ("de", "der die das und ist nicht mit den von".split(), 1),
    ("de", "der die das und ist nicht mit den von".split(), 2),
    ("es", "el la de que y los por con una para".split(), 2),
    ("it", "il la di che e per con una del".split(), 2),
    ("ko", ["는", "을", "에", "ㅋ"], 2),
    ("ko", ["는는은을"], 1),
    ("ja", ["は", "を", "に", "です"], 1),
    ("hi", ["का", "है"], 1),
    ("ar", ["في", "من", "على"], 2),
    ("zh", ["的", "是", "了"], 1),
]


@pytest.mark.parametrize(("target", "particles", "every"), SPRINKLED)
def test_particles_strewn_over_english_do_not_make_it_another_language(
    target: str, particles: list[str], every: int
) -> None:
    words = [word + (" " + particles[at % len(particles)] if at % every == 0 else "") for at, word in enumerate(WORDS)]
    found = detect(" ".join(words), target)
    assert not found.accepted
    assert found.shares.get("en", 0.0) > 0.25


ROMANISED = [
    ("hi", "Pehle hum seb ginte hain, phir bachchon ki sankhya se bhaag dete hain."),
    ("ja", "Mazu, ringo no kazu o kazoemasu. Tsugi ni, kodomo no kazu de warimasu."),
    ("ar", "Awalan nahsub adad al tuffahat thumma naqsim ala adad al atfal."),
    ("zh", "Women xian jisuan zonghe, ranhou chuyi haizi de shuliang."),
    ("ko", "Meonjeo sagwaui gaesureul semnida. Geureogo aideurui suro nanumnida."),
    ("ru", "Snachala my schitaem yabloki, a potom delim ikh na chislo detey."),
]


@pytest.mark.parametrize(("code", "text"), ROMANISED)
def test_romanised_text_is_accepted_neither_as_itself_nor_as_another_language(code: str, text: str) -> None:
    for target in (code, "en", "fr", "de", "es", "it", "nl"):
        assert not detect(text, target).accepted
    assert detect(text).label == "unknown"


NAMED = [
    "En français : ",
    "**En français** :\n",
    "français: ",
    "Je réponds en français. ",
    "(En français) : ",
    "# En français :\n",
]


@pytest.mark.parametrize("heading", NAMED)
def test_naming_a_language_is_not_using_it(heading: str) -> None:
    assert not detect(heading + ENGLISH, "fr").accepted
    assert not detect(heading + "Each child gets seven apples.", "fr").accepted


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("fr", "Nous comptons les pommes, then we divide the total by the children, et chaque enfant en reçoit sept."),
        (
            "fr",
            "Nous comptons (we count the apples) les pommes (and divide them by the children) et voilà (so each gets seven).",
        ),
        ("de", "Wir zählen die Äpfel. We count the apples. Wir teilen die Summe. We divide the total."),
        ("es", "Sí. We add. It is. So we go. Then we do. And it is. We get it."),
        ("zh", "我们先计算总和，then we divide the total by，结果是七。"),
        ("ar", "نحسب المجموع then we divide it by seven ثم نكتب النتيجة"),
        ("ko", "먼저 합을 구합니다. then we must divide it by the number 정답은 7입니다."),
        ("ja", "我们のは先计算の总和を，然后の除以孩子の数量です。"),
        ("ja", "我们先计算总和，然后除以孩子的数量。"),
        ("zh", "まず合計を計算して、子どもの数で割ります。"),
        ("pt", "Primero contamos las manzanas y luego dividimos el total entre los niños."),
        ("es", "Primeiro contamos as maçãs e depois dividimos o total pelas crianças."),
        ("de", "Eerst tellen we de appels en dan delen we het totaal door de kinderen."),
        ("ar", "ابتدا باید حساب کنیم که هر کودک چند سیب می‌گیرد و سپس نتیجه را بنویسیم."),
        ("hi", "प्रथम आपल्याला प्रत्येक मुलाला किती सफरचंद मिळतात हे मोजावे लागेल."),
        (
            "fr",
            "Voilà. Saat Dibbon Mein Barah Ande Hon To Kul Ande Hote Hain. Isliye Main Kul Andon Mein Se Toote Hue.",
        ),
        ("fr", "Voilà. " + "\ufffd" * 200),
        ("fr", "a" * 5000),
        ("fr", "Voilà la réponse. " + "ahahahahah" * 100),
    ],
)
def test_mixed_and_neighbouring_texts_are_not_accepted(target: str, text: str) -> None:
    assert not detect(text, target).accepted


def test_names_of_places_and_terms_do_not_make_a_text_mixed() -> None:
    for code, text in (
        ("fr", "Le train de New York à Los Angeles part du quai 4 et le feedback du manager était bon."),
        ("de", "Das Meeting mit Kowalski und Nguyen fand im Hotel Bristol in London statt und dauerte zwei Stunden."),
        ("zh", "在 machine learning 中，batch size 和 learning rate 对训练影响很大。"),
        ("ja", "TolkienのLord of the Ringsを読んだことがありますか。"),
        ("ko", "Python으로 API를 호출하면 JSON 데이터가 나옵니다."),
        ("hi", "हम Python में एक छोटा program लिखते हैं।"),
    ):
        assert detect(text, code).accepted, text
