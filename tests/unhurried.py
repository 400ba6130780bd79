"""Searches whose figures are compared: with all the time that there is, and at one moment."""

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from retrieval.models import PresetVersion
from retrieval.presets.catalog import TUNED

#: The longest deadline that a preset can have.
MAX_MS = 600_000
#: When everything is asked that is compared, and when every file was written: after the newest date in the samples.
MOMENT = datetime(2026, 11, 23, 12, tzinfo=UTC)


def without_deadlines():
    """Give every preset a live version whose deadline no busy machine misses."""
    for name in TUNED:
        PresetVersion.objects.create(
            preset=name, number=1, status=PresetVersion.Status.LIVE, values={"deadline_ms": MAX_MS}
        )


def written_at_that_moment(folder: Path, copy: Path) -> Path:
    """Copy a folder, its files as old as each other: a checkout's files are as old as the checkout."""
    shutil.copytree(folder, copy)
    for path in copy.rglob("*"):
        os.utime(path, (MOMENT.timestamp(), MOMENT.timestamp()))
    return copy
