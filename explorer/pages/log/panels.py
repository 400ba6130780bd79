"""The query log: a row a search, and how many there are of each kind."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet

from explorer import wording
from explorer.components.answerability import TONES, VERDICTS
from explorer.components.preset_numbers import version_label
from explorer.pages.log.filters import LogFilter, Place
from retrieval.engine.types import Verdict
from retrieval.models import SearchRecord
from retrieval.models.search import FLAGS

#: Searches on one page, and as many as are counted: beyond that the number only says that there are more.
PAGE_SIZE: Final = 50
MAX_COUNTED: Final = 1000
#: Searches that are read for a text on one page, at most.
MAX_READ: Final = 20_000
FLAG_LABELS: Final[Mapping[str, str]] = {
    "refused": "Refused",
    "unsure": "Low confidence",
    "disliked": "Thumbs down",
    "degraded": "Fallback",
    "empty": "No hits",
    "slow": "Slow",
}
FLAG_HELP: Final[Mapping[str, str]] = {
    "refused": "The answer was that the sources do not contain one.",
    "unsure": "The confidence is below the preset's threshold for an answer.",
    "disliked": "The user gave a thumbs down.",
    "degraded": "A stage used a fallback or was cut short.",
    "empty": "The search returned no hits.",
    "slow": "Slower than the limit set here.",
}
_SURFACES: Final[Mapping[str, str]] = {"api": "API"}


@dataclass(frozen=True, slots=True)
class LogBadge:
    """A word on a search, with what it means."""

    text: str
    #: Decides the colour: good, warn, bad, or empty.
    tone: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class LogRow:
    """One search."""

    id: UUID
    at: datetime
    ago: str
    user: str
    #: Who looked through the user's eyes, and the key that was used; empty where nobody and none.
    actor: str
    key: str
    surface: str
    #: Empty where the text was not kept.
    query: str
    preset: str
    version: str
    hits: int
    milliseconds: str
    verdict: LogBadge | None
    #: "0.86"; empty where it was not judged.
    confidence: str
    badges: tuple[LogBadge, ...]


@dataclass(frozen=True, slots=True)
class LogCount:
    """How many searches there are of a kind."""

    number: int
    #: There are more than were counted.
    more: bool = False

    def __str__(self) -> str:
        return f"{self.number:,}+" if self.more else f"{self.number:,}"


@dataclass(frozen=True, slots=True)
class LogFlag:
    """A filter that is on or off, and what it would leave."""

    name: str
    label: str
    help: str
    is_on: bool
    #: The flags of the address once it is switched.
    switched: tuple[str, ...]
    count: LogCount


@dataclass(frozen=True, slots=True)
class LogPage:
    """Searches of one page, newest first."""

    rows: tuple[LogRow, ...]
    #: What to ask for to read on in either direction; empty at an end.
    older: str
    newer: str
    #: How many searches were looked through for a text, where that is not all there are; else 0.
    read: int = 0


@dataclass(frozen=True, slots=True)
class _Found:
    """The ids of records that match, in the order that they were read in."""

    ids: Sequence[UUID]
    #: The last one that was looked through for a text; None when there are no more.
    end: Place | None = None


@dataclass(frozen=True, slots=True)
class LogMatches:
    """The records that a filter leaves, and how many of them have each flag; "all" counts all of them."""

    records: QuerySet[SearchRecord]
    counts: Mapping[str, LogCount]
    #: What the query of each has to hold beside.
    text: Q = field(default_factory=Q)
    #: The newest, where they had to be read for the counts.
    newest: _Found | None = None


def log_matches(records: QuerySet[SearchRecord], wanted: LogFilter, now: datetime) -> LogMatches:
    """Return the records that the filter leaves, with their counts.

    Looking for text reads record by record. It is done once and goes through the newest only; then each number is of
    the newest thousand that match among them.
    """
    found = records.filter(wanted.condition(now))
    names = (*FLAGS, "slow")
    if not wanted.text:
        flags = {name: found.filter(wanted.flag(name)) for name in names}
        return LogMatches(found, {name: _counted(matching) for name, matching in {"all": found, **flags}.items()})
    newest = _find(found, wanted.holds_text, MAX_COUNTED + 1)
    more = len(newest.ids) > MAX_COUNTED or newest.end is not None
    counted = records.filter(pk__in=newest.ids[:MAX_COUNTED])
    flagged = counted.aggregate(**{name: Count("pk", filter=wanted.flag(name)) for name in names})
    counts = {
        name: LogCount(number, more) for name, number in {"all": min(len(newest.ids), MAX_COUNTED), **flagged}.items()
    }
    return LogMatches(found, counts, wanted.holds_text, newest) if more else LogMatches(counted, counts, newest=newest)


def _find(records: QuerySet[SearchRecord], text: Q, limit: int, *, newest_first: bool = True) -> _Found:
    """Return the first records that hold the text; traces are large, and only those of a page are looked into."""
    records = records.order_by("-at", "-id") if newest_first else records.order_by("at", "id")
    if not text:
        return _Found(list(records.values_list("pk", flat=True)[:limit]))
    edge = [Place(at, key) for at, key in records.values_list("at", "pk")[MAX_READ - 1 : MAX_READ + 1]]
    last, beyond = edge if len(edge) > 1 else (None, None)
    if beyond:
        records = records.filter(beyond.newer if newest_first else beyond.older)
    return _Found(list(records.filter(text).values_list("pk", flat=True)[:limit]), last)


def _counted(records: QuerySet[SearchRecord]) -> LogCount:
    number = records.order_by()[: MAX_COUNTED + 1].count()
    return LogCount(min(number, MAX_COUNTED), number > MAX_COUNTED)


def log_flags(wanted: LogFilter, counts: Mapping[str, LogCount]) -> Iterator[LogFlag]:
    """Yield the flags as they are switched."""
    for name, label in FLAG_LABELS.items():
        is_on = name in wanted.flags
        others = tuple(flag for flag in wanted.flags if flag != name)
        yield LogFlag(name, label, FLAG_HELP[name], is_on, others if is_on else (*others, name), counts[name])


def log_page(matches: LogMatches, *, before: Place | None, after: Place | None, now: datetime) -> LogPage:
    """Return a page of records: those older than `before`, or those newer than `after`, or else the newest."""
    records, limit = matches.records, PAGE_SIZE + 1
    if before is None and after is not None:
        found = _find(records.filter(after.newer), matches.text, limit, newest_first=False)
        return _page(found.ids[:PAGE_SIZE][::-1], newer=_rest(found), older=bool(found.ids), now=now)
    if before is None and matches.newest is not None:
        found = matches.newest
    else:
        older = records.filter(before.older) if before else records
        found = _find(older, matches.text, limit)
    is_later = before is not None and bool(found.ids)
    return _page(found.ids[:PAGE_SIZE], newer=is_later, older=_rest(found), now=now)


def _rest(found: _Found) -> Place | bool:
    """Return whether there are records after those of a page; where that was not looked through, from which place."""
    return True if len(found.ids) > PAGE_SIZE else found.end or False


def with_facts(records: QuerySet[SearchRecord]) -> QuerySet[SearchRecord]:
    """Return records with what `log_row` needs beside their own fields: who, and what the trace says of the preset."""
    found = records.select_related("user", "actor", "key")
    return found.annotate(version=F("trace__version"), is_draft=F("trace__is_draft"), mode=F("trace__mode"))


def _page(ids: Sequence[UUID], *, newer: Place | bool, older: Place | bool, now: datetime) -> LogPage:
    found = {record.pk: record for record in with_facts(SearchRecord.objects.filter(pk__in=ids)).defer("trace")}
    # One may have been deleted in between.
    records = [found[it] for it in ids if it in found]
    return LogPage(
        rows=tuple(log_row(record, now) for record in records),
        older=_place(records[-1:], rest=older),
        newer=_place(records[:1], rest=newer),
        read=MAX_READ if isinstance(newer, Place) or isinstance(older, Place) else 0,
    )


def _place(edge: list[SearchRecord], *, rest: Place | bool) -> str:
    """Return the place to read on from: the given one, or the page's own edge; empty at an end."""
    if isinstance(rest, Place):
        return str(rest)
    return str(Place(edge[0].at, edge[0].pk)) if rest and edge else ""


