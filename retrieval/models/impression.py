"""What people were shown, and what they used."""

from typing import ClassVar

from django.db import models

from retrieval.models.document import Document
from retrieval.models.search import SearchRecord


class Impression(models.Model):
    """A passage that a search showed to its user, and what that user did with it.

    Those of a search are stored with the first use of one: a search without any use has none. They are deleted with the
    record of the search, which has their user, surface, preset and time, and with their document.
    """

    record = models.ForeignKey(SearchRecord, on_delete=models.CASCADE, related_name="impressions")
    query = models.TextField()  #: As judgments write it.
    # No database constraint: documents may be distributed over servers. Code that deletes one deletes its impressions.
    document = models.ForeignKey(Document, on_delete=models.CASCADE, db_constraint=False, related_name="+")
    content_hash = models.CharField(max_length=64)  #: Of the passage's text.
    position = models.PositiveSmallIntegerField()  #: The rank, or the number of the citation.
    opened = models.BooleanField(default=False)
    copied = models.BooleanField(default=False)  #: In an answer that cites it.
    rating = models.SmallIntegerField(null=True)  #: The thumb for the citation: 1 or -1.

    class Meta:
        indexes: ClassVar = [models.Index(fields=["query"], name="impression_query")]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["record", "document", "content_hash"], name="one_impression_per_passage")
        ]

    def __str__(self) -> str:
        return f"{self.position}: {self.document_id}"
