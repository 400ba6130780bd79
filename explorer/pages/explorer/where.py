"""The Explorer's tab "Document trace": the documents to choose from, and the path of the chosen one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.urls import reverse

from corecube.access import Principal, scope_for
from corecube.sanitise import storable
from corecube.scope import AccessScope, Exclusion
from explorer import wording
from explorer.wording import WORDS
from retrieval.models import Document, SyncItem
from retrieval.models.document import id_in
from retrieval.records.lifeline.service import Reader, follow
from retrieval.records.lifeline.types import ACCESS, Lifeline, Step, StepState, Way
from retrieval.search.outcome import SearchOutcome

_WORDS: Final = WORDS["trace_states"]
_MAX_CANDIDATES: Final = 20


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document that the search box found."""

    document_id: UUID
    title: str
    source: str
    address: str = ""  #: Its path or URL in the source; empty where that is its title.
    trouble: str = ""


def lifeline_panel(line: Lifeline) -> dict[str, Any]:
    """Return the panel of a document's path."""
    lost = line.lost_at
    total = sum(way.chunks for way in line.ways)
    return {
        "document_id": line.document_id,
        "title": line.title or "A document",
        # Whether the reader can open it, and whether as the principal of the search.
        "has_page": bool(line.title) and line.steps[0].state is not StepState.DROPPED,
        "is_principals": line.inclusion is not None,
        "source": line.source,
        "verdict": _verdict(lost, line),
        "is_packed": lost is None,
        "steps": tuple(_row(step, line, is_loss=step is lost) for step in line.steps),
        "chunk_id": line.followed.chunk_id if line.followed else None,
        "place": _place(line),
        "ways": tuple(f"{way.chunks:,} {_result(way)}" for way in line.ways) if total > 1 else (),
        "chunks": total,
    }


def step_label(name: str) -> str:
    """Return a step's label: "access", "full text", "packed"."""
    return WORDS["trace_steps"].get(name) or wording.stage_label(name)


def _verdict(lost: Step | None, line: Lifeline) -> str:
    """Return the result of a document: packed as [3], found by no leg, or dropped at a step."""
    if lost is None:
        return f"packed as [{line.citation}]"
    is_unfound = bool(line.ways) and not any(way.ended_at for way in line.ways)
    return "found by no leg" if is_unfound else _dropped_at(lost.name)


def _dropped_at(name: str) -> str:
    return f"dropped at \N{LEFT DOUBLE QUOTATION MARK}{step_label(name)}\N{RIGHT DOUBLE QUOTATION MARK}"


def _row(step: Step, line: Lifeline, *, is_loss: bool) -> dict[str, Any]:
    return {
        "name": step.name,
        "label": step_label(step.name),
        "state": step.state.value,
        "word": _WORDS[step.state],
        "fact": _fact(step, line),
        "remedy": step.remedy,
        # The page on which an admin applies the remedy.
        "remedy_address": (
            reverse("explorer:connection", args=[line.exclusion.connection.slug])
            if line.exclusion.reason is Exclusion.DISABLED
            else f"{reverse('explorer:give_access')}?connection={line.exclusion.connection.slug}"
        )
        if step.name == ACCESS and step.remedy and line.exclusion
        else "",
        "is_loss": is_loss,
    }


def _fact(step: Step, line: Lifeline) -> str:
    """Return a step's fact; for access, the rule that decided."""
    if step.name == ACCESS and step.state is StepState.PASSED and line.inclusion:
        return wording.inclusion_rule(line.inclusion)
    if step.name == ACCESS and step.state is StepState.DROPPED and line.exclusion:
        return wording.exclusion_rule(line.exclusion)
    return step.fact or _WORDS[step.state]


def _place(line: Lifeline) -> str:
    """Return the place of the chunk in its document: "Staging › Rolling back, p. 3"; empty at the top."""
    if line.followed is None or line.followed.facts is None:
        return ""
    facts = line.followed.facts
    headings = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ".join(facts.heading_path)
    return ", ".join(filter(None, (headings, wording.place(facts, facts.source_type))))


def _result(way: Way) -> str:
    if way.is_packed:
        return "packed"
    return _dropped_at(way.ended_at) if way.ended_at else "found by no leg"


def candidates(rows: Iterable[Candidate], limit: int) -> tuple[tuple[Candidate, ...], bool]:
    """Return the first candidates, each document once, and whether there are more."""
    found = tuple({row.document_id: row for row in rows}.values())
    return found[:limit], len(found) > limit


def where_panel(outcome: SearchOutcome, reader: Reader, *, find: str, pin: str) -> dict[str, Any]:
    """Return the tab: the path of the pinned document, and the documents that the search box found, each once."""
    find = storable(find).strip()
    found, has_more = candidates(_named(find, reader) if find else (), _MAX_CANDIDATES)
    document_id = id_in(pin)
    line = follow(document_id, outcome, reader) if document_id else None
    lifeline = lifeline_panel(line) if line else None
    return {
        "find": find,
        "candidates": found,
        "has_more": has_more,
        "lifeline": lifeline,
        "is_pinned": bool(pin),
        "announcement": announcement(lifeline, found=len(found), find=find, pin=pin),
    }


def announcement(lifeline: dict[str, Any] | None, *, found: int, find: str, pin: str) -> str:
    """Return what a screen reader announces."""
    if lifeline:
        return f"{lifeline['title']}: {lifeline['verdict']}."
    if pin:
        return "Document not found."
    return f"{wording.counted(found, 'document')} found." if find else ""


def reader_of(principal: Principal, whole: AccessScope) -> Reader:
    """Return what the viewer of the page may see: an admin with another user's view has the access of both.

    `whole` is everything that the principal may see, for an admin with the excluded connections.
    """
    viewer = principal.actor or principal.user
    own = whole if viewer == principal.user else scope_for(Principal(viewer))
    readable = frozenset((*whole.connection_ids, *own.connection_ids))
    return Reader(whole, readable, is_admin=viewer.is_admin)


def pinned_title(pin: str, reader: Reader) -> str:
    """Return the title of a pinned document; empty if the reader may not see it."""
    document_id = id_in(pin)
    if document_id is None:
        return ""
    readable = Document.objects.filter(connection_id__in=sorted(reader.readable), pk=document_id)
    return readable.values_list("title", flat=True).first() or ""


def _named(find: str, reader: Reader) -> Iterator[Candidate]:
    """Yield the documents with this name that the reader may see.

    Then those that could not be ingested, of the connections that the reader knows.
    """
    readable = Document.objects.filter(connection_id__in=sorted(reader.readable)).named(find)
    found = readable.order_by("title", "pk").values_list("pk", "title", "connection__name", "external_id")
    yield from (Candidate(*row) for row in found[: _MAX_CANDIDATES + 1])
    known = SyncItem.objects.filter(state=SyncItem.State.FAILED, sync__connection_id__in=sorted(reader.known))
    rows = known.filter(external_id__icontains=find).order_by("external_id", "pk")
    named = rows.values_list("document_id", "external_id", "sync__connection__name", "reason")
    yield from (Candidate(*row[:3], trouble=row[3]) for row in named[: _MAX_CANDIDATES + 1])
