"""Searches over time: their number, latency, and how many were refused, degraded or empty."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db.models import Aggregate, Count, DateTimeField, F, FloatField, Func, Value

from retrieval.models import SearchRecord
from retrieval.models.search import FLAGS

#: The origin of all bins, so that bins of an hour begin on the hour and bins of a day at midnight, UTC.
_ORIGIN: Final = datetime(2000, 1, 1, tzinfo=UTC)
_COUNTED: Final = ("refused", "degraded", "empty")


class Percentile(Aggregate):
    """A percentile of the rows, interpolated."""

    function = "percentile_cont"
    template = "%(function)s(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()

    def __init__(self, expression: str, *, share: float, **extra: Any) -> None:  # noqa: ANN401 -- Django's signature
        super().__init__(expression, share=float(share), **extra)


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a group of searches."""

    searches: int = 0
    p50: float | None = None  #: Median and p95 latency in milliseconds; None without searches.
    p95: float | None = None
    refused: int = 0
    degraded: int = 0
    empty: int = 0

    def share(self, part: int) -> float:
        """Return a part of the searches in percent; 0 without searches."""
        return 100 * part / self.searches if self.searches else 0.0


@dataclass(frozen=True, slots=True)
class Bin:
    """The searches of one interval."""

    begins: datetime
    figures: Figures


@dataclass(frozen=True, slots=True)
class Traffic:
    """The searches of a period, in total and by bin, the earliest first, empty bins included."""

    total: Figures
    bins: tuple[Bin, ...]
    width: timedelta


def traffic(*, until: datetime, span: timedelta, width: timedelta) -> Traffic:
    """Return the searches of the bins that reach into the time before `until`, in two queries."""
    first, last = bin_begin(until - span, width), bin_begin(until, width)
    records = SearchRecord.objects.filter(at__gte=first, at__lt=last + width).order_by()
    begins = Func(
        Value(width), F("at"), Value(_ORIGIN, DateTimeField()), function="date_bin", output_field=DateTimeField()
    )
    bins = records.annotate(begins=begins).values("begins").annotate(**_measures())
    found = {row["begins"]: _figures(row) for row in bins}
    count = int((last - first) / width) + 1
    return Traffic(
        total=_figures(records.aggregate(**_measures())),
        bins=tuple(Bin(at, found.get(at, Figures())) for at in (first + width * step for step in range(count))),
        width=width,
    )


def bin_begin(at: datetime, width: timedelta) -> datetime:
    """Return when the bin of a moment begins, as PostgreSQL's date_bin has it."""
    return at - (at - _ORIGIN) % width


def _measures() -> dict[str, Aggregate]:
    return {
        "searches": Count("pk"),
        "p50": Percentile("milliseconds", share=0.5),
        "p95": Percentile("milliseconds", share=0.95),
        **{name: Count("pk", filter=FLAGS[name]) for name in _COUNTED},
    }


def _figures(row: Mapping[str, Any]) -> Figures:
    return Figures(row["searches"], row["p50"], row["p95"], *(row[name] for name in _COUNTED))
