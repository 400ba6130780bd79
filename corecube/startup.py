"""What a web server or a worker says of its database when it starts: it ends, or it says what it waits for."""

import logging
import sys
from threading import Thread
from typing import Final

from django.db import connections

from corecube.checks import require_server
from corecube.errors import ConfigError, CoreCubeError
from corecube.health import require_database

logger = logging.getLogger(__name__)

#: Longer than any of the steps takes to give up.
_WAIT_SECONDS: Final = 20.0


def look_at_database() -> None:
    """End the process where DATABASE_URL names a server that can never do; log what else keeps it from working.

    A server that does not answer, and migrations that are pending, may come right while the process runs.
    """
    unfit: list[str] = []
    # A thread of its own: a web server loads the application inside its event loop, where Django asks no database.
    thread = Thread(target=_look, args=(unfit,), daemon=True)
    thread.start()
    thread.join(_WAIT_SECONDS)
    if unfit:
        sys.exit(unfit[0])


def _look(unfit: list[str]) -> None:
    try:
        require_server()
        require_database()
    except ConfigError as error:
        unfit.append(str(error))
    except CoreCubeError as error:
        # Where it was raised tells nobody anything.
        logger.error("database.not_ready reason=%s", error.__cause__ or error)  # noqa: TRY400
    finally:
        # A worker's processes are forked next, and a pool does not work in two of them.
        for connection in connections.all(initialized_only=True):
            connection.close()
            connection.close_pool()  # type: ignore[attr-defined]  # every backend here is PostgreSQL's
