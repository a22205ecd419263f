# SPDX-License-Identifier: MIT-0
"""Which value an answer states: honest working and givens, against lists, hedges and contradictions."""

import itertools

import pytest

from lingoss.grade import grade

TRAIN = "A train covers 240 kilometres in 3 hours. What is its average speed in kilometres per hour?"
BATTERY = (
    "Der Akku eines Telefons ist zu 100 % geladen und verliert 7 Punkte pro Stunde. "
    "Wie viel Prozent sind nach 9 Stunden übrig?"
)
FATHER = "Anna is 8 years old. Her father is four times as old. How old will her father be in 5 years?"
SHEEP = "A flock has 150 sheep. Two fifths are black and the others are white. How many white sheep are there?"
CHAIRS = "A hall has 13 rows of 16 chairs. 29 chairs are taken. How many chairs are free?"
CYCLIST = "Eine Radfahrerin fährt 4 Stunden lang mit 18 Kilometern pro Stunde. Wie viele Kilometer legt sie zurück?"
MINUTES = "¿Cuántos minutos hay en tres horas y media?"
APPLES = "Tom has 5 apples and buys 3 more. How many apples does he have?"
SEQUENCE = "What is the next number in the sequence 3, 7, 15, 31?"
GIFT = "Tom has 12 apples and gives 6 away. How many are left?"
BAGS = "A bakery puts 96 biscuits into bags of 8. How many bags does it fill?"

