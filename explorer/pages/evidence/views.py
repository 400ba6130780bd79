"""Evidence for each section of a report."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Self
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponse, QueryDict

from corecube.access import Principal, scope_for
from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from corecube.models import Compartment, User
from corecube.sanitise import storable
from explorer import wording
from explorer.components.badges import badges, hit_badges
from explorer.components.search_page import failed, run_as_name
from explorer.components.snippets import hit_text
from explorer.components.user_menu import user_menu
from explorer.viewer import includes_results, principal_for, render_page, user_page, viewer_of, whole_number
from explorer.wording import WORDS
from retrieval.models import Document
from retrieval.models.document import id_in
from retrieval.presets.consolidated.evidence.recovery import Cell, Presence
from retrieval.presets.consolidated.evidence.sections import Section
from retrieval.search.evidence_runs import (
    MAX_SUBJECT,
    PRESET,
    Evidence,
    EvidenceRequest,
    SectionEvidence,
    gather,
    lines_of,
)
from retrieval.search.outcome import SearchOutcome
from retrieval.search.section_sets import DEFAULT_SECTION_SET, section_sets

MAX_HITS: Final = 5
_WORDS: Final = WORDS["presence"]
DEFAULT_SECONDS: Final = 30  #: The total timeout for all sections: default and bounds.
MIN_SECONDS: Final = 1
MAX_SECONDS: Final = 120
_MAX_DOCUMENTS: Final = 50
_MAX_CANDIDATES: Final = 10


def evidence_panel(evidence: Evidence, *, run_as: str = "") -> dict[str, Any]:
    """Return the panel of a run; `run_as` is its user if that is not the reader."""
    rows = tuple(_row(found, cells, evidence, run_as) for found, cells in lines_of(evidence))
    cells = [cell["presence"] for row in rows for cell in row["cells"]]
    counts = {presence.value: cells.count(presence.value) for presence in Presence}
    unsearched = sum(row["trace_id"] is None for row in rows)
    return {
        "title": evidence.section_set.title,
        "subject": evidence.subject,
        "columns": evidence.source_types,
        "rows": rows,
        "counts": counts,
        "unsearched": unsearched,
        "announcement": _announcement(len(rows), counts, unsearched),
        "seconds": evidence.seconds,
    }


def _announcement(sections: int, counts: Mapping[str, int], unsearched: int) -> str:
    missing = wording.counted(counts["missing"], "source type")
    text = f"{wording.counted(sections, 'section')}: {missing} missing, {counts['recovered']} recovered."
    text += f" {counts['thin']} with too few chunks." if counts["thin"] else ""
    text += f" {counts['not_looked_for']} not searched." if counts["not_looked_for"] else ""
    return text + (f" {wording.counted(unsearched, 'section')} not searched." if unsearched else "")


def _row(found: SectionEvidence, cells: tuple[Cell, ...], evidence: Evidence, run_as: str) -> dict[str, Any]:
    outcome, section = found.outcome, found.section
    pairs = {"preset": PRESET, "section": f"{evidence.section_set.name}/{section.name}", "q": evidence.subject}
    searched = zip(evidence.source_types, cells, strict=True) if outcome else ()
    hits = tuple(_hits(outcome)) if outcome else ()
    found_count = len(outcome.hits) if outcome else 0
    return {
        "name": section.name,
        "title": section.title,
        "cells": tuple(
            {
                "presence": cell.presence.value,
                "word": _WORDS[cell.presence],
                "count": cell.count,
                "detail": _detail(name, cell, section),
            }
            for name, cell in searched
        ),
        "trace_id": outcome.id if outcome else None,
        # The query string that runs it in the Explorer.
        "again": urlencode({**pairs, **({"as": run_as} if run_as else {})}),
        "query": section.query(evidence.subject),
        "found": found_count,
        "more": found_count - len(hits),
        "milliseconds": f"{outcome.seconds * 1000:,.0f}" if outcome else "",
        "badges": badges(outcome.trace) if outcome else (),
        "hits": hits,
        "problem": found.problem,
    }


def _detail(source_type: str, cell: Cell, section: Section) -> str:
    chunks, needed = wording.counted(cell.count, "chunk"), section.quantity_floor(source_type)
    sentence = WORDS["presence_details"][cell.presence]
    return sentence.format(type=source_type, chunks=chunks, recovered=cell.recovered, needed=needed)


def _hits(outcome: SearchOutcome) -> Iterator[dict[str, Any]]:
    for hit in islice((hit for hit in outcome.hits if hit.facts is not None), MAX_HITS):
        connection = outcome.state.scope.inclusion(hit.chunk.connection_id).connection
        title, snippet = hit_text(hit, connection)
        yield {
            "chunk_id": hit.chunk_id,
            "title": title,
            "trail": hit.chunk.heading_path,
            "snippet": snippet,
            "source": connection.name,
            "source_type": hit.chunk.source_type,
            "place": wording.place(hit.chunk, hit.chunk.source_type),
            "score": f"{hit.score:.3f}",
            "badges": tuple(hit_badges(hit)),
        }


@dataclass(frozen=True, slots=True)
class _EvidenceParameters:
    section_set: str  #: Empty for the first set.
    section: str  #: Empty for all.
    subject: str
    compartments: tuple[str, ...]  #: Slugs; none for all.
    documents: tuple[UUID, ...]
    seconds: int
    run_as: str
    find: str  #: Finds documents to limit the run.
    runs: bool
    whole: bool  #: Whether the page includes the results instead of loading them later.

    @classmethod
    def read(cls, query: QueryDict) -> Self:
        ids = (id_in(text) for text in query.getlist("document"))
        seconds = whole_number(query.get("seconds", ""), DEFAULT_SECONDS, digits=3)
        return cls(
            section_set=query.get("set", ""),
            section=query.get("part", ""),
            subject=query.get("about", ""),
            compartments=tuple(dict.fromkeys(filter(None, query.getlist("in")))),
            documents=tuple(dict.fromkeys(it for it in ids if it))[:_MAX_DOCUMENTS],
            seconds=max(MIN_SECONDS, min(MAX_SECONDS, seconds)),
            run_as=query.get("as", ""),
            find=storable(query.get("find", "")).strip(),
            runs=query.get("run") == "1",
            whole=query.get("whole") == "1",
        )


@user_page("GET", varies=True)
def evidence(request: HtmxHttpRequest) -> HttpResponse:
    """Show the evidence page; it loads first, and then the results of a run."""
    viewer, asked = viewer_of(request), _EvidenceParameters.read(request.GET)
    searches = includes_results(request, whole=asked.whole, run_as=asked.run_as)
    context, status = _page(viewer, asked, request.GET, searches=searches)
    fragment = "explorer/evidence/_evidence_fragment.html"
    return render_page(request, "explorer/evidence/evidence.html", fragment, context, status=status)


def _page(viewer: User, asked: _EvidenceParameters, query: QueryDict, *, searches: bool) -> tuple[dict[str, Any], int]:
    """Return the page's context and status; unless it searches, the page loads the results later."""
    context: dict[str, Any] = {
        "asked": asked,
        "principal": Principal(viewer),
        "announcement": "",
        "sets": section_sets(),
        "max_subject": MAX_SUBJECT,
        "min_seconds": MIN_SECONDS,
        "max_seconds": MAX_SECONDS,
        "user_menu": user_menu(viewer, asked.run_as),
    }
    try:
        principal = principal_for(viewer, asked.run_as)
        context |= _around(principal, asked, query)
        if asked.runs and not searches:
            return context | {"is_loading": True}, 200
        return context | (_gathered(principal, asked, context["run_as"]) if asked.runs else {}), 200
    except CoreCubeError as error:
        return failed(error, "evidence", context)


