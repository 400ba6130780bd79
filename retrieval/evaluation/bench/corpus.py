"""Fill the scratch database: connections, documents, chunks, vectors, names, term counts, then the indexes."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from time import perf_counter
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection as database
from django.db import transaction
from django.utils import timezone
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from corecube.access import Principal
from corecube.models import Compartment, Connection, Grant, User
from corecube.scope import Sensitivity
from retrieval.evaluation.bench.plan import CONNECTIONS, Plan, chunks_in, require_space
from retrieval.evaluation.bench.synthesis import DIM, SyntheticDocument, synthesis
from retrieval.graph.mentions import mentions_of
from retrieval.graph.names import names_of
from retrieval.graph.spans import number_of
from retrieval.index.bm25 import follower as bm25
from retrieval.index.embedding_index import searched
from retrieval.index.statements import statement
from retrieval.index.store import VectorIndex
from retrieval.index.vectors import follower as vectors
from retrieval.index.writer import create_vector_index
from retrieval.models import Document, EmbeddingIndex
from retrieval.models.document import document_id

#: Called with the step's name, the number of finished parts, and the number of parts.
Progress = Callable[[str, int, int], None]

MODEL: Final = "synthetic"
_NAME: Final = "bench"
_COMPARTMENTS: Final = 4
_TABLES: Final = (
    *("retrieval_document", "retrieval_chunk", "retrieval_embedding"),
    *("retrieval_termfrequency", "retrieval_documentname", "retrieval_chunkmentions"),
)
_OLDEST_DAYS: Final = 730
_MAINTENANCE_MIB: Final = 1024

_STAGE: Final = """
CREATE TEMPORARY TABLE staged (document_id uuid, ordinal int, title text, heading text, text text) ON COMMIT DROP
"""
_COPY_CHUNKS: Final = "COPY staged (document_id, ordinal, title, heading, text) FROM STDIN"
#: The search vector of `insert_chunk.sql` for many rows at once.
_INSERT_CHUNKS: Final = """
INSERT INTO retrieval_chunk (
    document_id, ordinal, connection_id, text, heading_path, token_count, content_hash, search
)
SELECT
    document_id, ordinal, %(connection)s, text, ARRAY[heading], length(text) - length(replace(text, ' ', '')) + 1,
    encode(sha256(convert_to(text, 'UTF8')), 'hex'),
    setweight(to_tsvector(%(config)s::regconfig, title), 'A')
    || setweight(to_tsvector(%(config)s::regconfig, heading), 'B')
    || setweight(to_tsvector(%(config)s::regconfig, text), 'C')