CASES = [
    # givens
    ("correct", "en", BATTERY, "37", "After 9 hours 37 % is left."),
    ("correct", "de", BATTERY, "37", "Nach 9 Stunden sind 37 % übrig."),
    ("correct", "de", BATTERY, "37", "Es sind 37 % von 100 % übrig."),
    ("correct", "en", CYCLIST, "72", "She covers 72 km in 4 hours at 18 km/h."),
    ("correct", "fr", CYCLIST, "72", "Elle parcourt 72 km en 4 heures à 18 km/h."),
    ("correct", "es", CYCLIST, "72", "En 4 horas a 18 km/h recorre 72 kilómetros."),
    ("correct", "ja", "一時間に18キロ走ります。4時間では？", "72", "4時間で72キロメートルです。"),
    (
        "correct",
        "en",
        "A tree is 130 cm tall and grows 45 cm a year. How tall is it in 4 years?",
        "310",
        "In 4 years the tree is 310 cm tall.",
    ),
    (
        "correct",
        "en",
        "Ein Baum ist 130 cm hoch und wächst 45 cm im Jahr. Wie hoch in 4 Jahren?",
        "310",
        "In four years the tree is 310 cm tall.",
    ),
    ("correct", "fr", FATHER, "37", "Dans 5 ans, le père aura 37 ans."),
    ("correct", "fr", FATHER, "37", "Dans cinq ans, le père aura trente-sept ans."),
    ("correct", "de", FATHER, "37", "In fünf Jahren ist der Vater siebenunddreißig Jahre alt."),
    ("correct", "it", FATHER, "37", "Fra 5 anni il padre avrà trentasette anni."),
    ("correct", "pt", FATHER, "37", "Daqui a 5 anos o pai terá 37 anos."),
    ("correct", "nl", FATHER, "37", "Over 5 jaar is haar vader zevenendertig."),
    ("correct", "ko", FATHER, "37", "5년 뒤에 아버지는 37살입니다."),
    ("correct", "hi", FATHER, "37", "5 साल बाद पिता की उम्र सैंतीस साल होगी।"),
    ("correct", "ar", FATHER, "37", "بعد 5 سنوات سيكون عمر الأب سبعة وثلاثين عامًا."),
    ("correct", "zh", FATHER, "37", "五年后，父亲三十七岁。"),
    ("correct", "ja", FATHER, "37", "五年後、お父さんは三十七歳です。"),
    ("incorrect", "en", CYCLIST, "72", "In 4 hours she rides 7200 km."),
    ("incorrect", "de", FATHER, "37", "In fünf Jahren ist der Vater zweiunddreißig Jahre alt."),
    # equation
    ("correct", "en", APPLES, "8", "5 + 3 = 8, so 8 apples"),
    ("correct", "en", APPLES, "8", "5 + 3 = 8"),
    ("correct", "de", CHAIRS, "179", "13 · 16 = 208 und 208 − 29 = 179. Es sind 179 Stühle frei."),
    ("correct", "de", CHAIRS, "179", "13 · 16 = 208 und 208 − 29 = 179."),
    ("correct", "en", CHAIRS, "179", "179 chairs are free (13 × 16 = 208, 208 − 29 = 179)."),
    ("correct", "en", CHAIRS, "179", "179 = 13 × 16 − 29"),
    ("correct", "fr", TRAIN, "80", "240 : 3 = 80, donc 80 km/h."),
    ("correct", "en", TRAIN, "80", "240 / 3 = 80 km/h"),
    ("correct", "en", TRAIN, "80", "x = 80"),
    ("correct", "en", TRAIN, "80", "v = 240 km ÷ 3 h = 80 km/h"),
    ("correct", "en", TRAIN, "80", "$v = \\frac{240}{3} = 80$"),
    ("correct", "en", BAGS, "12", "12 bags, since 12 × 8 = 96."),
    ("correct", "en", BAGS, "12", "12 × 8 = 96, so 12 bags."),
    ("correct", "zh", CHAIRS, "179", "13×16＝208，208－29＝179，所以还有179把空椅子。"),
    ("incorrect", "de", CHAIRS, "208", "13 · 16 = 208 und 208 − 29 = 179."),
    ("unparsed", "en", TRAIN, "80", "240 / 3"),
    ("unparsed", "en", APPLES, "8", "5 + 3"),
    # cue
    ("correct", "en", FATHER, "37", "The father is 32 today. The answer is 37."),
    ("correct", "en", FATHER, "37", "The answer is 37. Today he is 32."),
    ("correct", "en", FATHER, "37", "**Answer:** 37 years"),
    ("correct", "en", FATHER, "37", "Final answer: 37"),
    ("correct", "fr", FATHER, "37", "La réponse est 37. Aujourd’hui il a 32 ans."),
    ("correct", "fr", FATHER, "37", "Réponse : 37 ans (il a 32 ans aujourd’hui)"),
    ("correct", "de", FATHER, "37", "Antwort: Der Vater ist dann 37 Jahre alt."),
    ("correct", "es", FATHER, "37", "La respuesta es: 37"),
    ("correct", "zh", FATHER, "37", "父亲今年32岁，答案是37。"),
    ("correct", "ja", FATHER, "37", "お父さんは今32歳です。答えは37です。"),
    ("correct", "ko", FATHER, "37", "답은 37입니다. 지금은 32살입니다."),
    ("correct", "ar", FATHER, "37", "الجواب هو 37 لأن عمره الآن 32."),
    ("correct", "hi", FATHER, "37", "उत्तर है 37।"),
    ("incorrect", "en", FATHER, "37", "The answer is 40. Today he is 37."),
    # last
    ("correct", "en", FATHER, "37", "He is 32 now, so in 5 years he will be 37."),
    ("correct", "es", FATHER, "37", "Hoy tiene 32 años, así que dentro de 5 años tendrá 37."),
    ("incorrect", "en", FATHER, "32", "He is 32 now, so in 5 years he will be 37."),
    # because
    ("correct", "en", FATHER, "37", "He will be 37 because he is 32 now."),
    ("correct", "de", CHAIRS, "179", "Es sind 179 Stühle frei, weil es insgesamt 208 gibt und 29 besetzt sind."),
    ("correct", "fr", CHAIRS, "179", "Il reste 179 chaises libres, car il y en a 208 en tout."),
    ("correct", "hi", CHAIRS, "179", "179 कुर्सियाँ खाली हैं क्योंकि कुल 208 हैं।"),
    # given
    ("correct", "en", GIFT, "6", "Tom has 6 apples left."),
    ("correct", "en", GIFT, "6", "12 − 6 = 6"),
    ("correct", "en", GIFT, "6", "Of the 12 apples, 6 are left."),
    ("incorrect", "en", GIFT, "6", "Tom has 12 apples left."),
    # seq
    ("correct", "en", SEQUENCE, "63", "3, 7, 15, 31, 63"),
    ("correct", "en", SEQUENCE, "63", "The sequence is 3, 7, 15, 31, 63. The next number is 63."),
    ("correct", "en", SEQUENCE, "63", "After 31 comes 63."),
    ("correct", "en", SEQUENCE, "63", "31 × 2 + 1 = 63"),
    ("correct", "en", SEQUENCE, "31", "The next number is 31."),
    ("incorrect", "en", SEQUENCE, "63", "63, 127, 255"),
    ("incorrect", "en", SEQUENCE, "63", "62, 63"),
    # eq2
    ("correct", "en", MINUTES, "210", "3.5 hours = 210 minutes"),
    ("correct", "en", TRAIN, "80", "80 km h^{-1}"),
    ("correct", "en", TRAIN, "80", "$80\\,\\text{km/h}$"),
    ("correct", "en", TRAIN, "80", "\\[v = 80 \\text{ km/h}\\]"),
    ("correct", "en", "A garden is 12 m by 7 m.", "84", "84 m^2"),
    ("correct", "en", "", "7", "x^2 = 49, so x = 7"),
    (
        "correct",
        "en",
        TRAIN,
        "80",
        "The distance is 240 km and the time is 3 h, therefore the speed is 240/3 = 80 km/h.",
    ),
    ("correct", "fr", TRAIN, "80", "Die Antwort ist 80. Vorher waren es 60."),
    ("correct", "en", CHAIRS, "179", "Total chairs: 13 × 16 = 208\nFree chairs: 208 − 29 = 179"),
    ("correct", "en", CHAIRS, "179", "There are 208 chairs in total. 29 are taken, which leaves 179 free."),
    ("correct", "de", CHAIRS, "179", "Insgesamt gibt es 208 Stühle, davon sind 29 besetzt, also bleiben 179 frei."),
    ("correct", "es", CHAIRS, "179", "Hay 208 sillas en total y 29 están ocupadas, por lo que quedan 179 libres."),
    ("correct", "it", CHAIRS, "179", "Ci sono 208 sedie e 29 sono occupate: ne restano libere 179."),
    ("correct", "pt", CHAIRS, "179", "Há 208 cadeiras e 29 estão ocupadas; restam 179."),
    ("correct", "ja", CHAIRS, "179", "全部で208脚あり、29脚が使われているので、空いているのは179脚です。"),
    ("correct", "ko", CHAIRS, "179", "모두 208개이고 29개가 사용 중이므로 179개가 비어 있습니다."),
    ("correct", "hi", CHAIRS, "179", "कुल 208 कुर्सियाँ हैं और 29 भरी हैं, इसलिए 179 खाली हैं।"),
    ("correct", "ar", CHAIRS, "179", "المجموع 208 كراسي، منها 29 مشغولة، إذن يبقى 179 كرسيًا."),
    ("correct", "zh", CHAIRS, "179", "一共有208把椅子，其中29把有人坐，所以还有179把空椅子。"),
    ("incorrect", "en", TRAIN, "80", "60 = 80"),
    ("incorrect", "en", TRAIN, "80", "x = 60, x = 80"),
    ("incorrect", "en", TRAIN, "80", "x = 80; x = 60"),
    ("incorrect", "en", TRAIN, "80", "A: 60 B: 80"),
    ("incorrect", "en", TRAIN, "80", "A) 60\nB) 80\nC) 90"),
    ("incorrect", "en", TRAIN, "80", "70 to 80"),
    ("incorrect", "de", TRAIN, "80", "70 bis 80 km/h"),
    # neg
    ("correct", "en", TRAIN, "90", "not 84 but 90"),
    ("correct", "en", TRAIN, "90", "The answer is 90, not 84."),
    ("correct", "de", TRAIN, "90", "Nicht 84, sondern 90."),
    ("correct", "fr", TRAIN, "90", "Ce n’est pas 84 mais 90."),
    ("correct", "es", TRAIN, "90", "La respuesta es 90, no 84."),
    ("correct", "es", TRAIN, "5", "La respuesta es 5, no 3"),
    ("correct", "it", TRAIN, "90", "Non 84 ma 90."),
    ("correct", "zh", TRAIN, "90", "不是84，而是90。"),
    ("correct", "ja", TRAIN, "90", "84ではなく90です。"),
    ("correct", "ko", TRAIN, "90", "84가 아니라 90입니다."),
    ("correct", "hi", TRAIN, "90", "84 नहीं, 90।"),
    ("correct", "ar", TRAIN, "90", "ليس 84 بل 90."),
    ("correct", "de", CHAIRS, "179", "Es sind noch 179 Stühle frei."),
    ("correct", "fr", CHAIRS, "179", "Il n’y a plus que 179 chaises libres."),
    ("correct", "es", CHAIRS, "179", "No están ocupadas 179 sillas."),
    ("incorrect", "en", TRAIN, "84", "not 84 but 90"),
    ("incorrect", "en", TRAIN, "84", "The answer is 90, not 84."),
    ("incorrect", "fr", TRAIN, "84", "Ce n’est pas 84 mais 90."),
    ("incorrect", "en", TRAIN, "84", "The answer is not 84."),
    # contra
    ("incorrect", "en", TRAIN, "80", "The answer is 60. The answer is 80."),
    ("incorrect", "en", TRAIN, "80", "The answer is 80. The answer is 60."),
    ("incorrect", "en", TRAIN, "80", "The train goes 60 km/h. The train goes 80 km/h."),
    ("incorrect", "fr", TRAIN, "80", "La vitesse est de 80 km/h.\nLa vitesse est de 60 km/h."),
    ("incorrect", "ja", TRAIN, "80", "速さは60です。速さは80です。"),
    ("incorrect", "de", TRAIN, "80", "80 km/h (60 km/h)"),
    # hedge
    ("correct", "en", TRAIN, "80", "It is probably 80."),
    ("correct", "de", TRAIN, "80", "Ungefähr 80 km/h."),
    ("incorrect", "en", TRAIN, "80", "80, or maybe 60"),
    ("incorrect", "en", TRAIN, "80", "80 or 60"),
    ("incorrect", "en", TRAIN, "80", "Either 60 or 80."),
    ("incorrect", "en", TRAIN, "80", "It is 60. Maybe it is 80."),
    ("incorrect", "en", TRAIN, "80", "It is 80. Perhaps it could also be 60."),
    ("incorrect", "fr", TRAIN, "80", "80 ou 60"),
    ("incorrect", "fr", TRAIN, "80", "La réponse est 80, ou peut-être 60."),
    ("incorrect", "de", TRAIN, "80", "80 oder vielleicht 60"),
    ("incorrect", "de", TRAIN, "80", "Die Antwort ist 60, vielleicht aber auch 80."),
    ("incorrect", "es", TRAIN, "80", "80 o 60 kilómetros por hora"),
    ("incorrect", "es", TRAIN, "80", "La respuesta es 60, quizás 80."),
    ("incorrect", "it", TRAIN, "80", "80 oppure 60"),
    ("incorrect", "pt", TRAIN, "80", "80 ou talvez 60"),
    ("incorrect", "nl", TRAIN, "80", "80 of misschien 60"),
    ("incorrect", "zh", TRAIN, "80", "80，也可能是60。"),
    ("incorrect", "zh", TRAIN, "80", "答案是80或者60。"),
    ("incorrect", "ja", TRAIN, "80", "80か60です。"),
    ("incorrect", "ja", TRAIN, "80", "答えは80、または60です。"),
    ("incorrect", "ko", TRAIN, "80", "80 또는 60입니다."),
    ("incorrect", "ar", TRAIN, "80", "الجواب هو 80 أو ربما 60."),
    ("incorrect", "hi", TRAIN, "80", "उत्तर 80 है, या शायद 60।"),
    ("incorrect", "en", FATHER, "32", "It is 32 or 8."),
    ("incorrect", "en", TRAIN, "80", "eighty or sixty"),
    # spam
    ("incorrect", "en", TRAIN, "80", "78 79 80 81 82"),
    ("incorrect", "en", TRAIN, "80", "78, 79, 80"),
    ("incorrect", "en", TRAIN, "80", "60, 80"),
    ("incorrect", "en", TRAIN, "80", "80, 60"),
    ("incorrect", "de", TRAIN, "80", "80\n81\n82"),
    ("incorrect", "de", TRAIN, "80", "- 79\n- 80"),
    ("incorrect", "en", TRAIN, "80", "1. 78\n2. 79\n3. 80"),
    ("incorrect", "en", TRAIN, "80", "80/60/90"),
    ("incorrect", "en", TRAIN, "80", "70-80"),
    ("incorrect", "en", TRAIN, "80", "between 70 and 80"),
    ("incorrect", "en", TRAIN, "80", "75|80"),
    ("incorrect", "en", TRAIN, "80", "79,80,81"),
    ("incorrect", "en", TRAIN, "80", "80 km/h, 60 km/h, 90 km/h"),
    ("incorrect", "zh", TRAIN, "80", "78、79、80、81"),
    ("incorrect", "ja", TRAIN, "80", "80、60、90"),
    ("incorrect", "ar", TRAIN, "80", "78، 79، 80"),
    ("incorrect", "hi", TRAIN, "80", "78, 79, 80, 81"),
    ("incorrect", "ko", TRAIN, "80", "60, 80, 90"),
    ("incorrect", "en", TRAIN, "80", "The train goes 80 km/h (60, 70, 90, 100)."),
    ("incorrect", "fr", TRAIN, "80", "Le train roule à 80 km/h. 60, 70, 90, 100."),
    ("incorrect", "en", TRAIN, "80", "seventy, eighty, ninety"),
    ("incorrect", "fr", TRAIN, "80", "quatre-vingts, soixante, cent"),
    (
        "incorrect",
        "en",
        TRAIN,
        "80",
        "It may be about 11 cars, 22 trucks, 33 buses, 44 boats, 55 bikes, 66 planes or even 80 trains.",
    ),
    # restated
    ("correct", "en", TRAIN, "80", "What is its speed? 80 km/h."),
    ("unparsed", "en", TRAIN, "80", "A train covers 240 kilometres in 3 hours. What is its average speed?"),
    ("unparsed", "en", "Anna is 8 years old. How old is Anna?", "8", "Anna is 8 years old. How old is Anna?"),
    ("unparsed", "en", TRAIN, "80", "Is it 80?"),
    # none
    ("unparsed", "es", TRAIN, "80", "La respuesta está en mi razonamiento de arriba."),
    ("unparsed", "zh", TRAIN, "80", "这是一个有趣的问题。"),
    ("unparsed", "ko", TRAIN, "80", "이 질문에 답할 수 없습니다."),
    ("unparsed", "en", TRAIN, "80", "I cannot answer this question."),
    ("unparsed", "fr", TRAIN, "80", "Désolé, je ne peux pas répondre à cette question."),
    ("unparsed", "ja", TRAIN, "80", "申し訳ありませんが、この質問には答えられません。"),
    ("unparsed", "hi", TRAIN, "80", "उत्तर ऊपर दिया गया है।"),
    ("unparsed", "ar", TRAIN, "80", "عذرًا، لا أستطيع الإجابة عن هذا السؤال."),
    ("unparsed", "de", TRAIN, "80", "Siehe oben."),
    ("unparsed", "it", TRAIN, "80", "Vedi sopra."),
    ("unparsed", "pt", TRAIN, "80", "Veja o meu raciocínio acima."),
    ("unparsed", "en", TRAIN, "80", "✅"),
    # beside the question's own values
    ("correct", "en", SHEEP, "90", "Out of 150, 90 are white."),
    ("correct", "en", SHEEP, "90", "90 of the 150 sheep are white."),
    ("correct", "de", SHEEP, "90", "Von 150 Schafen sind 90 weiß."),
    ("correct", "ja", CHAIRS, "179", "208脚あるから、空きは179脚です。"),
    ("correct", "ja", FATHER, "37", "お父さんは今32歳だから、5年後は37歳です。"),
    ("correct", "ko", CHAIRS, "179", "자리가 179개나 비어 있습니다."),
    ("incorrect", "en", SHEEP, "90", "90, 150"),
    ("incorrect", "en", SHEEP, "90", "The answer is 90; 150."),
    ("incorrect", "en", TRAIN, "80", "The train takes 3 hours or so at 80 km/h."),
    ("incorrect", "ja", TRAIN, "80", "80キロか60キロです。"),
    ("incorrect", "ko", TRAIN, "80", "240, 80 또는 3입니다."),
    ("incorrect", "fr", TRAIN, "80", "Soit 240, soit 3, soit 80."),
]