def _around(principal: Principal, asked: _EvidenceParameters, query: QueryDict) -> dict[str, Any]:
    """Return the choices: compartments and documents that the principal can see.

    A document has its title, its source, and the query string with it, or without it if it was chosen.
    """
    scope = scope_for(principal)
    visible = Compartment.objects.filter(connections__in=scope.connection_ids).distinct().order_by("name")
    found = Document.objects.in_scope(scope).named(asked.find) if asked.find else Document.objects.none()
    rows = found.order_by("title", "pk").values_list("pk", "title", "connection__name")[: _MAX_CANDIDATES + 1]
    candidates = [(title, source, _switched(query, pk)) for pk, title, source in rows]
    # Compartments that the principal cannot see still limit the run.
    known = {it.slug for it in visible}
    # Documents that the reader may not see have no title.
    limited = Document.objects.in_scope(scope).filter(pk__in=asked.documents)
    titles = {pk: (title, source) for pk, title, source in limited.values_list("pk", "title", "connection__name")}
    return {
        "principal": principal,
        "run_as": run_as_name(principal),
        "chosen_set": asked.section_set or DEFAULT_SECTION_SET,
        "compartments": [
            *visible,
            *(Compartment(slug=slug, name=slug) for slug in asked.compartments if slug not in known),
        ],
        "chosen": [(*titles.get(pk, ("", "")), _switched(query, pk)) for pk in asked.documents],
        "candidates": candidates[:_MAX_CANDIDATES],
        "has_more": len(candidates) > _MAX_CANDIDATES,
    }


def _switched(query: QueryDict, document: UUID) -> str:
    """Return the query string with a document added, or removed if it is there; it does not start a run."""
    changed = query.copy()
    chosen = changed.getlist("document")
    text = str(document)
    changed.setlist("document", [it for it in chosen if it != text] if text in chosen else [*chosen, text])
    for name in ("run", "find"):
        changed.pop(name, None)
    return changed.urlencode()


def _gathered(principal: Principal, asked: _EvidenceParameters, run_as: str) -> dict[str, Any]:
    found = gather(
        EvidenceRequest(
            section_set=asked.section_set or DEFAULT_SECTION_SET,
            section=asked.section,
            subject=asked.subject,
            compartments=asked.compartments,
            documents=frozenset(asked.documents),
            budget_seconds=asked.seconds,
        ),
        principal=principal,
    )
    panel = evidence_panel(found, run_as=run_as)
    return {"panel": panel, "announcement": panel["announcement"]}
