"""Documents that programs push: the source of a connection that has no other."""

from typing import ClassVar

from django.db import models

from corecube.models.connection import Connection


class PushedItem(models.Model):
    """One pushed document as it came, so that it can be read again whenever chunks are made differently."""

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="pushed_items")
    #: What the pushing program calls it, unique within the connection.
    external_id = models.TextField()
    #: Name with the suffix that chooses the parser.
    name = models.TextField()
    media_type = models.CharField(max_length=120, blank=True)
    uri = models.TextField(blank=True)
    content = models.BinaryField()
    #: Facts beside the bytes: title, author ... (strings only).
    facts = models.JSONField(default=dict)
    modified_at = models.DateTimeField(null=True)
    #: SHA-256 of the bytes and of everything above.
    version = models.CharField(max_length=64)
    pushed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["external_id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["connection", "external_id"], name="one_pushed_item_per_id")
        ]

    def __str__(self) -> str:
        return self.external_id
