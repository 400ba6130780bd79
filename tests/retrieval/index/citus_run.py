"""What `test_citus.py` looks at: the sample company on one node and then on shards, as JSON.

Run with the address of a database of a Citus cluster as DATABASE_URL; it is emptied of vectors that are not the
company's, and left undistributed.
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count, cycle, takewhile
from threading import Event
from time import sleep
from types import SimpleNamespace
from uuid import UUID

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "corecube.settings")
django.setup()

import numpy as np  # noqa: E402 -- after the settings
from django.conf import settings  # noqa: E402 -- as above
from django.contrib.auth.models import Group  # noqa: E402 -- as above
from django.core.management import call_command  # noqa: E402 -- as above
from django.db import OperationalError, connection, transaction  # noqa: E402 -- as above
from django.utils import timezone  # noqa: E402 -- as above
from pgvector import HalfVector  # noqa: E402 -- as above

from corecube.access import Principal, scope_for  # noqa: E402 -- as above
from corecube.models import User  # noqa: E402 -- as above
from corecube.people import ADMINISTRATORS  # noqa: E402 -- as above
from retrieval.evaluation.bench.chat import company_questions  # noqa: E402 -- as above
from retrieval.index import active, outbox, store  # noqa: E402 -- as above
from retrieval.index.citus import for_shards  # noqa: E402 -- as above
from retrieval.index.distribution import distribute, placements, undo  # noqa: E402 -- as above
from retrieval.index.reading import changed, read, rows  # noqa: E402 -- as above
from retrieval.index.writer import (  # noqa: E402 -- as above
    EncodedChunk,
    StoredDocument,
    committed_later,
    delete_documents,
    fold_term_counts,
    store_documents,
)
from retrieval.ingest.samples import Company, add_samples  # noqa: E402 -- as above
from retrieval.models import Chunk, Document, DocumentName, EmbeddingIndex, OutboxEntry, PresetVersion, TermFrequency  # noqa: E402 -- as above
from retrieval.presets.catalog import TUNED  # noqa: E402 -- as above
from retrieval.search.request import SearchRequest  # noqa: E402 -- as above
from retrieval.search.service import search  # noqa: E402 -- as above
from retrieval.text.document import ChunkDraft  # noqa: E402 -- as above
from retrieval.text.quality import ChunkQuality  # noqa: E402 -- as above
from tests.retrieval.index.every_statement import NAMES, Sample, forms  # noqa: E402 -- as above
from tests.unhurried import MOMENT, without_deadlines  # noqa: E402 -- as above

_QUESTIONS = 33
_VECTORS = 4_000
_QUERIES = 20
_DEPTH = 50
_RANDOM = 1_000_000  #: The connection of the random vectors.
_WRITTEN = 1_000_001  #: The connection of documents that are written and deleted again.
_WANTED = 10
#: Statements of which each machine sends no more rows than are wanted, whatever it holds.
_FRUGAL = ("analyze", "dense_", "filter_holds", "graph_words", "place_", "scope_documents", "source_probe")
_READS = 600
_KILLS = 6
_HNSW = (
    "SELECT count(*) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam"
    " WHERE indrelid = '%s'::regclass AND amname = 'hnsw' AND indisvalid"
)
_EF_SEARCH = "SELECT DISTINCT current_setting('hnsw.ef_search') AS size FROM retrieval_document"
_DISTRIBUTED = "SELECT count(*) FROM pg_dist_partition"
_FOREIGN_KEYS = "SELECT count(*) FROM pg_constraint WHERE conrelid = 'retrieval_judgment'::regclass AND contype = 'f'"


def company():
    """Migrate, and index the company unless it is there."""
    call_command("migrate", verbosity=0)
    undo(report=lambda _: None)
    forget_vectors()
    add_samples(Company.read(settings.CORECUBE_SAMPLES_DIR))
    if not PresetVersion.objects.exists():
        without_deadlines()
    user, _ = User.objects.get_or_create(username="an-admin", is_staff=True)
    user.groups.add(Group.objects.get(name=ADMINISTRATORS))
    return Principal(user)


def add_vectors(index, vectors):
    sql = "COPY retrieval_embedding (document_id, ordinal, index_id, connection_id, vector) FROM STDIN"
    with connection.cursor() as cursor, cursor.copy(sql) as copy:
        for number, vector in enumerate(vectors):
            document = UUID(int=(number * 2654435761 % 2**32) << 96)
            copy.write_row((document, 0, index.id, _RANDOM, HalfVector(vector).to_text()))


def forget_vectors():
    changed("DELETE FROM retrieval_embedding WHERE connection_id = %s", [_RANDOM])


def answers(principal):
    """Return the first ten hits of each question by each tuned preset, and what fell back."""
    found = {}
    for preset in TUNED:
        for text in list(dict.fromkeys(company_questions()))[:_QUESTIONS]:
            outcome = search(SearchRequest(text=text, preset=preset, now=MOMENT), principal=principal)
            hits = [f"{it.chunk_id.document_id}:{it.chunk_id.ordinal}" for it in outcome.hits[:10]]
            found[f"{preset}: {text}"] = hits, outcome.state.degraded
    return found


def recall(index, queries):
    """Return the share of the exact nearest chunks that walks of the HNSW index find."""
    shares, scope = [], SimpleNamespace(connection_ids=[_RANDOM])
    for query in queries:
        common = {"scope": scope, "index": index, "depth": _DEPTH, "timeout_seconds": 30}
        exact = {hit.chunk_id for hit in store.dense_exact(query, **common)}
        walked = {hit.chunk_id for hit in store.dense_hnsw(query, ef_search=80, **common)}
        shares.append(len(exact & walked) / len(exact))
    return float(np.mean(shares))


def sample_of(connections):
    chunks = Chunk.objects.filter(ordinal=0).order_by("document_id").values_list("document_id", "ordinal")[:2]
    return Sample(
        tuple(chunks),
        list(connections),
        EmbeddingIndex.objects.get(status=EmbeddingIndex.Status.ACTIVE),
        DocumentName.objects.values_list("key", flat=True)[0],
    )


def refused(scope):
    """Run every form of every statement, roll it back, and return those that the database refuses."""
    sample = sample_of(scope.connection_ids)
    ran, problems = 0, []
    for name in NAMES:
        for sql, parameters in forms(name, sample):
            ran += 1
            try:
                with transaction.atomic(), connection.cursor() as cursor:
                    cursor.execute(for_shards(sql), parameters)
                    transaction.set_rollback(True)
            except Exception as error:  # noqa: BLE001 -- they are what is looked for
                problems.append(f"{name}: {error}")
    return ran, problems


def pulled(scope):
    """Return the statements of which a machine sends more rows than are wanted, with how many."""
    sample = sample_of([*scope.connection_ids, _RANDOM])
    found = {}
    for name in (it for it in NAMES if it.startswith(_FRUGAL)):
        for sql, parameters in forms(name, sample):
            limits = dict.fromkeys(("depth", "limit", "candidates"), _WANTED) | {"position": 2**62}
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL citus.explain_all_tasks = on")
                cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {for_shards(sql)}", {**parameters, **limits})
                plan = cursor.fetchone()[0]
            most = max(sent(json.loads(plan) if isinstance(plan, str) else plan), default=0)
            if most > _WANTED:
                found[name] = max(most, found.get(name, 0))
    return found


def sent(plan):
    """Yield how many rows each machine sends, for each distributed part of a plan."""
    if isinstance(plan, list):
        for it in plan:
            yield from sent(it)
    elif isinstance(plan, dict):
        for task in plan.get("Tasks", ()):
            yield from (it["Plan"]["Actual Rows"] for remote in task["Remote Plan"] for it in remote)
        for it in plan.values():
            yield from sent(it)


def written(document, version):
    """Return a document whose title, and whose only chunk's text, is its version."""
    row = Document(
        id=document,
        connection_id=_WRITTEN,
        external_id=str(document),
        title=str(version),
        source_type="text",
        byte_size=1,
        synced_at=timezone.now(),
    )
    draft = ChunkDraft(0, f"version {version}", (), 2)
    return StoredDocument(row, (EncodedChunk(draft, "", 0, ChunkQuality(1.0, {}), {}),))


