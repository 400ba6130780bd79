"""The explorer's tab "Document trace"."""

import re
import uuid

import pytest
from lxml import html

from corecube.models import Connection, Grant
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Document
from retrieval.models.document import document_id
from tests.explorer.pages.explorer.test_views import HIDDEN


@pytest.fixture
def where(browse):
    """Return a function that opens the tab as one of the cast."""

    def opened(name="bob", query="how do we roll back staging?", **asked):
        return browse(name).get("/", {"q": query, "tab": "where", **asked})

    return opened


def id_of(title):
    return str(Document.objects.get(title=title).pk)


def fragment(response):
    """Return the tab's own part of the page."""
    return re.search(r'<div class="where">.*?\n</div>\n', response.content.decode(), re.DOTALL).group()


def line(response):
    return response.context["where"]["lifeline"]


def rows(response):
    return {step["name"]: step for step in line(response)["steps"]}


def test_the_tab_is_computed_only_when_it_is_open(browse, where):
    closed = browse("bob").get("/", {"q": "rollback", "pin": id_of("Rolling back")})
    assert closed.context["where"] is None
    assert 'data-name="where"' not in closed.content.decode()
    assert "tab=where" in closed.content.decode()
    opened = where()
    assert '<section class="view" data-panel="tab" data-name="where" aria-label="Document trace" hx-headers=' in (
        opened.content.decode()
    )
    assert (opened.context["where"]["candidates"], line(opened)) == ((), None)


def test_documents_are_found_by_title_name_and_id(world, where):
    document = Document.objects.get(title="Rolling back")
    for text in ("rolling", "ROLLBACK.md", str(document.pk), f" {document.pk} "):
        (found,) = where(find=text).context["where"]["candidates"]
        assert (found.document_id, found.title, found.source) == (document.pk, "Rolling back", "Runbooks")
        assert found.address == document.external_id
    page = where(find="rolling").content.decode()
    assert f"tab=where&amp;find=rolling&amp;pin={document.pk}" in page


def test_what_is_typed_is_taken_as_it_is(where):
    for text in ("%", "_", "\0", "rolling%back"):
        assert where(find=text).context["where"]["candidates"] == ()


def test_at_most_twenty_are_offered(world, where):
    folder = world.root / "runbooks"
    for number in range(23):
        (folder / f"spare {number}.txt").write_text(f"Spare part {number} of the pump.")
    sync_connection(world.runbooks)
    panel = where(find="spare").context["where"]
    assert (len(panel["candidates"]), panel["has_more"]) == (20, True)


def test_a_pinned_document_shows_its_way(where):
    response = where(pin=id_of("Rolling back"))
    assert (line(response)["verdict"], line(response)["title"]) == ("packed as [1]", "Rolling back")
    assert rows(response)["allowed"]["fact"] == (
        "compartment Engineering through group engineers; sensitivity internal ≤ clearance internal"
    )
    page = fragment(response)
    assert 'data-step="dense" data-state="passed"' in page
    assert f'href="/documents/{id_of("Rolling back")}/#chunk-0"' in page
    assert response.context["announcement"] == "Rolling back: packed as [1]."


def test_the_first_loss_alone_is_marked_with_its_remedy(where):
    response = where("alice", pin=id_of("Costs"), without="ledger")
    assert re.findall(r'is-loss" data-step="(\w+)"', fragment(response)) == ["scope"]
    assert "Including Ledger again brings it back." in fragment(response)
    assert line(response)["verdict"] == "dropped at “scope”"


def test_what_no_leg_found_says_so(where):
    response = where("alice", "passphrase", pin=id_of("Rolling back"), mode="fulltext")
    assert line(response)["verdict"] == "found by no leg"
    assert rows(response)["fulltext"]["fact"] == "it contains none of “passphras”"


def test_the_search_box_keeps_the_rest_of_the_address(where):
    page = fragment(where("alice", find="x", without=["vault", "ledger"], mode="dense", **{"as": "bob"}))
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page)
    assert dict(fields) == {
        "q": "how do we roll back staging?",
        "preset": "corecube",
        "mode": "dense",
        "as": "bob",
        "without": "ledger",
        "tab": "where",
    }


def test_the_search_box_keeps_the_section(browse, where):
    asked = where("alice", "rollback", preset="consolidated", section="report/how_it_works")
    form = html.fromstring(fragment(asked)).find(".//form")
    found = browse("alice").get(form.action, {**dict(form.form_values()), "find": "rolling"})
    assert found.context["section_strip"]["query"] == asked.context["section_strip"]["query"]
    assert [row.title for row in found.context["where"]["candidates"]] == ["Rolling back"]


def test_a_pin_waits_for_its_question(browse):
    pin = id_of("Rolling back")
    page = browse("bob").get("/", {"pin": pin, "tab": "where"}).content.decode()
    assert "Enter the query that should have found “Rolling back”." in page
    assert f'<input type="hidden" name="pin" value="{pin}" form="ask">' in page
    assert '<input type="hidden" name="tab" value="where" form="ask">' in page


