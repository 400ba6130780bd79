"""The query log: a row per search, and counts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet

from explorer import wording
from explorer.components.answerability import TONES, VERDICTS
from explorer.components.badges import Badge
from explorer.components.preset_numbers import version_label
from explorer.pages.log.filters import LogFilter, Place
from explorer.wording import WORDS
from retrieval.engine.types import Verdict
from retrieval.models import SearchRecord
from retrieval.models.search import FLAGS

PAGE_SIZE: Final = 50  #: Searches per page, and the maximum count; a higher count is shown as "more".
MAX_COUNTED: Final = 1000
MAX_READ: Final = 20_000  #: The maximum number of searches that are read to find a text for one page.
FLAG_LABELS: Final = WORDS["log_flags"]
FLAG_HELP: Final = WORDS["log_flags_help"]
_REPEATED_WITHIN: Final = timedelta(minutes=1)
_SURFACES: Final[Mapping[str, str]] = {"api": "API"}


@dataclass(frozen=True, slots=True)
class _LogCount:
    number: int
    more: bool = False

    def __str__(self) -> str:
        return f"{self.number:,}+" if self.more else f"{self.number:,}"


@dataclass(frozen=True, slots=True)
class _Found:
    """The ids of matching records, in reading order."""

    ids: Sequence[UUID]
    end: Place | None = None  #: The last one that was read for a text; None if there are no more.


@dataclass(frozen=True, slots=True)
class _LogMatches:
    """The records that match a filter, and their counts by flag; "all" counts all of them."""

    records: QuerySet[SearchRecord]
    counts: Mapping[str, _LogCount]
    text: Q = field(default_factory=Q)  #: An additional condition of the query text.
    newest: _Found | None = None  #: The newest ones, if they were read for the counts.


def log_matches(records: QuerySet[SearchRecord], wanted: LogFilter, now: datetime) -> _LogMatches:
    """Return the records that match the filter, with their counts.

    A text search reads every record. It runs once over the newest records; the counts then cover the newest thousand
    matches among them.
    """
    found = records.filter(wanted.condition(now))
    names = (*FLAGS, "slow")
    if not wanted.text:
        flags = {name: found.filter(wanted.flag(name)) for name in names}
        return _LogMatches(found, {name: _counted(matching) for name, matching in {"all": found, **flags}.items()})
    newest = _find(found, wanted.text_condition, MAX_COUNTED + 1)
    more = len(newest.ids) > MAX_COUNTED or newest.end is not None
    counted = records.filter(pk__in=newest.ids[:MAX_COUNTED])
    flagged = counted.aggregate(**{name: Count("pk", filter=wanted.flag(name)) for name in names})
    counts = {
        name: _LogCount(number, more) for name, number in {"all": min(len(newest.ids), MAX_COUNTED), **flagged}.items()
    }
    return (
        _LogMatches(found, counts, wanted.text_condition, newest)
        if more
        else _LogMatches(counted, counts, newest=newest)
    )


def _find(records: QuerySet[SearchRecord], text: Q, limit: int, *, newest_first: bool = True) -> _Found:
    """Return the first records with the text; only those of a page are read, since traces are large."""
    records = records.order_by("-at", "-id") if newest_first else records.order_by("at", "id")
    if not text:
        return _Found(list(records.values_list("pk", flat=True)[:limit]))
    edge = [Place(at, key) for at, key in records.values_list("at", "pk")[MAX_READ - 1 : MAX_READ + 1]]
    last, beyond = edge if len(edge) > 1 else (None, None)
    if beyond:
        records = records.filter(beyond.newer if newest_first else beyond.older)
    return _Found(list(records.filter(text).values_list("pk", flat=True)[:limit]), last)


def _counted(records: QuerySet[SearchRecord]) -> _LogCount:
    number = records.order_by()[: MAX_COUNTED + 1].count()
    return _LogCount(min(number, MAX_COUNTED), number > MAX_COUNTED)


def log_flags(wanted: LogFilter, counts: Mapping[str, _LogCount]) -> Iterator[dict[str, Any]]:
    """Yield the flags."""
    for name, label in FLAG_LABELS.items():
        is_on = name in wanted.flags
        others = tuple(flag for flag in wanted.flags if flag != name)
        yield {
            "name": name,
            "label": label,
            "help": FLAG_HELP[name],
            "is_on": is_on,
            "switched": others if is_on else (*others, name),
            "count": counts[name],
        }


def log_page(matches: _LogMatches, *, before: Place | None, after: Place | None, now: datetime) -> dict[str, Any]:
    """Return a page of records: older than `before`, or newer than `after`, or else the newest."""
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
    """Return whether there are more records; if they were not read yet, from which position."""
    return True if len(found.ids) > PAGE_SIZE else found.end or False


def with_facts(records: QuerySet[SearchRecord]) -> QuerySet[SearchRecord]:
    """Return records with what `log_row` needs besides their fields: the users, and the preset's version and mode."""
    found = records.select_related("user", "actor", "key")
    return found.annotate(version=F("trace__version"), is_draft=F("trace__is_draft"), mode=F("trace__mode"))


