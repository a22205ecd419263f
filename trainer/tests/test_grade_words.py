# SPDX-License-Identifier: MIT-0
"""Answers that are words: weekdays, months, yes and no, true and false, names, choices and letters."""

import pytest

from lingoss.grade import grade

SHELLS = "Ben collects 5 shells, Sarah collects 7. Who collects more?"
CHEAPER = "Where is it cheaper, at the farm or at the supermarket?"
THREE_DAYS = "It is Monday. Which day is in 3 days?"
MONDAY = "Today is Monday."
MONDAY_DE = "Heute ist Montag."
ENOUGH = "Is that enough money?"

CASES = [
    # weekday
    (
        "correct",
        "en",
        "Today is Monday. What day of the week will it be in 9 days?",
        "Wednesday",
        "It will be a Wednesday.",
    ),
    ("correct", "fr", MONDAY, "mercredi", "Ce sera un mercredi."),
    ("correct", "fr", MONDAY, "Wednesday", "Ce sera un mercredi."),
    (
        "correct",
        "de",
        "Heute ist Montag. Welcher Tag ist in 9 Tagen?",
        "Mittwoch",
        "Wenn heute Montag ist, ist in 9 Tagen Mittwoch.",
    ),
    ("correct", "es", "", "miércoles", "Será miércoles."),
    ("correct", "es", "", "miércoles", "Sera miercoles"),
    ("correct", "it", "", "mercoledì", "Mercoledì"),
    ("correct", "ja", "", "水曜日", "水曜日です。"),
    ("correct", "zh", "", "Wednesday", "星期三"),
    ("correct", "ko", "", "수요일", "수요일입니다."),
    ("correct", "hi", "", "बुधवार", "बुधवार"),
    ("correct", "ar", "", "الأربعاء", "سيكون يوم الأربعاء."),
    ("correct", "pt", "", "quarta-feira", "Será uma quarta-feira."),
    ("correct", "nl", "", "woensdag", "Het wordt woensdag."),
    ("correct", "en", "", "Wednesday", "Not Tuesday but Wednesday."),
    ("correct", "fr", "", "mercredi", "It will be a Wednesday."),
    ("correct", "fr", "", "mercredi", "Es wird ein Mittwoch sein."),
    ("correct", "en", "Today is Monday. Which day is it in 7 days?", "Monday", "Monday again."),
    ("incorrect", "de", "Heute ist Montag. Welcher Tag ist in 9 Tagen?", "Mittwoch", "Es wird ein Dienstag sein."),
    ("incorrect", "en", "", "Wednesday", "Tuesday or Wednesday"),
    ("incorrect", "en", "", "Wednesday", "Monday, Tuesday, Wednesday, Thursday"),
    ("incorrect", "fr", "", "mercredi", "mardi ou mercredi"),
    ("incorrect", "en", "", "Wednesday", "It will be Wednesday. It will be Thursday."),
    ("unparsed", "en", "", "Wednesday", "I do not know."),
    # sat
    ("correct", "en", THREE_DAYS, "Thursday", "Tuesday, Wednesday, Thursday. So it is Thursday."),
    ("correct", "en", THREE_DAYS, "Thursday", "Three days after Monday is Thursday."),
    ("correct", "de", MONDAY_DE, "Donnerstag", "Do"),
    ("correct", "de", MONDAY_DE, "Donnerstag", "am Donnerstag, nicht am Freitag"),
    ("correct", "zh", "", "Thursday", "是星期四，不是星期五。"),
    ("incorrect", "en", THREE_DAYS, "Thursday", "Tuesday, Wednesday, Thursday"),
    ("incorrect", "ja", "", "Thursday", "木曜日か金曜日です。"),
    ("incorrect", "ar", "", "Thursday", "الخميس أو الجمعة"),
    ("unparsed", "en", THREE_DAYS, "Thursday", "Today is Monday. Which day is in 3 days?"),
    # month
    ("correct", "de", "", "März", "Im März."),
    ("correct", "en", "", "May", "It is in May."),
    ("correct", "fr", "", "mai", "En mai."),
    # truth
    ("correct", "en", ENOUGH, "yes", "Yes, the money is enough."),
    ("correct", "fr", "", "non", "Non, l’argent ne suffit pas."),
    ("correct", "de", "", "nein", "Nein, das Geld reicht nicht."),
    ("correct", "de", "", "no", "Nein, das Geld reicht nicht."),
    ("correct", "es", "", "sí", "Sí, porque no es mayor."),
    ("correct", "es", "", "no", "No, no alcanza."),
    ("correct", "it", "", "sì", "Sì."),
    ("correct", "pt", "", "não", "Não, o dinheiro não chega."),
    ("correct", "nl", "", "ja", "Ja, dat is genoeg."),
    ("correct", "zh", "", "yes", "是的，够了。"),
    ("correct", "zh", "", "no", "不，不够。"),
    ("correct", "ja", "", "はい", "はい、足ります。"),
    ("correct", "ko", "", "아니요", "아니요, 부족합니다."),
    ("correct", "ar", "", "نعم", "نعم، يكفي."),
    ("correct", "hi", "", "हाँ", "हाँ, काफ़ी है।"),
    ("correct", "en", "", "yes", "The answer is yes."),
    ("correct", "en", "", "yes", "So the answer is: yes"),
    ("correct", "en", "", "true", "The statement is true."),
    ("correct", "en", "", "false", "The statement is not true."),
    ("correct", "fr", "", "faux", "C’est faux."),
    ("correct", "fr", "", "vrai", "C’est vrai."),
    ("correct", "de", "", "wahr", "Die Aussage ist wahr."),
    ("correct", "es", "", "falso", "La afirmación es falsa."),
    ("correct", "es", "", "verdadero", "Es verdadera."),
    ("correct", "it", "", "vero", "L’affermazione è vera."),
    ("correct", "en", "True or false: 2 is even.", "true", "True or false: it is true."),
    ("correct", "en", "", "true", "Yes."),
    ("correct", "zh", "", "真", "这个说法是正确的。"),
    ("correct", "ja", "", "偽", "この文は正しくない。"),
    ("correct", "en", "", "yes", "No child is left over, so yes."),
    ("incorrect", "en", ENOUGH, "no", "Yes, the money is enough."),
    ("incorrect", "en", "", "yes", "Yes or no"),
    ("incorrect", "en", "", "yes", "Yes. No."),
    ("incorrect", "en", "", "yes", "yes/no"),
    ("incorrect", "de", "", "ja", "Ja oder nein."),
    ("incorrect", "de", "", "falsch", "Die Aussage ist wahr."),
    ("incorrect", "en", "", "no", "No child is left over, so yes."),
    ("incorrect", "fr", "", "oui", "No."),
    ("unparsed", "en", "", "yes", "I cannot say."),
    # choice
    ("correct", "en", CHEAPER, "farm", "One kilogram is cheaper at the farm."),
    ("correct", "fr", "Where is it cheaper?", "ferme", "Le kilo est moins cher à la ferme."),
    ("correct", "fr", "", "supermarché", "Le kilo est moins cher au supermarche."),
    ("correct", "en", "", "red", "Bead number 13 is red."),
    ("correct", "en", SHELLS, "Sarah", "Sarah collects more shells."),
    ("correct", "en", SHELLS, "Sarah", "Sarah collects more shells than Ben."),
    ("correct", "en", SHELLS, "Sarah", "Between Ben and Sarah, Sarah collects more."),
    ("correct", "en", SHELLS, "Sarah", "Not Ben but Sarah."),
    ("correct", "de", "", "Sarah", "**Sarah**"),
    ("correct", "ja", "", "赤", "13番目のビーズは赤です。"),
    ("correct", "zh", "", "红色", "第13颗珠子是红色的。"),
    ("correct", "ko", "", "빨간색", "빨간색입니다."),
    ("correct", "ar", "", "المزرعة", "السعر أقل في المزرعة."),
    ("correct", "en", "", "the red car", "It is the red car."),
    ("correct", "en", "", "the red car", "Red car"),
    ("incorrect", "en", "Where is it cheaper?", "farm", "It is cheaper at the supermarket than at the farm."),
    ("incorrect", "en", "", "red", "Bead number 13 is not red."),
    ("incorrect", "en", "", "red", "red, blue, yellow, green"),
    ("incorrect", "en", "", "red", "It is red or blue."),
    ("incorrect", "fr", "", "rouge", "La perle est rouge ou bleue."),
    ("incorrect", "en", SHELLS, "Sarah", "Ben collects more shells."),
    ("incorrect", "en", SHELLS, "Sarah", "Ben collects more shells than Sarah."),
    ("incorrect", "en", SHELLS, "Sarah", "Ben or Sarah."),
    ("unparsed", "en", CHEAPER, "farm", "One kilogram is cheaper at the supermarket."),
    ("unparsed", "en", "", "red", "It is hundred percent bored."),
    ("unparsed", "de", "", "Sarah", "Sarahs Korb"),
    # yes and no at once, and in a language that was not asked for
    ("incorrect", "fr", ENOUGH, "no", "Oui et non."),
    ("incorrect", "es", ENOUGH, "no", "Sí y no."),
    ("correct", "en", ENOUGH, "no", "Nein, sein Geld reicht nicht."),
    ("correct", "en", ENOUGH, "no", "Não, o dinheiro não chega."),
    # letter
    ("correct", "en", "", "B", "B"),
    ("correct", "en", "", "B", "(B)"),
    ("correct", "en", "", "B", "B) blue"),
    ("correct", "en", "", "B", "The answer is B."),
    ("correct", "fr", "", "B", "La bonne réponse est B."),
    ("correct", "en", "", "B", "A good question: the answer is B."),
    ("correct", "de", "", "B", "Antwort B ist richtig."),
    ("correct", "en", "", "A", "A"),
    ("incorrect", "en", "", "B", "The correct option is C."),
    ("incorrect", "en", "", "B", "A, B, C, D"),
    ("unparsed", "en", "", "A", "A train is fast."),
]


@pytest.mark.parametrize(("expected", "language", "question", "gold", "answer"), CASES)
def test_word_answer(expected: str, language: str, question: str, gold: str, answer: str) -> None:
    found = grade(answer, gold, language, question)
    assert found.grade == expected, found


@pytest.mark.parametrize(
    ("answer", "gold", "value"),
    [
        ("Ben collects more.", "Sarah", "Ben"),
        ("Sarah collects more.", "Sarah", "Sarah"),
        ("Jeudi.", "Wednesday", "Thursday"),
        ("En mars.", "mars", "March"),
        ("Non.", "oui", "no"),
        ("C'est vrai.", "oui", "yes"),
        ("(C)", "B", "C"),
    ],
)
def test_value_is_the_word_that_was_stated(answer: str, gold: str, value: str) -> None:
    assert grade(answer, gold, "fr", SHELLS).value == value
