"""The passages that a stored search packed, as they are now."""

from collections.abc import Mapping
from typing import Any

from corecube.scope import AccessScope
from retrieval.engine.types import Passage
from retrieval.index.store import read_facts
from retrieval.records.stored_trace import chunk_id_of, packed_hits
from retrieval.stages.assemble import header


def stored_passages(trace: Mapping[str, Any], *, scope: AccessScope) -> tuple[Passage, ...]:
    """Return the packed passages that still exist and are in scope, in reading order, numbered without gaps.

    Each has its role; older traces have none.
    """
    hits = {hit.chunk_id: hit for hit in read_facts(packed_hits(trace), scope=scope)}
    packed = [it | {"id": chunk_id_of(it["chunk"])} for it in trace.get("passages", ())]
    there = [it for it in packed if it["id"] in hits]
    numbers = {it["number"]: number for number, it in enumerate(sorted(there, key=lambda it: it["number"]), start=1)}
    return tuple(
        Passage(numbers[it["number"]], hit, header(numbers[it["number"]], hit, scope), it["tokens"], it.get("role", ""))
        for it in there
        if (hit := hits[it["id"]])
    )
