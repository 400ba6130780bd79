"""Searching as everyone does it: pages, API, commands and evaluation all go through `search`."""

import logging
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from time import perf_counter
from typing import Final

from django.conf import settings
from django.utils import timezone

from corecube.access import Principal, ScopeRequest, scope_for
from corecube.arrivals import begun
from corecube.errors import InvalidRequestError, NotPermittedError
from corecube.sanitise import storable
from corecube.scope import AccessScope
from retrieval.engine.deadline import Deadline
from retrieval.engine.metadata_conditions import Conditions
from retrieval.engine.pipeline import HYBRID, Pipeline
from retrieval.engine.query import read_query
from retrieval.engine.state import Note, RequestFilter, SearchState, Span
from retrieval.engine.stored_filter import AskedFilter, filter_json
from retrieval.engine.types import Passage, Ranking
from retrieval.errors import EmptyQueryError, QueryTooLongError, SearchTimeoutError
from retrieval.index.kept import metadata_prefilter
from retrieval.index.reading import bounded
from retrieval.index.writer import add_later
from retrieval.models import SearchRecord
from retrieval.presets.catalog import DEFAULT_PRESET, preset_named
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.rerank_guard import RerankGuards
from retrieval.presets.consolidated.evidence.section_state import SectionAsk, SectionState
from retrieval.presets.contextpack.judge import Judge
from retrieval.presets.preset import Preset, PresetConfig
from retrieval.ranking.score_rounding import round_for_viewer
from retrieval.search import runtime
from retrieval.search.configuration import Configuration, configuration_of
from retrieval.search.latency_metrics import observe_search
from retrieval.search.relevance import ModelJudge, answerer_counter
from retrieval.search.tracing import trace_json
from retrieval.stages.resources import Resources
from retrieval.stages.variants import with_variants

logger = logging.getLogger(__name__)

#: Share of the embedding model's time in which it may be measured, where a search is the first to need that.
_SCALE_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What is asked, and how."""

    text: str
    #: What was typed, where `text` is a follow-up question that was made to stand alone; the trace says so.
    asked: str = ""
    preset: str = DEFAULT_PRESET
    #: Hits wanted, 1 to 100; None for as many as the preset has of itself.
    top_k: int | None = 10
    narrowing: ScopeRequest = field(default_factory=ScopeRequest)
    #: What is left of the documents in scope, beside what the preset's router reads from the text.
    filter: RequestFilter = field(default_factory=RequestFilter)
    #: Searches only documents whose metadata meet these, within the scope.
    conditions: Conditions | None = None
    #: Lists the connections outside the scope with their reason: only for a viewer who is an admin.
    reveal_excluded: bool = False
    #: Numbers for this search alone, by dotted name; what costs time they can only lower.
    overrides: Mapping[str, object] = field(default_factory=dict)
    #: Runs with the preset's draft instead of its live version: only for an admin.
    draft: bool = False
    #: "hybrid" runs every leg of the preset; a leg's name, such as "dense" or "fulltext", that leg alone.
    mode: str = HYBRID
    #: Other ways to put the question that are searched for too, written beforehand; the search takes longer by each.
    variants: tuple[str, ...] = ()
    #: The section that evidence is gathered for, with the preset that has sections; `text` is its query then.
    section: SectionAsk | None = None
    #: Seconds within which it has to begin, or it is refused; a section's time, where that is less, holds too.
    budget_seconds: float = 15.0
    #: When it is asked: what ages, times in words and accesses are counted from; None for the present moment.
    now: datetime | None = None
    #: Where it is asked, for the log.
    surface: SearchRecord.Surface = SearchRecord.Surface.COMMAND


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """What a search found and did."""

    #: Names the stored trace.
    id: uuid.UUID
    preset: Preset
    #: Fingerprint of the preset's stages and every number: it changes when either does.
    preset_version: str
    state: SearchState
    configuration: Configuration = field(default_factory=Configuration)
    #: What it searched with, where its answer is to be written with the same.
    resources: Resources | None = None
    #: Whether the store took the trace in time.
    is_recorded: bool = True

    @property
    def record_id(self) -> uuid.UUID | None:
        """The id of the stored trace, for what refers to it; None where it was not stored."""
        return self.id if self.is_recorded else None

    @property
    def config(self) -> PresetConfig:
        """The numbers that the search ran with."""
        return self.configuration.config

    @property
    def version_number(self) -> int:
        """The preset's version that it ran with; 0 for the shipped defaults."""
        return self.configuration.number

    @property
    def hits(self) -> Ranking:
        """The hits wanted, best first; none when the time was up before their access was checked again."""
        return self.state.hits[: self.state.top_k] if self.state.access_checked else ()

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The numbered context."""
        return self.state.passages

    @property
    def trace(self) -> tuple[Span, ...]:
        """One span per stage."""
        return self.state.trace

    @property
    def skipped(self) -> str:
        """Why nothing was searched, in a sentence; empty where something was."""
        return next((note.text for note in self.state.notes if note.code == "route_skip"), "")

    @property
    def seconds(self) -> float:
        """Time from the request to the last stage's end."""
        return sum(span.seconds for span in self.state.trace if not span.parent)


