"""Names and mentions of the synthetic documents, as ingestion would store them."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django.db import connection as database

from retrieval.evaluation.bench.synthesis import SyntheticDocument
from retrieval.graph.mentions import mentions_of
from retrieval.graph.names import names_of
from retrieval.graph.spans import number_of

_COPY_NAMES: Final = "COPY retrieval_documentname (document_id, key, connection_id, name, kind, quality) FROM STDIN"
_COPY_MENTIONS: Final = "COPY retrieval_chunkmentions (document_id, ordinal, connection_id, keys, phrases) FROM STDIN"


def copy_names(connection_id: int, ids: Sequence[UUID], documents: Sequence[SyntheticDocument]) -> None:
    """Store the names of a connection's documents: their titles."""
    with database.cursor() as cursor, cursor.copy(_COPY_NAMES) as copy:
        for pk, document in zip(ids, documents, strict=True):
            for name in names_of(document.title):
                copy.write_row((pk, number_of(name.key), connection_id, name.text, name.kind.value, name.quality))


def copy_mentions(connection_id: int, ids: Sequence[UUID], documents: Sequence[SyntheticDocument]) -> None:
    """Store the mentions of each chunk of a connection's documents."""
    with database.cursor() as cursor, cursor.copy(_COPY_MENTIONS) as copy:
        copy.set_types(["uuid", "int4", "int8", "int8[]", "int2"])
        for pk, document in zip(ids, documents, strict=True):
            for ordinal, found in enumerate(map(mentions_of, document.texts)):
                copy.write_row((pk, ordinal, connection_id, list(found.keys), found.phrases))
