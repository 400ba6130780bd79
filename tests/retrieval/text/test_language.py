# ruff: noqa: E501, RUF001 -- sentences of many scripts, a line each
import tomllib

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from retrieval.text.language import language_of, question_language

SENTENCES = {
    "english": "The queue has to be drained before the release is rolled back, or the worker that was stuck is lost.",
    "german": "Die Warteschlange muss geleert werden, bevor das Release auf den alten Stand zurückgesetzt wird.",
    "french": "La file doit être vidée avant que la version ne soit retirée, et les messages sont dans une autre table.",
    "spanish": "La cola se tiene que vaciar antes de que la versión sea retirada, y los mensajes están en otra tabla.",
    "portuguese": "A fila tem de ser esvaziada antes que a versão seja retirada, e as mensagens não são do mesmo dia.",
    "italian": "La coda deve essere svuotata prima che la versione sia ritirata, e i messaggi sono nella tabella.",
    "dutch": "De wachtrij moet worden geleegd voordat de versie wordt teruggezet, en de berichten zijn niet weg.",
    "swedish": "Kön måste tömmas innan versionen tas tillbaka, och meddelanden som inte har lästs finns kvar i en tabell.",
    "danish": "Køen skal tømmes, før versionen bliver rullet tilbage, og de beskeder som ikke er læst, kan findes der.",
    "norwegian": "Køen må tømmes før versjonen blir rullet tilbake, og meldinger som ikke er lest, skal også være der etter det.",
    "finnish": "Jono on tyhjennettävä ennen kuin versio palautetaan, ja viestit jotka eivät ole luettu ovat myös siellä.",
    "polish": "Kolejka musi być opróżniona, zanim wersja zostanie wycofana, a wiadomości są w innej tabeli i nie do końca.",
    "czech": "Fronta se musí vyprázdnit, než je verze vrácena, a zprávy, které nejsou čteny, jsou v tabulce podle data.",
    "hungarian": "A sort ki kell üríteni, mielőtt a verzió vissza van vonva, és az üzenetek nem egy másik táblában vannak.",
    "turkish": "Sürüm geri alınmadan önce kuyruk boşaltılmalı ve bu mesajlar daha sonra bir tabloda olarak kalır.",
    "romanian": "Coada trebuie golită înainte ca versiunea să fie retrasă, iar mesajele sunt în altă tabelă pentru că nu au citit.",
    "russian": "Очередь нужно очистить до того, как версия будет отозвана, и сообщения не пропадут из таблицы.",
    "ukrainian": "Чергу треба очистити до того, як версія буде відкликана, і повідомлення не зникнуть з таблиці, що є при цьому.",
    "bulgarian": "Опашката трябва да се изпразни, преди версията да бъде върната, и съобщенията са в таблица за това.",
    "greek": "Η ουρά πρέπει να αδειάσει πριν αποσυρθεί η έκδοση.",
    "arabic": "يجب إفراغ قائمة الانتظار قبل سحب الإصدار.",
    "hebrew": "יש לרוקן את התור לפני שהגרסה נמשכת.",
    "hindi": "संस्करण वापस लेने से पहले कतार खाली करनी होगी।",
    "japanese": "リリースを戻す前に、キューを空にしてください。",
    "chinese": "在回滚版本之前，必须先清空队列。",
    "korean": "릴리스를 되돌리기 전에 대기열을 비워야 합니다.",
    "thai": "ต้องล้างคิวก่อนที่จะย้อนรุ่น",
}


@pytest.mark.parametrize(("language", "sentence"), SENTENCES.items())
def test_a_sentence_tells_its_language(language, sentence):
    assert language_of(sentence) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "42 | 17.5 | 3",
        "Total 2019 2020",
        "x = y(z)\nfor k in z: print(k)",
        "A | B | C | D | E",
        "import os\nos.path",
    ],
)
def test_too_little_or_no_prose_has_no_language(text):
    assert language_of(text) == ""


def test_latin_names_do_not_hide_a_script():
    assert language_of("PostgreSQL のキューは SIGKILL の後でも失われません") == "japanese"


def test_only_the_beginning_of_a_long_text_is_read():
    assert language_of(SENTENCES["german"] * 60 + SENTENCES["english"] * 600) == "german"


QUESTIONS = {
    "german": [
        "Wie viele Urlaubstage habe ich?",
        "Wer unterschreibt das?",
        "Was kostet ein Hotel?",
        "Darf ich im Pausenraum essen?",
    ],
    "french": [
        "Combien de jours de congé ai-je ?",
        "Qui signe ce contrat ?",
        "Puis-je manger dans la salle ?",
        "Quel est le prix d’une nuit ?",
    ],
    "spanish": ["¿Cuántos días de vacaciones tengo?", "¿Quién firma el contrato?", "¿Puedo comer en la sala?"],
    "italian": ["Quanti giorni di ferie ho?", "Chi firma il contratto?"],
    "portuguese": ["Quantos dias de férias tenho?"],
    "dutch": ["Hoeveel vakantiedagen heb ik?", "Wie tekent het contract?", "Wat is de limiet voor een hotelnacht?"],
    "polish": ["Ile mam dni urlopu?"],
    "swedish": ["Hur många semesterdagar har jag?"],
    "russian": ["Сколько дней отпуска у меня есть?"],
    "chinese": ["我有多少天年假？"],
    "english": ["How do I get the key to the store that is at the dock?"],
}


@pytest.mark.parametrize(("language", "question"), [(it, text) for it, texts in QUESTIONS.items() for text in texts])
def test_a_short_question_tells_its_language(language, question):
    assert question_language(question) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "λ",
        "10 µs a cycle",
        "GAN-0x2F",
        "%Y-%m-%d %H",
        "Juan de la Cruz",
        "Was the order signed?",
        "Die casting in Essen",
        "What does “der die das” mean?",
        "What is 注意事項?",
        "Is La Paz in the list?",
        "Como Lake villa",
        "Kündigungsfrist",
        "Sørensen og Larsen",
    ],
)
def test_names_codes_and_foreign_words_in_english_do_not_decide(text):
    assert question_language(text) in {"", "english"}


def test_no_question_about_the_samples_seems_to_be_in_another_language():
    company = tomllib.loads((settings.CORECUBE_SAMPLES_DIR / "company.toml").read_text(encoding="utf-8"))
    texts = [question["text"] for question in company["question"]]
    assert {question_language(it) for it in texts} <= {"", "english"}


_ENGLISH = "what who when is the may can how many days of leave limit hotel order sign de la Paz der RIME-4107 K5 Østrup was die en no"


@given(st.lists(st.sampled_from(_ENGLISH.split()), max_size=9), st.sampled_from(["what is", "who may", "how many"]))
def test_a_question_that_begins_in_english_is_in_no_other_language(words, first):
    english = " ".join(["in the", *words[:3]])
    assert question_language(f"{first} {english}") in {"", "english"}


@given(st.text())
def test_any_text_has_a_language_or_none(text):
    assert isinstance(question_language(text), str)
