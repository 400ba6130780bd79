"""Answerability in the APIs: what is told, to whom, and that the hidden changes none of it."""

import json

import pytest
from asgiref.sync import async_to_sync

from retrieval.index.writer import delete_all_documents

pytestmark = pytest.mark.usefixtures("unhurried")

SEARCH = "/api/v1/search"


@pytest.fixture
def judge(post, world):
    """Return a function that asks the search endpoint and gives the verdict."""

    def ask(query, name="bob", **more):
        return post(SEARCH, {"query": query, **more}, world.key(name)).json()["answerability"]

    return ask


def test_a_search_says_how_far_its_passages_answer(judge):
    told = judge("rollback staging database")
    assert told.keys() == {"verdict", "confidence", "calibrated", "reason", "explanation"}
    assert told["verdict"] in {"answerable", "partial", "not_answerable"}
    assert 0 <= told["confidence"] <= 1
    assert told["calibrated"] is False


def test_an_explanation_brings_the_signals_and_what_each_added(judge):
    told = judge("rollback staging database", explain=True)
    assert told["signals"]["coverage_passage"] == pytest.approx(1.0)
    assert set(told["contributions"]) <= set(told["signals"])


def test_a_question_about_nothing_here_is_not_answerable_and_says_why(judge):
    told = judge("zanzibar ferries")
    assert (told["verdict"], told["reason"]) == ("not_answerable", "unknown_terms")
    assert told["explanation"] == "No document that was searched contains “ferries”, “zanzibar”."


def test_charlie_who_sees_nothing_is_told_just_that(judge):
    told = judge("rollback", name="charlie")
    assert (told["verdict"], told["confidence"], told["reason"]) == ("not_answerable", 0.0, "no_scope")


def test_a_chat_tells_the_same_as_a_search(world, ask, judge):
    own = ask("rollback staging database", world.key("bob")).json()["corecube"]["answerability"]
    assert own == pytest.approx(judge("rollback staging database"))


def test_a_stream_tells_it_at_its_end(world, ask, judge):
    response = ask("rollback staging database", world.key("bob"), stream=True)

    async def read():
        return b"".join([part async for part in response.streaming_content])

    events = [
        line.removeprefix("data: ") for line in async_to_sync(read)().decode().splitlines() if 'corecube"' in line
    ]
    told = [json.loads(event)["corecube"] for event in events if '"citations"' in event]
    assert [it["answerability"]["verdict"] for it in told] == [judge("rollback staging database")["verdict"]]


#: Words of the vault and the ledger, which Bob may not see, beside words that he may.
@pytest.mark.parametrize("query", ["zanzibar passphrase", "tangerine crowns", "rollback zanzibar costs", "breach"])
def test_what_bob_is_told_is_the_same_whether_or_not_hidden_documents_exist(world, judge, query):
    before = judge(query, explain=True)
    for connection in (world.vault, world.ledger):
        delete_all_documents(connection)
        connection.delete()
    after = judge(query, explain=True)
    assert (after["verdict"], after["reason"], after["explanation"]) == (
        before["verdict"],
        before["reason"],
        before["explanation"],
    )
    assert after["confidence"] == pytest.approx(before["confidence"])
    assert after["signals"] == pytest.approx(before["signals"])


def test_alice_who_sees_the_vault_is_told_otherwise(judge):
    assert judge("zanzibar passphrase", name="alice")["reason"] != judge("zanzibar passphrase")["reason"]
