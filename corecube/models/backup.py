"""Backups that were made or tried."""

from typing import ClassVar

from django.db import models


class Backup(models.Model):
    """A backup that is running, was made, or failed. It is not part of backups itself."""

    place = models.TextField()  #: A folder, or an address such as s3://bucket/prefix.
    host = models.CharField(max_length=255)
    started_at = models.DateTimeField(auto_now_add=True, db_index=True)
    finished_at = models.DateTimeField(null=True)  #: None while it runs.
    name = models.CharField(max_length=40, default="")  #: Its name in the place; empty without one.
    problem = models.TextField(default="")  #: Why it failed; empty for nothing.
    size = models.BigIntegerField(default=0)  #: Bytes of its content, and those that it added to the place.
    added = models.BigIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["-started_at"]

    def __str__(self) -> str:
        return f"{self.place} {self.name or self.started_at:%Y-%m-%d %H:%M}"