@pytest.mark.parametrize(("expected", "language", "question", "gold", "answer"), CASES)
def test_stated_value(expected: str, language: str, question: str, gold: str, answer: str) -> None:
    found = grade(answer, gold, language, question)
    assert found.grade == expected, found


@pytest.mark.parametrize(
    ("answer", "rule", "value"),
    [
        ("\\boxed{80}", "boxed", "80"),
        ("It goes 80 km/h.", "single", "80"),
        ("240 / 3 = 80", "equation", "80"),
        ("The answer is 80. It was 60 before.", "cue", "80"),
        ("First 60, then 70 and at last 80 on average", "last", "80"),
        ("eighty", "word", "80"),
        ("78, 79, 80", "list", "80"),
        ("60 or 80", "hedge", "80"),
        ("It goes 60. It goes 80.", "contradiction", "80"),
        ("not 80", "negated", None),
        ("Is it 80?", "question-restated", None),
        ("240 / 3", "unevaluated", None),
        ("See above.", "no-answer", None),
        ("\u2705", "empty", None),
        ("", "empty", None),
    ],
)
def test_rule_and_value_are_told(answer: str, rule: str, value: str | None) -> None:
    found = grade(answer, "80", "en", TRAIN)
    assert (found.rule, found.value) == (rule, value)


