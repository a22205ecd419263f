# SPDX-License-Identifier: MIT-0
"""The detector on honest texts, written for this project: reasoning of several styles and short answers.

None was used to choose a threshold. No native speaker reviewed them.
"""

import pytest

from lingoss.detect import STRICT_SHARE, detect

LATIN = ("en", "fr", "de", "es", "it", "pt", "nl")

# Reasoning as models write it: lists, markdown, LaTeX, code with comments, names of places and people, loan words.
REASONING: dict[str, list[str]] = {
    "en": [
        "Okay, so the bakery sells 3 kinds of bread. Monday: 12 loaves, Tuesday: 15 loaves. Hmm, that means 27 loaves "
        "altogether. Each costs $2.50, so 27 × 2.5 = 67.5. The answer should be 67.50 dollars.",
        "**Step 1.** Let $v$ be the speed and $t$ the time.\n**Step 2.** Since $s = vt$, we get $t = \\frac{s}{v}$.\n"
        "**Step 3.** Plug in the numbers: $t = 240 / 80 = 3$.\n\nSo the trip from Paris to Lyon takes three hours.",
        "We could brute-force it:\n```python\ntotal = 0\nfor x in range(1, 11):\n    total += x  # add every number\n"
        "```\nbut the closed formula $n(n+1)/2$ gives 55 at once.",
        "Kowalski owns twice as many goats as Nguyen. If Nguyen has g goats, then Kowalski has 2g. Together 3g = 36, "
        "thus g = 12.",
    ],
    "fr": [
        "Bon, la boulangerie vend 3 sortes de pain. Lundi : 12 pains, mardi : 15 pains. Cela fait donc 27 pains. "
        "Chacun coûte 2,50 €, alors 27 × 2,5 = 67,5. La réponse devrait être 67,50 euros.",
        "**Étape 1.** Soit $v$ la vitesse et $t$ la durée.\n**Étape 2.** Comme $s = vt$, on a $t = \\frac{s}{v}$.\n"
        "**Étape 3.** On remplace : $t = 240 / 80 = 3$.\n\nLe trajet de Stuttgart à Milan dure donc trois heures.",
        "On pourrait tout essayer :\n```python\ntotal = 0\nfor x in range(1, 11):\n    total += x  # on ajoute chaque "
        "nombre\n```\nmais la formule $n(n+1)/2$ donne tout de suite 55.",
        "Le week-end, le parking du shopping center est plein. Il reste 14 places au premier niveau et 9 au second. "
        "Au total, 23 voitures peuvent encore entrer. Le feedback du manager était positif.",
        "J'ai d'abord cru qu'il fallait diviser, mais non. L'énoncé dit « au moins », pas « exactement ». Il s'agit "
        "donc d'une inégalité : x ≥ 7.",
    ],
    "de": [
        "Also, die Bäckerei verkauft 3 Brotsorten. Montag: 12 Brote, Dienstag: 15 Brote. Das sind zusammen 27 Brote. "
        "Jedes kostet 2,50 €, also 27 × 2,5 = 67,5. Die Antwort müsste 67,50 Euro sein.",
        "**Schritt 1.** Sei $v$ die Geschwindigkeit und $t$ die Zeit.\n**Schritt 2.** Wegen $s = vt$ gilt "
        "$t = \\frac{s}{v}$.\n**Schritt 3.** Einsetzen: $t = 240 / 80 = 3$.\n\nDie Fahrt von Paris nach Lyon dauert "
        "demnach drei Stunden.",
        "Man könnte alles durchprobieren:\n```python\ntotal = 0\nfor x in range(1, 11):\n    total += x  # jede Zahl "
        "wird addiert\n```\naber die Formel $n(n+1)/2$ liefert sofort 55.",
        "Im Meeting hat das Team den Workflow besprochen. Der neue Server läuft seit gestern, das Update der Software "
        "folgt im Sommer. Insgesamt fallen 14 Überstunden an.",
        "Die Donaudampfschifffahrtsgesellschaft befördert täglich 340 Fahrgäste. In einer Woche sind es siebenmal so "
        "viele, nämlich 2380.",
    ],
    "es": [
        "A ver, la panadería vende 3 tipos de pan. Lunes: 12 panes, martes: 15 panes. En total son 27 panes. Cada uno "
        "cuesta 2,50 €, así que 27 × 2,5 = 67,5. La respuesta debería ser 67,50 euros.",
        "**Paso 1.** Sea $v$ la velocidad y $t$ el tiempo.\n**Paso 2.** Como $s = vt$, tenemos $t = \\frac{s}{v}$.\n"
        "**Paso 3.** Sustituimos: $t = 240 / 80 = 3$.\n\nEl viaje de París a Lyon dura, pues, tres horas.",
        "Se podría probar todo:\n```python\ntotal = 0\nfor x in range(1, 11):\n    total += x  # sumamos cada número\n"
        "```\npero la fórmula $n(n+1)/2$ da 55 enseguida.",
        "El software del marketing online falló el viernes. El equipo de soporte recibió 48 correos y respondió la "
        "mitad. Quedan 24 por contestar.",
        "No me cuadra. Si compra dos camisas por 18 pesos cada una, gasta 36, no 34. ¿Y el descuento? Ah, claro: le "
        "quitan 2 pesos por pagar en efectivo.",
    ],
    "it": [
        "Allora, il panificio vende 3 tipi di pane. Lunedì: 12 pagnotte, martedì: 15 pagnotte. In tutto fanno 27. "
        "Ognuna costa 2,50 €, quindi 27 × 2,5 = 67,5. La risposta dovrebbe essere 67,50 euro.",
        "**Passo 1.** Sia $v$ la velocità e $t$ il tempo.\n**Passo 2.** Poiché $s = vt$, si ha $t = \\frac{s}{v}$.\n"
        "**Passo 3.** Sostituendo: $t = 240 / 80 = 3$.\n\nIl viaggio da Parigi a Lione dura dunque tre ore.",
        "Si potrebbe provare tutto:\n```python\ntotal = 0\nfor x in range(1, 11):\n    total += x  # aggiungiamo ogni "
        "numero\n```\nma la formula $n(n+1)/2$ dà subito 55.",
        "Il manager ha prenotato il meeting online per il weekend. Il computer dello stand è in tilt e lo staff chiede "
        "un backup. Mancano 12 file su 60.",
        "Aspetta, rileggo il testo. Dice che restano otto caramelle, non che ne mangia otto. Allora la sottrazione va "
        "fatta al contrario.",
    ],
    "pt": [
        "Bem, a padaria vende 3 tipos de pão. Segunda: 12 pães, terça: 15 pães. No total são 27 pães. Cada um custa "
        "2,50 €, então 27 × 2,5 = 67,5. A resposta deve ser 67,50 euros.",
        "**Passo 1.** Seja $v$ a velocidade e $t$ o tempo.\n**Passo 2.** Como $s = vt$, temos $t = \\frac{s}{v}$.\n"
        "**Passo 3.** Substituindo: $t = 240 / 80 = 3$.\n\nA viagem de Paris a Lyon dura, portanto, três horas.",
        "Poderíamos tentar tudo:\n```python\ntotal = 0\nfor x in range(1, 11):\n    total += x  # somamos cada número\n"
        "```\nmas a fórmula $n(n+1)/2$ dá logo 55.",
        "O software do site caiu no fim de semana. A equipe de suporte recebeu 48 mensagens e respondeu metade delas. "
        "Faltam 24.",
    ],
    "nl": [
        "Goed, de bakkerij verkoopt 3 soorten brood. Maandag: 12 broden, dinsdag: 15 broden. Dat zijn er samen 27. "
        "Elk kost 2,50 €, dus 27 × 2,5 = 67,5. Het antwoord moet 67,50 euro zijn.",
        "**Stap 1.** Zij $v$ de snelheid en $t$ de tijd.\n**Stap 2.** Omdat $s = vt$, geldt $t = \\frac{s}{v}$.\n"
        "**Stap 3.** Invullen: $t = 240 / 80 = 3$.\n\nDe reis van Parijs naar Lyon duurt dus drie uur.",
        "Je kunt alles proberen:\n```python\ntotal = 0\nfor x in range(1, 11):\n    total += x  # tel elk getal erbij "
        "op\n```\nmaar de formule $n(n+1)/2$ geeft meteen 55.",
        "De manager heeft de meeting in de agenda gezet. Het team test de software in het weekend en de server draait "
        "weer. Er blijven 12 tickets open.",
    ],
    "zh": [
        "好的，面包店卖三种面包。星期一卖12个，星期二卖15个，一共是27个。每个2.5元，所以 27 × 2.5 = 67.5。答案应该是67.5元。",
        "**第一步** 设速度为 $v$，时间为 $t$。\n**第二步** 因为 $s = vt$，所以 $t = \\frac{s}{v}$。\n**第三步** 代入得 "
        "$t = 240 / 80 = 3$。\n\n从 Paris 到 Lyon 需要三个小时。",
        "我們先算出每個孩子拿到幾顆蘋果，再把結果加起來。這樣一共是二十四顆。",
        "我们用 Python 写一个脚本：\n```python\ntotal = 0\nfor x in range(1, 11):\n    total += x  # 把每个数加起来\n```\n结果是55。",
        "这个 API 的 response time 大约是200毫秒，吞吐量还可以。",
    ],
    "ja": [
        "では、パン屋は三種類のパンを売っています。"
        "月曜日は12個、火曜日は15個なので、合わせて27個です。一個2.5ユーロですから、27 × 2.5 = 67.5。"
        "答えは67.5ユーロのはずです。",
        "**手順1** 速さを $v$、時間を $t$ とする。\n"
        "**手順2** $s = vt$ だから $t = \\frac{s}{v}$。\n**手順3** 代入して $t = 240 / 80 = 3$。\n\n"
        "したがって、東京から大阪まで三時間かかる。",
        "PythonでAPIを呼び出すと、レスポンスのJSONにデータが入っています。それをリストに変換して合計を求めます。",
        "待てよ、問題文をもう一度読もう。残ったのは八個であって、食べたのが八個ではない。",
    ],
    "ar": [
        "حسناً، يبيع المخبز ثلاثة أنواع من الخبز. يوم الاثنين 12 رغيفاً ويوم الثلاثاء 15 رغيفاً، أي 27 رغيفاً في المجموع. "
        "ثمن الرغيف 2.5 يورو، إذن 27 × 2.5 = 67.5.",
        "نستخدم لغة Python لكتابة برنامج صغير يجمع الأعداد من 1 إلى 10، والنتيجة هي 55.",
        "لنفرض أن السرعة هي $v$ والزمن $t$. بما أن $s = vt$ فإن $t = 3$. إذن تستغرق الرحلة ثلاث ساعات.",
    ],
    "hi": [
        "ठीक है, बेकरी तीन तरह की रोटी बेचती है। सोमवार को 12 और मंगलवार को 15, यानी कुल 27। हर एक की कीमत 2.5 यूरो है, इसलिए "
        "27 × 2.5 = 67.5।",
        "हम Python में एक छोटा program लिखते हैं जो 1 से 10 तक की संख्याएँ जोड़ता है। परिणाम 55 है।",
        "मान लो चाल $v$ है और समय $t$ है। चूँकि $s = vt$, इसलिए $t = 3$। यात्रा में तीन घंटे लगते हैं।",
    ],
    "ko": [
        "자, 빵집은 세 가지 빵을 팝니다. 월요일에 12개, 화요일에 15개이므로 모두 27개입니다. 하나에 2.5유로이니 27 × 2.5 = 67.5입니다.",
        "Python으로 간단한 스크립트를 작성해서 1부터 10까지 더하면 55가 나옵니다.",
        "속력을 $v$, 시간을 $t$ 라고 하자. $s = vt$ 이므로 $t = 3$ 이다. 따라서 세 시간이 걸린다.",
    ],
}

