"""The query log: the list of searches, and one search in detail."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone

from corecube.access import Principal, scope_for
from corecube.http import HtmxHttpRequest
from corecube.scope import AccessScope
from explorer import wording
from explorer.charts.chart import ABSENT
from explorer.charts.waterfall import waterfall
from explorer.components.answerability import answerability_panel
from explorer.components.bars import score_bar
from explorer.components.drops import ChunkLabels, chunk_label
from explorer.components.funnel import opened_part, span_rows, stored_funnel
from explorer.components.preset_numbers import version_label
from explorer.components.sections import section_label
from explorer.components.user_menu import user_menu
from explorer.pages.evaluation.judge import case_context
from explorer.pages.log.filters import SINCE, LogFilter, Place
from explorer.pages.log.panels import badges_of, log_flags, log_matches, log_page, log_row, surface_label, with_facts
from explorer.pages.log.replay import config_then, replay, since_then
from explorer.viewer import render_page, user_page, viewer_of, wants_fragment
from retrieval.engine.types import ChunkId
from retrieval.models import Chunk, SearchRecord
from retrieval.presets.catalog import PRESETS
from retrieval.presets.preset import PresetConfig
from retrieval.records.arrival import await_record
from retrieval.records.stored_trace import answerability_of, hits_of, ranking_of, spans_of

_Figure = tuple[str, str]  #: A label and its value.
_SINCE_LABELS: Final = {"hour": "Last hour", "day": "Last 24 hours", "week": "Last 7 days", "month": "Last 30 days"}


class Presence(StrEnum):
    """The current state of a chunk that was found."""

    SAME = "same"
    CHANGED = "changed"
    GONE = "gone"
    HIDDEN = "hidden"  #: It may exist, but the reader may not see it.


@dataclass(frozen=True, slots=True)
class Found:
    """The chunks of a record that exist now, within its reader's scope."""

    labels: ChunkLabels
    hashes: Mapping[ChunkId, str]
    outside: Collection[ChunkId]  #: Chunks that exist outside the reader's scope; set for an admin only.
    tells_gone: bool
    scope: AccessScope

    def presence(self, chunk_id: ChunkId, content_hash: str) -> Presence:
        """Return the state of a chunk. A user who is not an admin learns only whether they can see it."""
        if chunk_id in self.labels:
            return Presence.SAME if content_hash in {"", self.hashes[chunk_id]} else Presence.CHANGED
        is_gone = self.tells_gone and chunk_id not in self.outside
        return Presence.GONE if is_gone else Presence.HIDDEN


def _find_chunks(record: SearchRecord, scope: AccessScope, *, tells_gone: bool) -> Found:
    """Return the chunks of a record that exist now, within the reader's `scope`."""
    spans = spans_of(record.trace)
    named = {hit.chunk_id for hit in hits_of(record.trace)} | {drop.chunk_id for span in spans for drop in span.drops}
    sources = {inclusion.connection.id: inclusion.connection.name for inclusion in scope.included}
    here = Chunk.objects.filter(
        document_id__in={it.document_id for it in named}, ordinal__in={it.ordinal for it in named}
    )
    labels, hashes = {}, {}
    rows = here.filter(connection_id__in=sources).values_list(
        "document_id", "ordinal", "connection_id", "content_hash", "document__title", "heading_path"
    )
    for document, ordinal, connection_id, content_hash, title, path in rows:
        chunk_id = ChunkId(document, ordinal)
        labels[chunk_id] = chunk_label(title, path, source=sources[connection_id])
        hashes[chunk_id] = content_hash
    others = here.exclude(connection_id__in=sources).values_list("document_id", "ordinal") if tells_gone else ()
    return Found(labels, hashes, {ChunkId(*it) for it in others}, tells_gone, scope)


def _record_panels(record: SearchRecord, found: Found, config: PresetConfig) -> dict[str, Any]:
    spans = spans_of(record.trace)
    hits = tuple(_hits(record, found, config))
    listed = tuple(hit for hit in hits if hit["presence"] is not Presence.HIDDEN)
    username = record.user.username if record.user else ""
    return {
        "trace_id": record.pk,
        "preset": record.preset,
        "preset_version": record.preset_version,
        "version": version_label(record.trace.get("version", 0)),
        "is_draft": record.trace.get("is_draft", False),
        "principal": f"{username} via key {record.key.prefix}…" if record.key else username,
        "funnel": stored_funnel(spans, config, found.labels, found.scope),
        "trace": span_rows(spans, found.scope),
        "waterfall": waterfall(spans, deadline_ms=config.deadline_ms, soft_share=config.soft_share),
        "hits": listed,
        "hidden": len(hits) - len(listed),
        "answerability": answerability_panel(answerability_of(record.trace), config.answerability),
        "presences": {kind.value: sum(hit["presence"] is kind for hit in hits) for kind in Presence},
    }