FROM staged
"""
_COPY_EMBEDDINGS: Final = """
COPY retrieval_embedding (document_id, ordinal, index_id, connection_id, vector) FROM STDIN WITH (FORMAT binary)
"""
#: All indexes that do not belong to a constraint.
_INDEXES: Final = """
SELECT indexname, indexdef
FROM pg_indexes
WHERE tablename = ANY(%s) AND indexname NOT IN (SELECT conname FROM pg_constraint)
ORDER BY indexname
"""
_SIZES: Final = """
SELECT indexname, pg_relation_size(indexname::regclass) FROM pg_indexes WHERE tablename = ANY(%s) ORDER BY indexname
"""
_COPY_NAMES: Final = "COPY retrieval_documentname (document_id, key, connection_id, name, kind, quality) FROM STDIN"
_COPY_MENTIONS: Final = "COPY retrieval_chunkmentions (document_id, ordinal, connection_id, keys, phrases) FROM STDIN"


def build(plan: Plan, progress: Progress) -> Mapping[str, float]:
    """Fill an empty, migrated database and return the seconds of the server by step.

    Indexes are built at the end; document generation is not counted. Raises InvalidRequestError if the disk of the
    embedded server is too small; disks of other servers are not checked.
    """
    if database.settings_dict["ENGINE"] == "corecube.embedded":
        require_space(plan.chunks, shutil.disk_usage(settings.CORECUBE_VAR_DIR).free)
    seconds: dict[str, float] = {}
    row = EmbeddingIndex.objects.create(
        model=MODEL,
        weights=MODEL,
        dim=DIM,
        scan=plan.scan.scan,
        scan_dim=plan.scan.dim,
        oversample=plan.scan.oversample,
        status=EmbeddingIndex.Status.ACTIVE,
    )
    index = searched(row)
    definitions = _drop_indexes()
    _load(plan, index, seconds, progress)
    for done, (name, definition) in enumerate(definitions.items()):
        progress(f"index {name}", done, len(definitions) + 1)
        with _timed(seconds, name), database.cursor() as cursor:
            cursor.execute(definition)
    progress("vector index", len(definitions), len(definitions) + 1)
    with _timed(seconds, "vector_index"), _memory_for(plan.chunks):
        create_vector_index(index)
    with _timed(seconds, "vacuum"), database.cursor() as cursor:
        cursor.execute(f"VACUUM (ANALYZE) {', '.join(_TABLES)}")
    return seconds


def build_scan_index(plan: Plan, progress: Progress) -> Mapping[str, float]:
    """Build the HNSW index of the plan's scan in a reused database, and return the seconds by step."""
    row = EmbeddingIndex.objects.get()
    wanted = plan.scan
    if (row.scan, row.scan_dim) == (wanted.scan, wanted.dim):
        EmbeddingIndex.objects.update(oversample=wanted.oversample)
        return {}
    EmbeddingIndex.objects.update(scan=wanted.scan, scan_dim=wanted.dim, oversample=wanted.oversample)
    progress("vector index", 0, 1)
    seconds: dict[str, float] = {}
    with _timed(seconds, "vector_index"), _memory_for(plan.chunks):
        with database.cursor() as cursor:
            cursor.execute(statement("upkeep/drop_hnsw") % {"index": row.pk})
        create_vector_index(searched(EmbeddingIndex.objects.get()))
    return seconds


def update_read_models(progress: Progress) -> Mapping[str, float]:
    """Update the vector files and the BM25 index; return the seconds by step."""
    seconds: dict[str, float] = {}
    for name, it in {"vectors": vectors, "bm25": bm25}.items():
        with _timed(seconds, name):
            it.follower().follow(lambda chunks, name=name: progress(name, chunks, chunks))
    return seconds


def index_bytes() -> dict[str, int]:
    """Return the size of each index of the search tables."""
    with database.cursor() as cursor:
        cursor.execute(_SIZES, [list(_TABLES)])
        return dict(cursor.fetchall())


def database_bytes() -> int:
    """Return the size of the database."""
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def bench_principal() -> Principal:
    """Return the principal of the benchmark's searches."""
    return Principal(User.objects.get(username=_NAME))


def slug(number: int) -> str:
    """Return the slug of the connection with this number."""
    return f"{_NAME}-{number}"


def document_key(connection: int, place: int) -> UUID:
    """Return the id of a connection's document by its position, from 0."""
    return document_id(connection, str(place))


def _load(plan: Plan, index: VectorIndex, seconds: dict[str, float], progress: Progress) -> None:
    shared = synthesis(chunks=plan.chunks, seed=plan.seed, nested=plan.nested)
    now = timezone.now()
    for number, connection in enumerate(_connections()):
        progress("load", number, CONNECTIONS)
        documents = list(shared.documents(number, chunks_in(number, plan.chunks)))
        ids = [document_key(number, place) for place in range(len(documents))]
        with transaction.atomic():
            with _timed(seconds, "chunks"):
                Document.objects.bulk_create(_rows(connection, ids, documents, now), batch_size=1000)
                _insert_chunks(connection, ids, documents)
            with _timed(seconds, "embeddings"):
                _copy_embeddings(connection, index, ids, documents)
            with _timed(seconds, "graph"):
                _copy_names(connection.pk, ids, documents)
                _copy_mentions(connection.pk, ids, documents)
            # All chunks of a connection are counted at once, so there is nothing to merge later.
            with _timed(seconds, "terms"), database.cursor() as cursor:
                cursor.execute(statement("upkeep/count_terms"), {"documents": ids, "sign": 1})