# Short answers and the Latin-script languages in which they are good (the first is the one they were written in).
SHORT: list[tuple[str, str]] = [
    ("Seven", "en"), ("Yes", "en"), ("No, never", "en"), ("Twenty-five", "en"), ("Three quarters", "en"),
    ("The blue car", "en"), ("Wednesday", "en"), ("8 children", "en"), ("False", "en"), ("Half an hour", "en"),
    ("The train is faster.", "en"), ("At noon", "en"), ("It costs 9 dollars.", "en"), ("Both", "en"),
    ("Sept", "fr"), ("Oui", "fr"), ("Non, jamais", "fr"), ("Vingt-cinq", "fr"), ("Trois quarts", "fr"),
    ("La voiture bleue", "fr"), ("Mercredi", "fr"), ("8 enfants", "fr"), ("Faux", "fr"), ("Une demi-heure", "fr"),
    ("Le train est plus rapide.", "fr"), ("À midi", "fr"), ("Cela coûte 9 dollars.", "fr"), ("Les deux", "fr"),
    ("Sieben", "de"), ("Ja, genau", "de"), ("Nein", "de"), ("Fünfundzwanzig", "de"), ("Drei Viertel", "de"),
    ("Das blaue Auto", "de"), ("Mittwoch", "de"), ("8 Kinder", "de"), ("Falsch", "de"), ("Eine halbe Stunde", "de"),
    ("Der Zug ist schneller.", "de"), ("Um zwölf Uhr mittags", "de"), ("Es kostet 9 Dollar.", "de"), ("Beide", "de"),
    ("Siete", "es"), ("Sí, claro", "es"), ("Nunca", "es"), ("Veinticinco", "es"), ("Tres cuartos", "es"),
    ("El coche azul", "es"), ("Miércoles", "es"), ("8 niños", "es"), ("Media hora", "es"), ("Los dos", "es"),
    ("El tren es más rápido.", "es"), ("A mediodía", "es"), ("Cuesta 9 dólares.", "es"),
    ("Sette", "it"), ("Sì, certo", "it"), ("Mai", "it"), ("Venticinque", "it"), ("Tre quarti", "it"),
    ("La macchina blu", "it"), ("Mercoledì", "it"), ("8 bambini", "it"), ("Mezz'ora", "it"), ("Entrambi", "it"),
    ("Il treno è più veloce.", "it"), ("A mezzogiorno", "it"), ("Costa 9 dollari.", "it"),
    ("Sete", "pt"), ("Sim, claro", "pt"), ("Vinte e cinco", "pt"), ("Três quartos", "pt"), ("O carro azul", "pt"),
    ("Quarta-feira", "pt"), ("8 crianças", "pt"), ("Meia hora", "pt"), ("Ambos", "pt"),
    ("O trem é mais rápido.", "pt"), ("Ao meio-dia", "pt"), ("Custa 9 dólares.", "pt"),
    ("Zeven", "nl"), ("Ja, precies", "nl"), ("Nooit", "nl"), ("Vijfentwintig", "nl"), ("Drie kwart", "nl"),
    ("De blauwe auto", "nl"), ("Woensdag", "nl"), ("8 kinderen", "nl"), ("Onwaar", "nl"), ("Een half uur", "nl"),
    ("De trein is sneller.", "nl"), ("Om twaalf uur", "nl"), ("Het kost 9 dollar.", "nl"), ("Allebei", "nl"),
]  # fmt: skip

