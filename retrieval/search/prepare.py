"""The second step of a search: the numbers, the scope and the pipeline that it runs with."""

from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Final

from django.utils import timezone

from corecube.access import Principal, scope_for
from corecube.scope import AccessScope
from retrieval.engine.deadline import Deadline
from retrieval.engine.pipeline import HYBRID, Pipeline
from retrieval.engine.query import read_query
from retrieval.engine.state import Note, RequestFilter, SearchState
from retrieval.index.filters import metadata_prefilter
from retrieval.index.reading import bounded
from retrieval.presets.consolidated.evidence.rerank_guard import RerankGuards
from retrieval.presets.consolidated.evidence.section_state import SectionState
from retrieval.presets.contextpack.judge import Judge
from retrieval.presets.preset import PresetConfig
from retrieval.search import runtime
from retrieval.search.configuration import Configuration, configuration_of
from retrieval.search.relevance import ModelJudge, answerer_counter
from retrieval.search.request import AllowedRequest, SearchRequest
from retrieval.stages.resources import Resources
from retrieval.stages.variants import with_variants

#: Share of the embedding model's time in which it may be measured, where a search is the first to need that.
_SCALE_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class PreparedSearch:
    """Everything that a search runs with."""

    allowed: AllowedRequest
    configuration: Configuration
    resources: Resources
    pipeline: Pipeline
    state: SearchState


def prepare(allowed: AllowedRequest, resources: Resources | None) -> PreparedSearch:
    """Return what a search runs with; its time counts from here.

    Without `resources` it runs with the installation's own. Raises UnknownVersionError, OverridesError,
    UnknownConnectionError, UnknownModeError, ModelMissingError, DatabaseUnavailableError and SearchTimeoutError.
    """
    request, preset, started = allowed.request, allowed.preset, perf_counter()
    with bounded(Deadline(_seconds(request, preset.defaults), started, perf_counter)):
        configuration = replace(
            configuration_of(preset, overrides=request.overrides, draft=request.draft), mode=request.mode
        )
    config = configuration.config
    seconds = _seconds(request, config)
    deadline = Deadline(
        seconds * (1 + len(request.variants)), started, perf_counter, config.soft_share, config.time.embed_share
    )
    with bounded(deadline):
        scope = scope_for(allowed.principal, request.narrowing, reveal_excluded=request.reveal_excluded)
        request_filter = request.filter
        if request.conditions is not None:
            metadata = metadata_prefilter(request.conditions, scope=scope, timeout_seconds=seconds)
            request_filter = replace(request_filter, metadata=metadata)
        state = _state(allowed, configuration, scope, deadline, request_filter=request_filter)
        tools = _with_models(resources or runtime.resources(), request, allowed.principal, deadline)
        used = tools
        if configuration.mode != HYBRID:
            # A confidence was calibrated for all legs, not for one.
            used = replace(used, calibrations={})
        if configuration.is_draft:
            # The numbers of a draft must not become those of the guards that all searches share.
            used = used.with_part(RerankGuards, RerankGuards())
        pipeline = preset.build(config, used).in_mode(configuration.mode)
    pipeline = with_variants(pipeline, request.variants, characters=config.query.retrieval_characters)
    return PreparedSearch(allowed, configuration, tools, pipeline, state)


def _seconds(request: SearchRequest, config: PresetConfig) -> float:
    seconds, left = config.deadline_ms / 1000, request.section_seconds
    return seconds if left is None else max(0.0, min(seconds, left))


def _state(
    allowed: AllowedRequest,
    configuration: Configuration,
    scope: AccessScope,
    deadline: Deadline,
    *,
    request_filter: RequestFilter,
) -> SearchState:
    request, principal, config = allowed.request, allowed.principal, configuration.config
    section, notes = request.section, []
    if request.is_rewritten:
        notes.append(Note("rewritten", f"asked: {request.original_text}; searched for: {request.text}"))
    if request.conditions:
        names = ", ".join(request.conditions.names)
        notes.append(Note("filtered", f"Only documents that meet conditions on: {names}."))
    if request.filter:
        notes.append(Note("filtered", "Only what the request's own filter leaves."))
    return SearchState(
        query=read_query(allowed.text, characters=config.query.retrieval_characters),
        scope=scope,
        deadline=deadline,
        now=request.now or timezone.now(),
        top_k=request.top_k or config.default_top_k,
        is_admin=principal.is_admin and not principal.is_narrowed,
        filter=request_filter,
        parts={SectionState: SectionState(ask=section, request_filter=request_filter)} if section else {},
        trace=configuration.span(tuple(notes)),
    )


def _with_models(tools: Resources, request: SearchRequest, principal: Principal, deadline: Deadline) -> Resources:
    """Return the resources with the principal's language models: to judge, and to count in the tokens of.

    Nothing is looked up for it yet. The embedding model is measured within the search's time alone.
    """
    tools = replace(tools, scale_seconds=_SCALE_SHARE * deadline.embed_seconds)
    if tools.part(Judge) is not None:
        return tools
    judge = ModelJudge(principal, is_carried=request.is_rewritten)
    return replace(tools, answerer_counter=partial(answerer_counter, principal)).with_part(Judge, Judge(judge))