def log_row(record: SearchRecord, now: datetime) -> LogRow:
    """Return a record's row; it has its trace's `version`, `is_draft` and `mode` beside its own fields."""
    return LogRow(
        id=record.pk,
        at=record.at,
        ago=wording.ago(record.at, now),
        user=record.user.username if record.user else "",
        actor=record.actor.username if record.actor else "",
        key=f"{record.key.prefix}…" if record.key else "",
        surface=surface_label(record.surface),
        query=record.query,
        preset=record.preset,
        version=version_label(getattr(record, "version", 0) or 0),
        hits=record.hit_count,
        milliseconds=f"{record.milliseconds:,.0f}",
        verdict=_verdict(record.verdict),
        confidence="" if record.confidence is None else f"{record.confidence:.2f}",
        badges=tuple(badges_of(record)),
    )


def surface_label(surface: str) -> str:
    """Return where a search was asked, as people read it."""
    return _SURFACES.get(surface, surface.capitalize())


def badges_of(record: SearchRecord) -> Iterable[LogBadge]:
    """Yield what is to be known of a search before it is opened."""
    if record.is_refused:
        yield LogBadge("refused", "bad", FLAG_HELP["refused"])
    if record.feedback is not None:
        yield LogBadge("thumbs up", "good") if record.feedback > 0 else LogBadge("thumbs down", "bad")
    if getattr(record, "is_draft", False):
        yield LogBadge("draft", "warn", "Ran with the preset's draft.")
    if (mode := getattr(record, "mode", "")) in wording.MODE_LABELS and mode != "hybrid":
        yield LogBadge(wording.MODE_LABELS[mode].lower(), "", "Only one leg searched.")
    for code in record.degraded:
        yield LogBadge(wording.note_label(code), "warn", FLAG_HELP["degraded"])


def _verdict(value: str) -> LogBadge | None:
    if value not in set(Verdict):
        return None
    verdict = Verdict(value)
    return LogBadge(VERDICTS[verdict], TONES[verdict])
