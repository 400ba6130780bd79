"""Following one document through one search, for a reader who may know of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from corecube.scope import AccessScope, ExcludedConnection, Exclusion, Inclusion
from retrieval.engine.types import ChunkId, Hit, ScoreType
from retrieval.errors import SearchTimeoutError
from retrieval.index import probe, store
from retrieval.index.lexemes import any_of
from retrieval.index.types import DocumentProbe, Place
from retrieval.models import Document, SyncItem
from retrieval.records.lifeline.legs import asked_for
from retrieval.records.lifeline.types import ACCESS, INDEXED, SCOPE, Evidence, Lifeline, Step, StepState
from retrieval.records.lifeline.walk import Journey, not_reached, step_names, steps, ways
from retrieval.search import runtime
from retrieval.search.outcome import SearchOutcome

_LOOK_SECONDS: Final = 2.0  #: What one exact look into the whole scope may take.
_WAITING: Final = {
    SyncItem.State.QUEUED: "waiting in the sync queue",
    SyncItem.State.RUNNING: "being ingested by a sync",
}


@dataclass(frozen=True, slots=True)
class Reader:
    """Who traces a document, and what they may know."""

    scope: AccessScope  #: All that the search's principal may see; lists what they may not only for an admin.
    readable: frozenset[int]  #: Connections whose documents the reader may know by name.
    #: An admin sees documents of every connection, and the rule that hides them from the principal.
    is_admin: bool = False

    @property
    def known(self) -> frozenset[int]:
        """The connections whose documents exist for the reader."""
        told = {it.connection.id for it in self.scope.excluded} if self.is_admin else set[int]()
        return frozenset(self.scope.connection_ids) | self.readable | told


def follow(document_id: UUID, outcome: SearchOutcome, reader: Reader) -> Lifeline | None:
    """Return a document's way through a search; None for one that does not exist for the reader.

    A document that could not be ingested is reported with its reason. Raises DatabaseUnavailableError.
    """
    known = sorted(reader.known)
    document = Document.objects.filter(pk=document_id, connection_id__in=known).first()
    # What the last sync that had to take the document in says of it.
    told = (SyncItem.State.FAILED, *_WAITING)
    items = SyncItem.objects.filter(document_id=document_id, sync__connection_id__in=known, state__in=told)
    item = items.select_related("sync__connection").order_by("-sync__queued_at").first()
    if document is None:
        return _not_indexed(item, outcome, reader) if item else None
    inclusion = _inclusion(reader.scope, document.connection_id)
    exclusion = _exclusion(reader.scope, outcome.state.scope, document.connection_id)
    decided = inclusion or exclusion
    if decided is None:
        return None
    found = _Found(document, item, inclusion, exclusion, decided.connection.name)
    return _outside(found, outcome, reader) if exclusion else _inside(found, outcome)


@dataclass(frozen=True, slots=True)
class _Found:
    document: Document
    item: SyncItem | None
    inclusion: Inclusion | None
    exclusion: ExcludedConnection | None
    source: str


def _inclusion(scope: AccessScope, connection_id: int) -> Inclusion | None:
    return scope.inclusion(connection_id) if scope.allows(connection_id) else None


def _exclusion(whole: AccessScope, searched: AccessScope, connection_id: int) -> ExcludedConnection | None:
    """Return the rule that excluded a connection from a search; None for one that was searched."""
    if searched.allows(connection_id):
        return None
    if whole.allows(connection_id):
        return ExcludedConnection(whole.inclusion(connection_id).connection, Exclusion.REQUEST)
    return next((it for it in whole.excluded if it.connection.id == connection_id), None)


def _not_indexed(item: SyncItem, outcome: SearchOutcome, reader: Reader) -> Lifeline:
    connection = item.sync.connection
    reason = _WAITING.get(SyncItem.State(item.state)) or f"{item.reason.replace('_', ' ')}: {item.message}"
    retried = "Fix this at the source; the next sync ingests it."
    remedy = "" if item.state in _WAITING else retried
    return Lifeline(
        document_id=item.document_id,
        title=item.external_id,
        source=connection.name,
        steps=(
            Step(INDEXED, StepState.DROPPED, f"not indexed, {reason}", remedy),
            *not_reached([ACCESS, SCOPE, *step_names(outcome.state)]),
        ),
        inclusion=_inclusion(reader.scope, connection.pk),
    )


def _outside(found: _Found, outcome: SearchOutcome, reader: Reader) -> Lifeline:
    is_left_out = found.inclusion is not None
    opened = _opened_by(found.exclusion) if found.exclusion and reader.is_admin else ""
    shut = Step(ACCESS, StepState.DROPPED, "outside the user's access", opened)
    kept: tuple[Step, ...] = (shut, *not_reached([SCOPE]))
    if found.inclusion is not None:
        why, remedy = "excluded by this search's filters", f"Including {found.source} again brings it back."
        if found.inclusion.connection.is_attached:
            why, remedy = "attached to a conversation, and searched only in it", ""
        kept = (_allowed(found.inclusion), Step(SCOPE, StepState.DROPPED, why, remedy))
    is_readable = found.document.connection_id in reader.readable
    return Lifeline(
        document_id=found.document.pk,
        title=found.document.title if is_readable or is_left_out else "",
        source=found.source,
        steps=(Step(INDEXED, StepState.PASSED, "in the index"), *kept, *not_reached(step_names(outcome.state))),
        inclusion=found.inclusion,
        exclusion=found.exclusion,
    )


def _opened_by(excluded: ExcludedConnection) -> str:
    connection = excluded.connection
    level = connection.sensitivity.name.lower()
    enabled = "" if excluded.is_enabled else ", once the connection is enabled"
    match excluded.reason:
        case Exclusion.NO_GRANT | Exclusion.CLEARANCE:
            return f"A clearance of at least {level} on {connection.compartment} gives access{enabled}."
        case Exclusion.DISABLED:
            return "Enable the connection to give access."
        case _:
            return ""


def _inside(found: _Found, outcome: SearchOutcome) -> Lifeline:
    journey = Journey.of(found.document.pk, outcome.state, outcome.config)
    evidence = _evidence(found.document.pk, journey)
    first = _indexed(found, evidence.probe)
    shown = journey.followed or evidence.probe.nearest or evidence.probe.wordiest
    is_empty = first.state is StepState.DROPPED
    after = not_reached(step_names(outcome.state)) if is_empty else steps(journey, evidence)
    return Lifeline(
        document_id=found.document.pk,
        title=found.document.title,
        source=found.source,
        steps=(first, _allowed(found.inclusion), Step(SCOPE, StepState.PASSED, f"{found.source} is searched"), *after),
        inclusion=found.inclusion,
        followed=evidence.chunks.get(shown) if shown else None,
        ways=ways(journey, chunks=evidence.probe.count),
        citation=journey.fates[0].citation if journey.fates else None,
    )


def _allowed(inclusion: Inclusion | None) -> Step:
    fact = f"compartment {inclusion.connection.compartment} through {inclusion.via}" if inclusion else ""
    return Step(ACCESS, StepState.PASSED, fact)


def _indexed(found: _Found, counted: DocumentProbe) -> Step:
    if not counted.count:
        return Step(INDEXED, StepState.DROPPED, "it has no searchable text")
    chunks = f"{counted.count:,} chunk{'s' if counted.count > 1 else ''}"
    if counted.vectors < counted.count:
        chunks += f", {counted.vectors:,} with a vector"
    if found.item is None:
        return Step(INDEXED, StepState.PASSED, chunks)
    trouble = _WAITING.get(SyncItem.State(found.item.state), found.item.reason.replace("_", " "))
    return Step(INDEXED, StepState.DEGRADED, f"{chunks} of an earlier version; in the last sync: {trouble}")


def _evidence(document_id: UUID, journey: Journey) -> Evidence:
    state, search, index = journey.state, journey.config.fulltext.text_search, runtime.resources().index
    # Another model may have taken over since the search: its vectors cannot be compared.
    is_comparable = state.vector is not None and state.vector.size == index.dim
    vector, terms = state.vector if is_comparable else None, state.terms.terms
    probed, match = probe.Probed(state.scope, index, vector, terms, search), asked_for(state, journey.config)
    ordinals = [journey.followed.ordinal] if journey.followed else []
    found = probe.document(probed, document_id, match=match, ordinals=ordinals, timeout_seconds=_LOOK_SECONDS)
    subjects = journey.subjects(found)
    read = store.complete(
        tuple(Hit(chunk_id, 0.0, ScoreType.RRF) for chunk_id in sorted({it for it in subjects.values() if it})),
        vector=vector,
        index=index,
        terms=terms,
        scope=state.scope,
        search=search,
        match=match,
        timeout_seconds=_LOOK_SECONDS,
    )
    places = dict(_places(journey, subjects, found, probed, match))
    return Evidence(found, {hit.chunk_id: hit for hit in read}, places)


def _places(
    journey: Journey, subjects: dict[str, ChunkId | None], found: DocumentProbe, probed: probe.Probed, match: str
) -> Iterator[tuple[str, Place]]:
    """Yield the exact place of each leg's chunk that the leg did not return; none that takes too long to count."""
    for leg, chunk_id in subjects.items():
        if chunk_id is None or any(hit.chunk_id == chunk_id for hit in journey.state.rankings[leg]):
            continue
        try:
            place = _place(leg, chunk_id, found, probed, match)
        except SearchTimeoutError:
            continue
        if place:
            yield leg, place


def _place(leg: str, chunk_id: ChunkId, found: DocumentProbe, probed: probe.Probed, match: str) -> Place | None:
    if leg == "dense":
        return probe.place_dense(probed, chunk_id, timeout_seconds=_LOOK_SECONDS)
    if leg == "fulltext":
        among = match if found.chunks[chunk_id].is_match else any_of(probed.terms)
        return probe.place_fulltext(probed, chunk_id, match=among, timeout_seconds=_LOOK_SECONDS)
    return None
