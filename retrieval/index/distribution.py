"""Distributing the documents, and all that is made of them, over the machines of a Citus cluster, and undoing it.

Tables with the document's id as their key are distributed by it, so that a document and all of its rows lie together;
counts of terms by connection; small tables that statements join with these are copied to every machine. The others stay
on the coordinator.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from django.apps import apps
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.models import Model

from corecube.database import close_pools
from retrieval.errors import DistributionError
from retrieval.index.citus import has_citus
from retrieval.index.embedding_index import all_indexes, searched
from retrieval.index.reading import changed, read, rows
from retrieval.index.statements import statement
from retrieval.index.writer import create_vector_index, refresh_statistics
from retrieval.models import Document, Embedding, EmbeddingIndex, Judgment, TermFrequency

_SHARDS_OF_A_WORKER: Final = 2  #: Each shard plans each statement: more of them pay with more processors.
_NODES: Final = """
SELECT node.nodename || ':' || node.nodeport, answer.success, answer.result
FROM run_command_on_all_nodes($$
    SELECT 'PostgreSQL ' || current_setting('server_version_num')::int / 10000
        || coalesce((SELECT string_agg(', ' || extname || ' ' || extversion, '' ORDER BY extname)
                     FROM pg_extension WHERE extname IN ('citus', 'vector')), '')
$$) AS answer
JOIN pg_dist_node AS node USING (nodeid)
ORDER BY node.nodeid
"""
_WORKERS: Final = "SELECT count(*) FROM pg_dist_node WHERE isactive AND shouldhaveshards AND noderole = 'primary'"
_DISTRIBUTED: Final = "SELECT count(*) FROM pg_dist_partition WHERE logicalrelid = %s::regclass"
_FOREIGN_KEYS: Final = "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'f'"
_HAS_IDENTITY: Final = "SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = %s::regclass AND attidentity <> '')"
#: What adds a table's constraints and its other indexes.
_DEFINITIONS: Final = """
SELECT format('ALTER TABLE %%s ADD CONSTRAINT %%I %%s', %(table)s::text, conname, pg_get_constraintdef(oid))
FROM pg_constraint
WHERE conrelid = %(table)s::regclass AND contype IN ('p', 'u', 'c')
UNION ALL
SELECT pg_get_indexdef(indexrelid)
FROM pg_index
WHERE indrelid = %(table)s::regclass AND indexrelid NOT IN (SELECT conindid FROM pg_constraint)
"""
_SHELL_BYTES: Final = "SELECT pg_total_relation_size(%s::regclass)"
_BYTES: Final = "SELECT citus_total_relation_size(%s::regclass)"
_SIZE: Final = "123"
_SIZES: Final = "SELECT DISTINCT current_setting('hnsw.ef_search', true) AS size FROM retrieval_document"
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the rows of a table go."""

    model: type[Model]
    column: str  #: The column that says on which shard a row lies; empty for a table that each machine has a copy of.

    @property
    def table(self) -> str:
        """The table's name."""
        return self.model._meta.db_table  # noqa: SLF001 -- Django's documented way to the table

    @property
    def is_distributed(self) -> bool:
        """Whether the rows are there already."""
        return rows(_DISTRIBUTED, [self.table]) == [(1,)]

    def distribute(self, shards: int) -> None:
        """Move the rows to the shards, in the caller's transaction."""
        if not self.column:
            for (name,) in rows(_FOREIGN_KEYS, [self.table]):
                changed(f'ALTER TABLE {self.table} DROP CONSTRAINT "{name}"')
            rows("SELECT create_reference_table(%s)", [self.table])
        elif self.model is Document or self.model is TermFrequency:
            sql = "SELECT create_distributed_table(%s, %s, shard_count => %s, colocate_with => 'none')"
            rows(sql, [self.table, self.column, shards])
        else:
            sql = "SELECT create_distributed_table(%s, %s, colocate_with => %s)"
            rows(sql, [self.table, self.column, Document._meta.db_table])  # noqa: SLF001 -- as above

    def undo(self) -> None:
        """Move the rows back, in the caller's transaction."""
        if rows(_HAS_IDENTITY, [self.table]) == [(False,)]:
            rows("SELECT undistribute_table(%s, cascade_via_foreign_keys => true)", [self.table])
            return
        # Citus takes back no table that has, or had, an identity column.
        definitions = [sql for (sql,) in rows(_DEFINITIONS, {"table": self.table})]
        changed(f"CREATE TABLE moved (LIKE {self.table} INCLUDING DEFAULTS INCLUDING IDENTITY)")
        changed(f"INSERT INTO moved SELECT * FROM {self.table}")  # noqa: S608 -- a model's table
        changed(f"DROP TABLE {self.table}")
        changed(f"ALTER TABLE moved RENAME TO {self.table}")
        for sql in (*definitions, *self._foreign_keys(), *connection.ops.sequence_reset_sql(no_style(), [self.model])):
            changed(sql)

    def _foreign_keys(self) -> list[str]:
        """Return what adds the foreign keys that migrations gave the table."""
        fields = self.model._meta.local_concrete_fields  # noqa: SLF001 -- as above
        with connection.schema_editor(collect_sql=True) as editor:
            for field in fields:
                if field.remote_field and field.db_constraint:  # type: ignore[attr-defined]  # a foreign key's
                    # Only this names a constraint as migrations do.
                    editor.execute(editor._create_fk_sql(self.model, field, "_fk_%(to_table)s_%(to_column)s"))  # type: ignore[attr-defined]  # noqa: SLF001
        return list(editor.collected_sql)


