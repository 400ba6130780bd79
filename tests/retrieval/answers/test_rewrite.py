import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.answers.rewrite import Said, depends, stand_alone

LIMIT = Said("What is the credit limit of Marrowfield Foods?", ("Credit control",))
LEVEL = Said("How quickly is SEV1 answered in 2026?")


@pytest.mark.parametrize(
    ("question", "before", "searched"),
    [
        # A pronoun takes the topic and a title that is about the same.
        ("Who approves it?", LIMIT, "Who approves it? (credit limit Marrowfield Foods control)"),
        ("And who signs it?", LIMIT, "And who signs it? (credit limit Marrowfield Foods control)"),
        (
            "How early must I ask for it?",
            LIMIT,
            "How early must I ask for it? (credit limit Marrowfield Foods control)",
        ),
        # Elliptical questions do, too.
        ("What is the deadline?", LEVEL, "What is the deadline? (SEV1 answered 2026)"),
        ("Why?", LIMIT, "Why? (credit limit Marrowfield Foods control)"),
        ("Who decides?", LEVEL, "Who decides? (SEV1 answered 2026)"),
        # Another thing of the same kind takes the place of the first.
        ("And of Quillon?", LIMIT, "And of Quillon? (credit limit)"),
        ("What about SEV2?", LEVEL, "What about SEV2? (answered 2026)"),
        ("And in 2025?", LEVEL, "And in 2025? (SEV1 answered)"),
        # A word that is there already is not said twice, in whatever form.
        ("And what are the limits of it?", LIMIT, "And what are the limits of it? (credit Marrowfield Foods)"),
    ],
)
def test_a_follow_up_takes_over_what_it_leaves_out(question, before, searched):
    assert stand_alone(question, [before]).searched == searched


TICKET = Said("What does an adult ticket cost?")


@pytest.mark.parametrize(
    "question",
    [
        "OK, and the audio guide?",
        "Perfect, thank you. And parking?",
        "Hm, what about online?",
        # The rest of a question, without its beginning.
        "for pensioners",
        "on public holidays?",
        "By card?",
        "In the museum shop, too?",
        # What was meant instead.
        "No, I mean the school rate",
        "I meant for groups",
        "Instead of cash?",
        # Without a topic: about the answer.
        "Tell me more",
        "In more detail, please",
        "Go on",
        "Continue",
        "Can you show me the whole list?",
        "Give me an example",
        "What is the next step?",
        "Step 2?",
        "The second one",
        "Which document?",
        "Shorter, please",
        "Are you sure?",
    ],
)
def test_a_fragment_takes_over_the_question_before(question):
    assert stand_alone(question, [TICKET]).searched == f"{question} (adult ticket cost)"


@pytest.mark.parametrize(
    ("question", "carried"),
    [("In 2024?", ("adult", "ticket", "cost")), ("Not the adult one, the reduced one", ("ticket", "cost", "2023"))],
)
def test_what_a_fragment_names_replaces_its_like(question, carried):
    assert stand_alone(question, [Said("What did an adult ticket cost in 2023?")]).carried == carried


CODE = Said("How do I reset my password?", answer="> We send a code of six digits. [1]")


@pytest.mark.parametrize(
    ("question", "is_follow_up"),
    [
        ("How long is the code valid?", True),
        ("How long is a code valid?", False),
        ("Who is the code officer of Kiel?", False),
        ("Who wrote the codex?", False),
        ("How long is the parking permit valid?", False),
        ("Who wrote the code of conduct of suppliers?", False),
    ],
)
def test_what_the_answer_before_mentioned_is_referred_to(question, is_follow_up):
    assert stand_alone(question, [CODE]).is_follow_up == is_follow_up
    assert not stand_alone(question, [Said(CODE.question)]).is_follow_up


def test_another_number_takes_the_place_of_the_first():
    said = Said("Who approves an outgoing loan for £20,000?")
    assert stand_alone("And above £25,000?", [said]).searched == "And above £25,000? (approves outgoing loan)"


def test_what_is_only_about_the_answer_changes_no_topic():
    said = [TICKET, Said("Show me the whole list")]
    assert stand_alone("Who decides that?", said).searched == "Who decides that? (adult ticket cost)"


