"""Names of documents, and where texts may speak of them: what the graph is made of. Keys hold a document id."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from corecube.models import Connection


class DocumentName(models.Model):
    """A name by which texts speak of a document, or an address by which links mean it."""

    pk = models.CompositePrimaryKey("document_id", "key")
    document_id = models.UUIDField()
    #: The name or address as it is compared, as a number: `retrieval.graph.spans.number_of`.
    key = models.BigIntegerField()
    connection_id = models.BigIntegerField()
    name = models.TextField()
    #: `retrieval.graph.names.NameKind`.
    kind = models.CharField(max_length=12)
    #: How surely the name means this document, 0 to 1.
    quality = models.FloatField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["key", "connection_id", "document_id"], name="document_name_by_key")]

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"


class ChunkMentions(models.Model):
    """What a chunk's text may be speaking of, as keys that names have too: both ends of a link meet in a key.

    A chunk's row depends on its text alone, a document's names on that document alone. So no link has to be made or
    taken away when another document comes, goes or gets a new name, and a scope's links come from what is in it.
    """

    pk = models.CompositePrimaryKey("document_id", "ordinal")
    document_id = models.UUIDField()
    ordinal = models.IntegerField()
    connection_id = models.BigIntegerField()
    #: `retrieval.graph.mentions.Mentions`: first the longest phrases, so many of them, then parts of them.
    keys = ArrayField(models.BigIntegerField(), default=list)
    phrases = models.SmallIntegerField()

    class Meta:
        verbose_name_plural: ClassVar = "chunk mentions"
        indexes: ClassVar = [GinIndex(fields=["keys"], name="chunk_mentions_by_key", fastupdate=False)]

    def __str__(self) -> str:
        return f"{self.document_id}:{self.ordinal}: {len(self.keys)} keys"


class CommonMention(models.Model):
    """In how many chunks of a connection a key stands that stands in many, as counted when that was last due.

    Kept per connection and summed over a scope's: what a reader finds may not depend on what others hold.
    """

    pk = models.CompositePrimaryKey("key", "connection_id")
    key = models.BigIntegerField()
    connection_id = models.BigIntegerField()
    chunks = models.IntegerField()

    def __str__(self) -> str:
        return f"{self.key}: {self.chunks} chunks"


class MentionCount(models.Model):
    """How far a connection's common mentions are behind its chunks."""

    connection = models.OneToOneField(Connection, on_delete=models.CASCADE, primary_key=True)
    #: Chunks of the connection when that was last due.
    chunks = models.IntegerField(default=0)
    #: Chunks that came or went since its common mentions were counted.
    changed = models.IntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.changed} of {self.chunks} chunks"


class ChunkLink(models.Model):
    """A link that a chunk states outright: its author set it, or a language model read it there.

    Its other end are the documents that have the key among their names: as of the keys in its text, none is kept.
    """

    pk = models.CompositePrimaryKey("document_id", "ordinal", "kind", "key")
    document_id = models.UUIDField()
    ordinal = models.IntegerField()
    connection_id = models.BigIntegerField()
    #: `retrieval.graph.stated.StatedKind`.
    kind = models.CharField(max_length=12)
    #: Of the address, or the name, that it leads to.
    key = models.BigIntegerField()
    #: What a reader sees of it.
    name = models.TextField()
    #: What it says where that is not the text around it: subject, relation, object.
    sentence = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"{self.document_id}:{self.ordinal}: {self.name} ({self.kind})"


class DocumentAccess(models.Model):
    """When a document was last read by somebody, for ranking by recency. Written in batches, off the hot path."""

    document_id = models.UUIDField(primary_key=True)
    connection_id = models.BigIntegerField(db_index=True)
    accessed_at = models.DateTimeField()
    #: When it was last read before the day (UTC) of `accessed_at`: until that day is over, who is no admin learns this.
    accessed_before = models.DateTimeField(null=True)
    times = models.BigIntegerField(default=1)

    class Meta:
        verbose_name_plural: ClassVar = "document accesses"

    def __str__(self) -> str:
        return f"{self.document_id} at {self.accessed_at}"


class ReadModel(models.Model):
    """How far a read model outside the search tables has followed the outbox."""

    #: "bm25", "graph".
    name = models.CharField(max_length=20, primary_key=True)
    #: Outbox entries of transactions up to this one are in it.
    transaction_id = models.BigIntegerField(default=0)
    at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.name} up to {self.transaction_id}"


class RouteExample(models.Model):
    """A sentence that shows the router what questions of a route are like."""

    #: "skip", or a memory type.
    route = models.CharField(max_length=20)
    text = models.CharField(max_length=300)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["route", "text"], name="one_example_each")]

    def __str__(self) -> str:
        return f"{self.route}: {self.text}"
