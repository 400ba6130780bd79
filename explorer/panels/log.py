"""The query log: a row a search, and how many there are of each kind."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Count, F, QuerySet

from explorer import wording
from explorer.log_filters import LogFilter, Place
from explorer.panels.answerability import TONES, VERDICTS
from explorer.panels.presets import version_label
from retrieval.models import SearchRecord
from retrieval.models.search import FLAGS
from retrieval.types import Verdict

#: Searches on one page, and as many as are counted: beyond that the number only says that there are more.
PAGE_SIZE: Final = 50
MOST_COUNTED: Final = 1000
FLAG_LABELS: Final[Mapping[str, str]] = {
    "refused": "Refused",
    "unsure": "Low confidence",
    "disliked": "Thumbs down",
    "degraded": "Fallback",
    "empty": "No hits",
    "slow": "Slow",
}
FLAG_HELP: Final[Mapping[str, str]] = {
    "refused": "An answer was asked for, and it was that the sources do not say.",
    "unsure": "The confidence was below what the preset calls answerable.",
    "disliked": "The asker gave it a thumbs down.",
    "degraded": "Something fell back or was cut short.",
    "empty": "Nothing was found.",
    "slow": "It took longer than the milliseconds set here.",
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


@dataclass(frozen=True, slots=True)
class LogMatches:
    """The records that a filter leaves, and how many of them have each flag; "all" counts all of them."""

    records: QuerySet[SearchRecord]
    counts: Mapping[str, LogCount]
    #: The ids of the newest, where they had to be read for the counts.
    newest: Sequence[UUID] | None = None


def log_matches(records: QuerySet[SearchRecord], wanted: LogFilter, now: datetime) -> LogMatches:
    """Return the records that the filter leaves, with their counts.

    Looking for text reads record by record and is done once; then each number is of the newest thousand that match.
    """
    found = records.filter(wanted.condition(now))
    names = (*FLAGS, "slow")
    if not wanted.text:
        flags = {name: found.filter(wanted.flag(name)) for name in names}
        return LogMatches(found, {name: _counted(matching) for name, matching in {"all": found, **flags}.items()})
    newest = list(found.order_by("-at", "-id").values_list("pk", flat=True)[: MOST_COUNTED + 1])
    more, newest = len(newest) > MOST_COUNTED, newest[:MOST_COUNTED]
    counted = records.filter(pk__in=newest)
    flagged = counted.aggregate(**{name: Count("pk", filter=wanted.flag(name)) for name in names})
    counts = {name: LogCount(number, more) for name, number in {"all": len(newest), **flagged}.items()}
    return LogMatches(found if more else counted, counts, newest)


def _counted(records: QuerySet[SearchRecord]) -> LogCount:
    number = records.order_by()[: MOST_COUNTED + 1].count()
    return LogCount(min(number, MOST_COUNTED), number > MOST_COUNTED)


def log_flags(wanted: LogFilter, counts: Mapping[str, LogCount]) -> Iterator[LogFlag]:
    """Yield the flags as they are switched."""
    for name, label in FLAG_LABELS.items():
        is_on = name in wanted.flags
        others = tuple(flag for flag in wanted.flags if flag != name)
        yield LogFlag(name, label, FLAG_HELP[name], is_on, others if is_on else (*others, name), counts[name])


def log_page(matches: LogMatches, *, before: Place | None, after: Place | None, now: datetime) -> LogPage:
    """Return a page of records: those older than `before`, or those newer than `after`, or else the newest."""
    records = matches.records
    if before is None and after is not None:
        ids = _ids(records.filter(after.newer).order_by("at", "id"))
        return _page(ids[:PAGE_SIZE][::-1], has_newer=len(ids) > PAGE_SIZE, has_older=bool(ids), now=now)
    if before is None and matches.newest is not None:
        ids = list(matches.newest[: PAGE_SIZE + 1])
    else:
        ids = _ids((records.filter(before.older) if before else records).order_by("-at", "-id"))
    is_later = before is not None and bool(ids)
    return _page(ids[:PAGE_SIZE], has_newer=is_later, has_older=len(ids) > PAGE_SIZE, now=now)


def _ids(records: QuerySet[SearchRecord]) -> list[UUID]:
    """Return the ids of a page and of one record more; traces are large, and only the page's own are looked into."""
    return list(records.values_list("pk", flat=True)[: PAGE_SIZE + 1])


def with_facts(records: QuerySet[SearchRecord]) -> QuerySet[SearchRecord]:
    """Return records with what `log_row` needs beside their own fields: who, and what the trace says of the preset."""
    found = records.select_related("user", "actor", "key")
    return found.annotate(version=F("trace__version"), is_draft=F("trace__is_draft"), mode=F("trace__mode"))


def _page(ids: list[UUID], *, has_newer: bool, has_older: bool, now: datetime) -> LogPage:
    found = {record.pk: record for record in with_facts(SearchRecord.objects.filter(pk__in=ids)).defer("trace")}
    # One may have been deleted in between.
    records = [found[it] for it in ids if it in found]
    return LogPage(
        rows=tuple(log_row(record, now) for record in records),
        older=str(Place(records[-1].at, records[-1].pk)) if has_older and records else "",
        newer=str(Place(records[0].at, records[0].pk)) if has_newer and records else "",
    )


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
