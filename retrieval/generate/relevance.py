"""Having a language model judge candidates, within the rules on who may read what."""

import asyncio
import hashlib
import logging
import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from asgiref.sync import async_to_sync

from corecube.access import Principal
from corecube.database import let_go
from retrieval.contextpack.batches import batches
from retrieval.contextpack.judge import Judged, Spent
from retrieval.contextpack.kept import KeptRelevance
from retrieval.contextpack.rubric import PROMPT_VERSION, Shown, fenced, messages, response_format, shown
from retrieval.contextpack.types import Relevance
from retrieval.contextpack.verdicts import read_answer
from retrieval.contextpack_config import RelevanceConfig
from retrieval.errors import (
    AnswerBreakerOpenError,
    AnswerError,
    AnswerRefusedError,
    JudgingError,
    JudgingForbiddenError,
    JudgingTimeoutError,
    NoJudgeError,
)
from retrieval.generate.model_provider import ModelProvider, Spend
from retrieval.generate.providers import extractive_provider
from retrieval.generate.routes import route_over
from retrieval.generate.types import TokenUsage
from retrieval.generate.written import written
from retrieval.runtime import admission
from retrieval.types import ChunkId, Hit, Ranking

logger = logging.getLogger(__name__)

#: Prompts whose judgments are kept.
_KEPT: Final = 512
#: Prompts of one search that are at work at once.
_SIDE_BY_SIDE: Final = 8
#: Seconds before the second attempt, doubled before each further one; drawn from half to one and a half of it.
_FIRST_WAIT_SECONDS: Final = 0.25
_LONGEST_RESULT: Final = 600
_LONGEST_AROUND: Final = 1000
_RANDOM: Final = random.SystemRandom()
#: Asking again would come to the same.
_FINAL: Final = (AnswerRefusedError, AnswerBreakerOpenError)


@cache
def kept_relevance() -> KeptRelevance:
    """Return the judgments that this process keeps."""
    return KeptRelevance(_KEPT)


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """Asks the language models that may judge for a principal, in the order of the routing rules."""

    principal: Principal
    #: Whether the question was made to stand alone: its words may come from anything that the principal has read.
    is_carried: bool = False

    def __call__(self, question: str, hits: Ranking, *, config: RelevanceConfig, seconds: float) -> Judged:
        """Return the judgments of the first model that gives any; raise JudgingError, NoJudgeError without a model.

        While it is asked neither a turn nor a database connection is held.
        """
        providers = self._providers(hits)
        work = async_to_sync(_first_judging)
        let_go()
        with admission().left(wait_seconds=seconds):
            return work([Judging(it, question, hits, config, self._owner) for it in providers], seconds)

    @property
    def _owner(self) -> str:
        """Whom judgments are kept for: nobody else can tell by the speed what was asked before."""
        return f"{self.principal.user.pk}"

    def _providers(self, hits: Ranking) -> list[ModelProvider]:
        connections = frozenset(hit.chunk.connection_id for hit in hits)
        route = route_over(self.principal, connections, quoting=extractive_provider(None), record=None)
        models = [it for it in route.providers if isinstance(it, ModelProvider)]
        if not models and not route.notices:
            raise NoJudgeError
        allowed = [it for it in models if it.bindings.allow(it.id, connections)]
        if self.is_carried:
            allowed = [it for it in allowed if it.bindings.allow_anything(it.id)]
        if not allowed:
            raise JudgingForbiddenError
        return allowed


async def _first_judging(judgings: Sequence["Judging"], seconds: float) -> Judged:
    """Return what the first model gives that does not fail, all within the time; raise the last one's JudgingError."""
    ends = asyncio.get_running_loop().time() + seconds
    failed = JudgingError()
    for judging in judgings:
        try:
            return await judging.judged(ends)
        except JudgingError as error:
            failed = error
            logger.warning("relevance.failed model=%s code=%s", judging.provider.name, error.code)
    raise failed


