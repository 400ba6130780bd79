"""A document's page."""

import re
import uuid

import pytest

from corecube.models import AuditEvent
from retrieval.models import Chunk, Document


@pytest.fixture
def address(world):
    def of(title):
        return f"/documents/{Document.objects.get(title=title).pk}/"

    return of


def test_a_document_shows_its_chunks_in_order(browse, address):
    response = browse("bob").get(address("Rolling back"))
    assert response.status_code == 200
    assert 'id="chunk-0"' in response.content.decode()
    blocks = response.context["blocks"]
    assert [block["chunk"].ordinal for block in blocks] == list(range(len(blocks)))
    assert blocks


def test_who_opened_a_document_is_remembered(browse, address, world):
    browse("bob").get(address("Rolling back"))
    browse("bob").get(address("Breach of March"))
    read = AuditEvent.objects.get(action="document.read")
    assert (read.actor, read.subject) == (world.bob, str(Document.objects.get(title="Rolling back").pk))


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_a_document_outside_the_scope_does_not_exist(browse, address, name):
    hidden = browse(name).get(address("Breach of March"))
    unknown = browse(name).get(f"/documents/{uuid.uuid4()}/")
    assert hidden.status_code == unknown.status_code == 404
    # Each response masks the same token in another way.
    told = [re.sub(r"[A-Za-z0-9]{64}", "token", page.content.decode()) for page in (hidden, unknown)]
    assert told[0] == told[1]


def test_an_admin_reads_as_someone_else(browse, address, world):
    alice = browse("alice")
    assert alice.get(address("Rolling back"), {"as": "bob"}).status_code == 200
    assert alice.get(address("Breach of March"), {"as": "bob"}).status_code == 404
    assert AuditEvent.objects.filter(action="search.run_as", actor=world.alice, subject="bob").count() == 2


def test_nobody_else_reads_as_someone_else(browse, address):
    response = browse("bob").get(address("Breach of March"), {"as": "alice"})
    assert response.status_code == 403
    assert "zanzibar" not in response.content.decode()


def test_without_a_session_there_is_only_the_sign_in_page(client, address):
    assert client.get(address("Rolling back")).status_code == 302


def test_a_chunks_salience_is_shown_once_it_is_known(browse, address, world):
    chunks = Chunk.objects.filter(document__title="Rolling back")
    chunks.update(salience=0.126)
    page = browse("bob").get(address("Rolling back")).content.decode()
    assert page.count("salience 0.13") == chunks.count()
    chunks.update(salience=None)
    assert "salience" not in browse("bob").get(address("Rolling back")).content.decode()


def test_what_a_language_model_wrote_is_shown_as_such_and_escaped(browse, address, world):
    Chunk.objects.filter(document__title="Rolling back").update(
        context_line="<b>Of the release.</b>", questions=["Who drains <i>it</i>?"]
    )
    page = browse("bob").get(address("Rolling back")).content.decode()
    assert "Context (generated): &lt;b&gt;Of the release.&lt;/b&gt;" in page
    assert "Questions answered (generated): Who drains &lt;i&gt;it&lt;/i&gt;?" in page
