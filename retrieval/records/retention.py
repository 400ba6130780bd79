"""Retention: search records are deleted after the configured number of days."""

import logging
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from retrieval.models import SearchRecord

logger = logging.getLogger(__name__)

_BATCH: Final = 500  #: Records that one call deletes, so that it ends soon; the next call continues.


def forget_old_searches(batch: int = _BATCH) -> int:
    """Delete the oldest records past `CORECUBE_KEEP_SEARCHES_DAYS`, at most `batch`, and return how many.

    Safe to call from several processes: none waits for another. A case saved from a record stays.
    """
    if not settings.CORECUBE_KEEP_SEARCHES_DAYS:
        return 0
    end = timezone.now() - timedelta(days=settings.CORECUBE_KEEP_SEARCHES_DAYS)
    old = SearchRecord.objects.filter(at__lt=end).order_by("at", "id")
    with transaction.atomic():
        ids = list(old.select_for_update(skip_locked=True).values_list("pk", flat=True)[:batch])
        if ids:
            SearchRecord.objects.filter(pk__in=ids).only("pk").delete()
            logger.info("search_records.deleted count=%d", len(ids))
    return len(ids)
