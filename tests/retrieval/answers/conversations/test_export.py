import json

from corecube.models import Connection
from retrieval.answers.conversations.asking import ask
from retrieval.answers.conversations.export import WITHHELD, as_json, as_markdown
from retrieval.answers.conversations.reading import exchanges_of


def test_markdown_holds_questions_answers_and_their_sources(talk, world):
    conversation = talk("bob", "How do I *roll back* the staging database?").conversation
    conversation.refresh_from_db()
    text = as_markdown(conversation, exchanges_of(conversation, world.principal("bob")))
    assert text.startswith(r"# How do I \*roll back\* the staging database?")
    assert "deployctl rollback" in text
    assert "- [1] Rolling back" in text
    assert "Runbooks" in text


def test_json_holds_the_same(talk, world):
    conversation = talk("bob").conversation
    exported = json.loads(as_json(conversation, exchanges_of(conversation, world.principal("bob"))))
    exchange = exported["exchanges"][0]
    assert exchange["question"] == exchange["searched_for"] == "How do I roll back the staging database?"
    assert "deployctl" in exchange["answer"]
    assert exchange["passages"][0]["title"] == "Rolling back"


def test_neither_holds_what_may_not_be_seen_any_more(talk, world):
    conversation = talk("bob").conversation
    Connection.objects.filter(pk=world.runbooks.pk).update(enabled=False)
    exchanges = exchanges_of(conversation, world.principal("bob"))
    both = as_markdown(conversation, exchanges) + as_json(conversation, exchanges)
    assert not [word for word in ("deployctl", "Rolling back", "Runbooks") if word in both]
    assert WITHHELD in both


def test_an_answer_that_was_never_read_says_so(talk, world):
    conversation = talk("bob").conversation
    ask(conversation, "And now?")
    assert "(not answered)" in as_markdown(conversation, exchanges_of(conversation, world.principal("bob")))
