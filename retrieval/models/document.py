"""Documents and chunks. Every key holds the document id, so that the tables can be distributed by it."""

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
    """Return the id that a source item always has: made from where it stands, never drawn.

    The connection counts by its key, which is never given again; its slug may be.
    """
    return uuid.uuid5(_NAMESPACE, f"{connection_id}\n{external_id}")


def id_in(text: str) -> uuid.UUID | None:
    """Return the id that a text is; None for any other text."""
    try:
        return uuid.UUID(text.strip())
    except ValueError:
        return None


class DocumentQuerySet(models.QuerySet["Document"]):
    """Look-ups of documents; the scope fails closed."""

    def in_scope(self, scope: AccessScope) -> Self:
        """Return the documents that the scope lets its principal see."""
        return self.filter(connection_id__in=scope.connection_ids)

    def named(self, text: str) -> Self:
        """Return the documents with this text in their title, address or name at the source, or with this id."""
        named = Q(title__icontains=text) | Q(external_id__icontains=text) | Q(uri__icontains=text)
        return self.filter(named | Q(pk=id_in(text)) if id_in(text) else named)


class Document(models.Model):
    """One item of a source: a file, a page."""

    id = models.UUIDField(primary_key=True, editable=False)
    # No database constraint: the table may be distributed over servers, connections stay local.
    connection = models.ForeignKey(
        Connection, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="documents"
    )
    #: What the source calls it, unique within the connection: a path, an address, a page id.
    external_id = models.TextField()
    title = models.TextField()
    uri = models.TextField(blank=True)
    #: Canonical type: markdown, html, pdf, docx, text ...
    source_type = models.CharField(max_length=20)
    #: SHA-256 of the bytes and of how they were turned into chunks; equal means nothing to do.
    fingerprint = models.CharField(max_length=64)
    #: SHA-256 of the source's own version and of how it is turned into chunks; equal means that it need not even be
    #: read. Empty where the source tells no version.
    version = models.CharField(max_length=64, default="", db_default="")
    #: What the source says it is: its media type, else the suffix of its name; empty where it says nothing.
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
    """The indexed unit. Its text stands without the title and headings, which have columns of their own."""

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
    #: First and last row of a table, or line of a file, counted from 1 as people see them.
    row_start = models.IntegerField(null=True)
    row_end = models.IntegerField(null=True)
    #: First and last ordinal of its parent section, inclusive: what it can be read with.
    section_start = models.IntegerField(default=0, db_default=0)
    section_end = models.IntegerField(default=0, db_default=0)
    #: Language of its text as `retrieval.text.language` names it; empty where nothing tells.
    language = models.CharField(max_length=20, default="", db_default="")
    #: Kinds of content in it (`retrieval.text.hints`): table, code, definition ...
    hints = ArrayField(models.CharField(max_length=20), default=list, db_default=[])
    #: Signature of its words (`retrieval.text.minhash`), 128 bytes; empty for a text without words.
    minhash = models.BinaryField(default=b"", db_default=b"")
    #: What a language model wrote of where it stands; embedded above the text, never shown as the document's words.
    context_line = models.TextField(default="", db_default="")
    #: Questions that it answers, as a language model put them; read by full-text search alone.
    questions = ArrayField(models.TextField(), default=list, db_default=[])
    #: The links that its author set: [text, target] each, as they are written.
    links = models.JSONField(default=list, db_default=[])
    #: Who relates to whom, as a language model read it: [subject, relation, object] each; None where none was asked.
    triples = models.JSONField(null=True)
    #: How much of it is content and not boilerplate, 0 to 1; the parts say what took from it.
    quality = models.FloatField(default=1.0, db_default=1.0)
    quality_parts = models.JSONField(default=dict, db_default={})
    #: How much it says of its document's subject (`retrieval.text.salience`), 0 to 1; None until its sync has ended.
    salience = models.FloatField(null=True)
    #: 64-bit fingerprint of its words, signed; 0 when there is none.
    simhash = models.BigIntegerField(default=0, db_default=0)
    #: Weighted lexemes: A title, B heading path, C text. Stored in line (migration 0001), as every score reads it.
    search = SearchVectorField()

    class Meta:
        indexes: ClassVar = [
            # Without the pending list: a search never pays for an earlier insert.
            GinIndex(fields=["search"], name="chunk_search", fastupdate=False),
            # For terms that are too common to look at every chunk; `fulltext_capped.sql` writes it the same way.
            GinIndex(
                Func(F("search"), Value("{a,b}"), function="ts_filter", output_field=SearchVectorField()),
                name="chunk_headings",
                fastupdate=False,
            ),
            # Repeated texts are looked for after every sync, and by this index alone.
            models.Index(
                fields=["connection_id", "simhash"],
                include=["document_id", "ordinal", "token_count"],
                name="chunk_by_fingerprint",
            ),
            models.Index(fields=["connection_id", "quality"], condition=Q(quality__lt=1.0), name="chunk_by_quality"),
            # What the end of a sync has left to judge; empty afterwards.
            models.Index(
                fields=["connection_id", "document_id"],
                condition=Q(salience__isnull=True),
                name="chunk_without_salience",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.document_id}:{self.ordinal}"


class TermFrequency(models.Model):
    """How many chunks of a connection hold a lexeme, as additions to be summed.

    Ingestion only appends (negative for what it removes) and a sync folds the rows at its end, so that
    writers never wait for each other. The empty lexeme counts the chunks themselves. Kept per connection:
    a score may depend only on what its reader can see.
    """

    # Django wants a key; the database has none (migration 0003): the rows of one lexeme repeat until they are summed.
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
    """A document changed or went; read models outside PostgreSQL follow these rows by transaction id."""

    document_id = models.UUIDField()
    connection_id = models.BigIntegerField()
    deleted = models.BooleanField()
    transaction_id = models.BigIntegerField(db_index=True)
    #: When it was written; followers tell by it how far behind they are.
    at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return f"{'deleted' if self.deleted else 'changed'} {self.document_id}"
