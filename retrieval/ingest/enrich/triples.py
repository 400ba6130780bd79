"""The prompt for the triples (subject, relation, object) of a chunk, and the parsing of the answer. Pure.

Gutiérrez et al., HippoRAG, 2024: open information extraction at ingest. Subject and object must be in the chunk, its
title or headings: instructions in a document add no link that its author could not have set.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from retrieval.errors import EnrichError
from retrieval.graph.spans import key_of
from retrieval.ingest.enrich.prompts import Place, plain, task
from retrieval.text.json_text import unfenced

Triple: TypeAlias = tuple[str, str, str]

MAX_TRIPLES: Final = 8
MAX_ANSWER_TOKENS: Final = 600  #: Maximum number of tokens of an answer, and the mean for cost estimates.
TYPICAL_ANSWER_TOKENS: Final = 180
_MAX_CHARACTERS: Final = 120
_PARTS: Final = 3
TASK: Final = task("triples", count=MAX_TRIPLES)


def triples_in(answer: str, place: Place) -> tuple[Triple, ...]:
    """Return the triples whose subject and object are in the chunk, its title or headings, each once; at most eight.

    Other items are ignored; raises EnrichError for an answer that is not the requested object.
    """
    try:
        content: Any = json.loads(unfenced(answer))
        listed = content["triples"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise EnrichError("The model's answer is not the requested JSON.") from error
    if not isinstance(listed, list):
        raise EnrichError("The model's answer is not the requested JSON.")
    read = f" {key_of('. '.join((place.title, *place.heading_path, place.text)))} "
    found = (triple for triple in _valid(listed) if all(f" {key_of(end)} " in read for end in triple[::2]))
    return tuple(dict.fromkeys(found))[:MAX_TRIPLES]


def triples_of(stored: Sequence[Sequence[str]] | None) -> tuple[Triple, ...] | None:
    """Return a chunk's triples as they are stored; None before a model was called for them."""
    return None if stored is None else tuple((subject, relation, thing) for subject, relation, thing in stored)


def _valid(listed: list[Any]) -> Iterator[Triple]:
    for parts in listed:
        if isinstance(parts, list) and len(parts) == _PARTS and all(isinstance(part, str) for part in parts):
            subject, relation, thing = (plain(part) for part in parts)
            ends = key_of(subject), key_of(thing)
            is_short = all(0 < len(part) <= _MAX_CHARACTERS for part in (subject, relation, thing))
            if is_short and all(ends) and ends[0] != ends[1]:
                yield subject, relation, thing
