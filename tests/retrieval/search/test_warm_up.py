"""Warming up: everything that the first search needs is opened, nothing is kept, and nothing of it can fail a start."""

import threading
from concurrent.futures import Executor, Future

from django.db import connection

from corecube import process
from corecube.access import scope_for
from corecube.health import serving
from retrieval.errors import ModelMissingError
from retrieval.index import active
from retrieval.index.store import VectorIndex
from retrieval.index.warming import walk, warm_relations
from retrieval.models import EmbeddingIndex, LanguageModel, SearchRecord
from retrieval.presets.helix.pipeline import local_router
from retrieval.presets.helix.route_examples import Routers
from retrieval.presets.helix.router.routes import RouterSource
from retrieval.search import runtime, warm_up
from tests.fakes import HashEncoder


def outcomes(**options):
    return {step.name: step.outcome for step in warm_up.warm_up(**options)}


def test_model_disk_walks_and_every_preset_are_warmed_and_nothing_is_recorded(world):
    found = outcomes()
    assert found["model"] == "ok"
    assert found["disk"].startswith("read ")
    assert int(found["disk"].split()[1]) > 0
    assert found["router"] == "ok"
    assert found["walk"] == "4 walks"
    assert found["rehearsal"].startswith("3 searches")
    assert not SearchRecord.objects.exists()


def test_the_client_of_language_models_is_loaded_where_one_is_enabled(world):
    LanguageModel.objects.create(slug="m", name="M", base_url="http://127.0.0.1:1/v1", model="m")
    assert outcomes()["language models"] == "ok"
    LanguageModel.objects.update(is_enabled=False)
    assert outcomes()["language models"] == "none is enabled"


def test_a_new_installation_has_nothing_to_warm_and_starts(db):
    assert outcomes() == {
        "model": "ok",
        "router": "ok",
        "disk": "ModelMissingError",
        "walk": "0 walks",
        "rehearsal": "no user has access",
        "language models": "none is enabled",
    }


def test_a_missing_model_is_left_to_the_first_search(world, monkeypatch):
    def missing(*_):
        raise ModelMissingError

    monkeypatch.setattr(active, "encoder", missing)
    assert {outcome for name, outcome in outcomes().items() if name != "language models"} == {"ModelMissingError"}


def test_the_relations_files_are_read_whole(world):
    row = EmbeddingIndex.objects.get()
    with connection.cursor() as cursor:
        names = [f"retrieval_embedding_hnsw_{row.pk}", "retrieval_embedding_pkey", "retrieval_chunk_pkey"]
        names += ["retrieval_document_pkey", "retrieval_document", "retrieval_embedding", "retrieval_chunk"]
        names += ["term_frequency_by_lexeme", "chunk_search", "document_name_by_key", "retrieval_documentname"]
        names += ["chunk_mentions_by_key", "retrieval_chunkmentions_pkey", "retrieval_chunkmentions"]
        cursor.execute("SELECT sum(pg_relation_size(it::regclass)) FROM unnest(%s::text[]) AS it", [names])
        (size,) = cursor.fetchone()
    assert warm_relations(VectorIndex(row.pk, row.dim)) == f"read {size}"


def test_the_first_search_finds_the_router_trained(world, monkeypatch):
    monkeypatch.setattr(runtime, "_routers", Routers())
    cold = Future()
    slow = runtime.resources().with_part(
        RouterSource, RouterSource(runtime._routers.router_of(active.encoder(), Busy(cold)))
    )
    assert local_router(slow)() is None
    monkeypatch.setattr(runtime, "_routers", Routers())
    assert outcomes()["router"] == "ok"
    assert runtime._routers.router_of(active.encoder(), Busy(cold))() is not None


class Busy(Executor):
    """Whatever is handed to it waits."""

    def __init__(self, future):
        self.future = future

    def submit(self, *_, **__):
        return self.future


def test_walks_stay_in_their_scope(world):
    row = EmbeddingIndex.objects.get()
    assert walk(VectorIndex(row.pk, row.dim), scope=scope_for(world.principal("bob"))) == 2


def test_the_setting_switches_it_off(settings):
    settings.CORECUBE_WARM_UP = False
    assert warm_up.begin() is None


def test_a_web_process_that_begins_to_serve_warms_up_in_a_thread_of_its_own(settings, monkeypatch):
    begun, threads = [], []
    begin = warm_up.begin
    monkeypatch.setattr(process, "exclude_loaded_from_collection", lambda: None)
    monkeypatch.setattr(warm_up, "warm_up", lambda: begun.append(threading.current_thread().name))
    monkeypatch.setattr(warm_up, "begin", lambda: threads.append(begin()))
    settings.CORECUBE_WARM_UP = True
    serving.send(sender=None)
    threads[0].join(timeout=10)
    assert begun == ["warm-up"]


def test_nothing_that_is_raised_reaches_the_start(world, monkeypatch):
    class Broken(HashEncoder):
        def encode_query(self, text):  # noqa: ARG002 -- the protocol's
            raise OSError("disk")

    monkeypatch.setattr(active, "encoder", lambda *_: Broken())
    assert outcomes()["model"] == "OSError"
