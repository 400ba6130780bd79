"""Asking a language model who relates to whom in a chunk, and what of its answer is taken. Pure.

Gutiérrez et al., HippoRAG, 2024: open information extraction at ingest. What is taken stands in the chunk or above it:
a text that gives the model orders gets no link that an author could not have set there.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from retrieval.errors import EnrichError
from retrieval.graph.spans import key_of
from retrieval.ingest.enrich.prompts import DATA, Place, plain
from retrieval.text.json_text import unfenced

#: Subject, relation, object.
Triple: TypeAlias = tuple[str, str, str]

MAX_TRIPLES: Final = 8
#: Tokens that an answer is allowed, and the mean that a cost is estimated with.
MAX_ANSWER_TOKENS: Final = 600
TYPICAL_ANSWER_TOKENS: Final = 180
_MAX_CHARACTERS: Final = 120
_PARTS: Final = 3
TASK: Final = (
    f"You read chunks of documents for a graph of names. {DATA} List who or what relates to whom in `chunk`: at most "
    f"{MAX_TRIPLES} facts between named people, organisations, places, products, works or pages. Write names in full, "
    "as the chunk, its title or headings spell them, never a pronoun. Answer with this JSON object alone: "
    '{"triples": [["subject", "relation", "object"], ...]}, with an empty list where there is none.'
)


def triples_in(answer: str, place: Place) -> tuple[Triple, ...]:
    """Return the triples of an answer whose both ends stand in the chunk or above it, each once; at most eight.

    What is no triple is left out; raises EnrichError for an answer that is not the object asked for.
    """
    try:
        told: Any = json.loads(unfenced(answer))
        listed = told["triples"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise EnrichError("The model's answer is not the JSON that was asked for.") from error
    if not isinstance(listed, list):
        raise EnrichError("The model's answer is not the JSON that was asked for.")
    read = f" {key_of('. '.join((place.title, *place.heading_path, place.text)))} "
    kept = (triple for triple in _written(listed) if all(f" {key_of(end)} " in read for end in triple[::2]))
    return tuple(dict.fromkeys(kept))[:MAX_TRIPLES]


def triples_of(stored: Sequence[Sequence[str]] | None) -> tuple[Triple, ...] | None:
    """Return a chunk's triples as they are stored; None where none was asked for."""
    return None if stored is None else tuple((subject, relation, thing) for subject, relation, thing in stored)


def _written(listed: list[Any]) -> Iterator[Triple]:
    for parts in listed:
        if isinstance(parts, list) and len(parts) == _PARTS and all(isinstance(part, str) for part in parts):
            subject, relation, thing = (plain(part) for part in parts)
            if _is_told(subject, relation, thing):
                yield subject, relation, thing


def _is_told(subject: str, relation: str, thing: str) -> bool:
    ends = key_of(subject), key_of(thing)
    is_short = all(0 < len(part) <= _MAX_CHARACTERS for part in (subject, relation, thing))
    return is_short and all(ends) and ends[0] != ends[1]