# Answers that several languages share; each must be accepted for all of them.
SHARED: list[tuple[str, str]] = [
    ("No", "en es it"), ("30 euros", "en fr es pt"), ("30 minutos", "es pt"), ("5 minutes", "en fr"), ("Normal", "en fr de es pt"),
    ("Anna", "en fr de es it pt nl"), ("Paolo", "en fr de es it pt nl"), ("Nina", "en fr de es it pt nl"),
    ("Pedro", "en fr de es it pt nl"), ("Sophie", "en fr de es it pt nl"), ("4 gram", "nl"), ("12 kilo", "nl de"),
    ("2 tomates", "fr es pt"), ("Ja", "de nl"), ("April", "en de nl"), ("Sofia", "en it pt es"), ("La casa", "es it"),
    ("Abril", "es pt"), ("Correct", "en fr nl"), ("Marzo", "es it"),
]  # fmt: skip

NEUTRAL: list[str] = [
    "42", "x = 3", "3 km/h", "72 km", "84 m²", "-3/4", "1 234,56", "12:45", "f(x) = 2x + 1", "a² + b²", "✅", "😀😀", "🇫🇷", "C", "(b)",
    "\\frac{1}{2}", "$\\sqrt{2}$", "\\[x = 5\\]", "```\nx = 1\n```", "`foo_bar(3)`", "[1, 2, 3]", '{"a": 1, "b": [2, 3]}', "π", "Δx = 2",
    "v = d/t = 180 km / 2.5 h", "n = 5", "{2, 3, 5}", "50%", "€ 12", "# \n- \n", "***", "", " \n\t", "\x00", "1e-5", "0b1010", "2³ = 8",
    "import numpy as np", "for i in range(3): print(i)", "https://example.org/how-to-add", "x²−1 = (x−1)(x+1)",
    "３００", "①②", "١٢", "१२", "20 °C",
    "5 kg", "\ufffd\ufffd\ufffd\ufffd", "sin(x) + cos(x)", "def f(x): return x + 1", "A4", "H2SO4",
]  # fmt: skip