def write_until(stop, documents, versions):
    """Write new versions of all documents, each time in one transaction, and note the version of each transaction."""
    for version in takewhile(lambda _: not stop.is_set(), count(1)):
        with transaction.atomic():
            store_documents([written(it, version) for it in documents], text_search_config="simple")
            versions[rows("SELECT pg_current_xact_id()::text::bigint")[0][0]] = version
    connection.close()


def stale():
    """Follow documents while they are written; return how many were read, and how many as they were before."""
    documents, versions, stop = [UUID(int=it << 100) for it in range(1, 41)], {}, Event()
    position, read_documents, old = outbox.horizon() - 1, 0, 0
    with ThreadPoolExecutor(1) as executor:
        writer = executor.submit(write_until, stop, documents, versions)
        while read_documents < _READS and not writer.done():
            entries = outbox.entries(after=position, before=outbox.horizon(), limit=_READS)
            newest = dict(entries)
            titles = Document.objects.filter(pk__in=newest).values_list("pk", "title")
            old += sum(int(title) < versions[newest[document]] for document, title in titles)
            read_documents += len(newest)
            position = entries[-1][1] if entries else position
        stop.set()
        writer.result()
    delete_documents(documents)
    return read_documents, old


def kill_writers():
    """End the session of a writer again and again; return what disagrees: chunks, counts of terms, and the outbox."""
    documents, sessions, stop = [UUID(int=it << 100) for it in range(1, 6)], [], Event()
    OutboxEntry.objects.filter(connection_id=_WRITTEN).delete()

    def store_each():
        for document in takewhile(lambda _: not stop.is_set(), cycle(documents)):
            with suppress(OperationalError), committed_later():
                sessions.append(connection.connection.info.backend_pid)
                version = OutboxEntry.objects.filter(document_id=document).count() + 1
                store_documents([written(document, version)], text_search_config="simple")
            connection.close()

    with ThreadPoolExecutor(1) as executor:
        writer = executor.submit(store_each)
        for number in range(_KILLS):
            while len(sessions) < 5 * (number + 1):
                sleep(0.001)
            sleep(number * 0.004)
            rows("SELECT pg_terminate_backend(%s)", [sessions[-1]])
        stop.set()
        writer.result()
    outbox.horizon()
    titles = dict(Document.objects.filter(connection_id=_WRITTEN).values_list("pk", "title"))
    texts = dict(Chunk.objects.filter(connection_id=_WRITTEN).values_list("document_id", "text"))
    told = {it: OutboxEntry.objects.filter(document_id=it).count() for it in documents}
    fold_term_counts(_WRITTEN)
    counted = dict(TermFrequency.objects.filter(connection_id=_WRITTEN).values_list("lexeme", "chunks"))
    delete_documents(documents)
    fold_term_counts(_WRITTEN)
    return {
        "chunks": {it for it in titles if texts.get(it) != f"version {titles[it]}"} | texts.keys() - titles.keys(),
        "terms": {"", "version", *titles.values()} ^ counted.keys() if counted.get("") == len(texts) else {""},
        "outbox": {it for it in documents if told[it] != int(titles.get(it, 0))},
    }


