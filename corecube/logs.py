"""Log files of the processes that CoreCube starts, under `var/log`, and what of a refused request is logged."""

import logging
from pathlib import Path
from typing import IO, Final

_MAX_BYTES: Final = 10 * 2**20


def open_log(path: Path) -> IO[bytes]:
    """Open a log for a new process to append to; one that has grown past 10 MiB is first moved aside to `.1`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _MAX_BYTES:
        path.replace(path.with_name(f"{path.name}.1"))
    return path.open("ab")


def last_lines(path: Path, count: int = 5) -> list[str]:
    """Return the log's last lines."""
    return path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]


class RefusalFilter(logging.Filter):
    """Makes one WARNING without a traceback of what Django logs about a request that it refuses with 4xx.

    Anybody can send such requests, so they are no errors of this server, and each would fill a page of its log.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is logged."""
        if getattr(record, "status_code", 500) < 500:  # noqa: PLR2004 -- HTTP
            record.exc_info = record.exc_text = None
            record.levelno = min(record.levelno, logging.WARNING)
            record.levelname = logging.getLevelName(record.levelno)
        return logging.getLogger().isEnabledFor(record.levelno)
