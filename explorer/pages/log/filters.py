"""The filters and the page position of the query log, as in its address."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Self

from django.db.models import Q
from django.http import QueryDict
from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_aware

from corecube.sanitise import storable
from explorer.viewer import whole_number
from retrieval.models import SearchRecord
from retrieval.models.search import FLAGS
from retrieval.presets.catalog import PRESETS

SLOW_MS: Final = 500  #: Milliseconds above which a search is slow, by default.
_MAX_SLOW_MS: Final = 1_000_000
SINCE: Final[Mapping[str, timedelta]] = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "month": timedelta(days=30),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A position in the log, which is ordered by time and then by id."""

    at: datetime
    id: uuid.UUID

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the position in an address; None for an invalid one."""
        moment, _, name = text.partition("~")
        try:
            at, identity = parse_datetime(moment), uuid.UUID(name)
        except ValueError:
            return None
        return cls(at, identity) if at is not None and is_aware(at) else None

    def __str__(self) -> str:
        return f"{self.at.isoformat()}~{self.id}"

    @property
    def older(self) -> Q:
        """The condition of older records."""
        return Q(at__lte=self.at) & (Q(at__lt=self.at) | Q(id__lt=self.id))

    @property
    def newer(self) -> Q:
        """The condition of newer records."""
        return Q(at__gte=self.at) & (Q(at__gt=self.at) | Q(id__gt=self.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """The filters of the log, combined with AND."""

    flags: tuple[str, ...] = ()  #: Names of `retrieval.models.search.FLAGS`, and "slow".
    slow_ms: int = SLOW_MS
    user: str = ""
    preset: str = ""
    surface: str = ""
    text: str = ""
    since: str = ""  #: A key of SINCE, or empty.

    @classmethod
    def read(cls, query: QueryDict) -> Self:
        """Return the filters of a query string; invalid ones get their default."""
        preset, since, surface = (query.get(name, "") for name in ("preset", "since", "surface"))
        return cls(
            flags=tuple(name for name in (*FLAGS, "slow") if name in query.getlist("flag")),
            slow_ms=min(whole_number(query.get("ms", ""), SLOW_MS, digits=7), _MAX_SLOW_MS),
            user=storable(query.get("user", "")),
            preset=preset if preset in PRESETS else "",
            surface=surface if surface in SearchRecord.Surface.values else "",
            text=storable(query.get("q", "")).strip(),
            since=since if since in SINCE else "",
        )

    @property
    def is_set(self) -> bool:
        """Whether any filter is set."""
        return self != replace(type(self)(), slow_ms=self.slow_ms)

    def flag(self, name: str) -> Q:
        """Return the condition of a flag."""
        return Q(milliseconds__gt=self.slow_ms) if name == "slow" else FLAGS[name]

    @property
    def text_condition(self) -> Q:
        """The condition of the text, which must read every search; empty without a text."""
        return Q(query__in_any_case=self.text) if self.text else Q()

    def condition(self, now: datetime) -> Q:
        """Return all conditions except the text."""
        fields = {"user__username": self.user, "preset": self.preset, "surface": self.surface}
        condition = Q(**{name: value for name, value in fields.items() if value})
        if self.since:
            condition &= Q(at__gte=now - SINCE[self.since])
        for name in self.flags:
            condition &= self.flag(name)
        return condition
