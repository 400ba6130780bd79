"""Judged collections in the BEIR layout: `corpus.jsonl`, `queries.jsonl`, `qrels.tsv`."""

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from corecube.errors import InvalidRequestError

_CORPUS: Final = "corpus.jsonl"
_QUERIES: Final = "queries.jsonl"
_QRELS: Final = "qrels.tsv"


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query with judgments."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class JudgedQueries:
    """Queries with their judgments."""

    name: str  #: Its name in tables.
    queries: tuple[JudgedQuery, ...]  #: At least one.
    qrels: dict[str, dict[str, int]]  #: Grade by query id, then document id.


@dataclass(frozen=True, slots=True)
class Dataset(JudgedQueries):
    """A collection with its queries and judgments."""

    directory: Path
    variant: str = ""  #: What `rewrite` makes of the corpus; empty for the corpus as it is.
    rewrite: Callable[[dict[str, str]], dict[str, str]] = dict

    def documents(self) -> Iterator[dict[str, str]]:
        """Yield the corpus: `_id`, `title`, `text`."""
        yield from map(self.rewrite, read_lines(self.directory / _CORPUS))


def load_dataset(directory: Path) -> Dataset:
    """Read a collection. Raises InvalidRequestError for missing or malformed input."""
    for name in (_CORPUS, _QUERIES, _QRELS):
        if not (directory / name).is_file():
            raise InvalidRequestError(f"{directory} has no {name}; a BEIR layout is expected.")
    path = directory / _QRELS
    qrels: dict[str, dict[str, int]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for judged in csv.DictReader(file, delimiter="\t"):
            try:
                qrels.setdefault(judged["query-id"], {})[judged["corpus-id"]] = int(judged["score"])
            except (KeyError, TypeError, ValueError) as error:
                raise InvalidRequestError(f"{path.name}: columns query-id, corpus-id, score are expected.") from error
    queries = tuple(
        JudgedQuery(row["_id"], str(row.get("text", "")))
        for row in read_lines(directory / _QUERIES)
        if row["_id"] in qrels
    )
    if empty := [query.id for query in queries if not query.text.strip()]:
        raise InvalidRequestError(f"{_QUERIES}: query {empty[0]} has no text.")
    if not queries:
        raise InvalidRequestError(f"{directory} has no query with a judgment.")
    return Dataset(directory.resolve().name, queries, qrels, directory)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON-lines file; raise InvalidRequestError with the number of an invalid line."""
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = json.loads(line)
                yield {**row, "_id": str(row["_id"])}
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidRequestError(f"{path.name}, line {number}: not an object with an _id.") from error
