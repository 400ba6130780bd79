"""Quotes as JSON, for a request that requires JSON where no language model can write it. Pure."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypedDict

from retrieval.errors import AnswerFormatError

Schema: TypeAlias = Mapping[str, Any]
_ANSWER: Final = "answer"
_CITATIONS: Final = ("citations", "sources", "references")
#: What limits a value further than by its type: a quote cannot be fitted to it.
_LIMITS: Final = frozenset({"pattern", "format", "enum", "const", "minLength", "maxLength", "minItems", "maxItems"})
_NO_FIT: Final = (
    "Without a language model the answer consists of quotes, which do not fit this schema: it needs one property for "
    'the text, such as {"answer": string}, and may have "citations", an array of strings (URLs), integers (the N of '
    "[N]) or objects with number, title and url."
)


class Cited(TypedDict):
    """A cited passage."""

    number: int
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class JsonShape:
    """Where the text of an answer and its citations go in a JSON object."""

    answer: str
    citations: str  #: Empty to leave them out.
    item: Callable[[Cited], object]

    def filled(self, text: str, cited: Sequence[Cited]) -> str:
        """Return the object as JSON."""
        citations = {self.citations: [self.item(it) for it in cited]} if self.citations else {}
        return json.dumps({self.answer: text, **citations}, ensure_ascii=False)


_DEFAULT: Final = JsonShape(_ANSWER, _CITATIONS[0], dict)


def shape_for(response_format: Mapping[str, Any]) -> JsonShape:
    """Return the shape that a response format in OpenAI's terms allows; raise AnswerFormatError if quotes do not fit.

    `{"answer": ..., "citations": [...]}` where the format leaves it open.
    """
    if response_format["type"] == "json_object":
        return _DEFAULT
    root: Schema = response_format["json_schema"]["schema"]
    properties = {name: _resolved(it, root) for name, it in _mapping(root.get("properties")).items()}
    if not properties and root.get("type", "object") == "object" and not _names(root.get("required")):
        return _DEFAULT
    texts = [name for name, it in properties.items() if _takes(it, "string")]
    required = _names(root.get("required"))
    answer = _ANSWER if _ANSWER in texts else _only([it for it in texts if it in required] or texts)
    if answer is None:
        raise AnswerFormatError(_NO_FIT)
    items = {name: item for name in _CITATIONS if (item := _item(properties.get(name), root))}
    citations = next(iter(items), "")
    if required - {answer, citations}:
        raise AnswerFormatError(_NO_FIT)
    return JsonShape(answer, citations, items.get(citations, dict))


def _item(schema: Schema | None, root: Schema) -> Callable[[Cited], object] | None:
    """Return how an array of this schema shows a citation; None where it cannot."""
    if schema is None or not _takes(schema, "array"):
        return None
    item = _resolved(schema.get("items") or {}, root)
    if not item:
        return dict
    if _takes(item, "string"):
        return lambda cited: cited["url"]
    if _takes(item, "integer") or _takes(item, "number"):
        return lambda cited: cited["number"]
    names = {"number": "integer", "title": "string", "url": "string"}
    given = {name: _resolved(it, root) for name, it in _mapping(item.get("properties")).items()}
    shown = [name for name, kind in names.items() if not given or (name in given and _takes(given[name], kind))]
    if not _takes(item, "object") or not shown or _names(item.get("required")) - {*shown}:
        return None
    return lambda cited: {name: value for name, value in cited.items() if name in shown}


def _takes(schema: Schema, kind: str) -> bool:
    """Return whether any value of a type fits: by `type`, or by one of the alternatives."""
    if _LIMITS & schema.keys():
        return False
    either = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(either, list):
        return any(_takes(it, kind) for it in map(_mapping, either) if not {"anyOf", "oneOf"} & it.keys())
    kinds = schema.get("type")
    return kind in kinds if isinstance(kinds, list) else kind == kinds


def _resolved(schema: object, root: Schema) -> Schema:
    """Return a schema, or the one of this document that it refers to."""
    found = _mapping(schema)
    parts = str(found.get("$ref", "")).removeprefix("#/").split("/")
    for part in parts if "$ref" in found else ():
        root = _mapping(root.get(part))
    return root if "$ref" in found else found


def _mapping(value: object) -> Schema:
    return value if isinstance(value, Mapping) else {}


def _names(value: object) -> set[str]:
    return {str(it) for it in value} if isinstance(value, list) else set()


def _only(names: Sequence[str]) -> str | None:
    return names[0] if len(names) == 1 else None