def _page(ids: Sequence[UUID], *, newer: Place | bool, older: Place | bool, now: datetime) -> dict[str, Any]:
    found = {record.pk: record for record in with_facts(SearchRecord.objects.filter(pk__in=ids)).defer("trace")}
    # One may have been deleted since.
    records = [found[it] for it in ids if it in found]
    return {
        "rows": tuple(_folded(log_row(record, now) for record in records)),
        "older": _place(records[-1:], rest=older),
        "newer": _place(records[:1], rest=newer),
        "read": MAX_READ if isinstance(newer, Place) or isinstance(older, Place) else 0,
    }


def _folded(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows, newest first, with the same searches made shortly before as the `repeats` of the newest."""
    folded: list[dict[str, Any]] = []
    newer: SearchRecord | None = None
    for row in rows:
        if newer and _is_repeated(newer, row["record"]):
            folded[-1]["repeats"].append(row)
        else:
            folded.append(row | {"repeats": []})
        newer = row["record"]
    return folded


def _is_repeated(record: SearchRecord, earlier: SearchRecord) -> bool:
    """Return whether the Explorer searched for the same a moment before, such as before its page was loaded again."""
    is_soon = record.at - earlier.at <= _REPEATED_WITHIN
    return is_soon and bool(record.query) and record.feedback is None and _asked(record) == _asked(earlier)


def _asked(record: SearchRecord) -> tuple[object, ...]:
    """Return what two searches of the Explorer have in common if one repeats the other; the id for another channel."""
    if record.surface != SearchRecord.Surface.EXPLORER:
        return (record.pk,)
    who = (record.user_id, record.actor_id, record.key_id, record.connection_ids)
    how = (record.preset, record.preset_version, getattr(record, "mode", ""), getattr(record, "is_draft", False))
    return (*who, record.query, *how, record.verdict, record.hit_count, record.degraded)


def _place(edge: list[SearchRecord], *, rest: Place | bool) -> str:
    """Return the position of the next page: the given one, or the edge of this page; empty at an end."""
    if isinstance(rest, Place):
        return str(rest)
    return str(Place(edge[0].at, edge[0].pk)) if rest and edge else ""


def log_row(record: SearchRecord, now: datetime) -> dict[str, Any]:
    """Return the row of a record, annotated by `with_facts`."""
    verdict = Verdict(record.verdict) if record.verdict in set(Verdict) else None
    return {
        "record": record,
        "ago": wording.ago(record.at, now),
        "surface": surface_label(record.surface),
        "version": version_label(getattr(record, "version", 0) or 0),
        "milliseconds": f"{record.milliseconds:,.0f}",
        "verdict": Badge(VERDICTS[verdict], tone=TONES[verdict]) if verdict else None,
        "confidence": "" if record.confidence is None else f"{record.confidence:.2f}",
        "badges": tuple(badges_of(record)),
    }


def surface_label(surface: str) -> str:
    """Return the label of a channel."""
    return _SURFACES.get(surface, surface.capitalize())


def badges_of(record: SearchRecord) -> Iterable[Badge]:
    """Yield the badges of a search."""
    if record.is_refused:
        yield Badge("refused", FLAG_HELP["refused"], "bad")
    if record.feedback is not None:
        yield Badge("thumbs up", tone="good") if record.feedback > 0 else Badge("thumbs down", tone="bad")
    if getattr(record, "is_draft", False):
        yield Badge("draft", "Ran with the preset's draft.", "warn")
    if (mode := getattr(record, "mode", "")) in wording.MODE_LABELS and mode != "hybrid":
        yield Badge(wording.MODE_LABELS[mode].lower(), "Only one leg searched.")
    if record.experiment_id is not None:
        yield Badge("experiment", "Two presets answered: the hits say from which side they are.")
    for code in record.degraded:
        yield Badge(wording.note_label(code), FLAG_HELP["degraded"], "warn")
