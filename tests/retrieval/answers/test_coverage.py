"""Questions in a language that the model or full-text search does not know."""

from dataclasses import replace

import pytest

from retrieval.answers.answering import UNKNOWN_LANGUAGE, language_notice, prepare, run_cosines
from retrieval.index.sentences import SentenceVectors
from retrieval.llm.types import Turn
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fakes import HashEncoder

SMALL, MANY, SERVICE = "bge-small-en-v1.5", "arctic-embed-l-v2.0", "text-embedding-3-small"
GERMAN = "Wie viele Urlaubstage habe ich?"


@pytest.mark.parametrize("model", [SMALL, f"{SMALL}-fp32"])
def test_it_names_the_language_and_both_settings(model):
    notice = language_notice(GERMAN, model, {"english"}, names_settings=True)
    assert notice.code == UNKNOWN_LANGUAGE
    for words in (
        "German",
        model,
        "CORECUBE_MODEL",
        "Models",
        "CORECUBE_TEXT_SEARCH_CONFIG",
        "full-text search is set to English",
    ):
        assert words in notice.text


def test_users_who_cannot_change_settings_get_a_plain_sentence():
    assert language_notice(GERMAN, SMALL, {"english"}, names_settings=False).text == (
        "The question seems to be in German, which this search is not set up for. Answers may be worse."
    )


@pytest.mark.parametrize(
    ("question", "model", "text_search", "named"),
    [
        (GERMAN, SMALL, {"english", "german"}, {"CORECUBE_MODEL"}),
        (GERMAN, SERVICE, {"english"}, {"CORECUBE_TEXT_SEARCH_CONFIG"}),
        ("How many days of leave do I have?", SMALL, {"german"}, {"CORECUBE_TEXT_SEARCH_CONFIG"}),
    ],
)
def test_it_names_only_the_setting_that_does_not_suit(question, model, text_search, named):
    text = language_notice(question, model, text_search, names_settings=True).text
    assert {name for name in ("CORECUBE_MODEL", "CORECUBE_TEXT_SEARCH_CONFIG") if name in text} == named


@pytest.mark.parametrize(
    ("question", "model", "text_search"),
    [
        (GERMAN, MANY, {"german"}),
        (GERMAN, SERVICE, {"simple"}),
        (GERMAN, MANY, set()),
        ("How many days of leave do I have?", SMALL, {"english"}),
        ("RIME-4107 threshold", SMALL, {"english"}),
        ("Liesel Banerjee", SMALL, {"german"}),
        ("", SMALL, {"english"}),
    ],
)
def test_what_is_covered_or_in_doubt_has_no_notice(question, model, text_search):
    assert language_notice(question, model, text_search, names_settings=True) is None


@pytest.mark.parametrize(("asked_before", "notices"), [((), 1), ((GERMAN,), 0), (("Who drains the queues?",), 1)])
def test_it_comes_once_in_a_conversation(world, asked_before, notices):
    principal = world.principal("bob")
    history = tuple(Turn(question, "") for question in asked_before)
    prepared = prepare(search(SearchRequest(text=GERMAN), principal=principal), principal, history)
    assert [it.code for it in prepared.route.notices].count(UNKNOWN_LANGUAGE) == notices


@pytest.mark.parametrize(
    ("question", "model", "is_compared"),
    [
        ("How do I drain the queues?", SMALL, True),
        ("Wie kann ich die queues leeren?", SMALL, False),
        ("Wie kann ich die queues leeren?", MANY, True),
    ],
)
def test_vectors_of_a_model_that_does_not_know_the_language_select_no_quotes(
    world, monkeypatch, question, model, is_compared
):
    outcome = search(SearchRequest(text=question), principal=world.principal("bob"))
    encoder = HashEncoder()
    encoder.name = model
    # No sentences are stored in these tests.
    monkeypatch.setattr(SentenceVectors, "cosines", lambda _, hits, *__, **___: {hits[0].chunk_id: {range(1): 0.5}})
    assert bool(run_cosines(outcome, replace(runtime.resources(), encoder=encoder))) is is_compared
