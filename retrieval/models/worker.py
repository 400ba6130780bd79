"""Worker processes, so that the console can say whether one is running."""

from typing import ClassVar

from django.db import models


class Worker(models.Model):
    """A worker's main process and its last sign of life; one that ends in good order takes its row with it."""

    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["host", "pid"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["host", "pid"], name="one_row_per_worker")]

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"
