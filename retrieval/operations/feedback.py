"""Thumbs for answers, summed by week, preset and source."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import TruncWeek

from retrieval.models import Message, SearchRecord

_UP = Count("pk", filter=Q(feedback__gt=0))
_DOWN = Count("pk", filter=Q(feedback__lt=0))


@dataclass(frozen=True, slots=True)
class Thumbs:
    """Numbers of ratings."""

    up: int = 0
    down: int = 0

    @property
    def total(self) -> int:
        """The number of ratings."""
        return self.up + self.down

    @property
    def share(self) -> float | None:
        """The share of thumbs up, from 0 to 1; None without ratings."""
        return self.up / self.total if self.total else None


@dataclass(frozen=True, slots=True)
class SourceThumbs:
    """The ratings of the answers that cite a source, and of its passages themselves."""

    answers: Thumbs
    passages: Thumbs


def rated_between(first: date, last: date) -> QuerySet[SearchRecord]:
    """Return the searches with a rated answer from the first to the last day, both included, in UTC."""
    start, end = _bounds(first, last)
    found: QuerySet[SearchRecord] = SearchRecord.objects.filter(feedback__isnull=False, at__gte=start, at__lt=end)
    return found


def total(found: QuerySet[SearchRecord]) -> Thumbs:
    """Return the sums of all."""
    return Thumbs(**found.order_by().aggregate(up=_UP, down=_DOWN))


def by_week(found: QuerySet[SearchRecord]) -> dict[date, Thumbs]:
    """Return the sums by week, as its Monday in UTC."""
    rows = found.order_by().annotate(week=TruncWeek("at", tzinfo=UTC)).values("week").annotate(up=_UP, down=_DOWN)
    return {row["week"].date(): Thumbs(row["up"], row["down"]) for row in rows}


def by_preset(found: QuerySet[SearchRecord]) -> dict[str, Thumbs]:
    """Return the sums by preset, the most rated first."""
    rows = found.order_by().values("preset").annotate(up=_UP, down=_DOWN)
    sums = {row["preset"]: Thumbs(row["up"], row["down"]) for row in rows}
    return dict(sorted(sums.items(), key=lambda it: (-it[1].total, it[0])))


def by_source(first: date, last: date) -> dict[int, SourceThumbs]:
    """Return the sums by connection id, from the answers of the chat page, which alone store what they cite.

    An answer counts once for each connection that it cites.
    """
    start, end = _bounds(first, last)
    rated = Message.objects.filter(at__gte=start, at__lt=end, role=Message.Role.ASSISTANT)
    rated = rated.filter(Q(feedback__isnull=False) | ~Q(citation_feedback={})).order_by()
    answers: Counter[tuple[int, int]] = Counter()
    passages: Counter[tuple[int, int]] = Counter()
    for rating, ratings, shown in rated.values_list("feedback", "citation_feedback", "passages"):
        connections = {it["number"]: it["connection"] for it in shown}
        if rating is not None:
            answers.update((it, rating) for it in {it["connection"] for it in shown if it["cited"]})
        passages.update((connections[int(number)], it) for number, it in ratings.items() if int(number) in connections)
    found = {connection for connection, _ in (*answers, *passages)}
    return {it: SourceThumbs(_thumbs(answers, it), _thumbs(passages, it)) for it in found}


def _thumbs(counted: Mapping[tuple[int, int], int], connection: int) -> Thumbs:
    return Thumbs(counted.get((connection, 1), 0), counted.get((connection, -1), 0))


def _bounds(first: date, last: date) -> tuple[datetime, datetime]:
    return datetime.combine(first, time.min, UTC), datetime.combine(last + timedelta(days=1), time.min, UTC)
