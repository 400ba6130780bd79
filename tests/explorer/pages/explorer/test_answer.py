"""The answer of the Explorer's tab: the page comes without it, and asks for it as a fragment of its own."""

import re
import uuid

import lxml.html
import pytest

from corecube.models import AuditEvent, Grant
from corecube.scope import Sensitivity
from retrieval.answers.answering import NoAnswerError
from retrieval.models import SearchRecord
from tests.explorer.pages.explorer.test_views import HIDDEN, page

QUERY = "what happens before touching the staging database?"
ASKED = {"q": QUERY, "tab": "answer"}
CITATION = re.compile(r'class="citation" href="(/documents/[0-9a-f-]{36}/[^"]*)"')


@pytest.fixture
def asked(browse, htmx):
    """Return a function that opens the tab as one of the cast, and returns the client and the answer's address."""

    def ask(name, **more):
        client = browse(name)
        awaited = lxml.html.fromstring(page(client.get("/", {**ASKED, **more}))).get_element_by_id("answer")
        assert awaited.get("hx-trigger") == "load"
        return client, awaited.get("hx-get")

    return ask


def test_the_page_comes_at_once_and_the_answer_after_it_from_the_same_search(asked, htmx):
    bob, address = asked("bob")
    response = bob.get(address, headers=htmx)
    assert response.status_code == 200
    assert CITATION.search(page(response))
    assert "hx-get" not in page(response)
    assert "Answer ready." in page(response)
    assert SearchRecord.objects.count() == 1
    assert "no-store" in response.headers["Cache-Control"]


def test_other_tabs_have_no_place_for_the_answer(browse):
    text = page(browse("bob").get("/", {"q": QUERY}))
    assert 'id="answer"' not in text
    assert "tab=answer" in text


def test_without_scripts_a_link_shows_the_page_with_the_same_answer_in_it(asked, htmx):
    bob, address = asked("bob")
    apart = lxml.html.fromstring(page(bob.get(address, headers=htmx))).get_element_by_id("answer")
    link = re.search(r'<noscript><p><a href="(\?[^"]+)"', page(bob.get("/", ASKED)))[1].replace("&amp;", "&")
    within = lxml.html.fromstring(page(bob.get(f"/{link}"))).get_element_by_id("answer")
    assert lxml.html.tostring(within, with_tail=False) == lxml.html.tostring(apart, with_tail=False)


def test_a_refusal_is_announced_and_kept_with_the_search(asked, htmx):
    bob, address = asked("bob", q="Who won the regatta?")
    assert not SearchRecord.objects.get().is_refused
    assert "Not found in your documents." in page(bob.get(address, headers=htmx))
    assert SearchRecord.objects.get().is_refused


def test_where_queries_are_not_kept_the_page_sends_its_own(asked, htmx, settings):
    settings.CORECUBE_KEEP_QUERY_TEXT = False
    bob, address = asked("bob")
    assert CITATION.search(page(bob.get(address, headers=htmx)))


@pytest.mark.parametrize("name", ["alice", "charlie"])
def test_nobody_elses_search_is_answered(asked, browse, htmx, name):
    _, address = asked("bob")
    assert browse(name).get(address, headers=htmx).status_code == 404
    assert browse(name).get(f"/answer/{uuid.uuid4()}/", headers=htmx).status_code == 404


def test_without_a_session_there_is_no_answer(asked, client, htmx):
    _, address = asked("bob")
    assert client.get(address, headers=htmx).headers["HX-Redirect"].startswith("/login/")


@pytest.mark.parametrize("query", ["rollback march codeword", "zanzibar passphrase", "costs"])
def test_no_answer_tells_of_a_hidden_connection(asked, htmx, query):
    bob, address = asked("bob", q=query)
    text = page(bob.get(address, headers=htmx))
    assert [word for word in HIDDEN if word not in query and word in text] == []


def test_an_answer_is_written_with_the_access_that_its_reader_has_now(asked, htmx):
    bob, address = asked("bob")
    Grant.objects.all().update(clearance=Sensitivity.PUBLIC)
    text = page(bob.get(address, headers=htmx))
    assert not CITATION.search(text)
    assert "No document is close to this question" in text
    assert "Runbooks" not in text


def test_an_admin_reads_the_answer_of_someone_else_and_it_is_audited(asked, htmx, world):
    alice, address = asked("alice", **{"as": "bob"})
    text = page(alice.get(address, headers=htmx))
    assert "?as=bob#chunk-" in CITATION.search(text)[1]
    assert [word for word in HIDDEN if word in text] == []
    events = AuditEvent.objects.filter(action="search.run_as")
    assert {(event.actor, event.subject) for event in events} == {(world.alice, "bob")}


def test_who_is_no_admin_any_more_reads_nobody_elses_answer(asked, htmx, world):
    alice, address = asked("alice", **{"as": "bob"})
    world.alice.is_staff = world.alice.is_superuser = False
    world.alice.save()
    assert alice.get(address, headers=htmx).status_code == 404


def test_an_answer_that_fails_says_so_in_its_place(asked, htmx, monkeypatch):
    def fail(*_):
        raise NoAnswerError

    bob, address = asked("bob")
    monkeypatch.setattr("explorer.pages.explorer.views.prepare", fail)
    response = bob.get(address, headers=htmx)
    assert response.status_code == 503
    failed = lxml.html.fromstring(page(response))
    assert failed.get("id") == "answer" or failed.get_element_by_id("answer") is not None
    assert "<h2>No answer</h2>" in page(response)
    assert "hx-trigger" not in page(response)
