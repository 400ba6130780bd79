"""Names of documents and their mentions in texts: the data of the graph. Keys contain a document id."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from corecube.models import Connection
from retrieval.models.embedding import ChunkRow


class DocumentName(models.Model):
    """A name of a document in texts, or its URL in links."""

    pk = models.CompositePrimaryKey("document_id", "key")
    document_id = models.UUIDField()
    key = models.BigIntegerField()  #: The normalised name or URL as a number: `retrieval.graph.spans.number_of`.
    connection_id = models.BigIntegerField()
    name = models.TextField()
    kind = models.CharField(max_length=12)  #: `retrieval.graph.names.NameKind`.
    quality = models.FloatField()  #: How reliably the name identifies this document, 0 to 1.

    class Meta:
        indexes: ClassVar = [models.Index(fields=["key", "connection_id", "document_id"], name="document_name_by_key")]

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"


class ChunkMentions(ChunkRow):
    """Possible mentions in a chunk's text, as keys of the same form as names: a common key is a link.

    A chunk's row depends only on its text, a document's names only on that document. So links need no update when other
    documents change, and the links of a scope depend only on its documents.
    """

    pk = models.CompositePrimaryKey("document_id", "ordinal")
    #: `retrieval.graph.mentions.Mentions`: first the longest phrases (their number is `phrases`), then parts of them.
    keys = ArrayField(models.BigIntegerField(), default=list)
    phrases = models.SmallIntegerField()

    class Meta:
        verbose_name_plural: ClassVar = "chunk mentions"
        indexes: ClassVar = [GinIndex(fields=["keys"], name="chunk_mentions_by_key", fastupdate=False)]

    def __str__(self) -> str:
        return f"{self.document_id}:{self.ordinal}: {len(self.keys)} keys"


class CommonMention(models.Model):
    """The number of chunks of a connection with a frequent key, at the last count.

    Stored per connection and summed over a scope: results may depend only on what the user can see.
    """

    pk = models.CompositePrimaryKey("key", "connection_id")
    key = models.BigIntegerField()
    connection_id = models.BigIntegerField()
    chunks = models.IntegerField()

    def __str__(self) -> str:
        return f"{self.key}: {self.chunks} chunks"


class MentionCount(models.Model):
    """The state of the last count of a connection's common mentions."""

    connection = models.OneToOneField(Connection, on_delete=models.CASCADE, primary_key=True)
    chunks = models.IntegerField(default=0)  #: Chunks of the connection at the last count.
    changed = models.IntegerField(default=0)  #: Chunks added or deleted since then.

    def __str__(self) -> str:
        return f"{self.changed} of {self.chunks} chunks"


class ChunkLink(ChunkRow):
    """An explicit link of a chunk: set by its author, or extracted by a language model.

    Its targets are the documents with the key among their names; they are not stored.
    """

    pk = models.CompositePrimaryKey("document_id", "ordinal", "kind", "key")
    kind = models.CharField(max_length=12)  #: `retrieval.graph.links.StatedKind`.
    key = models.BigIntegerField()  #: Of the target's URL or name.
    name = models.TextField()  #: Its visible text.
    sentence = models.TextField(blank=True)  #: Subject, relation and object of an extracted link.

    def __str__(self) -> str:
        return f"{self.document_id}:{self.ordinal}: {self.name} ({self.kind})"


class DocumentAccess(models.Model):
    """The last access to a document, for ranking by recency. Written in batches, outside the request path."""

    document_id = models.UUIDField(primary_key=True)
    connection_id = models.BigIntegerField(db_index=True)
    accessed_at = models.DateTimeField()
    #: The last access before the day (UTC) of `accessed_at`; until that day is over, non-admins get this value.
    accessed_before = models.DateTimeField(null=True)
    times = models.BigIntegerField(default=1)

    class Meta:
        verbose_name_plural: ClassVar = "document accesses"

    def __str__(self) -> str:
        return f"{self.document_id} at {self.accessed_at}"


class ReadModel(models.Model):
    """The position of a read model outside the search tables in the outbox."""

    #: "bm25-" or "vectors-", and the name of a machine's folder.
    name = models.CharField(max_length=20, primary_key=True)
    #: It contains the outbox entries of transactions up to this one.
    transaction_id = models.BigIntegerField(default=0)
    at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.name} up to {self.transaction_id}"


class RouteExample(models.Model):
    """An example question of a route, for the router."""

    route = models.CharField(max_length=20)  #: "skip", or a memory type.
    text = models.CharField(max_length=300)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["route", "text"], name="one_example_each")]

    def __str__(self) -> str:
        return f"{self.route}: {self.text}"
