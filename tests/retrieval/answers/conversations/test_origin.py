"""What an answer was made from, also by the answers before it: which model hears it, and who may read it again."""

from dataclasses import replace

import pytest

from corecube.access import Principal, ScopeRequest
from corecube.models import Connection
from retrieval.answers.answering import origin
from retrieval.answers.conversations.asking import ask, change, start
from retrieval.answers.conversations.export import as_json, as_markdown
from retrieval.answers.conversations.reading import exchanges_of, turns_of
from retrieval.answers.conversations.writing import begin, claimed
from retrieval.models import LanguageModel, Message, RoutingRule, SearchRecord
from tests.fake_llm import FakeLLM, Fault

FINANCE, ENGINEERING = ScopeRequest(include=("ledger",)), ScopeRequest(include=("runbooks",))
SECRET = "777 pallets"


@pytest.fixture
def cloud():
    with FakeLLM() as fake:
        yield fake


@pytest.fixture
def local():
    with FakeLLM() as fake:
        fake.says(f"It cost {SECRET} [1].")
        yield fake


@pytest.fixture
def bound(world, cloud, local):
    """Finance is bound to the local model, which also follows when the default one fails."""
    models = {
        slug: LanguageModel.objects.create(slug=slug, name=slug, base_url=fake.url, model="fake-small", max_retries=0)
        for slug, fake in (("cloud", cloud), ("local", local))
    }
    LanguageModel.objects.filter(slug="cloud").update(is_default=True, fallback=models["local"])
    RoutingRule.objects.create(compartment=world.ledger.compartment, language_model=models["local"])


@pytest.fixture
def talk(world, bound, answered):
    """Return a function that asks in Alice's one conversation, in one of her sources."""
    conversation = start(world.alice)

    def asked(question, narrowing):
        change(conversation, preset=None, narrowing=narrowing)
        return answered(conversation, question)

    return asked


def passed_on(talk, cloud):
    """Let the fallback repeat in an answer from engineering what it said from finance."""
    first = talk("What did the rollback in March cost?", FINANCE)
    cloud.then(Fault.ERROR)
    second = talk("How long does draining the queue take?", ENGINEERING)
    assert (first.provider, second.provider) == ("local", "local")
    assert SECRET in second.text
    return second


def seen(conversation):
    exchanges = exchanges_of(conversation, Principal(conversation.user))
    return exchanges, as_markdown(conversation, exchanges) + as_json(conversation, exchanges)


def test_what_a_bound_model_said_reaches_no_other_through_an_answer_that_repeats_it(world, talk, cloud):
    second = passed_on(talk, cloud)
    assert second.connections == sorted([world.ledger.pk, world.runbooks.pk])
    cloud.says("A worker is stuck, says pineapple [1].")
    third = talk("What does error Q-4711 mean?", ENGINEERING)
    assert third.provider == "cloud"
    assert "error Q-4711" in cloud.heard()
    assert SECRET not in cloud.heard()
    # It heard neither of them, so its own answer is free of them.
    assert third.connections == [world.runbooks.pk]
    talk("How do I roll back the staging database?", ENGINEERING)
    assert "says pineapple" in cloud.heard()
    assert SECRET not in cloud.heard()


def test_it_is_withheld_with_what_it_repeats(world, talk, cloud):
    conversation = passed_on(talk, cloud).conversation
    talk("What does error Q-4711 mean?", ENGINEERING)
    assert SECRET in seen(conversation)[1]
    Connection.objects.filter(pk=world.ledger.pk).update(enabled=False)
    exchanges, exported = seen(conversation)
    assert [it.withheld for it in exchanges] == [True, True, False]
    assert SECRET not in exported
    assert [it.question for it in turns_of(exchanges)] == ["What does error Q-4711 mean?"]


def test_what_was_searched_for_is_hidden_after_it(world, talk, cloud):
    conversation = passed_on(talk, cloud).conversation
    talk("How long does it take?", ENGINEERING)
    Message.objects.filter(ordinal=1).update(text="Nothing.")
    # Even where no passage of finance is among the earlier ones: the second answer repeats it.
    Message.objects.filter(ordinal=2).update(passages=[], text="")
    assert seen(conversation)[0][2].standalone
    Connection.objects.filter(pk=world.ledger.pk).update(enabled=False)
    assert seen(conversation)[0][2].standalone == ""


def test_an_answer_whose_origin_was_not_kept_is_shown_to_nobody(world, talk, cloud):
    conversation = passed_on(talk, cloud).conversation
    Message.objects.update(connections=None)
    exchanges, exported = seen(conversation)
    assert exported.count(SECRET) == 2
    # Nothing was said before the first one.
    assert [it.withheld for it in exchanges] == [False, True]
    assert [it.connections for it in turns_of(exchanges)] == [frozenset({world.ledger.pk})]
    Message.objects.update(is_extractive=True)
    assert [it.withheld for it in seen(conversation)[0]] == [False, False]


def test_an_answer_that_waits_is_not_withheld(world, talk, cloud):
    conversation = passed_on(talk, cloud).conversation
    ask(conversation, "What does error Q-4711 mean?")
    assert not seen(conversation)[0][-1].withheld


def test_an_answer_that_nobody_finished_may_be_any_of_the_routes(world, talk, cloud):
    conversation = passed_on(talk, cloud).conversation
    answer = ask(conversation, "What does error Q-4711 mean?")
    assert claimed(answer)
    writing = begin(answer)
    assert origin(writing.answering, None) == {world.ledger.pk, world.runbooks.pk}
    assert writing.columns()["connections"] == sorted([world.ledger.pk, world.runbooks.pk])
    unknown = tuple(replace(turn, connections=None) for turn in writing.answering.history)
    assert origin(replace(writing.answering, history=unknown), None) is None


def test_a_language_model_is_asked_what_was_asked_and_not_what_was_carried_into_the_search(talk, cloud, local):
    talk("What did the rollback in March cost?", FINANCE)
    cloud.requests.clear()
    answer = talk("Who approves it?", ENGINEERING)
    assert "cost" in SearchRecord.objects.get(pk=answer.record_id).query
    assert answer.provider == "cloud"
    assert cloud.requests[-1]["messages"][-1]["content"].endswith("Question:\nWho approves it?")
    assert "March" not in cloud.heard()
