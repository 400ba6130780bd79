"""The evidence page: what it offers, what a run shows, and to whom."""

import pytest

from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, SearchRecord

AWAITED = {"set": "report", "about": "rollback", "run": "1"}
RUN = {**AWAITED, "whole": "1"}


pytestmark = pytest.mark.usefixtures("impatient")


def page(response):
    return response.content.decode()


def cells(response):
    """Return the matrix as {section: {source type: (presence, count)}}."""
    panel = response.context["panel"]
    return {
        row["name"]: {
            name: (cell["presence"], cell["count"]) for name, cell in zip(panel["columns"], row["cells"], strict=False)
        }
        for row in panel["rows"]
    }


@pytest.mark.parametrize("name", ["alice", "bob", "charlie"])
def test_everybody_who_may_search_can_open_it(browse, name):
    response = browse(name).get("/evidence/")
    assert response.status_code == 200
    assert "panel" not in response.context
    assert not SearchRecord.objects.exists()


def test_a_stranger_is_asked_to_sign_in(db, client):
    assert client.get("/evidence/").headers["Location"].startswith("/login/")


def test_it_runs_every_section_and_leads_to_their_traces(browse):
    response = browse("alice").get("/evidence/", RUN)
    assert response.status_code == 200
    panel = response.context["panel"]
    assert [row["name"] for row in panel["rows"]][:2] == ["overview", "facts_and_figures"]
    assert len(panel["rows"]) == SearchRecord.objects.count() == 8
    text = page(response)
    for row in panel["rows"]:
        assert f'href="/log/{row["trace_id"]}/"' in text
        assert f"?{row['again']}".replace("&", "&amp;") in text
    assert cells(response)["how_it_works"]["markdown"][0] in {"found", "recovered"}
    assert cells(response)["facts_and_figures"]["excel"] == ("missing", 0)


def test_the_page_comes_before_what_is_found(browse, htmx):
    alice = browse("alice")
    text = page(alice.get("/evidence/", AWAITED))
    assert not SearchRecord.objects.exists()
    assert 'hx-get="?set=report&amp;about=rollback&amp;run=1" hx-trigger="load" hx-target="#evidence"' in text
    assert "whole=1" in text.partition("<noscript><p>")[2].partition("</noscript>")[0]
    assert "matrix" in page(alice.get("/evidence/", AWAITED, headers=htmx))


def test_the_matrix_is_a_table_that_says_in_words_what_its_colours_say(browse):
    text = page(browse("alice").get("/evidence/", RUN))
    assert '<table class="table matrix">' in text
    assert '<caption class="visually-hidden">' in text
    assert '<th class="matrix-type" scope="col">excel</th>' in text
    assert 'title="excel is required; none found in scope.">missing</span>' in text


def test_one_section_alone(browse):
    response = browse("alice").get("/evidence/", {**RUN, "part": "risks"})
    assert [row["name"] for row in response.context["panel"]["rows"]] == ["risks"]


def test_it_comes_as_a_fragment(browse, htmx):
    text = page(browse("alice").get("/evidence/", AWAITED, headers=htmx))
    assert "<html" not in text
    assert 'hx-swap-oob="true"' in text
    assert "matrix" in text


@pytest.mark.parametrize("changes", [{"set": "nope"}, {"set": "\0"}, {"part": "nope"}, {"in": "nope"}])
def test_what_there_is_not_is_told(browse, changes):
    response = browse("alice").get("/evidence/", {**RUN, **changes})
    assert response.status_code == 404
    assert 'role="alert"' in page(response)
    assert not SearchRecord.objects.exists()


@pytest.mark.parametrize("seconds", ["", "x", "-1", "0", "9999", "٣"])
def test_any_number_of_seconds_is_bounded(browse, seconds):
    assert 1 <= browse("alice").get("/evidence/", {"seconds": seconds}).context["asked"].seconds <= 120


def test_a_compartment_limits_it(browse):
    response = browse("alice").get("/evidence/", {**RUN, "in": "finance"})
    assert {hit["source"] for row in response.context["panel"]["rows"] for hit in row["hits"]} == {"Ledger"}
    again = browse("alice").get("/evidence/", {"in": "finance"})
    assert 'value="finance" checked' in page(again)


