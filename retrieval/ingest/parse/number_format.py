"""Numbers and dates as spreadsheets show them, by number format codes (ECMA-376 part 1, section 18.8.30)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from enum import Enum
from functools import lru_cache
from typing import Final

_Token = tuple[str, str]

_LAST_DAY: Final = 2_958_465  #: 9999-12-31, the last day of spreadsheets.
_FALSE_LEAP_DAY: Final = 60  #: The 1900 calendar has a 29 February 1900, which did not exist, as day 60.
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November"),
    "December",
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
#: From this number of letters on, a month or a day has a name, shortened to as many; with one more it is complete.
_NAMED: Final = 3
_HALF_DAY: Final = 12
_SHORT_YEAR: Final = 2
_GENERAL: Final = "General"
_SHORT_DATE: Final = "yyyy-mm-dd"
#: The codes that files refer to by number. 14 and 27 to 58 depend on the country; here they are ISO dates.
_BUILT_IN: Final = {
    0: _GENERAL, 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00",
    14: _SHORT_DATE, 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm",
    21: "h:mm:ss", 22: "m/d/yy h:mm", 37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;(#,##0.00)", 41: '#,##0;(#,##0);"-"', 42: '"$"#,##0;("$"#,##0);"-"',
    43: '#,##0.00;(#,##0.00);"-"', 44: '"$"#,##0.00;("$"#,##0.00);"-"', 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss",
    48: "##0.0E+0", **dict.fromkeys((*range(27, 37), *range(50, 59)), _SHORT_DATE),
}  # fmt: skip
_MAX_CODE_LENGTH: Final = 255
_TOKEN: Final = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|_.|\*.'
    rf"|\[\$(?P<currency>[^\]-]{{0,{_MAX_CODE_LENGTH}}}+)[^\]]{{0,{_MAX_CODE_LENGTH}}}+\]|\[(?P<elapsed>[hms]+)\]"
    rf"|\[[^\]]{{0,{_MAX_CODE_LENGTH}}}+\]"
    r"|(?P<general>General)|(?P<half>AM/PM|A/P)|(?P<exponent>E[+-]0+)|(?P<date>y+|m+|d+|h+|s+|e+)(?:\.0+)?"
    r"|(?P<digit>[0#?])|(?P<sign>[.,%/;])|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_LITERALS: Final = ("quoted", "escaped", "currency", "other")
_MAX_DECIMALS: Final = 15
#: Values from here on have more digits than a spreadsheet stores, and are shown with an exponent.
_LARGE: Final = 1e15


class Clock(Enum):
    """The first day of a workbook's calendar."""

    SINCE_1900 = datetime(1899, 12, 30)  # noqa: DTZ001 - dates of a sheet have no zone
    SINCE_1904 = datetime(1904, 1, 1)  # noqa: DTZ001 - dates of a sheet have no zone


def _moment(value: float, clock: Clock) -> datetime | None:
    if not 0 <= value <= _LAST_DAY:
        return None
    is_early = clock is Clock.SINCE_1900 and value < _FALSE_LEAP_DAY
    return clock.value + timedelta(days=is_early, seconds=round(value * 86400))


def shown_date(value: float, tokens: Sequence[_Token], clock: Clock) -> str:
    """Return a date as its format shows it, a full numeric one in ISO format; empty for a number that is no date."""
    date = _moment(value, clock)
    if date is None:
        return ""
    letters = [text.lower() for kind, text in tokens if kind in ("date", "elapsed")]
    if any(kind == "elapsed" for kind, _ in tokens):
        seconds = round(value * 86400)
        if letters[0].startswith("h"):
            return f"{seconds // 3600}:{seconds // 60 % 60:02}" + (
                f":{seconds % 60:02}" if len(letters) > _NAMED - 1 else ""
            )
        if letters[0].startswith("m"):
            return f"{seconds // 60}:{seconds % 60:02}"
        return str(seconds)
    max_length = {letter: max((len(run) for run in letters if run[0] == letter), default=0) for letter in "ymdhs"}
    if max_length["y"] and max_length["d"] and 0 < max_length["m"] < _NAMED and max_length["d"] < _NAMED:
        time = (" %H:%M:%S" if max_length["s"] else " %H:%M") if max_length["h"] else ""
        return date.strftime(f"%Y-%m-%d{time}")
    return "".join(_parts(date, tokens)).strip(" ,-/")


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