@pytest.mark.parametrize(("code", "text"), [(code, text) for code, texts in REASONING.items() for text in texts])
def test_honest_reasoning_is_recognised_and_accepted(code: str, text: str) -> None:
    assert detect(text).label == code
    asked = detect(text, code)
    assert (asked.label, asked.accepted) == (code, True)
    assert asked.target_share is not None
    assert asked.target_share >= STRICT_SHARE


@pytest.mark.parametrize(("code", "text"), [(code, text) for code, texts in REASONING.items() for text in texts])
def test_honest_reasoning_is_rejected_for_every_other_language(code: str, text: str) -> None:
    for other in REASONING:
        if other != code:
            found = detect(text, other)
            assert (found.accepted, found.target_share) == (False, pytest.approx(0.0, abs=0.1)), other


def test_every_short_answer_is_accepted_for_its_own_language() -> None:
    assert [(text, code) for text, code in SHORT if not detect(text, code).accepted] == []


def test_few_short_answers_are_accepted_for_another_latin_language() -> None:
    pairs = [(text, other) for text, code in SHORT for other in LATIN if other != code]
    false = [pair for pair in pairs if detect(*pair).accepted]
    assert len(false) <= 0.03 * len(pairs), false


@pytest.mark.parametrize(("text", "codes"), SHARED)
def test_an_answer_that_languages_share_is_accepted_for_each_and_takes_its_name(text: str, codes: str) -> None:
    for code in codes.split():
        found = detect(text, code)
        assert (found.label, found.accepted, found.target_share, found.shares) == (code, True, 1.0, {code: 1.0})