def test_reading_that_is_not_the_languages_own_is_told() -> None:
    assert grade("1.234", "1234", "de").rule == "single"
    assert grade("1.234", "1.234", "de").rule == "ambiguous"
    assert grade("1.234", "1234", "en") == grade("1.234", "1234", "en-GB")
    assert grade("1.234", "1234", "en").rule == "ambiguous"


@pytest.mark.parametrize("gold", [None, "", "  "])
def test_without_gold_there_is_no_grade(gold: str | None) -> None:
    found = grade("80", gold, "en", TRAIN)
    assert (found.grade, found.rule, found.value) == (None, "no-gold", None)


def test_an_unknown_language_is_graded_like_english() -> None:
    assert grade("Yedi yüz: 1,234.5", "1234.5", "xx").grade == "correct"


HEDGED = {
    "en": ["The answer is {}, or perhaps {}, or even {}.", "It could be {}, {} or {}.", "{}? {}? {}?"],
    "fr": [
        "La réponse est {}, ou peut-être {}, ou même {}.",
        "Cela peut être {}, {} ou {}.",
        "Soit {}, soit {}, soit {}.",
    ],
    "de": ["Die Antwort ist {}, oder vielleicht {}, oder sogar {}.", "Entweder {} oder {}, eventuell {}."],
    "es": [
        "La respuesta es {}, o quizás {}, o incluso {}.",
        "Puede ser {}, {} o {}.",
        "Tal vez {}, tal vez {}, tal vez {}.",
    ],
    "it": ["La risposta è {}, o forse {}, o addirittura {}.", "Può essere {}, {} oppure {}."],
    "pt": ["A resposta é {}, ou talvez {}, ou até {}.", "Pode ser {}, {} ou {}."],
    "nl": ["Het antwoord is {}, of misschien {}, of zelfs {}.", "Het kan {}, {} of {} zijn."],
    "zh": ["答案是{}，也可能是{}，甚至是{}。", "可能是{}、{}或{}。", "{}或者{}或者{}"],
    "ja": ["答えは{}、もしかすると{}、あるいは{}です。", "{}か{}か{}かもしれません。"],
    "ar": ["الجواب هو {}، أو ربما {}، أو حتى {}.", "قد يكون {} أو {} أو {}."],
    "hi": ["उत्तर {} है, या शायद {}, या फिर {}।", "{}, {} या {} हो सकता है।"],
    "ko": ["답은 {}, 아니면 {}, 어쩌면 {}입니다.", "{}, {} 또는 {}일 수 있습니다."],
}


