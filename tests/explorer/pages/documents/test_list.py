"""The list of documents."""

import uuid
from datetime import timedelta

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from retrieval.models import Chunk, Document


@pytest.fixture
def listed(browse):
    def get(name="bob", **asked):
        return browse(name).get("/documents/", asked)

    return get


def titles(response):
    return [row.title for row in response.context["rows"]]


@pytest.fixture
def many(world):
    """Add 120 documents to the runbooks."""
    now = timezone.now()
    Document.objects.bulk_create(
        Document(
            id=uuid.UUID(int=number + 1),
            connection=world.runbooks,
            external_id=f"part {number}.pdf",
            title=f"Part {number:03}",
            source_type="pdf",
            byte_size=1,
            synced_at=now,
            modified_at=now - timedelta(days=3),
        )
        for number in range(120)
    )


def test_a_viewer_sees_their_own_documents_by_title(listed):
    assert titles(listed()) == ["Queues", "Rolling back"]
    assert titles(listed("alice")) == ["Breach of March", "Costs", "Queues", "Rolling back"]
    assert titles(listed("charlie")) == []
    assert "No documents yet" in listed("charlie").content.decode()


def test_a_row_tells_what_is_known_of_a_document(world, listed):
    Document.objects.filter(title="Rolling back").update(modified_at=timezone.now() - timedelta(days=3))
    row = listed().context["rows"][1]
    shown = listed().content.decode()
    chunks = Chunk.objects.filter(document_id=row.id).count()
    assert (row.connection.name, row.source_type, row.chunk_count) == ("Runbooks", "markdown", chunks)
    assert ">3 days ago</td>" in shown
    assert row.external_id == "rollback.md"
    assert f'href="/documents/{row.id}/"' in shown


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"q": "rolling"}, ["Rolling back"]),
        ({"q": "ROLLBACK.MD"}, ["Rolling back"]),
        ({"q": "%"}, []),
        ({"q": "\0"}, ["Queues", "Rolling back"]),
        ({"type": "text"}, ["Queues"]),
        ({"type": "pdf"}, []),
        ({"connection": "runbooks"}, ["Queues", "Rolling back"]),
        ({"connection": "runbooks", "type": "markdown", "q": "back"}, ["Rolling back"]),
        ({"page": "99"}, ["Queues", "Rolling back"]),
        ({"page": "-1"}, ["Queues", "Rolling back"]),
    ],
)
def test_filters_narrow_the_list(listed, asked, found):
    assert titles(listed(**asked)) == found


def test_a_document_is_found_by_its_id(listed):
    document = Document.objects.get(title="Queues")
    assert titles(listed(q=str(document.pk))) == ["Queues"]


def test_fifty_stand_on_a_page(many, listed):
    first, third = listed(), listed(page=3)
    assert (len(titles(first)), len(titles(third))) == (50, 22)
    page = third.context["page"]
    assert (page.start_index(), page.end_index(), page.paginator.count) == (101, 122, 122)
    assert (page.previous_page_number(), page.has_next()) == (2, False)
    assert 'rel="next"' in first.content.decode()
    assert 'rel="next"' not in third.content.decode()
    seen = titles(first) + titles(listed(page=2)) + titles(third)
    assert (seen, len(set(seen))) == (sorted(seen), 122)


def test_more_rows_take_no_more_queries(world, browse, many):
    def queries(**asked):
        with CaptureQueriesContext(database) as captured:
            browse("bob").get("/documents/", asked)
        return len([query for query in captured if "retrieval_" in query["sql"]])

    # The count, the rows, the types.
    assert queries() == queries(q="rolling") == 3


def test_a_fragment_is_the_list_without_the_page(browse, htmx):
    response = browse("bob").get("/documents/", {"q": "rolling"}, headers=htmx)
    page = response.content.decode()
    assert "<html" not in page
    assert 'hx-swap-oob="true">1 document found.' in page


@pytest.mark.parametrize("asked", [{}, {"q": "breach"}, {"connection": "vault"}, {"type": "markdown"}])
def test_nothing_hidden_is_listed_counted_or_offered(listed, asked):
    page = listed(**asked).content.decode().replace('value="breach"', "").replace('value="vault"', "")
    hidden = ("Vault", "Ledger", "Breach", "Costs", "breach.md", "Finance")
    assert [word for word in hidden if word in page] == []


@pytest.mark.parametrize(
    ("hidden", "nowhere"),
    [({"q": "breach.md"}, {"q": "nowhere.m"}), ({"connection": "vault"}, {"connection": "novau"})],
)
def test_a_search_for_what_is_hidden_is_like_one_for_what_is_nowhere(browse, htmx, hidden, nowhere):
    bob = browse("bob")
    answers = [bob.get("/documents/", asked, headers=htmx).content for asked in (hidden, nowhere)]
    assert answers[0] == answers[1]


def test_without_a_session_there_is_only_the_sign_in_page(client, db):
    assert client.get("/documents/").status_code == 302