@pytest.mark.parametrize("text", NEUTRAL)
def test_numbers_formulas_code_and_emoji_are_neutral_and_never_accepted(text: str) -> None:
    for target in (None, "en", "fr", "zh", "ar"):
        found = detect(text, target)
        assert (found.label, found.letters, found.shares, found.abstained) == ("neutral", 0, {}, False)
        assert found.accepted is (None if target is None else False)


def test_kanji_that_chinese_and_japanese_share_are_accepted_for_both_and_named_by_neither() -> None:
    for text in ("五", "二百", "不可能"):
        assert detect(text, "zh").accepted
        assert detect(text, "ja").accepted
        assert not detect(text, "ko").accepted
        found = detect(text)
        assert (found.label, found.abstained) == ("unknown", True)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("我们", "zh"),
        ("两百", "zh"),
        ("気温", "ja"),
        ("月曜日", "ja"),
        ("半分です", "ja"),
        ("三個です。五個。", "ja"),
    ],
)
def test_characters_of_one_of_the_two_decide(text: str, code: str) -> None:
    assert detect(text).label == code
    assert detect(text, code).accepted
    assert not detect(text, "ja" if code == "zh" else "zh").accepted


def test_languages_without_a_file_are_judged_too() -> None:
    swahili = "Kwa hiyo kila mtoto anapata matunda saba. Hebu tuhesabu kwanza idadi ya watoto wote katika kijiji."
    swedish = "Först måste vi räkna ut hur många äpplen varje barn får, och sedan delar vi summan."
    russian = "Сначала нужно посчитать, сколько яблок получает каждый ребёнок."
    assert detect(swahili, "sw").accepted
    assert detect(swedish, "sv").accepted
    assert detect(russian, "ru").accepted
    assert detect("Zazpi sagar jaso ditu", "eu").accepted
    assert not detect("The answer is seven.", "sw").accepted
    for text in (swahili, swedish, russian):
        assert detect(text).label == "unknown"


