"""The section sets that an installation edited or wrote; those that CoreCube comes with are files."""

from typing import ClassVar

from django.conf import settings
from django.db import models


class StoredSectionSet(models.Model):
    """A section set as it was written: an edited one under a shipped name, or one of the installation's own."""

    name = models.CharField(max_length=60, unique=True)
    #: As `SectionSet.to_mapping` gives it.
    written = models.JSONField()
    changed_at = models.DateTimeField(auto_now=True)
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name
