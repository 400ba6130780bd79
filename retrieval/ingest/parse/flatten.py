"""Nested values as flat lines, "address.city: Oslo", and what a record is called."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from retrieval.errors import IngestError

#: What JSON holds; numbers are kept as they are written.
Value: TypeAlias = "dict[str, Value] | list[Value] | str | bool | None"

_MAX_DEPTH: Final = 200
#: What names a record and what identifies it, the most telling key first.
_NAME_KEYS: Final = ("title", "name", "label", "subject", "headline", "display_name", "displayname", "full_name")
_ID_KEYS: Final = ("id", "_id", "key", "uuid", "slug", "code", "number", "sku", "path", "url")
_MAX_LABEL_CHARACTERS: Final = 120


def is_plain(value: Value) -> bool:
    """Return True for a text, number, boolean or null, and for a list of those."""
    items = value if isinstance(value, list) else (value,)
    return not any(isinstance(item, (dict, list)) for item in items)


def spelled(value: Value) -> str:
    """Return a plain value as text: commas between the items of a list, nothing for null."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(spelled, value)))
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def flat_lines(value: Value, path: str = "") -> Iterator[str]:
    """Yield "path: text" for each plain value below `path`, in order; null and empty ones are left out.

    Places in a list count from 1. Raises IngestError `too_large` below 200 levels.
    """
    waiting: list[tuple[str, Value, int]] = [(path, value, 0)]
    while waiting:
        step, current, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise IngestError("too_large", "The file is nested too deep.")
        if is_plain(current):
            yield from _line(step, spelled(current))
        else:
            waiting += [(further, member, depth + 1) for further, member in reversed(_steps(step, current))]


def name_of(value: Value) -> str:
    """Return the title or name that an object gives itself, empty when it gives none."""
    return next((text[:_MAX_LABEL_CHARACTERS] for _, text in _told(value, _NAME_KEYS)), "")


def label_of(value: Value) -> str:
    """Return a record's name, else what identifies it, empty when none of its keys tells."""
    return name_of(value) or next((text[:_MAX_LABEL_CHARACTERS] for _, text in _told(value, _ID_KEYS)), "")


def opening_of(value: Value) -> str:
    """Return the lines that identify a record: its id and its name, as far as it has them."""
    firsts = (next(_told(value, keys), None) for keys in (_ID_KEYS, _NAME_KEYS))
    return "\n".join(f"{key}: {text[:_MAX_LABEL_CHARACTERS]}" for key, text in filter(None, firsts))


def _line(path: str, text: str) -> Iterator[str]:
    if text:
        yield f"{path}: {text}" if path else text


def _steps(path: str, value: Value) -> list[tuple[str, Value]]:
    """Return the members of an object or a list, each with its path."""
    if isinstance(value, dict):
        return [(f"{path}.{key}" if path else str(key), member) for key, member in value.items()]
    items = value if isinstance(value, list) else []
    return [(f"{path}[{number}]", item) for number, item in enumerate(items, start=1)]


def _told(value: Value, keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield those of the keys that a record has a plain value for, as it writes them."""
    written = {key.lower(): key for key in value} if isinstance(value, dict) else {}
    for key in keys:
        if isinstance(value, dict) and key in written:
            member = value[written[key]]
            text = " ".join(spelled(member).split()) if is_plain(member) and not isinstance(member, list) else ""
            if text:
                yield written[key], text