def test_candidates_restrict_the_names_that_are_given() -> None:
    text = "We can solve this problem step by step, starting with the youngest brother."
    found = detect(text, languages=["fr", "de"])
    assert (found.label, found.shares, found.abstained) == ("unknown", {}, True)
    assert detect(text, languages=["fr", "en"]).label == "en"
    assert detect("Podemos resolver este problema passo a passo.", "es", languages=["es"]).label == "pt"  # a relative


def test_a_given_name_is_no_fault_where_another_script_is_asked_for() -> None:
    for target in ("zh", "ja", "ar", "hi", "ko"):
        assert detect("Anna", target).label == "neutral"
        assert detect("Monday", target).label == "en"


# Every spelling rule for joining numbers: "und" and "en" between, a vowel dropped, an accent gained, hundreds in front.
JOINED = {
    "de": ("neunundzwanzig", "dreiunddreißig", "hundertvier", "achthundertzwanzig", "zweitausendfünfundsiebzig"),
    "nl": ("drieëntwintig", "zevenenzestig", "honderdvier", "achthonderdtwintig", "tweeduizendvijfenzeventig"),
    "it": ("trentatré", "trentotto", "centoquattro", "ottocentoventi", "duemilasettantacinque"),
}


@pytest.mark.parametrize("code", JOINED)
def test_joined_number_words_are_of_one_language(code: str) -> None:
    for word in JOINED[code]:
        for written in (word, word.capitalize()):
            assert [target for target in LATIN if detect(written, target).accepted] == [code], written


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("fr", "Onze"),
        ("pt", "onze"),
        ("fr", "Mai"),
        ("de", "Mai"),
        ("pt", "Jamais"),
        ("de", "Dezember"),
        ("es", "Once"),
    ],
)
def test_a_whole_answer_is_accepted_however_common_the_word_is_elsewhere(code: str, text: str) -> None:
    assert detect(text, code).accepted


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "3 erasers"),
        ("fr", "12 autocollants"),
        ("de", "18 Radiergummis"),
        ("de", "6 Murmeln"),
        ("es", "4 zanahorias"),
        ("it", "9 ciliegie"),
        ("pt", "5 cenouras"),
        ("pt", "8 peras"),
        ("nl", "18 potloden"),
    ],
)
def test_rare_words_are_looked_up(code: str, text: str) -> None:
    """Below one word in a million the small lists know nothing, and nothing is no reason to accept."""
    accepted = {target for target in LATIN if detect(text, target).accepted}
    assert code in accepted
    assert accepted <= {code, "es"} if code == "pt" else accepted == {code}


def test_sharp_s_is_looked_up_as_the_lists_write_it() -> None:
    for text in ("groß", "Die Größe", "weiß"):
        assert [target for target in LATIN if detect(text, target).accepted] == ["de"], text


def test_short_chinese_sentences_without_simplified_characters_are_not_japanese() -> None:
    for text in ("三个六欧元是十八欧元。", "所以一共便宜了十二欧元。"):
        assert not detect(text, "ja").accepted
        assert detect(text, "zh").accepted
    for text in ("東京駅", "七割五分", "月曜日午後三時"):
        assert detect(text, "ja").accepted


def test_a_lone_latin_word_is_a_term_but_no_answer() -> None:
    for code, text in (
        ("ko", "사과의 수를 x라 하면 x = 5. 검산: 15 + 5 = 20. OK!"),
        ("hi", "OK. उत्तर 5 है।"),
        ("ja", "Pythonを使います。Python!"),
    ):
        assert detect(text, code).accepted, text
    for text in ("Saturday。星期六", "The floor. 地板的面积是七十二平方米", "Answer: 60. 答"):
        assert not detect(text, "zh").accepted, text
