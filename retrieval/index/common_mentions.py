"""Counts the mention keys of many chunks per connection, after enough of the connection has changed."""

from typing import Final

from django.db import connection
from django.db.models import Sum
from django.db.models.functions import Abs

from retrieval.index.statements import statement
from retrieval.models import MentionCount, TermFrequency

_COUNT_COMMON: Final = statement("upkeep/count_common_mentions")
#: Chunks of a connection from which on a key is counted as common: below it the sum over a scope rarely matters.
_MIN_COMMON: Final = 200
#: Share of added and deleted chunks of a connection, in percent, after which its keys are counted again.
_DUE_PERCENT: Final = 5


def count_common(connection_id: int) -> None:
    """Count the chunks of a connection per key again, for keys of many chunks."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_COMMON, {"connection": connection_id, "minimum": _MIN_COMMON})
    chunks, _ = _moved(connection_id)
    MentionCount.objects.update_or_create(connection_id=connection_id, defaults={"chunks": chunks, "changed": 0})


def note_changes(connection_id: int) -> None:
    """Note how many chunks of a connection came or went; to be called before its term counts are folded."""
    known, _ = MentionCount.objects.get_or_create(connection_id=connection_id)
    chunks, moved = _moved(connection_id)
    # What was folded before is one addition among the others.
    known.changed += max(0, moved - known.chunks)
    known.chunks = chunks
    known.save()


def count_common_when_due(connection_id: int) -> None:
    """Count as `count_common` does where 5 % of the connection's chunks came or went since that was done."""
    known = MentionCount.objects.filter(connection_id=connection_id).first()
    if known is not None and known.changed and known.changed * 100 >= known.chunks * _DUE_PERCENT:
        count_common(connection_id)


def _moved(connection_id: int) -> tuple[int, int]:
    """Return a connection's chunks, and those that came and those that went together, by its unfolded additions."""
    counted = TermFrequency.objects.filter(connection_id=connection_id, lexeme="")
    sums = counted.aggregate(total=Sum("chunks", default=0), moved=Sum(Abs("chunks"), default=0))
    return sums["total"], sums["moved"]
