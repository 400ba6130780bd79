"""When a sync may ask a source only for what changed, and when it has to look at everything."""

import json
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Max
from django.utils import timezone

from corecube.connectors import tells_changes
from corecube.models import Connection
from retrieval.ingest.prepare import fingerprint
from retrieval.ingest.run import limits_of, text_search_config_of
from retrieval.models import Sync


def changes_since(connection: Connection) -> datetime | None:
    """Return the moment since which a connection's changes are enough; None when all of its source is to be listed.

    Changes are enough when the source can tell them, everything was looked at not long ago and with the same
    settings, and each sync since then was done. The moment is the start of the last of them.
    """
    if not tells_changes(connection.kind):
        return None
    ended = connection.syncs.exclude(kind=Sync.Kind.DRY_RUN).exclude(status__in=Sync.OPEN)
    whole = ended.filter(kind=Sync.Kind.FULL, status=Sync.Status.DONE).order_by("-started_at").first()
    if whole is None or whole.started_at is None or whole.settings_mark != settings_mark(connection):
        return None
    if whole.started_at <= timezone.now() - timedelta(hours=settings.CORECUBE_FULL_SYNC_HOURS):
        return None
    later = ended.filter(finished_at__gt=whole.finished_at)
    if later.exclude(status=Sync.Status.DONE).exists():
        return None
    last: datetime | None = later.filter(kind=Sync.Kind.CHANGES).aggregate(last=Max("started_at"))["last"]
    return last or whole.started_at


def settings_mark(connection: Connection) -> str:
    """Return the SHA-256 of every setting that decides what is listed of a source and what is stored of an item."""
    source = json.dumps([connection.kind, connection.config, connection.sealed_secrets], sort_keys=True)
    made_by = (text_search_config_of(connection), limits_of(connection), connection.source_type)
    return fingerprint(source.encode(), recipe=f"settings {made_by} {settings.CORECUBE_MAX_FILE_BYTES}")