_ZERO, _NEGATIVE = 2, 1


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """One parsed format code."""

    sections: tuple[tuple[_Token, ...], ...]
    is_date: bool
    is_plain: bool  #: Whether numbers are shown with all their digits.

    def shown(self, value: float, clock: Clock) -> str:
        """Return the value as shown to people; full dates in ISO format, because their order depends on the country."""
        if self.is_date:
            return shown_date(value, self.sections[0], clock) or plain(value)
        if self.is_plain:
            return plain(value)
        # One section for all numbers, or separate ones for positive, negative and zero.
        count = len(self.sections)
        place = _NEGATIVE if value < 0 and count > _NEGATIVE else _ZERO if value == 0 and count > _ZERO else 0
        section = self.sections[place]
        shown = _number(abs(value), section)
        return f"-{shown}" if value < 0 and count <= _NEGATIVE and shown.strip("0.,%") else shown


@lru_cache(maxsize=4096)
def number_format(code: str) -> NumberFormat:
    """Return the format of a code; a very long code shows plain values."""
    sections: list[list[_Token]] = [[]]
    for found in _TOKEN.finditer(code if len(code) <= _MAX_CODE_LENGTH else _GENERAL):
        kind = found.lastgroup
        if kind == "sign" and found[0] == ";":
            sections.append([])
        elif kind:
            sections[-1].append((kind, found[kind]))
    first = [kind for kind, _ in sections[0]]
    return NumberFormat(
        tuple(map(tuple, sections)),
        is_date="date" in first or "elapsed" in first,
        is_plain=len(sections) == 1 and first in (["general"], []),
    )


def built_in(number: int) -> str:
    """Return the code of a built-in format by its number."""
    return _BUILT_IN.get(number, _GENERAL)


def plain(value: float) -> str:
    """Return a number with all its digits, at most the 15 that a spreadsheet stores."""
    if value == int(value) and abs(value) < _LARGE:
        return str(int(value))
    return f"{value:.15g}"


def _number(value: float, section: Sequence[_Token]) -> str:
    places = [place for place, (kind, _) in enumerate(section) if kind in ("digit", "general")]
    if not places and ("other", "@") in section:
        return plain(value)
    if not places:
        return _literals(section).strip() if section else ""
    before, pattern, after = section[: places[0]], section[places[0] : places[-1] + 1], section[places[-1] + 1 :]
    signs = [text for kind, text in section if kind == "sign"]
    if signs.count("/") or any(kind == "general" for kind, _ in pattern) or value >= _LARGE:
        written = plain(value * 100 ** signs.count("%"))
    else:
        written = _by_pattern(value * 100 ** signs.count("%"), pattern, after)
    return f"{_literals(before)}{written}{_literals(after)}".strip()


def _by_pattern(value: float, pattern: Sequence[_Token], after: Sequence[_Token]) -> str:
    exponent = next((text for kind, text in after if kind == "exponent"), "")
    point = pattern.index(("sign", ".")) if ("sign", ".") in pattern else len(pattern)
    decimals = [text for kind, text in pattern[point:] if kind == "digit"][:_MAX_DECIMALS]
    if exponent:
        return f"{value:.{len(decimals)}E}"
    thousands = next((place for place, token in enumerate(after) if token != ("sign", ",")), len(after))
    # Spreadsheets round half away from zero.
    rounded = Decimal(repr(value / 1000**thousands)).quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
    whole, _, fraction = f"{rounded:f}".partition(".")
    fixed = max((place for place, sign in enumerate(decimals, start=1) if sign == "0"), default=0)
    fraction = fraction[:fixed] + fraction[fixed:].rstrip("0")
    return _whole(whole, pattern[:point]) + (f".{fraction}" if fraction else "")


def _whole(digits: str, pattern: Sequence[_Token]) -> str:
    zeros = sum(token == ("digit", "0") for token in pattern)
    digits = "" if digits == "0" and not zeros else digits.zfill(zeros)
    if ("sign", ",") in pattern:
        return f"{int(digits or 0):,}".zfill(zeros) if digits else ""
    if not any(kind in _LITERALS for kind, _ in pattern):
        return digits
    shown: list[str] = []
    left = len(digits)
    # Characters between the digits stay, as in 555-0100.
    first = next(place for place, (kind, _) in enumerate(pattern) if kind == "digit")
    for place in range(len(pattern) - 1, -1, -1):
        kind, text = pattern[place]
        if kind == "digit":
            begin = 0 if place == first else max(0, left - 1)
            shown.append(digits[begin:left])
            left = begin
        elif kind in _LITERALS:
            shown.append(text)
    return "".join(reversed(shown))


def _literals(tokens: Sequence[_Token]) -> str:
    return "".join(text for kind, text in tokens if kind in _LITERALS or text == "%")