def _hits(record: SearchRecord, found: Found, config: PresetConfig) -> Iterator[dict[str, Any]]:
    trace = record.trace
    hashes = dict(ranking_of(trace))
    legs = frozenset(span.stage for span in spans_of(trace) if span.parent)
    teams = {chunk: team for chunk, _, team in trace.get("interleaving", {}).get("teams", ())}
    citations = {passage["chunk"]: passage["number"] for passage in trace.get("passages", ())}
    for rank, hit in enumerate(hits_of(trace), start=1):
        yield {
            "rank": rank,
            "chunk_id": hit.chunk_id,
            "label": found.labels.get(hit.chunk_id, ""),
            "presence": found.presence(hit.chunk_id, hashes.get(hit.chunk_id, "")),
            "score": hit.score,
            "score_type": hit.score_type.value,
            "bar": score_bar(hit, legs=legs, full=config.highest_score),
            "legs": tuple((wording.leg_label(leg), str(hit.ranks.get(leg, ABSENT))) for leg in sorted(legs)),
            "contributions": tuple(_figures(hit.contributions, wording.signal_label)),
            "signals": tuple(_figures(hit.signals, lambda name: name.replace("_", " "))),
            "matches": hit.matches,
            "citation": citations.get(str(hit.chunk_id)),
            "team": teams.get(str(hit.chunk_id)),
        }


def _figures(values: Mapping[str, float], label: Callable[[str], str]) -> Iterator[_Figure]:
    for name, value in values.items():
        yield label(name), f"{value:.4f}".rstrip("0").rstrip(".")


@user_page("GET", varies=True)
def log(request: HtmxHttpRequest) -> HttpResponse:
    """List the searches, newest first: all for an admin, anyone else's own."""
    viewer, now, wanted = viewer_of(request), timezone.now(), LogFilter.read(request.GET)
    matches = log_matches(SearchRecord.objects.visible_to(viewer), wanted, now)
    page = log_page(
        matches,
        before=Place.read(request.GET.get("before", "")),
        after=Place.read(request.GET.get("after", "")),
        now=now,
    )
    context = {
        "shows_people": viewer.is_admin,
        "wanted": wanted,
        "flags": list(log_flags(wanted, matches.counts)),
        "total": matches.counts["all"],
        "page": page,
        "presets": list(PRESETS),
        "surfaces": [(value, surface_label(value)) for value in SearchRecord.Surface.values],
        "sinces": [(word, _SINCE_LABELS[word]) for word in SINCE],
        # A fragment has no form.
        "user_menu": None if wants_fragment(request) else user_menu(viewer, wanted.user, with_inactive=True),
    }
    return render_page(request, "explorer/log/log.html", "explorer/log/_log_fragment.html", context)


@user_page("GET", varies=True)
def record(request: HtmxHttpRequest, record_id: UUID) -> HttpResponse:
    """Show one search: its query, stages and hits, and what changed since; this does not search."""
    viewer, now = viewer_of(request), timezone.now()
    await_record(record_id)
    found = get_object_or_404(with_facts(SearchRecord.objects.visible_to(viewer)), pk=record_id)
    scope = scope_for(Principal(viewer))
    chunks = _find_chunks(found, scope, tells_gone=viewer.is_admin)
    panels = _record_panels(found, chunks, config_then(found))
    if part := opened_part(request, panels):
        return render(request, *part)
    context = {
        "record": found,
        "row": log_row(found, now),
        "badges": list(badges_of(found)),
        "section_named": section_label(named) if (named := found.trace.get("section", "")) else "",
        "asked": {name: request.GET.get(name, "") for name in ("part", "stage")},
        "panels": panels,
        "since": since_then(found, scope),
        "replay": (again := replay(found, viewer)),
        "compare": f"{reverse('explorer:compare')}?a=log:{found.pk}" if again.address else "",
        **case_context(viewer, trace_id=found.pk, query=found.query),
    }
    return render(request, "explorer/log/record.html", context)
