"""What asks for nothing."""

import pytest

from retrieval.text.small_talk import after_small_talk, is_small_talk, is_thanks


@pytest.mark.parametrize(
    "text",
    [
        "Hello",
        "hi there!",
        "Hello, how are you?",
        "OK, thanks a lot. Bye!",
        "What’s up?",  # noqa: RUF001 -- a typographic apostrophe
        "HALLO",
        "Guten Morgen!",
        "Merci beaucoup",
        "¿Qué tal?",
        "Vielen Dank, tschüss",
        "help",
        "Danke, das hat geholfen!",
        "Wer bist du und was kannst du?",
        "Können Sie mir helfen?",
        "Pouvez-vous m'aider ?",
    ],
)
def test_greetings_and_thanks_ask_for_nothing(text):
    assert is_small_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?!",
        "Hello, how many days of leave do I get?",
        "help desk",
        "Who are you supposed to call at night?",
        "thanks to whom do we have a solar roof",
        "how are you paid",
        "test",
        "good",
        "hello " * 30,
        "Wer sind Sie, wenn es brennt?",
    ],
)
def test_questions_and_other_texts_do_not(text):
    assert not is_small_talk(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Thanks!", True),
        ("OK, thanks a lot. Bye!", True),
        ("Vielen Dank", True),
        ("Hello", False),
        ("OK", False),
        ("thanks to whom do we have a solar roof", False),
    ],
)
def test_thanks_are_no_greeting(text, expected):
    assert is_thanks(text) == expected


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("OK, and for children?", "and for children?"),
        ("Perfect, thank you. And parking?", "And parking?"),
        ("Alles klar - und im Winter?", "und im Winter?"),
        ("D'accord ; et le soir ?", "et le soir ?"),
        ("Hello", "Hello"),
        ("Thanks!", "Thanks!"),
        ("Help desk, where is it?", "Help desk, where is it?"),
        ("Who signs, and when?", "Who signs, and when?"),
    ],
)
def test_what_is_said_after_it_is_left(text, left):
    assert after_small_talk(text) == left
