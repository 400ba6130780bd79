"""The routing of a question, with the time and the project in its words. Pure.

Times are relative to a moment. A day begins at midnight of its zone, a week on Monday. A month or weekday without a
year is the latest that has begun. Invalid dates are ignored.
"""

import calendar
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from retrieval.engine.types import MemoryType

_MONTHS: Final = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_SHORT_MONTHS: Final = {"sept": 9} | {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_DAYS: Final = {name.lower(): number for number, name in enumerate(calendar.day_name)}
_COUNTS: Final = {
    word: number
    for number, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), start=1
    )
} | {"a": 1, "an": 1, "few": 3, "couple of": 2}
_LIMIT: Final = 1000
_MONTHS_OF_YEAR: Final = 12
_QUARTER: Final = 3
_UNIT: Final = "(?P<unit>hour|day|week|fortnight|month|quarter|year)s?"
_COUNT: Final = rf"(?P<count>\d{{1,3}}|{'|'.join(_COUNTS)})"
_MONTH: Final = rf"(?P<month>{'|'.join(_MONTHS)}|(?:{'|'.join(_SHORT_MONTHS)})\b\.?)"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)(?![\d-])"
_DATE: Final = rf"""(?:
    (?P<iso>\d{{4}}-\d\d-\d\d)
    | (?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?{_MONTH}(?:\s+(?P<day_after>\d{{1,2}})(?:st|nd|rd|th)?(?!\d))?
      (?:,?\s+{_YEAR})?
    | (?:last\s+)?(?P<weekday>{"|".join(_DAYS)})
    | {_YEAR.replace("year", "only_year")}
    | (?P<relative>yesterday|today|(?:last|this)\s+(?:week|month|quarter|year))
)"""
_MIN_LETTERS: Final = 2
#: Marks a word as a name in any case: a digit, a hyphen, an underscore, a capital inside.
_MARKED: Final = re.compile(r"\d|[-_./]|(?<=\w)[A-Z]")


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A time range in a question; None is open."""

    since: datetime | None = None
    until: datetime | None = None
    words: str = ""  #: The words in the question: "last week".


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """The router's decision for a question."""

    skip: bool = False  #: The question needs no search.
    memory_type: MemoryType | None = None  #: The requested type; None if no route is clearly the nearest.
    project: str = ""
    window: TimeWindow | None = None
    #: The nearest routes' cosine with the question, best first, by name.
    likeness: Mapping[str, float] = field(default_factory=dict)


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){pattern}(?![\w])", re.IGNORECASE | re.VERBOSE)


@dataclass(frozen=True, slots=True)
class TimeExpression:
    """A time expression in a question."""

    window: TimeWindow
    #: Whether it certainly lies in the past: "yesterday", "last week", "since March". "In 2024" or "this week" may be
    #: part of the topic.
    is_past: bool


def time_in(text: str, now: datetime) -> TimeExpression | None:
    """Return the first time expression in a question, the most specific pattern first; None without one.

    A window is half-open: it excludes its end. One that begins after `now` is ignored.
    """
    for pattern, read in _READERS:
        for found in pattern.finditer(text):
            said = read(found, now)
            if said is not None and (said.window.since is None or said.window.since <= now):
                return said
    return None


def _said(found: re.Match[str], since: datetime | None, until: datetime | None, *, is_past: bool) -> TimeExpression:
    return TimeExpression(TimeWindow(since, until, " ".join(found[0].split())), is_past)


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _begin(unit: str, now: datetime) -> datetime:
    day = _midnight(now)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "month":
        return day.replace(day=1)
    if unit == "quarter":
        return day.replace(month=day.month - (day.month - 1) % _QUARTER, day=1)
    return day.replace(month=1, day=1) if unit == "year" else day


def _shifted(moment: datetime, unit: str, count: int) -> datetime:
    """Return a moment shifted by a number of units; the day is limited to the last of its month."""
    days = {"hour": 0, "day": 1, "week": 7, "fortnight": 14}
    if unit == "hour":
        return moment + timedelta(hours=count)
    if unit in days:
        return moment + timedelta(days=days[unit] * count)
    months = moment.year * _MONTHS_OF_YEAR + moment.month - 1
    months += count * {"month": 1, "quarter": _QUARTER, "year": _MONTHS_OF_YEAR}[unit]
    year, month = divmod(months, _MONTHS_OF_YEAR)
    last = calendar.monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def _count(found: re.Match[str]) -> int:
    word = found["count"].lower()
    return _COUNTS[word] if word in _COUNTS else int(word)


def _ago(found: re.Match[str], now: datetime) -> TimeExpression:
    """Read "3 days ago" as that day, week, month or year."""
    unit, then = found["unit"].lower(), _shifted(now, found["unit"].lower(), -_count(found))
    if unit == "hour":
        return _said(found, then, now, is_past=True)
    whole = {"fortnight": "week"}.get(unit, unit)
    since = _begin(whole, then)
    return _said(found, since, _shifted(since, whole, 1), is_past=True)


