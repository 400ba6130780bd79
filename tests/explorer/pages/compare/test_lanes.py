"""The tab of the lanes, and the choice of the mode."""

import re

import pytest

from corecube.models import AuditEvent
from retrieval.models import SearchRecord
from tests.explorer.pages.explorer.test_views import HIDDEN

ASKED = {"q": "rollback staging queue", "tab": "lanes"}


def page(response):
    return response.content.decode()


def test_the_tab_shows_a_search_as_lanes(browse):
    response = browse("bob").get("/", ASKED)
    assert response.status_code == 200
    assert 'data-panel="tab" data-name="lanes" aria-label="Lanes">' in page(response)
    assert [lane["key"] for lane in response.context["lanes"]["lanes"]] == ["dense", "result", "fulltext"]
    assert SearchRecord.objects.count() == 1


def test_lines_are_drawn_by_attributes_alone(browse):
    text = page(browse("bob").get("/", ASKED))
    assert re.search(r'<path class="lane-line is-\w+" d="M0 \d+C50 \d+ 50 \d+ 100 \d+"', text)
    assert "style=" not in text


def test_other_tabs_do_not_pay_for_the_lanes(browse):
    response = browse("bob").get("/", {"q": "rollback"})
    assert response.context["lanes"] is None
    assert 'hx-get="?q=rollback&amp;tab=lanes"' in page(response)


def test_the_address_says_which_view_is_open(browse):
    bob = browse("bob")
    for view, shown, hidden in (("", "lanes", "table"), ("table", "table", "lanes")):
        text = page(bob.get("/", {**ASKED, "view": view}))
        assert f'data-panel="view" data-name="{shown}">' in text
        assert f'data-panel="view" data-name="{hidden}" hidden>' in text


def test_no_card_tells_of_a_hidden_connection(browse):
    bob = browse("bob")
    for query in ("rollback march codeword", "zanzibar passphrase", "costs"):
        response = bob.get("/", {"q": query, "tab": "lanes"})
        assert [word for word in HIDDEN if word not in query and word in page(response)] == []
        cards = [card for lane in response.context["lanes"]["lanes"] for card in lane["cards"]]
        assert {card.source for card in cards} == {"Runbooks"}


def test_the_figures_count_only_what_is_in_scope(browse):
    own, all_of_it = (browse(name).get("/", ASKED).context["lanes"] for name in ("bob", "alice"))
    assert own["lanes"][0]["total"] < all_of_it["lanes"][0]["total"]
    found = own["overlap"]["found"]
    assert len(found.only_left) + len(found.both) == own["lanes"][0]["total"]


def test_a_user_without_grants_sees_empty_lanes(browse):
    response = browse("charlie").get("/", ASKED)
    assert [lane["total"] for lane in response.context["lanes"]["lanes"]] == [0, 0, 0]
    assert "No results" in page(response)


def test_a_card_leads_to_its_passage_as_the_person_that_is_run_as(browse):
    text = page(browse("alice").get("/", {**ASKED, "as": "bob"}))
    assert re.search(r'class="lane-link" href="/documents/[0-9a-f-]{36}/\?as=bob#chunk-\d+"', text)
    assert AuditEvent.objects.filter(action="search.run_as").count() == 1


@pytest.mark.parametrize(("mode", "lanes"), [("dense", ["dense", "result"]), ("fulltext", ["fulltext", "result"])])
def test_a_mode_leaves_one_leg(browse, mode, lanes):
    response = browse("bob").get("/", {**ASKED, "mode": mode})
    assert [lane["key"] for lane in response.context["lanes"]["lanes"]] == lanes
    assert f'<option value="{mode}" selected>' in page(response)
    assert "one leg only" in page(response)
    # Every part of the page copes with one leg.
    for tab in ("hits", "context", "trace", "scores"):
        assert browse("bob").get("/", {**ASKED, "mode": mode, "tab": tab}).status_code == 200


def test_an_unknown_mode_says_which_there_are(browse):
    response = browse("bob").get("/", {"q": "rollback", "mode": "graph"})
    assert response.status_code == 422
    assert "modes: hybrid, dense, fulltext" in page(response)


def test_the_lanes_lead_to_the_comparison(browse):
    text = page(browse("bob").get("/", {**ASKED, "mode": "dense"}))
    assert 'href="/compare/?q=rollback+staging+queue&amp;a=corecube%3Alive%3Adense"' in text