@pytest.mark.parametrize(
    "question",
    [
        "For how long may I stay in the deep freeze?",
        "In which room is the first aid kit?",
        "Without a badge, how do I enter the plant at night?",
        "Not all pallets of the yard were counted",
        "OK, how many hours of rest does a driver need?",
        "List of suppliers in Vessing",
        "Before surgery, may I eat?",
        "4711",
        "4.2a",
        "points",
        "How do I write a summary of the audit?",
    ],
)
def test_what_begins_like_a_fragment_can_stand_alone(question):
    assert not stand_alone(question, [TICKET]).is_follow_up


@pytest.mark.parametrize(
    "question",
    [
        "GAN-0x2F",
        "ammonia",
        "Who owns Berth?",
        "What does LDR-5521 mean and how do I put it right?",
        "How many hours does it take to freeze whole fish in cartons?",
        "Is it allowed to eat in the break room?",
        "Is there a reward for bringing a friend?",
        "How did we notice that a bill was not genuine?",
        "The chamber has closed behind me and I cannot get out",
        "How many guests can one employee look after?",
        '"credit limit" -Marrowfield',
        "what about -it",
        # A verb and what it is about are enough, without a name.
        "What is the dress code?",
        "How do I drain the queue?",
        "How do I rebuild the old primary?",
        "Who signs the agreement?",
        "What does zorblax need?",
        "What is a reefer?",
        "Does anybody make use of the warmth that the plant gives off?",
        # As is one that only begins like a continuation.
        "And what is the price of the coffee beans?",
        "And on which port does Plover listen?",
    ],
)
def test_a_question_that_stands_alone_stays_as_it_is(question):
    rewriting = stand_alone(question, [LIMIT])
    assert rewriting.searched == rewriting.asked == question
    assert not rewriting.is_rewritten
    assert not rewriting.is_follow_up


GERMAN = Said("Wie hoch ist die Kilometerpauschale für Dienstreisen?")
FRENCH = Said("Combien de jours de congés payés ai-je par an ?")
SPANISH = Said("¿Quién aprueba los gastos de viaje?")


@pytest.mark.parametrize(
    ("question", "before", "carried"),
    [
        ("Und wo?", GERMAN, "Kilometerpauschale Dienstreisen"),
        ("Wer genehmigt das?", GERMAN, "Kilometerpauschale Dienstreisen"),
        ("Was muss ich dann tun?", GERMAN, "Kilometerpauschale Dienstreisen"),
        ("Wer ist dafür zuständig?", GERMAN, "Kilometerpauschale Dienstreisen"),
        # Nouns have capitals, but name nothing that a name could replace.
        ("Und in Frankreich?", GERMAN, "Kilometerpauschale Dienstreisen"),
        ("Und 5.000 Euro?", Said("Wer darf 20.000 Euro unterschreiben?"), "unterschreiben"),
        ("Et pour les stagiaires ?", FRENCH, "jours congés payés an"),
        ("Qui les approuve ?", Said("Qui signe les notes de frais ?"), "signe notes frais"),
        ("¿Quién firma eso?", SPANISH, "aprueba gastos viaje"),
        ("¿Hasta cuándo?", SPANISH, "aprueba gastos viaje"),
        ("Alles klar, und im Homeoffice?", GERMAN, "Kilometerpauschale Dienstreisen"),
        ("Für Azubis?", GERMAN, "Kilometerpauschale Dienstreisen"),
        ("Mehr Details bitte", GERMAN, "Kilometerpauschale Dienstreisen"),
        ("Zeig mir die ganze Liste", GERMAN, "Kilometerpauschale Dienstreisen"),
        ("Pour les stagiaires ?", FRENCH, "jours congés payés an"),
        ("Para becarios?", SPANISH, "aprueba gastos viaje"),
    ],
)
def test_a_follow_up_is_understood_in_its_language(question, before, carried):
    assert stand_alone(question, [before]).searched == f"{question} ({carried})"


