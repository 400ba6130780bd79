"""Which connection holds what a user's agents remember."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from corecube.models import Connection


class Memory(models.Model):
    """A user's memory. Who may see it is decided by its connection and the grants, as everywhere."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memory")
    connection = models.OneToOneField(Connection, on_delete=models.CASCADE, related_name="memory")

    class Meta:
        verbose_name_plural: ClassVar = "memories"

    def __str__(self) -> str:
        return self.connection.name
