"""Start of a web server or worker: checks the database, and signals when a web process begins to serve."""

import logging
import sys
from threading import Thread
from typing import Final

from django.db import connections
from django.dispatch import Signal

from corecube.checks import require_server
from corecube.errors import ConfigError, CoreCubeError
from corecube.health import require_database

logger = logging.getLogger(__name__)

#: Sent once by each web process, when it has loaded its code. Receivers must not block.
serving: Final = Signal()
#: Longer than the timeout of any step.
_WAIT_SECONDS: Final = 20.0


def check_database() -> None:
    """Exit if the server in DATABASE_URL cannot be used at all; log any other problem.

    A server that does not respond and pending migrations may be fixed while the process runs.
    """
    problems: list[str] = []
    # In a thread: a web server loads the application in its event loop, where Django refuses queries.
    thread = Thread(target=_check, args=(problems,), daemon=True)
    thread.start()
    thread.join(_WAIT_SECONDS)
    if problems:
        sys.exit(problems[0])


def _check(problems: list[str]) -> None:
    try:
        require_server()
        require_database()
    except ConfigError as error:
        problems.append(str(error))
    except CoreCubeError as error:
        # The traceback has no useful information.
        logger.error("database.not_ready reason=%s", error.__cause__ or error)  # noqa: TRY400
    finally:
        # A worker forks its processes next, and they cannot share a pool.
        for connection in connections.all(initialized_only=True):
            connection.close()
            connection.close_pool()  # type: ignore[attr-defined]  # every backend here is PostgreSQL's