def placements() -> list[Placement]:
    """Return the tables that are moved, in the order in which they are: the documents before what is made of them."""
    by_document = [
        Placement(it, "document_id")
        for it in apps.get_app_config("retrieval").get_models()
        if _key(it)[0] == "document_id"
    ]
    copied = [Placement(it, "") for it in (EmbeddingIndex, Judgment)]
    return [*copied, Placement(Document, "id"), *by_document, Placement(TermFrequency, "connection_id")]


def _key(model: type[Model]) -> list[str]:
    return [field.column for field in model._meta.pk_fields]  # noqa: SLF001 -- as above


def require_cluster() -> int:
    """Return the number of workers; raise DistributionError unless all machines have the same extensions."""
    if not has_citus():
        raise DistributionError("The database has no extension citus: run CREATE EXTENSION citus on every machine.")
    nodes = rows(_NODES)
    if silent := [name for name, answers, _ in nodes if not answers]:
        raise DistributionError(f"Not available: {', '.join(silent)}.")
    if len({facts for _, _, facts in nodes}) != 1 or "vector" not in nodes[0][2]:
        listed = "; ".join(f"{name} has {facts}" for name, _, facts in nodes)
        raise DistributionError(f"All machines need the same PostgreSQL, citus and vector: {listed}.")
    ((workers,),) = rows(_WORKERS)
    if not workers:
        raise DistributionError("The cluster has no workers: add them with citus_add_node.")
    return int(workers)


def shards_have_settings() -> bool:
    """Return whether the settings of a read reach the shards, as those say that hold a document; True on one node."""
    if not has_citus():
        return True
    return all(row["size"] == _SIZE for row in read(_SIZES, {}, settings={"hnsw.ef_search": _SIZE}))


def distribute(*, shards: int | None = None, is_dry: bool = False, report: Report = print) -> None:
    """Move each table that is not distributed yet; `shards` for each of them, by default two for each worker.

    A table is moved in one transaction, so a killed run goes on where it was. Nothing may write meanwhile, or it waits.
    Raises DistributionError.
    """
    shards = shards or _SHARDS_OF_A_WORKER * require_cluster()
    remaining = [it for it in placements() if not it.is_distributed]
    with _without_vector_indexes(remaining, is_dry=is_dry):
        for placement in remaining:
            place = f"{shards} shards by {placement.column}" if placement.column else "a copy on each machine"
            _move(placement, lambda it: it.distribute(shards), f"to {place}", is_dry=is_dry, report=report)
    if not is_dry:
        for placement in placements():
            rows("SELECT truncate_local_data_after_distributing_table(%s)", [placement.table])
    _end(remaining, is_dry=is_dry)


def undo(*, is_dry: bool = False, report: Report = print) -> None:
    """Move each distributed table back to the coordinator, as `distribute` does. Raises DistributionError."""
    require_cluster()
    remaining = [it for it in reversed(placements()) if it.is_distributed]
    with _without_vector_indexes(remaining, is_dry=is_dry):
        for placement in remaining:
            if placement.is_distributed:  # The documents come back with their chunks, by the foreign key.
                _move(placement, Placement.undo, "to the coordinator", is_dry=is_dry, report=report)
    _end(remaining, is_dry=is_dry)


def _move(placement: Placement, move: Callable[[Placement], None], place: str, *, is_dry: bool, report: Report) -> None:
    count, size = _count(placement), _bytes(placement)
    told = f"{placement.table}: {count} rows, {size} bytes {place}"
    if is_dry:
        report(told)
        return
    with transaction.atomic():
        move(placement)
        if (moved := _count(placement)) != count:
            raise DistributionError(f"{placement.table} had {count} rows, and {moved} arrived.")
    report(f"{told}, now {_bytes(placement)} bytes")


@contextmanager
def _without_vector_indexes(moved: list[Placement], *, is_dry: bool) -> Iterator[None]:
    """Build the HNSW indexes after the vectors are there, which takes a part of the time that insertions take."""
    indexes = [] if is_dry else [searched(it) for it in all_indexes()]
    if any(it.model is Embedding for it in moved):
        for index in indexes:
            changed(statement("upkeep/drop_hnsw") % {"index": index.id})
    try:
        yield
    finally:
        for index in indexes:
            create_vector_index(index)


def _end(moved: list[Placement], *, is_dry: bool) -> None:
    """Let the planner know, and drop connections that took the documents to lie elsewhere."""
    if moved and not is_dry:
        refresh_statistics()
        close_pools()


def _count(placement: Placement) -> int:
    ((count,),) = rows(f"SELECT count(*) FROM {placement.table}")  # noqa: S608 -- a model's table
    return int(count)


def _bytes(placement: Placement) -> int:
    ((size,),) = rows(_BYTES if placement.is_distributed else _SHELL_BYTES, [placement.table])
    return int(size)
