"""The order in which processes lock the rows of a sync.

Several processes change the rows of one sync. Each locks documents first, then items, by their keys, and the sync last,
so that two of them wait for each other in one order and never both.
"""

from django.db.models import QuerySet

from retrieval.models import SyncItem


def locked(items: QuerySet[SyncItem]) -> QuerySet[SyncItem]:
    """Lock items in the order of their keys and return them; the caller is in a transaction, which keeps the locks."""
    keys = items.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True)
    return SyncItem.objects.filter(pk__in=list(keys))
