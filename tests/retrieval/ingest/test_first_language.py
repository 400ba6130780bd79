"""The language that a new connection gets from its documents."""

from uuid import uuid4

import pytest
from django.contrib.postgres.search import SearchQuery

from corecube.models import Compartment, Connection
from retrieval.ingest.dispatch import list_next, work_until_idle
from retrieval.ingest.services import queue_sync
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Document, Sync

pytestmark = pytest.mark.django_db

GERMAN = "# Urlaub\n\nDie Urlaube sind im Portal zu beantragen, und die Leitung entscheidet in der Woche danach.\n"
FRENCH = "# Congés\n\nLes congés sont demandés dans le portail, et la direction décide dans la semaine qui suit.\n"
ENGLISH = "# Leave\n\nLeave is requested in the portal, and the lead decides about it within the week after that.\n"


@pytest.fixture
def connection(tmp_path):
    compartment = Compartment.objects.create(slug="c", name="C")
    return Connection.objects.create(
        slug="wiki", name="Wiki", kind="folder", config={"path": str(tmp_path)}, compartment=compartment
    )


def write(folder, *texts):
    for number, text in enumerate(texts):
        (folder / f"{number:02}.md").write_text(text)
    (folder / "zz.md").write_bytes(b"")


def found_by_stem():
    """How many chunks full text finds by the German stem of "Urlaube"."""
    return Chunk.objects.filter(search=SearchQuery("Urlaub", config="german")).count()


def language_after(connection, **sync):
    sync_connection(connection, sync=Sync(connection=connection, **sync))
    return Connection.objects.get(pk=connection.pk).language


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        ([GERMAN, GERMAN], "german"),
        ([ENGLISH, FRENCH, FRENCH], "french"),
        ([ENGLISH, ENGLISH, GERMAN], ""),
        ([ENGLISH, GERMAN], ""),
        (["12 34", "56"], ""),
        ([], ""),
    ],
)
def test_it_is_that_of_most_documents_unless_that_is_the_default(connection, tmp_path, texts, language):
    write(tmp_path, *texts)
    assert language_after(connection) == language


def test_documents_are_read_in_it_by_the_same_sync(connection, tmp_path):
    write(tmp_path, GERMAN)
    sync_connection(connection)
    assert found_by_stem() == 1
    assert sync_connection(connection).unchanged == 1


def test_workers_read_documents_in_it_too(connection, tmp_path):
    write(tmp_path, GERMAN, GERMAN)
    sync = queue_sync(connection, actor=None)
    list_next(uuid4())
    work_until_idle()
    sync.refresh_from_db()
    assert (sync.status, sync.added) == ("done", 2)
    assert found_by_stem() == 2


def test_a_language_that_is_set_stays(connection, tmp_path):
    write(tmp_path, GERMAN)
    connection.language = "english"
    connection.save()
    assert language_after(connection) == "english"


def test_a_dry_run_sets_none(connection, tmp_path):
    write(tmp_path, GERMAN)
    assert language_after(connection, kind=Sync.Kind.DRY_RUN) == ""


def test_a_connection_with_documents_keeps_its_language(connection, tmp_path):
    write(tmp_path, ENGLISH)
    assert language_after(connection) == ""
    write(tmp_path, GERMAN, GERMAN, GERMAN)
    assert language_after(connection) == ""
    assert Document.objects.count() == 3


def test_an_installation_that_reads_any_language_sets_none(connection, tmp_path, settings):
    settings.CORECUBE_TEXT_SEARCH_CONFIG = "simple"
    write(tmp_path, GERMAN)
    assert language_after(connection) == ""
