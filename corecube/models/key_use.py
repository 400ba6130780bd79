"""Which secret keys the processes of the installation use."""

from django.db import models


class KeyUse(models.Model):
    """A secret key, by an id that does not reveal it, and the process that used it last. Not part of backups."""

    key_id = models.CharField(max_length=32, primary_key=True)
    host = models.CharField(max_length=255)
    seen_at = models.DateTimeField()  #: By the database's clock.

    def __str__(self) -> str:
        return f"{self.key_id} on {self.host}"
