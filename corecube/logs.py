"""Log files of the processes that CoreCube starts, under `var/log`; the format of their lines; rejected requests."""

import json
import logging
import re
import uuid
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final

_MAX_BYTES: Final = 10 * 2**20
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9-]{8,64}", re.ASCII)
#: What causes the lines of this context: `request_id` or `task_id`.
origin: Final = ContextVar[Mapping[str, str]]("origin", default=MappingProxyType({}))


def open_log(path: Path) -> IO[bytes]:
    """Open a log for appending; one over 10 MiB is first renamed to `.1`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _MAX_BYTES:
        path.replace(path.with_name(f"{path.name}.1"))
    return path.open("ab")


def last_lines(path: Path, count: int = 5) -> list[str]:
    """Return the last lines of a log."""
    return path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]


def request_id(proposed: str = "") -> str:
    """Return the id that a trusted proxy proposes, if it is 8 to 64 letters, digits and hyphens, else a new one."""
    return proposed if _REQUEST_ID.fullmatch(proposed) else uuid.uuid4().hex


class LineFormatter(logging.Formatter):
    """Writes the request or task at the end of a line, unless the message names it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- its name
        """Return the line without a traceback."""
        line = super().formatMessage(record)
        return " ".join([line, *(f"{name}={it}" for name, it in origin.get().items() if it not in line)])


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with `traceback` for an exception."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **origin.get(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


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
