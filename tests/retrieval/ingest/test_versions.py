"""After an upgrade that changes parsing or chunking, the next full sync replaces documents, and searches go on."""

import io

import pytest
from django.core.management import call_command

from corecube.access import Principal
from corecube.connectors import connector_for
from corecube.models import Connection
from retrieval.ingest import prepared_document, work
from retrieval.ingest.parsing import prepare_limited
from retrieval.ingest.preparation import prepare_text
from retrieval.ingest.run import Source
from retrieval.ingest.schedule import settings_mark
from retrieval.ingest.sync import sync_connection
from retrieval.ingest.versions import OlderDocuments, older_documents, older_documents_of
from retrieval.models import Chunk, Document
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.text.document import Block, BlockKind, ParsedDocument

_NAMES = ("albatross", "bustard", "cormorant")
_PARTS = {
    "Nests": "builds with reeds and mud near the water",
    "Journeys": "flies south in autumn for many thousand miles",
}


@pytest.fixture
def birds(world):
    """Return a connection with three documents of two sections that fit a chunk together."""
    folder = world.root / "birds"
    folder.mkdir()
    for name in _NAMES:
        sections = (f"## {part}\n\n{f'The {name} {text}. ' * 20}\n\n" for part, text in _PARTS.items())
        (folder / f"{name}.md").write_text(f"# {name}\n\n{''.join(sections)}")
    return Connection.objects.create(
        slug="birds", name="Birds", kind="folder", config={"path": str(folder)}, compartment=world.runbooks.compartment
    )


def as_before(raw, how):
    """Prepare a document as an earlier version might: as text without headings."""
    text = raw.content.decode()
    return prepare_text(ParsedDocument(raw.name, (Block(BlockKind.PARAGRAPH, text),), "text"), how)


@pytest.fixture
def upgraded(birds, monkeypatch):
    """Return the connection with documents that an earlier version made."""
    current = prepared_document.INGEST_VERSION
    monkeypatch.setattr(prepared_document, "INGEST_VERSION", current - 1)
    connector = connector_for(birds)
    sync_connection(birds, source=Source(connector, as_before))
    monkeypatch.setattr(prepared_document, "INGEST_VERSION", current)
    return birds


def found(world):
    """Return the names that searches find, and the heading paths of the hits."""
    hits = [
        hit
        for name in _NAMES
        for hit in search(SearchRequest(text=name), principal=Principal(world.bob)).hits
        if name in hit.chunk.title.casefold()
    ]
    return {name for name in _NAMES for hit in hits if name in hit.chunk.title}, {
        hit.chunk.heading_path for hit in hits
    }


def status():
    out = io.StringIO()
    call_command("indexes", "status", stdout=out)
    return out.getvalue()


def test_a_document_records_the_version_that_made_its_chunks(world):
    assert set(Document.objects.values_list("ingest_version", flat=True)) == {prepared_document.INGEST_VERSION}
    assert older_documents() == []
    assert "Documents of earlier versions: none." in status()


def test_documents_of_an_earlier_version_are_counted_until_they_are_replaced(upgraded):
    version = prepared_document.INGEST_VERSION
    assert older_documents() == [OlderDocuments("birds", "Birds", version - 1, 3)]
    assert older_documents_of(upgraded) == 3
    assert f"Ingestion version {version}. Documents of earlier versions: birds 3." in status()
    sync = sync_connection(upgraded)
    assert (sync.changed, sync.unchanged) == (3, 0)
    assert (older_documents(), older_documents_of(upgraded)) == ([], 0)
    assert sync_connection(upgraded).unchanged == 3


def test_searches_find_every_document_while_they_are_replaced(upgraded, world, monkeypatch):
    monkeypatch.setattr(work, "BATCH_CHUNKS", 1)
    connector, during = connector_for(upgraded), []

    def prepare(raw, how):
        during.append(found(world))
        return prepare_limited(raw, how)

    assert found(world) == (set(_NAMES), {()})
    assert sync_connection(upgraded, source=Source(connector, prepare)).changed == 3
    new = {("Nests",), ("Journeys",)}
    assert during == [(set(_NAMES), {()}), *[(set(_NAMES), {(), *new})] * 2]
    assert found(world) == (set(_NAMES), new)
    assert Chunk.objects.filter(document__connection=upgraded).count() == 6


def test_after_an_upgrade_a_sync_of_changes_is_not_enough(birds, monkeypatch):
    before = settings_mark(birds)
    monkeypatch.setattr(prepared_document, "INGEST_VERSION", prepared_document.INGEST_VERSION + 1)
    assert settings_mark(birds) != before