def search(request: SearchRequest, *, principal: Principal, resources: Resources | None = None) -> SearchOutcome:
    """Search as `principal` and store the trace; without `resources`, with the installation's own.

    A trace that the store does not take in time is given up. Raises EmptyQueryError, QueryTooLongError,
    OverloadedError, UnknownPresetError, UnknownModeError, UnknownVersionError, UnknownConnectionError,
    NotPermittedError, OverridesError, ModelMissingError, StageError, DatabaseUnavailableError, or SearchTimeoutError
    where the time is up before it is known what may be searched.
    """
    text = checked_query(request.text)
    admission = resources.admission if resources else runtime.admission()
    with admission.query(budget_seconds=_budget(request)) as waited_seconds:
        outcome = _searched(_after(request, waited_seconds), text, principal, resources)
    observe_search(outcome.preset.name, outcome.seconds, outcome.trace)
    begun()
    return outcome


def _budget(request: SearchRequest) -> float:
    """Return the seconds that a search has until it begins."""
    left = request.section.seconds if request.section else None
    return request.budget_seconds if left is None else max(0.0, min(request.budget_seconds, left))


def _after(request: SearchRequest, waited_seconds: float) -> SearchRequest:
    """Return the request as it is after a wait, which is taken from what its section's run has left."""
    if request.section is None or request.section.seconds is None:
        return request
    return replace(request, section=replace(request.section, seconds=request.section.seconds - waited_seconds))


def _searched(request: SearchRequest, text: str, principal: Principal, resources: Resources | None) -> SearchOutcome:
    """Search for a text that was checked; time counts from here."""
    started = perf_counter()
    preset = preset_named(request.preset)
    with bounded(Deadline(_seconds(request, preset.defaults), started, perf_counter)):
        configuration = _configuration(request, preset, principal)
    config = configuration.config
    seconds = _seconds(request, config)
    whole = seconds * (1 + len(request.variants))
    deadline = Deadline(whole, started, perf_counter, config.soft_share, config.time.embed_share)
    with bounded(deadline):
        scope = scope_for(principal, request.narrowing, reveal_excluded=request.reveal_excluded)
        kept = _filter(request, scope, seconds=seconds)
        state = SearchState(
            query=read_query(text, characters=config.query.retrieval_characters),
            scope=scope,
            deadline=deadline,
            now=request.now or timezone.now(),
            top_k=request.top_k or config.usual_top_k,
            is_admin=principal.is_admin and not principal.is_narrowed,
            filter=kept,
            parts={SectionState: SectionState(ask=request.section, asked_filter=kept)} if request.section else {},
            trace=configuration.span(tuple(_notes(request))),
        )
        tools = _with_models(resources or runtime.resources(), request, principal, deadline)
        outcome = _run(request, preset, configuration, tools, state)
        return _recorded(outcome, request, principal, index=tools.index.id)


def _configuration(request: SearchRequest, preset: Preset, principal: Principal) -> Configuration:
    """Return the numbers to search with; raise where the principal, or the preset, does not allow the request."""
    if not principal.may_use(preset.name):
        raise NotPermittedError("This API key may not use that preset.")
    if request.section is not None and not isinstance(preset.defaults, ConsolidatedConfig):
        raise InvalidRequestError(f"The preset {preset.name!r} has no sections.")
    if request.draft and not (principal.actor or principal).is_admin:
        raise NotPermittedError("Only an admin may search with a draft.")
    found = configuration_of(preset, overrides=request.overrides, draft=request.draft)
    return replace(found, mode=request.mode)


def _run(
    request: SearchRequest, preset: Preset, configuration: Configuration, tools: Resources, state: SearchState
) -> SearchOutcome:
    """Return what the preset's pipeline makes of a state."""
    config = configuration.config
    pipeline = with_variants(
        _pipeline(preset, configuration, tools), request.variants, characters=config.query.retrieval_characters
    )
    version = preset.version(pipeline, config)
    return SearchOutcome(uuid.uuid4(), preset, version, round_for_viewer(pipeline.run(state)), configuration, tools)


def _seconds(request: SearchRequest, config: PresetConfig) -> float:
    """Return how long a search may take: as the preset says, and as the section's run has left for it."""
    own = config.deadline_ms / 1000
    if request.section is None or request.section.seconds is None:
        return own
    return max(0.0, min(own, request.section.seconds))


def _with_models(tools: Resources, request: SearchRequest, principal: Principal, deadline: Deadline) -> Resources:
    """Return the resources with the principal's language models: to judge, and to count in the tokens of.

    Nothing is looked up for it yet. The embedding model is measured within the search's time alone.
    """
    tools = replace(tools, scale_seconds=_SCALE_SHARE * deadline.embed_seconds)
    if tools.part(Judge) is not None:
        return tools
    judge = ModelJudge(principal, is_carried=request.asked not in {"", request.text})
    return replace(tools, answerer_counter=partial(answerer_counter, principal)).with_part(Judge, Judge(judge))