def test_dropped_rows_and_documents_lead_here(browse):
    pin = id_of("Queues")
    Chunk.objects.filter(document_id=pin).update(quality=0.1)
    results = browse("bob").get("/", {"q": "queue", "stage": "quality"}).content.decode()
    assert f'<a class="drop-where" href="?q=queue&amp;tab=where&amp;pin={pin}"' in results
    document = browse("bob").get(f"/documents/{pin}/").content.decode()
    assert f'href="/explorer/?pin={pin}&amp;tab=where"' in document


def test_an_admin_is_told_the_rule_that_keeps_a_document_from_a_person(where):
    response = where("alice", pin=id_of("Breach of March"), **{"as": "bob"})
    assert line(response)["verdict"] == "dropped at “access”"
    assert rows(response)["allowed"]["fact"].startswith("sensitivity restricted > clearance internal")
    assert f'href="/documents/{id_of("Breach of March")}/"' in fragment(response)
    gives = re.search(
        r'href="(/access/give/[^"]*)">A clearance of at least restricted on Engineering', fragment(response)
    )
    assert gives, "the rule leads to the form that gives access"


def test_an_admin_without_a_grant_is_not_told_the_title(world, where):
    Grant.objects.filter(user=world.alice).delete()
    response = where("alice", pin=id_of("Breach of March"), **{"as": "bob"})
    assert (line(response)["title"], line(response)["source"]) == ("A document", "Vault")
    assert "Breach" not in response.content.decode().replace("pin=", "")
    assert where("alice", find="breach", **{"as": "bob"}).context["where"]["candidates"] == ()


def test_what_could_not_be_taken_in_is_offered_with_its_reason(world, where):
    (world.root / "runbooks" / "plan.pdf").write_bytes(b"%PDF-1.7 no more than that")
    sync_connection(world.runbooks)
    (found,) = where(find="plan").context["where"]["candidates"]
    assert found.document_id == document_id(world.runbooks.pk, "plan.pdf")
    assert found.trouble
    response = where(pin=str(found.document_id))
    assert line(response)["verdict"] == "dropped at “indexed”"


#: What a viewer who may see nothing of it must find the same: a hidden document, and one that is nowhere.
PINS = {"hidden": lambda: id_of("Breach of March"), "unknown": lambda: str(uuid.uuid4()), "junk": lambda: "junk"}


def neutral(response, *echoed):
    """Return the tab without what the request itself said."""
    text = fragment(response)
    for word in echoed:
        text = text.replace(word, "…")
    return text


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_a_hidden_document_is_to_a_user_like_one_that_is_nowhere(where, name):
    pins = {key: make() for key, make in PINS.items()}
    found = {key: neutral(where(name, pin=pin), pin) for key, pin in pins.items()}
    assert found["hidden"] == found["unknown"] == found["junk"]
    assert "Document not found" in found["hidden"]


@pytest.mark.parametrize("name", ["bob", "charlie"])
@pytest.mark.parametrize("text", ["Breach of March", "breach.md", "Costs", "plan.pdf", "id"])
def test_suggestions_tell_nothing_of_a_hidden_document(world, where, name, text):
    (world.root / "vault" / "plan.pdf").write_bytes(b"%PDF-1.7 no more than that")
    sync_connection(world.vault)
    text = id_of("Breach of March") if text == "id" else text
    nowhere = "x" * len(text)
    assert neutral(where(name, find=text), text) == neutral(where(name, find=nowhere), nowhere)


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_a_failed_item_of_a_hidden_connection_is_like_one_that_is_nowhere(world, where, name):
    (world.root / "vault" / "plan.pdf").write_bytes(b"%PDF-1.7 no more than that")
    sync_connection(world.vault)
    hidden, unknown = str(document_id(world.vault.pk, "plan.pdf")), str(uuid.uuid4())
    assert neutral(where(name, pin=hidden), hidden) == neutral(where(name, pin=unknown), unknown)


def test_a_pin_without_a_question_tells_nothing_of_a_hidden_document(browse):
    pages = {}
    for key, make in PINS.items():
        pin = make()
        pages[key] = re.sub(
            r'(csrfmiddlewaretoken" value="|X-CSRFToken": ")\w+',
            r"\1",
            browse("bob").get("/", {"pin": pin, "tab": "where"}).content.decode().replace(pin, "…"),
        )
    assert pages["hidden"] == pages["unknown"] == pages["junk"]


def test_nothing_of_a_hidden_connection_is_in_the_way_of_an_own_document(where):
    page = fragment(where(pin=id_of("Rolling back"), query="rollback march codeword"))
    assert [word for word in HIDDEN if word in page] == []


def test_a_disabled_connection_hides_its_documents(world, where):
    pin = id_of("Rolling back")
    Connection.objects.filter(pk=world.runbooks.pk).update(enabled=False)
    assert line(where(pin=pin)) is None