def on_shards(sql):
    """Return what a command says on each shard of the embeddings."""
    return [result for (result,) in rows("SELECT result FROM run_command_on_shards('retrieval_embedding', %s)", [sql])]


def counts():
    """Return the rows of each table that is moved."""
    tables = [it.table for it in placements()]
    return {table: rows(f"SELECT count(*) FROM {table}")[0][0] for table in tables}


def unit_vectors(count, dim):
    vectors = np.random.default_rng(count).standard_normal((count, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def measured(principal, index, *, on_one_node):
    """Return what is compared. The random vectors are there for a while: with the company's alone a walk sees all."""
    queries = unit_vectors(_QUERIES, index.dim)
    if on_one_node:
        add_vectors(index, unit_vectors(_VECTORS, index.dim))
        return {"recall": recall(index, queries), "counts": counts()}
    found = {"counts": counts(), "recall": recall(index, queries)}
    forget_vectors()
    return found | {"answers": answers(principal)}


def moved():
    """Distribute what is not distributed, and return what is said of it."""
    said = []
    distribute(shards=8, report=said.append)
    return said


def facts():
    """Run it all."""
    principal = company()
    index = active.active_index(active.encoder())
    single = {"answers": answers(principal), **measured(principal, index, on_one_node=True)}
    found = {"single": single, "moved": moved(), "moved_again": moved(), "hnsw": on_shards(_HNSW)}
    found["ran"], found["refused"] = refused(scope_for(principal))
    found["pulled"] = pulled(scope_for(principal))
    found["reads"], found["stale"] = stale()
    found["disagreeing"] = {name: sorted(map(str, it)) for name, it in kill_writers().items()}
    found["ef_search"] = read(_EF_SEARCH, {}, timeout_seconds=5, settings={"hnsw.ef_search": "123"})
    found["shards"] = measured(principal, index, on_one_node=False)
    undo(report=lambda _: None)
    return found | {"undone": rows(_DISTRIBUTED)[0][0], "foreign_keys": rows(_FOREIGN_KEYS)[0][0]}


if __name__ == "__main__":
    json.dump(facts(), sys.stdout)
