"""Documents and chunks. Every key contains the document id, so that the tables can be distributed by it."""

import uuid
from typing import ClassVar, Final, Self

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.functions import Now

from corecube.models import Connection
from corecube.scope import AccessScope

_NAMESPACE: Final = uuid.UUID("6f0c1f52-0c5b-5a54-9a0e-1d9a1a0c7b11")


def document_id(connection_id: int, external_id: str) -> uuid.UUID:
    """Return the fixed id of a source item, derived from its connection and external id.

    The connection is identified by its primary key, which is never reused; its slug can be.
    """
    return uuid.uuid5(_NAMESPACE, f"{connection_id}\n{external_id}")


def id_in(text: str) -> uuid.UUID | None:
    """Return the id in a text; None for any other text."""
    try:
        return uuid.UUID(text.strip())
    except ValueError:
        return None


class DocumentQuerySet(models.QuerySet["Document"]):
    """Queries of documents; an empty scope returns none."""

    def in_scope(self, scope: AccessScope) -> Self:
        """Return the documents in the scope."""
        return self.filter(connection_id__in=scope.connection_ids)

    def named(self, text: str) -> Self:
        """Return the documents with this text in their title, URI or external id, or with this id."""
        named = Q(title__icontains=text) | Q(external_id__icontains=text) | Q(uri__icontains=text)
        return self.filter(named | Q(pk=id_in(text)) if id_in(text) else named)


class Document(models.Model):
    """An item of a source, such as a file or a page."""

    id = models.UUIDField(primary_key=True, editable=False)
    # No database constraint: the table may be distributed over servers, connections stay local.
    connection = models.ForeignKey(
        Connection, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="documents"
    )
    external_id = models.TextField()  #: Its id in the source, unique within the connection: a path, a URL, a page id.
    title = models.TextField()
    uri = models.TextField(blank=True)
    source_type = models.CharField(max_length=20)  #: Canonical type: markdown, html, pdf, docx, text ...
    #: SHA-256 of the bytes and of the chunking settings; equal means unchanged.
    fingerprint = models.CharField(max_length=64)
    #: SHA-256 of the source's version and of the chunking settings; equal means that it need not be read. Empty if the
    #: source has no versions.
    version = models.CharField(max_length=64, default="", db_default="")
    #: The `INGEST_VERSION` that made its chunks; 0 for documents from before it was recorded.
    ingest_version = models.SmallIntegerField(default=0, db_default=0)
    #: The media type in the source, else the suffix of its name; empty for neither.
    raw_type = models.CharField(max_length=120, default="", db_default="")
    byte_size = models.BigIntegerField()
    metadata = models.JSONField(default=dict)
    modified_at = models.DateTimeField(null=True)
    synced_at = models.DateTimeField()

    objects = DocumentQuerySet.as_manager()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["connection", "title"], name="document_by_connection")]

    def __str__(self) -> str:
        return self.title


class Chunk(models.Model):
    """The indexed unit. Its text does not include the title and headings, which have separate columns."""

    pk = models.CompositePrimaryKey("document_id", "ordinal")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, db_index=False, related_name="chunks")
    ordinal = models.IntegerField()
    connection_id = models.BigIntegerField()
    text = models.TextField()
    heading_path = ArrayField(models.TextField(), default=list)
    token_count = models.IntegerField()
    content_hash = models.CharField(max_length=64)
    page_start = models.IntegerField(null=True)
    page_end = models.IntegerField(null=True)
    row_start = models.IntegerField(null=True)  #: First and last row of a table, or line of a file, from 1.
    row_end = models.IntegerField(null=True)
    #: First and last ordinal of its parent section, inclusive.
    section_start = models.IntegerField(default=0, db_default=0)
    section_end = models.IntegerField(default=0, db_default=0)
    #: Language of its text by `retrieval.text.language`; empty if unknown.
    language = models.CharField(max_length=20, default="", db_default="")
    #: Kinds of content in it (`retrieval.text.traits`): table, code, definition ...
    hints = ArrayField(models.CharField(max_length=20), default=list, db_default=[])
    #: Signature of its words (`retrieval.text.fingerprints`), 128 bytes; empty for a text without words.
    minhash = models.BinaryField(default=b"", db_default=b"")
    #: A language model's line on its context; embedded with the text, never shown as text of the document.
    context_line = models.TextField(default="", db_default="")
    #: Questions that it answers, written by a language model; only for full-text search.
    questions = ArrayField(models.TextField(), default=list, db_default=[])
    #: The links of its author: [text, target] each, as written.
    links = models.JSONField(default=list, db_default=[])
    #: Relations extracted by a language model: [subject, relation, object] each; None if no model was used.
    triples = models.JSONField(null=True)
    #: Share of content in contrast to boilerplate, 0 to 1; the parts contain the deductions.
    quality = models.FloatField(default=1.0, db_default=1.0)
    quality_parts = models.JSONField(default=dict, db_default={})
    #: How well it represents its document (`retrieval.index.salience`), 0 to 1; None until its sync has ended.
    salience = models.FloatField(null=True)
    simhash = models.BigIntegerField(default=0, db_default=0)  #: Signed 64-bit fingerprint of its words; 0 for none.
    #: Weighted lexemes: A title, B heading path, C text. Stored in line (migration 0001), as every score needs it.
    search = SearchVectorField()

    class Meta:
        indexes: ClassVar = [
            # Without the pending list: searches are not slowed down by earlier inserts.
            GinIndex(fields=["search"], name="chunk_search", fastupdate=False),
            # For terms that are too frequent to read every chunk; `fulltext_capped.sql` uses the same expression.
            GinIndex(
                Func(F("search"), Value("{a,b}"), function="ts_filter", output_field=SearchVectorField()),
                name="chunk_headings",
                fastupdate=False,
            ),
            # Repeated texts are searched after every sync with this index only.
            models.Index(
                fields=["connection_id", "simhash"],
                include=["document_id", "ordinal", "token_count"],
                name="chunk_by_fingerprint",
            ),
            models.Index(fields=["connection_id", "quality"], condition=Q(quality__lt=1.0), name="chunk_by_quality"),
            # Chunks without salience, which the end of a sync computes; empty afterwards.
            models.Index(
                fields=["connection_id", "document_id"],
                condition=Q(salience__isnull=True),
                name="chunk_without_salience",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.document_id}:{self.ordinal}"


class TermFrequency(models.Model):
    """The number of chunks of a connection that contain a lexeme, as increments to sum.

    Ingestion only appends rows (negative for deletions) and a sync merges them at its end, so that writers never wait
    for each other. The empty lexeme counts the chunks. Counts are per connection: a score may depend only on what its
    user can see.
    """

    # Django needs a key; the database has none (migration 0003): the rows of one lexeme repeat until they are merged.
    pk = models.CompositePrimaryKey("connection_id", "lexeme")
    connection_id = models.BigIntegerField()
    lexeme = models.TextField()
    chunks = models.IntegerField()

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["lexeme", "connection_id"], include=["chunks"], name="term_frequency_by_lexeme")
        ]

    def __str__(self) -> str:
        return f"{self.lexeme}: {self.chunks:+d}"


class OutboxEntry(models.Model):
    """A changed or deleted document; read models outside PostgreSQL follow these rows by transaction id."""

    document_id = models.UUIDField()
    connection_id = models.BigIntegerField()
    deleted = models.BooleanField()
    transaction_id = models.BigIntegerField(db_index=True)
    #: When it was written; followers use it to compute their lag.
    at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return f"{'deleted' if self.deleted else 'changed'} {self.document_id}"