@pytest.mark.parametrize(
    ("question", "before"),
    [
        ("Wann öffnet das Büro?", GERMAN),
        ("Gibt es einen Betriebskindergarten?", GERMAN),
        ("Ist es erlaubt, im Büro zu rauchen?", GERMAN),
        ("Wie melden Mitarbeiter ihre Arbeitszeit?", GERMAN),
        ("Wie viele Urlaubstage haben Sie?", GERMAN),
        ("Wo finde ich das neue Formular?", GERMAN),
        ("Ich habe meinen Ausweis verloren, was muss ich dann tun?", GERMAN),
        ("Où est le point de rassemblement ?", FRENCH),
        ("Faut-il un certificat médical ?", FRENCH),
        ("¿Cuántos días de vacaciones tengo?", SPANISH),
    ],
)
def test_a_question_that_stands_alone_in_its_language_stays_as_it_is(question, before):
    assert not stand_alone(question, [before]).is_follow_up


def test_nothing_is_carried_into_the_first_question():
    assert depends("Who approves it?")
    assert stand_alone("Who approves it?", []).searched == "Who approves it?"


def test_a_third_question_stands_on_both_before_it():
    said = [LIMIT, Said("Who approves it?", ("Who does what",))]
    # The word "control" was itself only carried into the second.
    assert stand_alone("Since when?", said).searched == "Since when? (approves credit limit Marrowfield Foods)"


@pytest.mark.parametrize(
    ("questions", "searched"),
    [
        (["What does zorblax need?", "How do I drain the queue?", "And why?"], "And why? (drain queue)"),
        (["How do I drain the queue?", "Who approves it?", "And when?", "Why?"], "Why? (drain queue)"),
        (["How do I drain the queue?", "What about staging?", "Who does it?"], "Who does it? (staging drain queue)"),
        (["Is SEV1 paid?", "And SEV2?", "Who decides?", "Why?"], "Why? (decides SEV2 paid)"),
        (["What was paid in 2026?", "And in 2025?", "Who approves it?"], "Who approves it? (2025 paid)"),
    ],
)
def test_what_was_only_carried_is_not_carried_on(questions, searched):
    *before, last = questions
    assert stand_alone(last, [Said(it) for it in before]).searched == searched


def test_a_new_topic_leaves_the_old_one_behind():
    said = [LIMIT, Said("On which port does Plover listen?", ("Service catalogue",))]
    assert stand_alone("Who owns it?", said).searched == "Who owns it? (port Plover listen)"


def test_a_title_about_something_else_is_not_carried():
    said = Said("Who is the manager of Vessing?", ("Docks at Vessing closed in December for painting",))
    assert "Docks" not in stand_alone("Who stands in for him?", [said]).searched


LONG = " ".join(["The workshop moved to the second floor in spring."] * 12)


@pytest.mark.parametrize(
    ("question", "searched"),
    [
        (f"{LONG} How much is the day ticket?", "How much is the day ticket?"),
        # The last ones, in their order.
        (f"Who signs the lease? {LONG}\nWho owns Berth? Thanks!", "Who signs the lease? Who owns Berth?"),
        # With the sentence that it depends on.
        (
            f"{LONG} The kettle has a filter. How often is it changed?",
            "The kettle has a filter. How often is it changed?",
        ),
        (f"{LONG} Version 2.1 came out. What is new in 2.1?", "What is new in 2.1?"),
        # Without a question it is searched from the start.
        (LONG, LONG),
        (f"{'x' * 600}?", f"{'x' * 600}?"),
    ],
)
def test_of_a_long_text_its_questions_are_searched(question, searched):
    rewriting = stand_alone(question, [])
    assert (rewriting.asked, rewriting.searched) == (question, searched)
    assert not rewriting.is_follow_up


def test_the_question_of_a_long_text_may_be_a_follow_up():
    searched = stand_alone(f"Who approves it? {LONG}", [LIMIT]).searched
    assert searched == "Who approves it? (credit limit Marrowfield Foods control)"


@given(st.text(max_size=400), st.lists(st.builds(Said, st.text(), st.lists(st.text()).map(tuple)), max_size=3))
def test_whatever_was_said_the_question_comes_first_and_grows_by_little(question, before):
    rewriting = stand_alone(question, before)
    assert rewriting.searched.startswith(question.rstrip())
    assert len(rewriting.carried) <= 16
    assert rewriting.is_rewritten == bool(rewriting.carried)
