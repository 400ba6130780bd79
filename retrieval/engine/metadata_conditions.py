"""Conditions on a document's metadata, with Dify's operators. Values are strings; numbers and dates are parsed."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

Value = str | float | Sequence[str] | None
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison that one of the named fields must pass."""

    names: tuple[str, ...]
    operator: str
    value: Value = None


@dataclass(frozen=True, slots=True)
class Conditions:
    """Comparisons of which a document must pass all, or any."""

    each: tuple[Condition, ...]
    all_of: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The named fields, each once."""
        return tuple(dict.fromkeys(name for condition in self.each for name in condition.names))

    def met_by(self, facts: Mapping[str, str]) -> bool:
        """Return whether a document's metadata passes."""
        return fulfils(facts, self.each, all_of=self.all_of)


def fulfils(facts: Mapping[str, str], conditions: Sequence[Condition], *, all_of: bool) -> bool:
    """Return whether metadata passes all conditions, or any; always without conditions."""
    passed = [any(OPERATORS[it.operator](facts.get(name, ""), it.value) for name in it.names) for it in conditions]
    return not passed or (all(passed) if all_of else any(passed))


def _text(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(value) if isinstance(value, Sequence) and not isinstance(value, str) else value or ""


def _texts(value: Value) -> list[str]:
    """Return the texts of a list, or of a text with commas between them."""
    given = value.split(",") if isinstance(value, str) else [_text(value)] if isinstance(value, float) else value or ()
    return [it.strip().casefold() for it in given]


def _number(value: Value) -> float | None:
    try:
        return float(_text(value))
    except ValueError:
        return None


def _moment(value: Value) -> datetime | None:
    """Return an ISO 8601 date, or seconds since 1970, in UTC."""
    number = _number(value)
    try:
        moment = datetime.fromtimestamp(number, UTC) if number is not None else datetime.fromisoformat(_text(value))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _textual(compare: Callable[[str, str], bool]) -> Callable[[str, Value], bool]:
    return lambda fact, value: compare(fact.casefold(), _text(value).casefold())


def _parsed(parse: Callable[[Value], _T | None], compare: Callable[[_T, _T], bool]) -> Callable[[str, Value], bool]:
    """Return a comparison of numbers or dates; other values fail."""

    def passes(fact: str, value: Value) -> bool:
        left, right = parse(fact), parse(value)
        return left is not None and right is not None and compare(left, right)

    return passes


OPERATORS: Final[Mapping[str, Callable[[str, Value], bool]]] = {
    "contains": _textual(lambda fact, value: value in fact),
    "not contains": _textual(lambda fact, value: value not in fact),
    "start with": _textual(str.startswith),
    "end with": _textual(str.endswith),
    "is": _textual(str.__eq__),
    "is not": _textual(str.__ne__),
    "in": lambda fact, value: fact.casefold() in _texts(value),
    "not in": lambda fact, value: fact.casefold() not in _texts(value),
    "empty": lambda fact, _: not fact,
    "not empty": lambda fact, _: bool(fact),
    "=": _parsed(_number, operator.eq),
    "≠": _parsed(_number, operator.ne),
    ">": _parsed(_number, operator.gt),
    "<": _parsed(_number, operator.lt),
    "≥": _parsed(_number, operator.ge),
    "≤": _parsed(_number, operator.le),
    "before": _parsed(_moment, operator.lt),
    "after": _parsed(_moment, operator.gt),
}
