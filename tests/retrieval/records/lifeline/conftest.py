"""A shelf of documents in Bob's scope, and a way to follow each of them through a search."""

from dataclasses import replace

import pytest

from corecube.access import scope_for
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, Sync
from retrieval.records.lifeline.service import Reader, follow
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

#: Title and text. "valve" is in all but two, "gasket" in three.
SHELF = {
    "Replacing a gasket": "Close the valve, drain the pipe, then lift the old gasket with a plastic wedge.",
    "Gasket sizes": "A valve of forty millimetres takes a gasket of fifty; write the size on the bag.",
    "Ordering spares": "Order each gasket and every valve spring from the store by Thursday noon.",
    "Valve noise": "A valve that hums has a loose seat; tighten it by a quarter turn.",
    "Valve colours": "Blue paint marks a valve for water, yellow paint one for air.",
    "Pump alignment": "Set the dial gauge on the coupling and turn the shaft by hand.",
    "Holiday rota": "Ask the foreman for leave before the first of March.",
}


@pytest.fixture
def shelf(world):
    """Put the documents into the runbooks, in place of what is there, and return their ids by title."""
    folder = world.root / "runbooks"
    for path in folder.iterdir():
        path.unlink()
    return put(world, SHELF)


def put(world, documents):
    """Write documents into the runbooks, sync, and return the ids of all by title."""
    for title, text in documents.items():
        (world.root / "runbooks" / f"{title.lower().replace(' ', '-')}.md").write_text(f"# {title}\n\n{text}\n")
    sync_connection(world.runbooks, sync=Sync(connection=world.runbooks, allow_deletions=True))
    return dict(Document.objects.filter(connection=world.runbooks).values_list("title", "pk"))


@pytest.fixture
def find(world):
    """Return a function that searches as one of the cast; with a reranker where one is given."""

    def run(text, *, name="bob", reranker=None, **fields):
        resources = replace(runtime.resources(), reranker=reranker)
        return search(SearchRequest(text=text, **fields), principal=world.principal(name), resources=resources)

    return run


@pytest.fixture
def lifeline(world):
    """Return a function that follows a document through a finished search, for its principal."""

    def of(document_id, outcome, *, name="bob"):
        scope = scope_for(world.principal(name))
        return follow(document_id, outcome, Reader(scope, frozenset(scope.connection_ids)))

    return of
