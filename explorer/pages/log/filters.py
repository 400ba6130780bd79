"""What the query log is asked for: filters and the place to read on from, as its address has them."""

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
from retrieval.models import SearchRecord
from retrieval.models.search import FLAGS
from retrieval.presets.catalog import PRESETS

#: Milliseconds from which a search is slow, unless the address says otherwise.
SLOW_MS: Final = 500
_SLOWEST_MS: Final = 1_000_000
#: How far back the log is read, by the word in the address.
SINCE: Final[Mapping[str, timedelta]] = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "month": timedelta(days=30),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A record's place in the log, which is ordered by time and then by id."""

    at: datetime
    id: uuid.UUID

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the place that an address names, None where it names none."""
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
        """What stands after this place, newest first."""
        return Q(at__lte=self.at) & (Q(at__lt=self.at) | Q(id__lt=self.id))

    @property
    def newer(self) -> Q:
        """What stands before it."""
        return Q(at__gte=self.at) & (Q(at__gt=self.at) | Q(id__gt=self.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """Which records are wanted; all conditions hold together."""

    #: Names of `retrieval.models.search.FLAGS`, and "slow".
    flags: tuple[str, ...] = ()
    slow_ms: int = SLOW_MS
    user: str = ""
    preset: str = ""
    surface: str = ""
    text: str = ""
    #: A word of SINCE, or empty.
    since: str = ""

    @classmethod
    def read(cls, query: QueryDict) -> Self:
        """Return what a query string asks for; what it cannot mean is left at its default."""
        ms, since, surface = query.get("ms", ""), query.get("since", ""), query.get("surface", "")
        preset = query.get("preset", "")
        return cls(
            flags=tuple(name for name in (*FLAGS, "slow") if name in query.getlist("flag")),
            slow_ms=min(int(ms), _SLOWEST_MS)
            if ms.isdecimal() and ms.isascii() and len(ms) <= len("1000000")
            else SLOW_MS,
            user=storable(query.get("user", "")),
            preset=preset if preset in PRESETS else "",
            surface=surface if surface in SearchRecord.Surface.values else "",
            text=storable(query.get("q", "")).strip(),
            since=since if since in SINCE else "",
        )

    @property
    def is_set(self) -> bool:
        """Whether anything is filtered."""
        return self != replace(type(self)(), slow_ms=self.slow_ms)

    def flag(self, name: str) -> Q:
        """Return one flag's condition."""
        return Q(milliseconds__gt=self.slow_ms) if name == "slow" else FLAGS[name]

    @property
    def holds_text(self) -> Q:
        """The condition of the text, for which every search has to be read; empty without one."""
        return Q(query__in_any_case=self.text) if self.text else Q()

    def condition(self, now: datetime) -> Q:
        """Return all conditions together, but for the text."""
        wanted = Q()
        if self.since:
            wanted &= Q(at__gte=now - SINCE[self.since])
        if self.user:
            wanted &= Q(user__username=self.user)
        if self.preset:
            wanted &= Q(preset=self.preset)
        if self.surface:
            wanted &= Q(surface=self.surface)
        for name in self.flags:
            wanted &= self.flag(name)
        return wanted