def _calendar(found: re.Match[str], now: datetime) -> TimeExpression:
    """Read "last week", "previous month", "this year"."""
    unit, is_this = found["unit"].lower(), found["which"].lower() == "this"
    begin = _begin(unit, now)
    if is_this:
        return _said(found, begin, None, is_past=False)
    return _said(found, _shifted(begin, unit, -1), begin, is_past=True)


def _day_word(found: re.Match[str], now: datetime) -> TimeExpression:
    back = {"today": 0, "yesterday": 1}.get(found[0].lower(), 2)
    since = _midnight(now) - timedelta(days=back)
    return _said(found, since, since + timedelta(days=1) if back else None, is_past=bool(back))


def _bounded(found: re.Match[str], now: datetime) -> TimeExpression | None:
    """Read "since March", "before 5 May 2024", "in 2024", "on Monday", "between" aside."""
    try:
        since, until = next(_dates(found, now))
    except (ValueError, OverflowError):
        # No date on any calendar.
        return None
    word = found["bound"].lower()
    is_open = found["only_year"] is None and found["year"] is None and found["iso"] is None
    if word == "since":
        return _said(found, since, None, is_past=is_open)
    if word == "after":
        return _said(found, until, None, is_past=is_open)
    if word in {"before", "until", "till", "up to"}:
        return _said(found, None, since if word == "before" else until, is_past=False)
    return _said(found, since, until, is_past=bool(found["weekday"]) and is_open)


def _dates(found: re.Match[str], now: datetime) -> Iterator[tuple[datetime, datetime]]:
    midnight = _midnight(now)
    if iso := found["iso"]:
        day = datetime.fromisoformat(iso).replace(tzinfo=now.tzinfo)
        yield day, day + timedelta(days=1)
    elif year := found["only_year"]:
        begin = midnight.replace(year=int(year), month=1, day=1)
        yield begin, _shifted(begin, "year", 1)
    elif weekday := found["weekday"]:
        back = (now.weekday() - _DAYS[weekday.lower()]) % 7 or (7 if "last" in found[0].lower() else 0)
        yield midnight - timedelta(days=back), midnight - timedelta(days=back - 1)
    elif relative := found["relative"]:
        which, *units = relative.lower().split()
        unit = units[0] if units else "day"
        begin = _begin(unit, now)
        begin = _shifted(begin, unit, -1) if which in {"last", "yesterday"} else begin
        yield begin, _shifted(begin, unit, 1)
    else:
        yield _month(found, now)


def _month(found: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    """Return a month, or a day of one; without a year the latest that has begun."""
    name = found["month"].lower().rstrip(".")
    month = _MONTHS.get(name) or _SHORT_MONTHS[name]
    day = int(found["day"] or found["day_after"] or 0)
    begin = _midnight(now).replace(year=int(found["year"] or now.year), month=month, day=day or 1)
    if not found["year"] and begin > now:
        begin = begin.replace(year=begin.year - 1)
    return begin, begin + timedelta(days=1) if day else _shifted(begin, "month", 1)


_Read = Callable[[re.Match[str], datetime], TimeExpression | None]

_READERS: Final[tuple[tuple[re.Pattern[str], _Read], ...]] = (
    (_compiled(rf"{_COUNT}\s+{_UNIT}\s+ago"), _ago),
    (
        # "The past two weeks", "the last 24 hours": the time until now.
        _compiled(rf"(?:(?:in|over|during|within|for)\s+)?(?:the\s+)?(?:last|past|previous)\s+{_COUNT}\s+{_UNIT}"),
        lambda found, now: _said(found, _shifted(now, found["unit"].lower(), -_count(found)), None, is_past=True),
    ),
    (_compiled(r"(?:the\s+)?day\s+before\s+yesterday"), _day_word),
    (_compiled(rf"(?P<bound>since|after|before|until|till|up\s+to)\s+(?:the\s+)?{_DATE}"), _bounded),
    (_compiled(r"yesterday"), _day_word),
    (_compiled(r"(?P<which>last|previous|this|past)\s+(?P<unit>week|month|quarter|year)"), _calendar),
    (_compiled(rf"(?P<bound>in|on|during|from)\s+{_DATE}"), _bounded),
    (_compiled(r"today"), _day_word),
)


def project_in(text: str, known: Iterable[str]) -> str:
    """Return the longest known project that a question names; empty for none.

    A name of several words, or with a digit, a hyphen or a capital inside, matches in any case. Any other name may be a
    common word: it matches next to the word "project", or if name and question capitalise it behind another word.
    """
    found = [name for name in known if len(name.strip()) >= _MIN_LETTERS and _names(text, name.strip())]
    return max(found, key=lambda name: (len(name), name), default="")


def _names(text: str, name: str) -> bool:
    word = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
    if re.search(rf"\bproject\s+{word}|{word}\s+project\b", text, re.IGNORECASE):
        return True
    if len(name.split()) > 1 or _MARKED.search(name):
        return bool(re.search(word, text, re.IGNORECASE))
    return name[0].isupper() and bool(re.search(rf"(?<=\w\s){word}", text))
