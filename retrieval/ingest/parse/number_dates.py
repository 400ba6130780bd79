"""Dates and times of spreadsheets: numbers of days, shown by the date part of a format code."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

_Token = tuple[str, str]

#: 9999-12-31, the last day that a spreadsheet knows.
_LAST_DAY: Final = 2_958_465
#: The 1900 calendar holds a 29 February 1900 that never was, as day 60.
_NEVER_WAS: Final = 60
_MONTHS: Final = (
    ("Jan", "January"),
    ("Feb", "February"),
    ("Mar", "March"),
    ("Apr", "April"),
    ("May", "May"),
    ("Jun", "June"),
    ("Jul", "July"),
    ("Aug", "August"),
    ("Sep", "September"),
    ("Oct", "October"),
    ("Nov", "November"),
    ("Dec", "December"),
)
_DAYS: Final = (
    ("Mon", "Monday"),
    ("Tue", "Tuesday"),
    ("Wed", "Wednesday"),
    ("Thu", "Thursday"),
    ("Fri", "Friday"),
    ("Sat", "Saturday"),
    ("Sun", "Sunday"),
)
#: This many letters or more name a month or a day; one more is its full name.
_NAMED: Final = 3
_HALF_DAY: Final = 12
_SHORT_YEAR: Final = 2


class Clock(Enum):
    """The day that a workbook counts from."""

    SINCE_1900 = datetime(1899, 12, 30)  # noqa: DTZ001 - dates of a sheet have no zone
    SINCE_1904 = datetime(1904, 1, 1)  # noqa: DTZ001 - dates of a sheet have no zone


def moment(value: float, clock: Clock) -> datetime | None:
    """Return the date and time of a number of days, to the second; None when no calendar holds it."""
    if not 0 <= value <= _LAST_DAY:
        return None
    is_early = clock is Clock.SINCE_1900 and value < _NEVER_WAS
    return clock.value + timedelta(days=is_early, seconds=round(value * 86400))


def shown_date(value: float, tokens: Sequence[_Token], clock: Clock) -> str:
    """Return a date by the tokens of a format: ISO for a full numeric date, else as the format says.

    Empty for a number that is no date.
    """
    date = moment(value, clock)
    if date is None:
        return ""
    letters = [text.lower() for kind, text in tokens if kind in ("date", "elapsed")]
    if any(kind == "elapsed" for kind, _ in tokens):
        return _elapsed(value, letters)
    max_length = {letter: max((len(run) for run in letters if run[0] == letter), default=0) for letter in "ymdhs"}
    if max_length["y"] and max_length["d"] and 0 < max_length["m"] < _NAMED and max_length["d"] < _NAMED:
        return _iso(date, max_length)
    return "".join(_parts(date, tokens)).strip(" ,-/")


def _iso(date: datetime, max_length: dict[str, int]) -> str:
    if not max_length["h"]:
        return date.strftime("%Y-%m-%d")
    return date.strftime("%Y-%m-%d %H:%M:%S" if max_length["s"] else "%Y-%m-%d %H:%M")


def _elapsed(value: float, letters: Sequence[str]) -> str:
    seconds = round(value * 86400)
    if letters[0].startswith("h"):
        return f"{seconds // 3600}:{seconds // 60 % 60:02}" + (
            f":{seconds % 60:02}" if len(letters) > _NAMED - 1 else ""
        )
    if letters[0].startswith("m"):
        return f"{seconds // 60}:{seconds % 60:02}"
    return str(seconds)


def _parts(date: datetime, tokens: Sequence[_Token]) -> list[str]:
    """Return the texts of the tokens; `m` is a minute after an hour and before a second."""
    shown: list[str] = []
    runs = [text.lower() if kind == "date" else "" for kind, text in tokens]
    halves = any(kind == "half" for kind, _ in tokens)
    for place, (kind, text) in enumerate(tokens):
        if kind == "half":
            shown.append("AM" if date.hour < _HALF_DAY else "PM")
        elif kind != "date":
            shown.append(text)
        elif text[0] in "mM" and _is_minute(runs, place):
            shown.append(f"{date.minute:0{len(text)}}")
        else:
            shown.append(_part(date, text.lower(), halves=halves))
    return shown


def _is_minute(runs: Sequence[str], place: int) -> bool:
    before = next((run for run in reversed(runs[:place]) if run), "")
    after = next((run for run in runs[place + 1 :] if run), "")
    return before.startswith("h") or after.startswith("s")


def _part(date: datetime, run: str, *, halves: bool) -> str:
    letter, length = run[0], len(run)
    if letter in "ye":
        return f"{date.year % 100:02}" if letter == "y" and length <= _SHORT_YEAR else str(date.year)
    if letter == "m" and length >= _NAMED:
        return _MONTHS[date.month - 1][length > _NAMED]
    if letter == "d" and length >= _NAMED:
        return _DAYS[date.weekday()][length > _NAMED]
    hour = (date.hour % _HALF_DAY or _HALF_DAY) if halves else date.hour
    value = {"m": date.month, "d": date.day, "h": hour, "s": date.second}[letter]
    return f"{value:0{min(length, 2)}}"
