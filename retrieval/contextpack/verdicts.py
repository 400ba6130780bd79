"""Reading what a language model judged: strictly by the schema, and candidate by candidate. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from retrieval.contextpack.types import Relevance
from retrieval.generate.neutral import plain

_HIGHEST: Final = 100.0
_LONGEST_EVIDENCE: Final = 300
#: What some models set around an object in spite of what they are told.
_CODE_BLOCK: Final = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)
_FIELDS: Final = ("id", "relevance_score", "answerability", "key_evidence")

#: The JSON schema of an answer.
ANSWER_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["results"],
    "properties": {
        "results": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": list(_FIELDS),
                "properties": {
                    "id": {"type": "integer"},
                    "relevance_score": {"type": "number", "minimum": 0, "maximum": 100},
                    "answerability": {"type": "boolean"},
                    "key_evidence": {"type": "string"},
                },
            },
        }
    },
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer says, as far as it keeps to the schema."""

    #: By the candidate's number, from 1.
    judged: Mapping[int, Relevance]
    #: Whether the whole is an object as the schema has it.
    is_whole: bool = True
    #: Results that were left out: no such candidate, one judged twice, a wrong type, a score out of range.
    left_out: int = 0


def read_answer(answer: str, *, candidates: int) -> Reading:
    """Return what an answer judges of candidates 1 to `candidates`; nothing of one that is no such object.

    A result that breaks the schema is left out and the others count. A candidate with two results that differ has none.
    """
    results = _results(answer)
    if results is None:
        return Reading({}, is_whole=False)
    found: dict[int, Relevance | None] = {}
    left_out = 0
    for number, relevance in map(_result, results):
        if number is None or relevance is None or not 1 <= number <= candidates:
            left_out += 1
        elif number in found and found[number] != relevance:
            left_out += 1
            found[number] = None
        else:
            found[number] = relevance
    return Reading({number: it for number, it in found.items() if it is not None}, left_out=left_out)


def _results(answer: str) -> list[Any] | None:
    """Return the list of results; None for what is not an object with that list alone."""
    block = _CODE_BLOCK.match(answer)
    try:
        content = json.loads(block[1] if block else answer, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.keys() != {"results"}:
        return None
    results = content["results"]
    return results if isinstance(results, list) else None


def _no_number(name: str) -> float:
    raise ValueError(name)


def _result(result: object) -> tuple[int | None, Relevance | None]:
    """Return a result's number and judgment; None for what breaks the schema."""
    if not isinstance(result, dict) or result.keys() != set(_FIELDS):
        return None, None
    number, score, answers, evidence = (result[name] for name in _FIELDS)
    if not isinstance(number, int) or isinstance(number, bool):
        return None, None
    is_score = isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= _HIGHEST
    if not is_score or not isinstance(answers, bool) or not isinstance(evidence, str):
        return number, None
    return number, Relevance(float(score), answers, _one_line(evidence))


def _one_line(evidence: str) -> str:
    return " ".join(plain(evidence).split())[:_LONGEST_EVIDENCE].rstrip()
