"""Log files of the processes that CoreCube starts, under `var/log`, and a filter for rejected requests."""

import logging
from pathlib import Path
from typing import IO, Final

_MAX_BYTES: Final = 10 * 2**20


def open_log(path: Path) -> IO[bytes]:
    """Open a log for appending; one over 10 MiB is first renamed to `.1`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _MAX_BYTES:
        path.replace(path.with_name(f"{path.name}.1"))
    return path.open("ab")


def last_lines(path: Path, count: int = 5) -> list[str]:
    """Return the last lines of a log."""
    return path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]


class RefusalFilter(logging.Filter):
    """Reduces Django's records of 4xx responses to a WARNING without traceback.

    Clients cause them, so they are not errors of the server, and would fill the log.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log the record."""
        if getattr(record, "status_code", 500) < 500:  # noqa: PLR2004 -- HTTP
            record.exc_info = record.exc_text = None
            record.levelno = min(record.levelno, logging.WARNING)
            record.levelname = logging.getLevelName(record.levelno)
        return logging.getLogger().isEnabledFor(record.levelno)
