"""Read an installation's judged questions."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from corecube.errors import InvalidRequestError
from corecube.sanitise import storable
from retrieval.evaluation.datasets import load_dataset, read_lines


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question, and whether the documents that its user may see answer it."""

    text: str
    answerable: bool
    #: Empty for the user of the run.
    user: str = ""


def read_questions(path: Path) -> tuple[JudgedQuestion, ...]:
    """Return the questions of a JSON-lines file or of a judged collection in the BEIR layout, in order.

    A line is `{"question": ..., "answerable": true or false, "user": ...}`, the user is optional. In a collection a
    query with a judgment above 0 is answerable. Raises InvalidRequestError for missing or malformed input.
    """
    if path.is_dir():
        return tuple(_of_collection(path))
    if not path.is_file():
        raise InvalidRequestError(f"There is no file or folder {path}.")
    # As bytes, so that the error names a line with an invalid encoding.
    with path.open("rb") as file:
        lines = [(number, line) for number, line in enumerate(file, start=1) if line.strip()]
    return tuple(_question(line, f"{path.name}, line {number}") for number, line in lines)


def _question(line: bytes, place: str) -> JudgedQuestion:
    try:
        row: Any = json.loads(line.decode("utf-8-sig"))
        question = JudgedQuestion(row["question"], row["answerable"], row.get("user", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidRequestError(f"{place}: expected an object with question and answerable.") from error
    if not (isinstance(question.text, str) and storable(question.text).strip()):
        raise InvalidRequestError(f"{place}: question must be a text.")
    if not isinstance(question.answerable, bool):
        raise InvalidRequestError(f"{place}: answerable must be true or false.")
    if not isinstance(question.user, str):
        raise InvalidRequestError(f"{place}: user must be a username.")
    return replace(question, text=storable(question.text), user=storable(question.user))


def _of_collection(directory: Path) -> Iterator[JudgedQuestion]:
    qrels = load_dataset(directory).qrels
    for row in read_lines(directory / "queries.jsonl"):
        text = storable(str(row.get("text", "")))
        if text.strip():
            yield JudgedQuestion(text, any(grade > 0 for grade in qrels.get(row["_id"], {}).values()))
