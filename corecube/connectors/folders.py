"""Folders on disk that belong to a connection: its uploads, and what its connector stores between syncs.

A folder's name is the connection's number: no later connection gets it, unlike the slug.
"""

import logging
import shutil
from pathlib import Path

from django.conf import settings

from corecube.models import Connection

logger = logging.getLogger(__name__)


def upload_folder(connection: Connection) -> Path:
    """Return the folder of a connection's uploads; it is created with the first upload."""
    folder: Path = settings.CORECUBE_UPLOADS_DIR / str(connection.pk)
    return folder


def state_folder(connection: Connection) -> Path:
    """Return the folder of a connector's stored state (repository copy, crawled pages); the connector creates it."""
    folder: Path = settings.CORECUBE_SOURCES_DIR / str(connection.pk)
    return folder


def remove_folder(folder: Path) -> None:
    """Remove a connection's folder. If that fails, it is logged; no other connection reads the folder."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        logger.warning("connection_folder.removal_failed folder=%s error=%s", folder, error.strerror)
