"""The two sides of a comparison: a preset that runs now, what an evaluation run measured, or a logged search."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.formats import date_format

from corecube.access import Principal
from corecube.models import User
from corecube.scope import AccessScope
from explorer import wording
from explorer.components.badges import Badge, badges, had_vector
from explorer.components.preset_numbers import version_label
from explorer.components.run_label import label
from explorer.components.sections import has_sections
from explorer.wording import milliseconds
from retrieval.engine.pipeline import HYBRID
from retrieval.engine.state import Span
from retrieval.engine.types import QueryTerms, Ranking
from retrieval.evaluation import runs
from retrieval.evaluation.components import of_run as components_of
from retrieval.evaluation.components import resources_for
from retrieval.models import EvaluationRun, SearchRecord
from retrieval.presets.catalog import DEFAULT_PRESET, PRESETS
from retrieval.presets.consolidated.evidence.recovery import Diagnoses
from retrieval.presets.preset import PresetConfig
from retrieval.records.arrival import await_record
from retrieval.records.stored_trace import hits_of, spans_of
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

_LOG = "log"
_RUN = "run"
_DRAFT = "draft"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison."""

    preset: str
    draft: bool = False
    mode: str = HYBRID
    record: SearchRecord | None = None  #: The logged search; None if the preset runs now.
    #: The evaluation run with whose numbers and components the preset runs; None for the live version or the draft.
    measured: EvaluationRun | None = None

    @property
    def value(self) -> str:
        """Its name in an address: "corecube:draft:dense", "log:" and an id, "run:" and an id."""
        if self.record:
            return f"{_LOG}:{self.record.pk}"
        if self.measured:
            return f"{_RUN}:{self.measured.pk}"
        return f"{self.preset}:{_DRAFT if self.draft else 'live'}:{self.mode}"

    @property
    def label(self) -> str:
        """Its label: "General search", "General search draft: Vector only"."""
        if self.record:
            return f"Logged {date_format(timezone.localtime(self.record.at), 'j M Y, H:i')}"
        if self.measured:
            return f"Run of {label(self.measured)}"
        leg = "" if self.mode == HYBRID else f": {wording.mode_label(self.mode)}"
        return f"{wording.preset_title(self.preset)}{f' {_DRAFT}' if self.draft else ''}{leg}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of a side, live or logged."""

    side: Side
    query: str
    hits: Ranking
    seconds: float
    had_vector: bool = False
    notes: tuple[Badge, ...]
    config: PresetConfig | None  #: The settings; None if they are unknown.
    mode: str
    version: str
    fingerprint: str
    connections: int
    confidence: float | None
    trace_id: UUID
    terms: QueryTerms = field(default_factory=QueryTerms)
    at: datetime | None = None  #: When it was logged; None for a live run.
    trace: tuple[Span, ...] = ()  #: With the hits that each stage left; empty for a logged search.

    @property
    def time(self) -> str:
        """The time in milliseconds."""
        return milliseconds(self.seconds)


def read_side(text: str, viewer: User) -> Side:
    """Return the side that an address names.

    Raises Http404 for a logged search or an evaluation run that the viewer may not read, or that does not exist.
    """
    preset, _, rest = text.partition(":")
    if preset == _RUN:
        readable = runs.runs_for(Principal(viewer)) if viewer.is_admin else EvaluationRun.objects.none()
        measured = get_object_or_404(readable, pk=_id(rest))
        return Side(measured.preset, draft=measured.is_draft, measured=measured)
    if preset == _LOG:
        record_id = _id(rest)
        records = SearchRecord.objects.visible_to(viewer).select_related("user", "key")
        await_record(record_id)
        record = get_object_or_404(records, pk=record_id)
        return Side(record.preset, record=record)
    version, _, mode = rest.partition(":")
    return Side(preset or DEFAULT_PRESET, draft=version == _DRAFT, mode=mode or HYBRID)


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise Http404 from error


def now_of(record: SearchRecord) -> Side:
    """Return the same search with the live version of its preset."""
    return Side(record.preset, mode=record.trace.get("mode", HYBRID))


def opposite(side: Side) -> Side:
    """Return the default other side: the live version for a logged search or a draft, else another mode."""
    if side.record:
        return now_of(side.record)
    if side.draft or side.measured:
        return Side(side.preset, mode=side.mode)
    return Side(side.preset, mode="dense" if side.mode == HYBRID else HYBRID)


def narrowing_of(record: SearchRecord, scope: AccessScope) -> tuple[str, ...]:
    """Return the slugs in scope that a logged request excluded."""
    narrowing = record.trace.get("narrowing", {})
    include, exclude = narrowing.get("include", ()), narrowing.get("exclude", ())
    slugs = (inclusion.connection.slug for inclusion in scope.included)
    return tuple(slug for slug in slugs if slug in exclude or (include and slug not in include))


def run(side: Side, asking: SearchRequest, principal: Principal) -> Run:
    """Return the result of a side: from the log, or by a search. Raises as `search` does.

    `asking` is the query of both sides; only a preset with sections uses its section.
    """
    return _logged(side, side.record) if side.record else _now(side, asking, principal)


def _now(side: Side, asking: SearchRequest, principal: Principal) -> Run:
    section = asking.section if has_sections(side.preset) else None
    # The sides do not share what they learn about missing source types.
    section = replace(section, diagnoses=Diagnoses()) if section else None
    request = replace(
        asking,
        preset=side.preset,
        draft=side.draft,
        mode=side.mode,
        section=section,
        surface=SearchRecord.Surface.EXPLORER,
    )
    resources = None
    if side.measured:
        request = runs.asking(side.measured, request, values=side.measured.values)
        resources = resources_for(components_of(side.measured))
    outcome = search(request, principal=principal, resources=resources)
    answerability = outcome.state.answerability
    return Run(
        side=side,
        query=outcome.state.query.text,
        hits=outcome.hits,
        seconds=outcome.seconds,
        had_vector=had_vector(outcome.trace),
        notes=badges(outcome.trace),
        config=outcome.config,
        mode=side.mode,
        version=version_label(side.measured.version or 0 if side.measured else outcome.version_number),
        fingerprint=outcome.preset_version,
        connections=len(outcome.state.scope.included),
        confidence=answerability.confidence if answerability else None,
        trace_id=outcome.id,
        terms=outcome.state.terms,
        trace=outcome.trace,
    )


def _logged(side: Side, record: SearchRecord) -> Run:
    trace = record.trace
    spans = spans_of(trace)
    config = None
    if record.preset in PRESETS and "values" in trace:
        config, _ = PRESETS[record.preset].defaults.fitted(trace["values"])
    return Run(
        side=side,
        query=record.query,
        hits=hits_of(trace),
        seconds=record.milliseconds / 1000,
        had_vector=had_vector(spans),
        notes=badges(spans),
        config=config,
        mode=trace.get("mode", HYBRID),
        version=version_label(trace.get("version", 0)) + (", as a draft" if trace.get("is_draft") else ""),
        fingerprint=record.preset_version,
        connections=len(record.connection_ids),
        confidence=record.confidence,
        trace_id=record.pk,
        at=record.at,
    )
