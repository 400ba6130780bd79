"""What `test_citus.py` looks at: the sample company on one node and then on shards, as JSON.

Run with the address of a database of a Citus cluster as DATABASE_URL; it is emptied of vectors that are not the
company's, and left undistributed.
"""

import json
import os
import sys
from types import SimpleNamespace
from uuid import UUID

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "corecube.settings")
django.setup()

import numpy as np  # noqa: E402 -- after the settings
from django.conf import settings  # noqa: E402 -- as above
from django.contrib.auth.models import Group  # noqa: E402 -- as above
from django.core.management import call_command  # noqa: E402 -- as above
from django.db import connection, transaction  # noqa: E402 -- as above
from pgvector import HalfVector  # noqa: E402 -- as above

from corecube.access import Principal, scope_for  # noqa: E402 -- as above
from corecube.models import User  # noqa: E402 -- as above
from corecube.people import ADMINISTRATORS  # noqa: E402 -- as above
from retrieval.evaluation.bench.chat import company_questions  # noqa: E402 -- as above
from retrieval.index import active, store  # noqa: E402 -- as above
from retrieval.index.citus import for_shards  # noqa: E402 -- as above
from retrieval.index.distribution import distribute, placements, undo  # noqa: E402 -- as above
from retrieval.index.reading import changed, read, rows  # noqa: E402 -- as above
from retrieval.ingest.samples import Company, add_samples  # noqa: E402 -- as above
from retrieval.models import Chunk, DocumentName, EmbeddingIndex, PresetVersion  # noqa: E402 -- as above
from retrieval.presets.catalog import TUNED  # noqa: E402 -- as above
from retrieval.search.request import SearchRequest  # noqa: E402 -- as above
from retrieval.search.service import search  # noqa: E402 -- as above
from tests.retrieval.index.every_statement import NAMES, Sample, forms  # noqa: E402 -- as above
from tests.unhurried import MOMENT, without_deadlines  # noqa: E402 -- as above

_QUESTIONS = 33
_VECTORS = 4_000
_QUERIES = 20
_DEPTH = 50
_RANDOM = 1_000_000  #: The connection of the random vectors.
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


def refused(scope):
    """Run every form of every statement, roll it back, and return those that the database refuses."""
    chunks = Chunk.objects.filter(ordinal=0).order_by("document_id").values_list("document_id", "ordinal")[:2]
    sample = Sample(
        tuple(chunks),
        list(scope.connection_ids),
        EmbeddingIndex.objects.get(status=EmbeddingIndex.Status.ACTIVE),
        DocumentName.objects.values_list("key", flat=True)[0],
    )
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
    found["ef_search"] = read(_EF_SEARCH, {}, timeout_seconds=5, settings={"hnsw.ef_search": "123"})
    found["shards"] = measured(principal, index, on_one_node=False)
    undo(report=lambda _: None)
    return found | {"undone": rows(_DISTRIBUTED)[0][0], "foreign_keys": rows(_FOREIGN_KEYS)[0][0]}


if __name__ == "__main__":
    json.dump(facts(), sys.stdout)
