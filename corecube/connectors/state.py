"""What connectors keep on disk between syncs, a folder per connection: copies of repositories, what a crawl knows."""

import logging
import shutil
from pathlib import Path

from django.conf import settings

from corecube.models import Connection

logger = logging.getLogger(__name__)


def state_folder(connection: Connection) -> Path:
    """Return the folder of a connection; its connector makes it when it has something to keep.

    It bears the connection's number, which no later connection gets, unlike the slug.
    """
    folder: Path = settings.CORECUBE_SOURCES_DIR / str(connection.pk)
    return folder


def remove_state(folder: Path) -> None:
    """Remove a connection's folder. What cannot be removed is logged and stays; no connection will read it."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        logger.warning("sources.left folder=%s error=%s", folder, error.strerror)
