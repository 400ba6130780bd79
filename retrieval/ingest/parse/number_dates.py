"""Dates and times of spreadsheets: numbers of days, formatted by the date part of a format code."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

_Token = tuple[str, str]

#: 9999-12-31, the last day of spreadsheets.
_LAST_DAY: Final = 2_958_465
#: The 1900 calendar has a 29 February 1900, which did not exist, as day 60.
_FALSE_LEAP_DAY: Final = 60
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November"),
    "December",
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
#: From this number of letters on, a month or a day has a name, shortened to as many; with one more it is complete.
_NAMED: Final = 3
_HALF_DAY: Final = 12
_SHORT_YEAR: Final = 2


class Clock(Enum):
    """The first day of a workbook's calendar."""

    SINCE_1900 = datetime(1899, 12, 30)  # noqa: DTZ001 - dates of a sheet have no zone
    SINCE_1904 = datetime(1904, 1, 1)  # noqa: DTZ001 - dates of a sheet have no zone


def moment(value: float, clock: Clock) -> datetime | None:
    """Return the date and time of a number of days, to the second; None outside the calendar."""
    if not 0 <= value <= _LAST_DAY:
        return None
    is_early = clock is Clock.SINCE_1900 and value < _FALSE_LEAP_DAY
    return clock.value + timedelta(days=is_early, seconds=round(value * 86400))


def shown_date(value: float, tokens: Sequence[_Token], clock: Clock) -> str:
    """Return a date by the tokens of a format: in ISO format for a full numeric date, or else by the format.

    Empty for a number that is not a date.
    """
    date = moment(value, clock)
    if date is None:
        return ""
    letters = [text.lower() for kind, text in tokens if kind in ("date", "elapsed")]
    if any(kind == "elapsed" for kind, _ in tokens):
        return _elapsed(value, letters)
    max_length = {letter: max((len(run) for run in letters if run[0] == letter), default=0) for letter in "ymdhs"}
    if max_length["y"] and max_length["d"] and 0 < max_length["m"] < _NAMED and max_length["d"] < _NAMED:
        time = (" %H:%M:%S" if max_length["s"] else " %H:%M") if max_length["h"] else ""
        return date.strftime(f"%Y-%m-%d{time}")
    return "".join(_parts(date, tokens)).strip(" ,-/")


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
    """Return the texts of the tokens; `m` is a minute after an hour or before a second."""
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
        return _MONTHS[date.month - 1][: None if length > _NAMED else _NAMED]
    if letter == "d" and length >= _NAMED:
        return _DAYS[date.weekday()][: None if length > _NAMED else _NAMED]
    hour = (date.hour % _HALF_DAY or _HALF_DAY) if halves else date.hour
    value = {"m": date.month, "d": date.day, "h": hour, "s": date.second}[letter]
    return f"{value:0{min(length, 2)}}"
