"""JSON and NDJSON: each top-level record as lines of "key: value", numbers as they are written."""

import json
from collections.abc import Iterable, Iterator
from typing import Final

from retrieval.errors import IngestError
from retrieval.ingest.parse.decoding import charset_of, decode
from retrieval.ingest.parse.finish import finished, one_line
from retrieval.ingest.parse.flatten import Value, flat_lines, is_plain, label_of, name_of, opening_of
from retrieval.text.document import Block, BlockKind, ParsedDocument, RawDocument

#: Each record is a chunk; a file of more would take hours to embed.
_MAX_RECORDS: Final = 100_000
_MAX_KEY_CHARACTERS: Final = 100
#: Keys of an object that only wraps its records; they say nothing about them.
_WRAPPING_KEYS: Final = frozenset({"data", "items", "results", "records", "rows", "entries", "values", "list"})


def parse_json(raw: RawDocument) -> ParsedDocument:
    """Return the records of a JSON file: the items of its arrays of objects, and its other keys one by one.

    A file of one JSON value a line is read as such. Raises IngestError: `corrupt` when it is no JSON,
    `too_large` beyond 100,000 records or 200 levels.
    """
    try:
        value = _loaded(decode(raw.content, charset_of(raw.media_type)))
    except ValueError:
        return parse_ndjson(raw)
    return _document(raw, _records(value), name_of(value))


def parse_ndjson(raw: RawDocument) -> ParsedDocument:
    """Return the records of a file with one JSON value on each line; raises IngestError as `parse_json` does."""
    lines = enumerate(decode(raw.content, charset_of(raw.media_type)).split("\n"), start=1)
    return _document(raw, (_record(_line(number, line), number) for number, line in lines if line.strip()))


def _line(number: int, line: str) -> Value:
    try:
        return _loaded(line)
    except ValueError as error:
        raise IngestError("corrupt", f"Line {number} is not JSON.") from error


def _loaded(text: str) -> Value:
    try:
        value: Value = json.loads(text.lstrip("\ufeff"), parse_int=str, parse_float=str, parse_constant=str)
    except RecursionError as error:
        raise IngestError("too_large", "The file is nested too deep.") from error
    return value


def _document(raw: RawDocument, records: Iterable[Block], title: str = "") -> ParsedDocument:
    blocks = []
    for block in records:
        blocks.append(block)
        if len(blocks) > _MAX_RECORDS:
            raise IngestError("too_large", f"The file has more than {_MAX_RECORDS} records.")
    return finished(raw, source_type="json", blocks=blocks, property_title=title)


def _records(value: Value) -> Iterator[Block]:
    if isinstance(value, list) and not is_plain(value):
        yield from _items(value, ())
    elif isinstance(value, dict):
        yield from _members(value)
    else:
        yield Block(BlockKind.PARAGRAPH, "\n".join(flat_lines(value)))


def _members(value: dict[str, Value]) -> Iterator[Block]:
    """Yield an object's plain facts as one record, and each of its other members as one or, for arrays, several."""
    facts: dict[str, Value] = {key: member for key, member in value.items() if is_plain(member)}
    yield Block(BlockKind.PARAGRAPH, "\n".join(flat_lines(facts)), header=opening_of(facts))
    for key, member in value.items():
        path = () if key.lower() in _WRAPPING_KEYS else (one_line(key)[:_MAX_KEY_CHARACTERS],)
        if isinstance(member, list) and key not in facts:
            yield from _items(member, path)
        elif key not in facts:
            yield Block(BlockKind.PARAGRAPH, "\n".join(flat_lines(member, key)), header=key, path=path)


def _items(values: list[Value], path: tuple[str, ...]) -> Iterator[Block]:
    for number, item in enumerate(values, start=1):
        yield _record(item, number, path)


def _record(value: Value, number: int, path: tuple[str, ...] = ()) -> Block:
    """Return the item of an array, under its own name."""
    label = label_of(value)
    names = (*path, label) if label else path
    return Block(BlockKind.PARAGRAPH, "\n".join(flat_lines(value)), header=opening_of(value), row=number, path=names)
