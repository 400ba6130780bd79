"""Having a language model judge candidates, within the rules on who may read what."""

import asyncio
import logging
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from asgiref.sync import async_to_sync

from corecube.access import Principal
from corecube.database import release_connection
from retrieval.engine.types import Ranking, TokenCounter
from retrieval.errors import JudgingError, JudgingForbiddenError, JudgingTimeoutError, NoJudgeError
from retrieval.llm.model_provider import ModelProvider
from retrieval.llm.routes import models_over
from retrieval.models import Usage
from retrieval.presets.contextpack.judge import Judged, RelevanceCache, RelevanceConfig
from retrieval.presets.contextpack.judging import Judging
from retrieval.search.runtime import admission

logger = logging.getLogger(__name__)


@cache
def kept_relevance() -> RelevanceCache:
    """Return the judgments that this process keeps."""
    return RelevanceCache(entries=512)


def answerer_counter(principal: Principal, connections: Iterable[int]) -> TokenCounter | None:
    """Return what counts the tokens of who would answer from these connections; None without its tokenizer."""
    window = next((it.window for it in models_over(principal, connections).providers), None)
    return window.counter if window else None


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """Asks the language models that may judge for a principal, in the order of the routing rules."""

    principal: Principal
    #: Whether the question was made to stand alone: its words may come from anything that the principal has read.
    is_carried: bool = False
    #: Keys of the usage that judging took.
    _noted: list[int] = field(default_factory=list, init=False, repr=False, compare=False)

    def __call__(self, question: str, hits: Ranking, *, config: RelevanceConfig, seconds: float) -> Judged:
        """Return the judgments of the first model that gives any; raise JudgingError, NoJudgeError without a model.

        While it is asked neither a turn nor a database connection is held.
        """
        providers = self._providers(hits)
        if seconds <= 0:
            raise JudgingTimeoutError("No time was left for the language model.")
        # Nobody else can tell by the speed what was asked before.
        owner = f"{self.principal.user.pk}"
        judgings = [Judging(it, question, hits, config, owner, kept_relevance()) for it in providers]
        release_connection()
        with admission().left(wait_seconds=seconds):
            return async_to_sync(_first_judging)(judgings, seconds)

    def charge(self, record: uuid.UUID) -> None:
        """Have what judging took counted to the search that it was for, which is stored by now."""
        if self._noted:
            Usage.objects.filter(pk__in=self._noted).update(record=record)

    def _providers(self, hits: Ranking) -> list[ModelProvider]:
        connections = frozenset(hit.chunk.connection_id for hit in hits)
        models = models_over(self.principal, connections, usage_ids=self._noted)
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
