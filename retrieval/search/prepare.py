"""The second step of a search: the numbers, the scope, the pipeline and the language models that it runs with."""

import asyncio
import logging
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from time import perf_counter
from typing import Final

from asgiref.sync import async_to_sync
from django.utils import timezone

from corecube.access import Principal, scope_for
from corecube.database import release_connection
from corecube.scope import AccessScope
from retrieval.engine.deadline import Deadline
from retrieval.engine.pipeline import HYBRID, Pipeline
from retrieval.engine.query import read_query
from retrieval.engine.state import Note, RequestFilter, SearchState
from retrieval.engine.types import Ranking, TokenCounter
from retrieval.errors import JudgingError, JudgingForbiddenError, JudgingTimeoutError, NoJudgeError
from retrieval.index.filters import metadata_prefilter
from retrieval.index.reading import bounded
from retrieval.llm.model_provider import ModelProvider
from retrieval.llm.routes import models_over
from retrieval.models import Usage
from retrieval.presets.consolidated.evidence.rerank_guard import RerankGuards
from retrieval.presets.consolidated.evidence.section_state import SectionState
from retrieval.presets.contextpack.config import ContextPackConfig
from retrieval.presets.contextpack.judge import Judge, Judged, RelevanceCache, RelevanceConfig
from retrieval.presets.contextpack.judging import Judging
from retrieval.presets.helix.optional_rerank import QueuedTier
from retrieval.presets.preset import Preset, PresetConfig
from retrieval.search import runtime
from retrieval.search.configuration import Configuration, configuration_of
from retrieval.search.request import AllowedRequest, SearchRequest
from retrieval.stages.resources import Resources
from retrieval.stages.variants import with_variants

logger = logging.getLogger(__name__)
#: Share of the embedding model's time in which it may be measured, where a search is the first to need that.
_SCALE_SHARE: Final = 0.25


@cache
def kept_relevance() -> RelevanceCache:
    """Return the latest judgments."""
    return RelevanceCache(entries=512, seconds=3600, kind="judgments")


def answerer_counter(principal: Principal, connections: Iterable[int]) -> TokenCounter | None:
    """Return what counts the tokens of who would answer from these connections; None without its tokenizer."""
    window = next((it.window for it in models_over(principal, connections).providers), None)
    return window.counter if window else None


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """Calls the language models that may judge for a principal, in the order of the routing rules."""

    principal: Principal
    #: Whether the question was made standalone: its words may come from anything that the principal has read.
    is_carried: bool = False
    #: Keys of the usage that judging took.
    _noted: list[int] = field(default_factory=list, init=False, repr=False, compare=False)

    def __call__(self, question: str, hits: Ranking, *, config: RelevanceConfig, seconds: float) -> Judged:
        """Return the judgments of the first model that gives any; raise JudgingError, NoJudgeError without a model.

        During the call neither a turn nor a database connection is held.
        """
        providers = self._providers(hits, config.model)
        if seconds <= 0:
            raise JudgingTimeoutError("No time was left for the language model.")
        # Nobody else can infer earlier queries from the speed.
        owner = f"{self.principal.user.pk}"
        judgings = [Judging(it, question, hits, config, owner, kept_relevance()) for it in providers]
        release_connection()
        with runtime.admission().left(wait_seconds=seconds):
            return async_to_sync(_first_judging)(judgings, seconds)

    @property
    def is_charged(self) -> bool:
        """Whether judging took anything."""
        return bool(self._noted)

    def charge(self, record: uuid.UUID) -> None:
        """Have what judging took counted to the search that it was for, which is stored by now."""
        Usage.objects.filter(pk__in=self._noted).update(record=record)

    def _providers(self, hits: Ranking, preferred: str) -> list[ModelProvider]:
        connections = frozenset(hit.chunk.connection_id for hit in hits)
        models = models_over(self.principal, connections, usage_ids=self._noted, preferred=preferred)
        if not models.providers and not models.notices:
            raise NoJudgeError
        allowed = [it for it in models.providers if it.bindings.allow(it.id, connections)]
        if self.is_carried:
            allowed = [it for it in allowed if it.bindings.allow_unknown_origin(it.id)]
        if not allowed:
            raise JudgingForbiddenError
        return allowed


async def _first_judging(judgings: Sequence["Judging"], seconds: float) -> Judged:
    """Return what the first model gives that does not fail, all within the time; raise the last one's JudgingError.

    Each may take an even share of the time that is left, so that one that hangs leaves time for those behind it.
    """
    clock = asyncio.get_running_loop().time
    ends = clock() + seconds
    failed = JudgingError()
    for place, judging in enumerate(judgings):
        share = max(0.0, ends - clock()) / (len(judgings) - place)
        try:
            return await judging.judged(clock() + share)
        except JudgingError as error:
            failed = error
            logger.warning("relevance.failed model=%s code=%s", judging.provider.name, error.code)
    raise failed


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
        configuration = replace(_configuration(preset, request), mode=request.mode)
    if isinstance(configuration.config, ContextPackConfig):
        configuration = replace(configuration, config=configuration.config.with_model(request.judge_model))
    config = configuration.config
    seconds = _seconds(request, config)
    budget = seconds * (1 + len(request.variants)) + (config.queued_seconds if request.is_queued else 0.0)
    deadline = Deadline(budget, started, perf_counter, config.soft_share, config.time.embed_share)
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
        if configuration.is_draft or request.contender or request.values is not None:
            # Numbers that are not live must not become those of the guards that all searches share.
            used = used.with_part(RerankGuards, RerankGuards())
        if request.is_queued:
            used = used.with_part(QueuedTier, QueuedTier())
        pipeline = preset.build(config, used).in_mode(configuration.mode)
    pipeline = with_variants(pipeline, request.variants, characters=config.query.retrieval_characters)
    return PreparedSearch(allowed, configuration, tools, pipeline, state)


def _configuration(preset: Preset, request: SearchRequest) -> Configuration:
    if it := request.contender:
        return configuration_of(preset, values=it.values, number=it.number)
    if (values := request.values) is not None:
        return configuration_of(preset, values=values, number=request.version)
    return configuration_of(preset, overrides=request.overrides, draft=request.draft)


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
        notes.append(Note("rewritten", f"original query: {request.original_text}; searched for: {request.text}"))
    if request.conditions:
        names = ", ".join(request.conditions.names)
        notes.append(Note("filtered", f"Limited to documents that meet conditions on: {names}."))
    if request.filter:
        notes.append(Note("filtered", "Limited by the filter of the request."))
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