@pytest.mark.parametrize("language", HEDGED)
def test_hedges_in_any_order(language: str) -> None:
    for template, values in itertools.product(HEDGED[language], [("80", "60", "90"), ("80", "77", "240")]):
        for order in itertools.permutations(values):
            answer = template.format(*order)
            assert grade(answer, "80", language, TRAIN).grade != "correct", answer


@pytest.mark.parametrize(
    ("expected", "answer", "gold"),
    [
        ("correct", "<b>68</b>", "68"),
        ("correct", "80 - 12 => 68", "68"),
        ("correct", "-> 68 euros", "68"),
        ("correct", "> Elle coûte 68 euros.", "68"),
        ("correct", "> 68 euros", "68"),
        ("correct", "90 > 84, donc la plus chère coûte 90 euros.", "90"),
        ("correct", "n ≥ 68, so the smallest number is 68.", "68"),
        ("correct", "Elle coûte 68 euros <!-- calculé --> en tout.", "68"),
        ("correct", "$2^{10}$", "1024"),
        ("correct", "$6.8 \\times 10^{1}$ euros", "68"),
        ("correct", "$\\sqrt{49}$", "7"),
        ("unparsed", "n ≥ 68", "68"),
        ("unparsed", "the price < 68", "68"),
        ("unparsed", "$80 - 12^1$", "68"),
        ("incorrect", "Elle coûte 70 euros. <!-- 68 -->", "68"),
        ("correct", "Yes, they fit in.", "yes"),
        ("correct", "No, one is left, so no.", "no"),
        ("incorrect", "Yes, if they hurry, otherwise no.", "yes"),
    ],
)
def test_bounds_comments_and_sums_not_done(expected: str, answer: str, gold: str) -> None:
    assert grade(answer, gold, "fr" if "coûte" in answer else "en").grade == expected