def _connections() -> list[Connection]:
    """Create the compartments, a user with access to all of them, and the connections; return these by number."""
    user = User.objects.create(username=_NAME, password="!")  # noqa: S106 -- not usable to sign in
    compartments = [
        Compartment.objects.create(slug=slug(number), name=f"Bench {number}") for number in range(_COMPARTMENTS)
    ]
    for compartment in compartments:
        Grant.objects.create(user=user, compartment=compartment, clearance=Sensitivity.RESTRICTED)
    return [
        Connection.objects.create(
            slug=slug(number), name=f"Bench {number}", kind=_NAME, compartment=compartments[number % _COMPARTMENTS]
        )
        for number in range(CONNECTIONS)
    ]


def _rows(
    connection: Connection, ids: Sequence[UUID], documents: Sequence[SyntheticDocument], now: datetime
) -> Iterator[Document]:
    for place, (pk, document) in enumerate(zip(ids, documents, strict=True)):
        age = timedelta(days=_OLDEST_DAYS * place / len(ids))
        yield Document(
            id=pk,
            connection=connection,
            external_id=str(place),
            title=document.title,
            source_type="text",
            byte_size=sum(map(len, document.texts)),
            synced_at=now - age,
        )


def _insert_chunks(connection: Connection, ids: Sequence[UUID], documents: Sequence[SyntheticDocument]) -> None:
    with database.cursor() as cursor:
        cursor.execute(_STAGE)
        with cursor.copy(_COPY_CHUNKS) as copy:
            for pk, document in zip(ids, documents, strict=True):
                for ordinal, text in enumerate(document.texts):
                    copy.write_row((pk, ordinal, document.title, document.heading, text))
        cursor.execute(_INSERT_CHUNKS, {"connection": connection.pk, "config": settings.CORECUBE_TEXT_SEARCH_CONFIG})


def _copy_embeddings(
    connection: Connection, index: VectorIndex, ids: Sequence[UUID], documents: Sequence[SyntheticDocument]
) -> None:
    register_vector(database.connection)
    with database.cursor() as cursor, cursor.copy(_COPY_EMBEDDINGS) as copy:
        copy.set_types(["uuid", "int4", "int8", "int8", "halfvec"])
        for pk, document in zip(ids, documents, strict=True):
            for ordinal, vector in enumerate(document.vectors):
                copy.write_row((pk, ordinal, index.id, connection.pk, HalfVector(vector)))


def _drop_indexes() -> dict[str, str]:
    """Drop the indexes, which are built faster at the end; return the definitions by name."""
    with database.cursor() as cursor:
        cursor.execute(_INDEXES, [list(_TABLES)])
        definitions: dict[str, str] = dict(cursor.fetchall())
        for name in definitions:
            cursor.execute(f"DROP INDEX {database.ops.quote_name(name)}")
    return definitions


@contextmanager
def _memory_for(chunks: int) -> Iterator[None]:
    """Raise the memory of the index build to fit the graph, up to 1 GiB, if the server's setting is lower.

    A graph that does not fit is built many times slower. The number of workers is not changed.
    """
    needed = min(chunks * (2 * DIM + 800) // 2**20 + 64, _MAINTENANCE_MIB)
    with transaction.atomic(), database.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('maintenance_work_mem', %s, true)"
            " WHERE pg_size_bytes(current_setting('maintenance_work_mem')) < pg_size_bytes(%s)",
            [f"{needed}MB", f"{needed}MB"],
        )
        yield


@contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    started = perf_counter()
    yield
    seconds[step] = seconds.get(step, 0.0) + perf_counter() - started


def _copy_names(connection_id: int, ids: Sequence[UUID], documents: Sequence[SyntheticDocument]) -> None:
    with database.cursor() as cursor, cursor.copy(_COPY_NAMES) as copy:
        for pk, document in zip(ids, documents, strict=True):
            for name in names_of(document.title):
                copy.write_row((pk, number_of(name.key), connection_id, name.text, name.kind.value, name.quality))


def _copy_mentions(connection_id: int, ids: Sequence[UUID], documents: Sequence[SyntheticDocument]) -> None:
    with database.cursor() as cursor, cursor.copy(_COPY_MENTIONS) as copy:
        copy.set_types(["uuid", "int4", "int8", "int8[]", "int2"])
        for pk, document in zip(ids, documents, strict=True):
            for ordinal, found in enumerate(map(mentions_of, document.texts)):
                copy.write_row((pk, ordinal, connection_id, list(found.keys), found.phrases))
