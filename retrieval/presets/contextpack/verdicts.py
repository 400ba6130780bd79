"""Reading a language model's scores: strictly by the schema, candidate by candidate. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from retrieval.llm.neutral import plain
from retrieval.presets.contextpack.judge import Relevance
from retrieval.text.json_text import unfenced

_MAX_EVIDENCE_LENGTH: Final = 300
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "string": (str,),
}
_FIELDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "id": {"type": "integer"},
    "relevance_score": {"type": "number", "minimum": 0, "maximum": 100},
    "answerability": {"type": "boolean"},
    "key_evidence": {"type": "string"},
}

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
                "properties": _FIELDS,
            },
        }
    },
}


@dataclass(frozen=True, slots=True)
class Reading:
    """The valid part of an answer."""

    #: By the candidate's number, from 1.
    judged: Mapping[int, Relevance]
    #: Whether the answer is an object of the schema.
    is_whole: bool = True
    #: Ignored results: unknown or repeated candidate, wrong type, score out of range.
    left_out: int = 0


def read_answer(answer: str, *, candidates: int) -> Reading:
    """Return the scores of candidates 1 to `candidates`; none if the answer is not an object of the schema.

    A result that breaks the schema is ignored. A candidate with two different results has none.
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
    try:
        # Some models put the object in a code fence despite the instructions.
        content = json.loads(unfenced(answer), parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.keys() != ANSWER_SCHEMA["properties"].keys():
        return None
    results = content["results"]
    return results if isinstance(results, list) else None


def _no_number(name: str) -> float:
    raise ValueError(name)


def _result(result: object) -> tuple[int | None, Relevance | None]:
    if not isinstance(result, dict) or result.keys() != _FIELDS.keys():
        return None, None
    number, score, answers, evidence = (result[name] for name in _FIELDS)
    if not _fits(number, _FIELDS["id"]):
        return None, None
    if not all(_fits(result[name], field) for name, field in _FIELDS.items()):
        return number, None
    return number, Relevance(float(score), answers, " ".join(plain(evidence).split())[:_MAX_EVIDENCE_LENGTH].rstrip())


def _fits(value: Any, field: Mapping[str, Any]) -> bool:  # noqa: ANN401 -- whatever the model wrote
    if not isinstance(value, _TYPES[field["type"]]) or isinstance(value, bool) != (field["type"] == "boolean"):
        return False
    is_within: bool = field.get("minimum", value) <= value <= field.get("maximum", value)
    return is_within
