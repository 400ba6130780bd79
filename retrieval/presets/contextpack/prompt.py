"""The prompt for scoring candidates, with passages as fenced data, and reading the answer strictly by the schema. Pure.

The system message contains no document text, and no document can end its fence.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from corecube.data import read_toml
from retrieval.engine.types import Hit
from retrieval.llm.neutral import neutral, plain
from retrieval.llm.prompt import new_fence
from retrieval.llm.types import Message
from retrieval.presets.contextpack.judge import Relevance
from retrieval.text.json_text import unfenced

_MAX_EVIDENCE_LENGTH: Final = 300
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "string": (str,),
}
_FENCE_LENGTH: Final = 16
_MAX_PLACE_LENGTH: Final = 300
_PROMPT: Final = read_toml("retrieval.presets.contextpack", "prompt.toml")
ANSWER_SCHEMA: Final[Mapping[str, Any]] = _PROMPT["answer_schema"]
_FIELDS: Final = ANSWER_SCHEMA["properties"]["results"]["items"]["properties"]
_SYSTEM: Final = _PROMPT["system"]
_ASKED: Final = "Question:\n{question}\n\nPassages:\n\n{passages}"
_FENCED: Final = "<<<{fence}\n### [{number}] {place}\n{text}\n{fence}>>>"
#: Changes with the prompt, so that scores of another prompt are never reused.
PROMPT_VERSION: Final = hashlib.sha256(repr((_SYSTEM, _ASKED, _FENCED, _MAX_PLACE_LENGTH)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Reading:
    """The valid part of an answer."""

    judged: Mapping[int, Relevance]  #: By the candidate's number, from 1.
    is_whole: bool = True  #: Whether the answer is an object of the schema.
    left_out: int = 0  #: Ignored results: unknown or repeated candidate, wrong type, score out of range.


def read_answer(answer: str, *, candidates: int) -> Reading:
    """Return the scores of candidates 1 to `candidates`; none if the answer is not an object of the schema.

    A result that breaks the schema is ignored. A candidate with two different results has none.
    """
    results = _results(answer)
    if results is None:
        return Reading({}, is_whole=False)
    found: dict[int, Relevance | None] = {}
    left_out = 0
    for result in results:
        number, relevance = None, None
        if isinstance(result, dict) and result.keys() == _FIELDS.keys() and _fits(result["id"], _FIELDS["id"]):
            number, score, answers, evidence = (result[name] for name in _FIELDS)
            if all(_fits(result[name], field) for name, field in _FIELDS.items()):
                decisive = " ".join(plain(evidence).split())[:_MAX_EVIDENCE_LENGTH].rstrip()
                relevance = Relevance(float(score), answers, decisive)
        if number is None or relevance is None or not 1 <= number <= candidates:
            left_out += 1
        elif number in found and found[number] != relevance:
            left_out += 1
            found[number] = None
        else:
            found[number] = relevance
    return Reading({number: it for number, it in found.items() if it is not None}, left_out=left_out)


def _results(answer: str) -> list[Any] | None:
    def no_number(name: str) -> float:
        raise ValueError(name)

    try:
        # Some models put the object in a code fence despite the instructions.
        content = json.loads(unfenced(answer), parse_constant=no_number)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.keys() != ANSWER_SCHEMA["properties"].keys():
        return None
    results = content["results"]
    return results if isinstance(results, list) else None


def _fits(value: Any, field: Mapping[str, Any]) -> bool:  # noqa: ANN401 -- whatever the model wrote
    if not isinstance(value, _TYPES[field["type"]]) or isinstance(value, bool) != (field["type"] == "boolean"):
        return False
    is_within: bool = field.get("minimum", value) <= value <= field.get("maximum", value)
    return is_within


@dataclass(frozen=True, slots=True)
class Shown:
    """A candidate in a prompt, without its number."""

    place: str
    text: str


def shown(hit: Hit, *, characters: int) -> Shown:
    """Return the truncated and neutralised title with headings, and text, of a candidate."""
    place = " > ".join((hit.chunk.title, *hit.chunk.heading_path))[:_MAX_PLACE_LENGTH]
    return Shown(" ".join(neutral(place).split()), neutral(hit.chunk.text[:characters]))


def messages(question: str, candidates: Sequence[Shown], *, fence: str = "") -> tuple[Message, ...]:
    """Return the rules, and the question with the candidates, numbered from 1; without a `fence` one is drawn."""
    fence = fence or new_fence([question, *(text for it in candidates for text in (it.place, it.text))])
    passages = "\n\n".join(fenced(number, it, fence) for number, it in enumerate(candidates, start=1))
    asked = _ASKED.format(question=plain(question), passages=passages)
    return ({"role": "system", "content": _SYSTEM.format(fence=fence)}, {"role": "user", "content": asked})


def fenced(number: int, candidate: Shown, fence: str = "0" * _FENCE_LENGTH) -> str:
    """Return a candidate under its number between the fence's lines."""
    return _FENCED.format(fence=fence, number=number, place=candidate.place, text=candidate.text)


def response_format() -> dict[str, Any]:
    """Return the request option for answers by the JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": "relevance", "strict": True, "schema": ANSWER_SCHEMA}}
