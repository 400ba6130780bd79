"""Which secret keys the processes of the installation use."""

from typing import ClassVar

from django.db import models


class KeyUse(models.Model):
    """A process and its secret key, by an id that does not reveal it. Not part of backups."""

    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    key_id = models.CharField(max_length=32)
    seen_at = models.DateTimeField()  #: By the database's clock.

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["host", "pid"], name="key_use_once_per_process")]

    def __str__(self) -> str:
        return f"{self.key_id} on {self.host}"