@dataclass(frozen=True, slots=True)
class Judging:
    """One language model's work on the candidates of one search."""

    provider: ModelProvider
    question: str
    hits: Ranking
    config: RelevanceConfig
    owner: str
    kept: KeptRelevance = field(default_factory=kept_relevance)
    #: What its answers took so far.
    took: list[TokenUsage] = field(default_factory=list)

    async def judged(self, ends: float) -> Judged:
        """Return the judgments, `ends` being when they must be there by the loop's clock; raise JudgingError."""
        candidates = [shown(hit, characters=self.config.characters) for hit in self.hits]
        room = asyncio.Semaphore(_SIDE_BY_SIDE)

        async def one(run: range) -> tuple[Mapping[ChunkId, Relevance], bool]:
            async with room:
                return await self._batch(
                    [self.hits[place] for place in run], [candidates[place] for place in run], ends
                )

        runs = await asyncio.to_thread(self._runs, candidates)
        found = await asyncio.gather(*(one(run) for run in runs), return_exceptions=True)
        for it in found:
            if isinstance(it, BaseException):
                raise it
        answers = [it for it in found if not isinstance(it, BaseException)]
        known = sum(was_known for _, was_known in answers)
        by_chunk = {chunk_id: relevance for judgments, _ in answers for chunk_id, relevance in judgments.items()}
        return Judged(self.provider.name, by_chunk, asked=len(answers) - known, known=known, spent=_sum(self.took))

    def _runs(self, candidates: Sequence[Shown]) -> tuple[range, ...]:
        around, *sizes = self.provider.count(
            [
                "\n".join(message["content"] for message in messages(self.question, (), fence="0" * 16)),
                *(fenced(number, it) for number, it in enumerate(candidates, start=1)),
            ]
        )
        runs = batches(sizes, self.provider.window, around=around)
        if not runs:
            raise JudgingError(f"{self.provider.name} can read no candidate: it takes too few tokens.")
        return runs

    async def _batch(
        self, hits: Sequence[Hit], candidates: Sequence[Shown], ends: float
    ) -> tuple[Mapping[ChunkId, Relevance], bool]:
        """Return the judgments of one prompt's candidates, and whether they were known; raise JudgingError for none."""
        key = self._key(hits)
        if (known := self.kept.get(key)) is not None:
            return known, True
        found: dict[ChunkId, Relevance] = {}
        failed = JudgingError(f"What {self.provider.name} answered is no judgment.")
        for attempt in range(self.config.attempts):
            if attempt and not await _waited(attempt, ends):
                break
            left = [place for place, hit in enumerate(hits) if hit.chunk_id not in found]
            try:
                judged = await self._asked([candidates[place] for place in left], ends)
            except JudgingTimeoutError as error:
                failed = error
                break
            except AnswerError as error:
                failed = JudgingError(str(error))
                if isinstance(error, _FINAL):
                    break
                continue
            found |= {hits[left[number - 1]].chunk_id: relevance for number, relevance in judged.items()}
            if len(found) == len(hits):
                self.kept.keep(key, found)
                break
        if not found:
            raise failed
        return found, False

    async def _asked(self, candidates: Sequence[Shown], ends: float) -> Mapping[int, Relevance]:
        """Return what one answer judges, by number; raise JudgingTimeoutError or AnswerError."""
        seconds = ends - asyncio.get_running_loop().time()
        if seconds <= 0:
            raise JudgingTimeoutError
        try:
            text = await written(
                replace(self.provider, spend=_noting(self.provider.spend, self.took)),
                messages(self.question, candidates),
                seconds=seconds,
                longest=_LONGEST_AROUND + len(candidates) * _LONGEST_RESULT,
                response_format=response_format() if self.config.strict_json else None,
            )
        except TimeoutError:
            raise JudgingTimeoutError(f"{self.provider.name} did not judge the candidates in time.") from None
        reading = read_answer(text, candidates=len(candidates))
        if not reading.is_whole or len(reading.judged) < len(candidates):
            numbers = (self.provider.name, reading.is_whole, len(reading.judged), len(candidates), reading.left_out)
            logger.info("relevance.incomplete model=%s whole=%s judged=%d of=%d left_out=%d", *numbers)
        return reading.judged

    def _key(self, hits: Sequence[Hit]) -> Hashable:
        """Return what names a prompt's judgments, without any text."""
        service = self.provider.client.service
        question = hashlib.sha256(self.question.encode()).digest()
        chunks = tuple((hit.chunk_id, hit.chunk.content_hash, hit.chunk.title, hit.chunk.heading_path) for hit in hits)
        shown_as = hashlib.sha256(repr(chunks).encode()).digest()
        model = (self.provider.id, service.base_url, service.model)
        return (self.owner, model, PROMPT_VERSION, self.config.characters, question, shown_as)


async def _waited(attempt: int, ends: float) -> bool:
    """Wait before a further attempt, each time about twice as long, and return whether there is time for one."""
    wait = _FIRST_WAIT_SECONDS * 2 ** (attempt - 1) * _RANDOM.uniform(0.5, 1.5)
    if asyncio.get_running_loop().time() + wait >= ends:
        return False
    await asyncio.sleep(wait)
    return True


def _noting(spend: Spend, took: list[TokenUsage]) -> Spend:
    """Return what notes an answer's use as `spend` does, and in `took`."""

    async def noted(usage: TokenUsage, seconds: float) -> None:
        took.append(usage)
        await spend(usage, seconds)

    return noted


def _sum(took: Sequence[TokenUsage]) -> Spent:
    return Spent(
        calls=len(took),
        prompt_tokens=sum(usage.prompt for usage in took),
        completion_tokens=sum(usage.completion for usage in took),
        is_estimated=any(usage.is_estimated for usage in took),
    )