def _filter(request: SearchRequest, scope: AccessScope, *, seconds: float) -> RequestFilter:
    """Return what a request leaves of its scope, its conditions on metadata looked up."""
    if request.conditions is None:
        return request.filter
    return replace(request.filter, kept=metadata_prefilter(request.conditions, scope=scope, timeout_seconds=seconds))


def _notes(request: SearchRequest) -> Iterator[Note]:
    """Yield what the trace says of a question that was made to stand alone, and of conditions."""
    if request.asked not in {"", request.text}:
        yield Note("rewritten", f"asked: {request.asked}; searched for: {request.text}")
    if request.conditions:
        names = ", ".join(request.conditions.names)
        yield Note("filtered", f"Only documents that meet conditions on: {names}.")
    if request.filter:
        yield Note("filtered", "Only what the request's own filter leaves.")


def _pipeline(preset: Preset, configuration: Configuration, resources: Resources) -> Pipeline:
    """Return the preset's pipeline in the mode asked for; a confidence was calibrated for all legs, not for one."""
    if configuration.mode != HYBRID:
        resources = replace(resources, calibrations={})
    if configuration.is_draft:
        # The numbers of a draft must not become those of the guards that all searches share.
        resources = resources.with_part(RerankGuards, RerankGuards())
    return preset.build(configuration.config, resources).in_mode(configuration.mode)


def checked_query(text: str) -> str:
    """Return the query without blanks around it, as the store can hold it; raise EmptyQueryError, QueryTooLongError."""
    query = storable(text).strip()
    if not query:
        raise EmptyQueryError
    if len(query) > settings.CORECUBE_MAX_QUERY_CHARACTERS:
        message = f"The query has {len(query)} characters; the most is {settings.CORECUBE_MAX_QUERY_CHARACTERS}."
        raise QueryTooLongError(message)
    return query


def _recorded(outcome: SearchOutcome, request: SearchRequest, principal: Principal, *, index: int) -> SearchOutcome:
    """Return the outcome, its trace stored; a store that does not take it in time is not waited for."""
    try:
        add_later(_record(outcome, request, principal, index=index))
        judge = outcome.resources.part(Judge) if outcome.resources else None
        if judge is not None and isinstance(judge.ask, ModelJudge):
            judge.ask.charge(outcome.id)
    except SearchTimeoutError:
        logger.error("search.unrecorded id=%s preset=%s", outcome.id, outcome.preset.name)  # noqa: TRY400
        outcome = replace(outcome, is_recorded=False)
    logger.info("search.done id=%s preset=%s hits=%d", outcome.id, outcome.preset.name, len(outcome.hits))
    return outcome


def _record(outcome: SearchOutcome, request: SearchRequest, principal: Principal, *, index: int) -> SearchRecord:
    """Return the row of a search, with its trace."""
    state, judged = outcome.state, outcome.state.answerability
    keeps_text = settings.CORECUBE_KEEP_QUERY_TEXT
    ran_with = outcome.configuration.trace_json() | {"index": index, "values": _values(outcome)}
    narrowing = {"include": list(request.narrowing.include), "exclude": list(request.narrowing.exclude)}
    section = _section_json(request.section, keep_words=keeps_text) if request.section else {}
    left = filter_json(AskedFilter(request.filter, request.conditions), keep_words=keeps_text)
    return SearchRecord(
        id=outcome.id,
        user=principal.user,
        key=principal.key,
        actor=principal.actor,
        for_another=principal.actor is not None,
        surface=request.surface,
        preset=outcome.preset.name,
        preset_version=outcome.preset_version,
        query=state.query.text if keeps_text else "",
        top_k=request.top_k or outcome.config.usual_top_k,
        connection_ids=state.scope.connection_ids,
        milliseconds=outcome.seconds * 1000,
        hit_count=len(outcome.hits),
        degraded=list(state.degraded),
        is_ordinary=_is_ordinary(outcome),
        verdict=judged.verdict.value if judged else "",
        confidence=judged.confidence if judged else None,
        trace=ran_with | {"narrowing": narrowing, "filter": left} | section | trace_json(state, keep_words=keeps_text),
    )


def _is_ordinary(outcome: SearchOutcome) -> bool:
    """Return whether a search ran as its preset does: with its numbers, every leg, and at least its time."""
    configuration = outcome.configuration
    is_hurried = outcome.state.deadline.budget_seconds < outcome.config.deadline_ms / 1000
    return not (configuration.overrides or configuration.is_draft or configuration.mode != HYBRID or is_hurried)


def _section_json(ask: SectionAsk, *, keep_words: bool) -> dict[str, str]:
    """Return the section that was searched for; its subject is words of whoever asks."""
    return {"section": ask.name, **({"subject": ask.subject} if keep_words else {})}


def _values(outcome: SearchOutcome) -> dict[str, float]:
    """Return the numbers that a search ran with, where they are not the preset's shipped defaults."""
    if outcome.config == outcome.preset.defaults:
        return {}
    shipped = outcome.preset.defaults.values()
    return {name: value for name, value in outcome.config.values().items() if value != shipped[name]}
