"""Searches that never stop while an embedding index is built, switched to, rolled back from and dropped."""

import threading

import pytest
from django.db import connection

from retrieval.index import active, embedding_index
from retrieval.index.embedding_index import active_row, progress
from retrieval.ingest import indexes, reindex
from retrieval.ingest.sync import sync_connection
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fakes import HashEncoder
from tests.retrieval.ingest.test_model_change import Fixed, Named

_PAGES = 60


class Searcher(threading.Thread):
    """Asks the same question again and again, and keeps what each search gave."""

    def __init__(self, principal):
        super().__init__(daemon=True)
        self._principal = principal
        self._over = threading.Event()
        #: Of each search: the size of its query's vector, its hits, those that have a cosine, and what was left out.
        self.seen = []
        self.error = None

    def run(self):
        try:
            while not self._over.is_set():
                self.seen.append(figures(self._principal))
        except Exception as error:  # noqa: BLE001 -- looked at by the test
            self.error = error
        finally:
            connection.close()

    def end(self):
        self._over.set()
        self.join()

    def wait_for(self, size):
        """Wait until a search has used vectors of this size."""
        count = len(self.seen)
        while not self.error and all(it[0] != size for it in self.seen[count:]):
            threading.Event().wait(0.01)


def figures(principal):
    outcome = search(SearchRequest(text="which pump stands in hall three"), principal=principal)
    with_cosine = sum("cosine" in hit.signals for hit in outcome.hits)
    return outcome.state.vector.size, len(outcome.hits), with_cosine, tuple(outcome.state.degraded)


@pytest.fixture
def models(monkeypatch, world):
    found = {"hash": HashEncoder(), "new": Named("new", 96)}

    def encoder_of(row):
        embedding_index.same_model(row, found[row.model])
        return found[row.model]

    monkeypatch.setattr(active, "encoder_of", encoder_of)
    monkeypatch.setattr(active, "encoder", lambda row=None: encoder_of(row or active_row()))
    monkeypatch.setattr(reindex, "_BATCH_CHUNKS", 4)
    return found


@pytest.mark.django_db(transaction=True)
def test_no_search_fails_or_finds_less(world, models, monkeypatch):
    for number in range(_PAGES):
        (world.root / "runbooks" / f"pump{number}.txt").write_text(f"Pump {number} stands in hall {number % 7}.")
    sync_connection(world.runbooks)
    principal = world.principal("alice")
    size, hits, with_cosine, degraded = figures(principal)
    assert (size, with_cosine, degraded) == (64, hits, ())
    searcher = Searcher(principal)
    searcher.start()
    row = indexes.start_index(Fixed(models["new"]), actor=None, mode="chunk_first", queue=False)
    missing = []
    assert reindex.build_index(row, report=lambda it: missing.append(progress(it).missing))
    assert len(missing) > 10
    for _ in range(3):
        indexes.switch_to(row, actor=None)
        searcher.wait_for(96)
        indexes.roll_back(actor=None)
        searcher.wait_for(64)
    indexes.drop(row, actor=None)
    searcher.end()
    assert searcher.error is None
    assert {it[0] for it in searcher.seen} == {64, 96}
    assert {it[1:] for it in searcher.seen} == {(hits, hits, ())}