def test_a_compartment_that_is_not_open_is_as_one_that_is_not_there(browse):
    bob = browse("bob")
    hidden, unknown = (bob.get("/evidence/", {**RUN, "in": slug}) for slug in ("finance", "nope"))
    assert hidden.status_code == unknown.status_code == 404
    assert hidden.context["failure"] == unknown.context["failure"]
    assert [it.slug for it in bob.get("/evidence/").context["compartments"]] == ["engineering"]
    assert 'value="finance" checked' in page(hidden)


def test_a_run_as_somebody_else_offers_that_persons_compartments(browse, htmx):
    for headers in ({}, htmx):
        response = browse("alice").get("/evidence/", {**RUN, "as": "bob"}, headers=headers)
        assert 'name="in" value="engineering"' in page(response)
        assert 'name="in" value="finance"' not in page(response)


def test_documents_are_found_added_and_taken_out(browse):
    alice, rollback = browse("alice"), Document.objects.get(external_id="rollback.md")
    found = alice.get("/evidence/", {"find": "rolling", "about": "rollback"})
    (candidate,) = found.context["candidates"]
    assert candidate[2] == f"about=rollback&document={rollback.pk}"
    added = alice.get(f"/evidence/?{candidate[2]}")
    (chosen,) = added.context["chosen"]
    assert (chosen[0], chosen[2]) == (rollback.title, "about=rollback")
    assert f'name="document" value="{rollback.pk}" form="evidence-ask"' in page(added)
    response = alice.get("/evidence/", {**RUN, "document": str(rollback.pk)})
    for hit in (hit for row in response.context["panel"]["rows"] for hit in row["hits"]):
        is_beyond = "beyond the filter" in {badge.text for badge in hit["badges"]}
        assert is_beyond is (hit["chunk_id"].document_id != rollback.pk)


def test_a_hidden_document_is_as_one_that_is_not_there(browse):
    bob, hidden = browse("bob"), Document.objects.get(external_id="breach.md")
    assert bob.get("/evidence/", {"find": "breach"}).context["candidates"] == []
    pages = [
        bob.get("/evidence/", {**RUN, "document": key, "part": "facts_and_figures"})
        for key in (str(hidden.pk), "00000000-0000-4000-8000-000000000000")
    ]
    assert [[(title, source) for title, source, _ in response.context["chosen"]] for response in pages] == [
        [("", "")]
    ] * 2
    assert cells(pages[0]) == cells(pages[1])


def test_nobody_learns_of_what_they_may_not_see(browse, world):
    """A spreadsheet that Bob may not see makes its type no less missing, and its title stands nowhere."""
    (world.root / "ledger" / "figures.csv").write_text("year,budget results\n2025,48200\n2026,51300\n")
    sync_connection(world.ledger)
    assert cells(browse("alice").get("/evidence/", RUN))["facts_and_figures"]["excel"][1] > 0
    response = browse("bob").get("/evidence/", RUN)
    assert cells(response)["facts_and_figures"]["excel"] == ("missing", 0)
    for secret in ("figures", "Ledger", "Finance", "finance", "tangerine", "zanzibar", "Vault", "48200"):
        assert secret not in page(response).replace("Facts and figures", "").replace("facts_and_figures", "").replace(
            "figures amounts totals", ""
        )


def test_who_sees_nothing_finds_nothing(browse):
    response = browse("charlie").get("/evidence/", RUN)
    assert response.status_code == 200
    assert {cell["count"] for row in response.context["panel"]["rows"] for cell in row["cells"]} <= {0}


def test_only_an_admin_runs_it_as_somebody_else(browse):
    response = browse("alice").get("/evidence/", {**RUN, "as": "bob"})
    assert {hit["source"] for row in response.context["panel"]["rows"] for hit in row["hits"]} == {"Runbooks"}
    assert SearchRecord.objects.filter(user__username="bob", actor__username="alice").count() == 8
    assert browse("bob").get("/evidence/", {**RUN, "as": "alice"}).status_code == 403
