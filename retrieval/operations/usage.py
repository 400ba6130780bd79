"""Usage of language models, summed by user, key, model, month and day."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Coalesce, TruncDate, TruncMonth

from retrieval.models import Usage

_NOTHING: Final = Decimal(0)
GROUPS: Final = {
    "user": ("user_id", "user__username"),
    "key": ("key_id", "key__prefix", "key__name", "user__username"),
    "model": ("language_model_id", "model_name"),
}


@dataclass(frozen=True, slots=True)
class Sums:
    """Totals of some answers."""

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal = _NOTHING
    estimated: int = 0  #: Answers with token counts estimated here: the service reported none.


@dataclass(frozen=True, slots=True)
class Line:
    """The sums of a user, key, model or month."""

    names: dict[str, Any]  #: The name, by field; a month as its first day.
    sums: Sums


def used_between(first: date, last: date) -> QuerySet[Usage]:
    """Return the usage from the first to the last day, both included, in UTC."""
    start, end = (datetime.combine(day, time.min, UTC) for day in (first, last + timedelta(days=1)))
    return Usage.objects.filter(at__gte=start, at__lt=end).order_by()


def total(found: QuerySet[Usage]) -> Sums:
    """Return the total sums."""
    return _sums(found.aggregate(**_measures()))


def by_group(found: QuerySet[Usage], group: str) -> list[Line]:
    """Return the sums by "user", "key", "model" or "month": the highest cost first, or the latest month first."""
    if group == "month":
        rows = found.annotate(month=TruncMonth("at", tzinfo=UTC)).values("month").annotate(**_measures())
        return [_line(row, ("month",)) for row in rows.order_by("-month")]
    names = GROUPS[group]
    rows = found.values(*names).annotate(**_measures())
    return [_line(row, names) for row in rows.order_by("-sum_cost", "-sum_prompt_tokens", *names)]


def by_day(found: QuerySet[Usage]) -> dict[tuple[date, str], Sums]:
    """Return the sums by day, in UTC, and model."""
    rows = found.annotate(day=TruncDate("at", tzinfo=UTC)).values("day", "model_name").annotate(**_measures())
    return {(row["day"], row["model_name"]): _sums(row) for row in rows}


def _measures() -> dict[str, Any]:
    return {
        "sum_answers": Count("pk"),
        "sum_prompt_tokens": Coalesce(Sum("prompt_tokens"), 0),
        "sum_completion_tokens": Coalesce(Sum("completion_tokens"), 0),
        "sum_cost": Coalesce(Sum("cost"), _NOTHING),
        "sum_estimated": Count("pk", filter=Q(is_estimated=True)),
    }


def _line(row: Mapping[str, Any], names: tuple[str, ...]) -> Line:
    return Line({name: row[name] for name in names}, _sums(row))


def _sums(row: Mapping[str, Any]) -> Sums:
    return Sums(**{field.name: row[f"sum_{field.name}"] for field in fields(Sums)})
