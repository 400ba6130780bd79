"""A web server in a separate process on the benchmark's database, and its resource usage."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from django.conf import settings
from django.db import connection

from corecube.errors import UnavailableError
from retrieval.evaluation.bench.processes import stat_fields

_HOST: Final = "127.0.0.1"
_START_SECONDS: Final = 120.0
_STOP_SECONDS: Final = 10.0
_OPTIONS: Final = ("--no-access-log", "--no-server-header", "--lifespan=on", "--log-level=warning")
_DJANGO_OPTIONS: Final = frozenset({"options", "pool"})  #: Django's connection options, which are not part of a URL.


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """The resource usage of a process; all 0 if the system does not report it."""

    cpu_seconds: float = 0.0
    rss_bytes: int = 0
    threads: int = 0


@dataclass(frozen=True, slots=True)
class WebServer:
    """A running web server."""

    url: str
    pid: int

    def figures(self) -> ProcessFigures:
        """Return the current usage of its process."""
        fields = stat_fields(self.pid)
        if not fields:
            return ProcessFigures()
        ticks = int(fields[11]) + int(fields[12])
        return ProcessFigures(
            cpu_seconds=ticks / os.sysconf("SC_CLK_TCK"),
            rss_bytes=int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
            threads=int(fields[17]),
        )


@contextmanager
def web_server(
    factory: str = "", *, processes: int = 1, environment: Mapping[str, str] | None = None
) -> Iterator[WebServer]:
    """Run the web server like `manage.py start` on the default connection's database; raise UnavailableError.

    `factory` names a function that returns its application in place of CoreCube's own.
    """
    with socket.create_server((_HOST, 0)) as probe:
        port = int(probe.getsockname()[1])
    application = ["--factory", factory] if factory else ["corecube.asgi:application"]
    command = [sys.executable, "-m", "uvicorn", *application, f"--host={_HOST}", f"--port={port}"]
    inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL_FILE"}
    process = subprocess.Popen(  # noqa: S603 -- our own program
        [*command, *_OPTIONS, f"--workers={processes}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd=settings.BASE_DIR,
        env={**inherited, "DATABASE_URL": database_url(), "ALLOWED_HOSTS": _HOST, **(environment or {})},
    )
    try:
        _wait(process, port)
        yield WebServer(f"http://{_HOST}:{port}", process.pid)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def database_url() -> str:
    """Return the URL of the current database, with its password."""
    database = {**connection.settings_dict, **connection.get_connection_params()}
    account = quote(str(database["user"]), safe="")
    if database.get("password"):
        account += f":{quote(str(database['password']), safe='')}"
    place = f"{quote(str(database.get('host') or ''), safe='')}:{database.get('port') or 5432}"
    given = {name: value for name, value in database["OPTIONS"].items() if name not in _DJANGO_OPTIONS}
    options = f"?{urlencode(given)}" if given else ""
    return f"postgres://{account}@{place}/{quote(str(database['NAME']), safe='')}{options}"


def _wait(process: "subprocess.Popen[bytes]", port: int) -> None:
    ends = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < ends:
        with suppress(OSError), socket.create_connection((_HOST, port), timeout=1):
            return
        time.sleep(0.1)
    raise UnavailableError("The web server did not start.")
