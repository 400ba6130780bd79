"""JSON and NDJSON: each top-level record as lines of "key: value", numbers as they are written."""

import json
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from retrieval.errors import IngestError
from retrieval.ingest.parse.decoding import charset_of, decode
from retrieval.ingest.parse.finish import finished, one_line
from retrieval.text.document import Block, BlockKind, ParsedDocument, RawDocument

#: A JSON value; numbers are stored as written.
Value: TypeAlias = "dict[str, Value] | list[Value] | str | bool | None"

_MAX_DEPTH: Final = 200
#: Keys of a record's name and of its identifier, most specific first.
_NAME_KEYS: Final = ("title", "name", "label", "subject", "headline", "display_name", "displayname", "full_name")
_ID_KEYS: Final = ("id", "_id", "key", "uuid", "slug", "code", "number", "sku", "path", "url")
_MAX_LABEL_CHARACTERS: Final = 120
_MAX_RECORDS: Final = 100_000  #: Each record is a chunk; embedding more would take hours.
_MAX_KEY_CHARACTERS: Final = 100
_WRAPPING_KEYS: Final = frozenset({"data", "items", "results", "records", "rows", "entries", "values", "list"})


def _is_plain(value: Value) -> bool:
    items = value if isinstance(value, list) else (value,)
    return not any(isinstance(item, (dict, list)) for item in items)


def _as_text(value: Value) -> str:
    if isinstance(value, list):
        return ", ".join(filter(None, map(_as_text, value)))
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def flat_lines(value: Value, path: str = "") -> Iterator[str]:
    """Yield "path: text" for each plain value with a text; indices start at 1. Raises IngestError `too_large`."""
    waiting: list[tuple[str, Value, int]] = [(path, value, 0)]
    while waiting:
        step, current, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise IngestError("too_large", "The file is nested too deeply.")
        if _is_plain(current):
            if text := _as_text(current):
                yield f"{step}: {text}" if step else text
        else:
            waiting += [(further, member, depth + 1) for further, member in reversed(_steps(step, current))]


def name_of(value: Value) -> str:
    """Return the title or name of an object; empty if it has none."""
    return next((text[:_MAX_LABEL_CHARACTERS] for _, text in _present(value, _NAME_KEYS)), "")


def _opening_of(value: Value) -> str:
    firsts = (next(_present(value, keys), None) for keys in (_ID_KEYS, _NAME_KEYS))
    return "\n".join(f"{key}: {text[:_MAX_LABEL_CHARACTERS]}" for key, text in filter(None, firsts))


def _steps(path: str, value: Value) -> list[tuple[str, Value]]:
    if isinstance(value, dict):
        return [(f"{path}.{key}" if path else str(key), member) for key, member in value.items()]
    items = value if isinstance(value, list) else []
    return [(f"{path}[{number}]", item) for number, item in enumerate(items, start=1)]


def _present(value: Value, keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    written = {key.lower(): key for key in value} if isinstance(value, dict) else {}
    for key in keys:
        if isinstance(value, dict) and key in written:
            member = value[written[key]]
            text = " ".join(_as_text(member).split()) if _is_plain(member) and not isinstance(member, list) else ""
            if text:
                yield written[key], text


def parse_json(raw: RawDocument) -> ParsedDocument:
    """Return the records of a JSON file: the items of its arrays of objects, and its other keys one by one.

    A file of one JSON value per line is read as NDJSON. Raises IngestError: `corrupt` for other content, `too_large`
    beyond 100,000 records or 200 levels.
    """
    try:
        value = _loaded(decode(raw.content, charset_of(raw.media_type)))
    except ValueError:
        return parse_ndjson(raw)
    return _document(raw, _records(value), name_of(value))


def parse_ndjson(raw: RawDocument) -> ParsedDocument:
    """Return the records of a file with one JSON value on each line; raises IngestError as `parse_json` does."""
    lines = enumerate(decode(raw.content, charset_of(raw.media_type)).split("\n"), start=1)
    return _document(raw, (_record(_line_value(number, line), number) for number, line in lines if line.strip()))


def _line_value(number: int, line: str) -> Value:
    try:
        return _loaded(line)
    except ValueError as error:
        raise IngestError("corrupt", f"Line {number} is not JSON.") from error


def _loaded(text: str) -> Value:
    try:
        value: Value = json.loads(text.lstrip("\ufeff"), parse_int=str, parse_float=str, parse_constant=str)
    except RecursionError as error:
        raise IngestError("too_large", "The file is nested too deeply.") from error
    return value


def _document(raw: RawDocument, records: Iterable[Block], title: str = "") -> ParsedDocument:
    blocks = []
    for block in records:
        blocks.append(block)
        if len(blocks) > _MAX_RECORDS:
            raise IngestError("too_large", f"The file has more than {_MAX_RECORDS} records.")
    return finished(raw, source_type="json", blocks=blocks, property_title=title)


def _records(value: Value) -> Iterator[Block]:
    if isinstance(value, list) and not _is_plain(value):
        yield from (_record(item, number) for number, item in enumerate(value, start=1))
    elif isinstance(value, dict):
        facts: dict[str, Value] = {key: member for key, member in value.items() if _is_plain(member)}
        yield Block(BlockKind.PARAGRAPH, "\n".join(flat_lines(facts)), header=_opening_of(facts))
        for key, member in value.items():
            path = () if key.lower() in _WRAPPING_KEYS else (one_line(key)[:_MAX_KEY_CHARACTERS],)
            if isinstance(member, list) and key not in facts:
                yield from (_record(item, number, path) for number, item in enumerate(member, start=1))
            elif key not in facts:
                yield Block(BlockKind.PARAGRAPH, "\n".join(flat_lines(member, key)), header=key, path=path)
    else:
        yield Block(BlockKind.PARAGRAPH, "\n".join(flat_lines(value)))


def _record(value: Value, number: int, path: tuple[str, ...] = ()) -> Block:
    label = name_of(value) or next((text[:_MAX_LABEL_CHARACTERS] for _, text in _present(value, _ID_KEYS)), "")
    names = (*path, label) if label else path
    return Block(BlockKind.PARAGRAPH, "\n".join(flat_lines(value)), header=_opening_of(value), row=number, path=names)
