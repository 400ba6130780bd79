"""Scoring the candidates of one search by a language model."""

import asyncio
import hashlib
import logging
import random
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from retrieval.encoders.breaker import CircuitBreaker
from retrieval.engine.types import ChunkId, Ranking
from retrieval.errors import (
    AnswerBreakerOpenError,
    AnswerError,
    AnswerGarbageError,
    AnswerRefusedError,
    AnswerRejectedError,
    JudgingError,
    JudgingTimeoutError,
)
from retrieval.llm.model_provider import ModelProvider, RecordUsage, generate_text
from retrieval.llm.types import TokenUsage
from retrieval.presets.contextpack.batches import batches
from retrieval.presets.contextpack.judge import Judged, Relevance, RelevanceConfig, Spent
from retrieval.presets.contextpack.relevance_cache import RelevanceCache
from retrieval.presets.contextpack.rubric import PROMPT_VERSION, Shown, fenced, messages, response_format, shown
from retrieval.presets.contextpack.verdicts import read_answer

logger = logging.getLogger(__name__)

#: Concurrent prompts of one search.
_SIDE_BY_SIDE: Final = 8
_MAX_PROMPTS: Final = 16
#: Seconds before the second attempt, doubled for each further one, with a jitter of 50 %.
_FIRST_WAIT_SECONDS: Final = 0.25
#: A timeout below this says nothing about the model: a request may set an impossible time limit.
_TELLING_SECONDS: Final = 5.0
_MAX_RESULT_LENGTH: Final = 600
_MAX_AROUND_LENGTH: Final = 1000
_RANDOM: Final = random.SystemRandom()
#: Errors that a retry would repeat.
_FINAL: Final = (AnswerRefusedError, AnswerBreakerOpenError)

#: Candidates by their indexes in the ranking.
Places = Sequence[int]


@dataclass(slots=True)
class _Answers:
    found: dict[ChunkId, Relevance] = field(default_factory=dict)
    prompts: int = 0
    is_known: bool = False
    failed: JudgingError | None = None


@dataclass(frozen=True, slots=True)
class Judging:
    """A language model and the candidates to score."""

    provider: ModelProvider
    question: str
    hits: Ranking
    config: RelevanceConfig
    #: The principal whose cache it is.
    owner: str
    kept: RelevanceCache
    took: list[TokenUsage] = field(default_factory=list)

    async def judged(self, ends: float) -> Judged:
        """Return the scores before `ends` on the loop's clock; raise JudgingError for none.

        A model that times out three times in a row is not used for scoring for half a minute. It may still write
        answers, which take less time.
        """
        is_telling = ends - asyncio.get_running_loop().time() >= _TELLING_SECONDS
        service = self.provider.client.service
        try:
            with _breaker(self.provider.name, service.base_url, service.model).guarding(excused=(JudgingError,)):
                try:
                    return await self._judged(ends)
                except JudgingTimeoutError:
                    if is_telling:
                        raise TimeoutError from None
                    raise
        except TimeoutError:
            raise self._too_late() from None

    async def _judged(self, ends: float) -> Judged:
        candidates = [shown(hit, characters=self.config.characters) for hit in self.hits]
        room = asyncio.Semaphore(_SIDE_BY_SIDE)

        async def one(run: Places) -> _Answers:
            async with room:
                return await self._run(run, candidates, ends)

        runs = await asyncio.to_thread(self._runs, candidates)
        answers = await asyncio.gather(*(one(run) for run in runs))
        by_chunk = {chunk_id: relevance for it in answers for chunk_id, relevance in it.found.items()}
        if not by_chunk:
            raise next((it.failed for it in answers if it.failed), JudgingError())
        spent = Spent(
            calls=len(self.took),
            prompt_tokens=sum(usage.prompt for usage in self.took),
            completion_tokens=sum(usage.completion for usage in self.took),
            is_estimated=any(usage.is_estimated for usage in self.took),
        )
        prompts, known = sum(it.prompts for it in answers), sum(it.is_known for it in answers)
        return Judged(self.provider.name, by_chunk, prompts=prompts, known=known, spent=spent)

    def _runs(self, candidates: Sequence[Shown]) -> tuple[Places, ...]:
        around, *sizes = self.provider.count(
            [
                "\n".join(message["content"] for message in messages(self.question, (), fence="0" * 16)),
                *(fenced(number, it) for number, it in enumerate(candidates, start=1)),
            ]
        )
        runs = batches(sizes, self.provider.window, around=around)
        if not runs:
            raise JudgingError(f"{self.provider.name} can read no candidate: its context window is too small.")
        return runs

    async def _run(self, run: Places, candidates: Sequence[Shown], ends: float) -> _Answers:
        """Return the scores of the candidates of one prompt.

        A refused or unreadable prompt is split in halves, so that one problematic document costs only its own score.
        """
        key = self._key(run)
        if (known := self.kept.get(key)) is not None:
            return _Answers(dict(known), is_known=True)
        answers, parts, attempts = _Answers(), deque([run]), self.config.attempts
        try:
            while parts and answers.prompts < _MAX_PROMPTS:
                unread = await self._part(parts.popleft(), candidates, answers, attempts=attempts, ends=ends)
                half = len(unread) // 2
                parts += (unread[:half], unread[half:]) if half else ()
                # An unreadable part is split, not retried.
                attempts = 1
        except JudgingError as error:
            answers.failed = error
        if len(answers.found) == len(run):
            self.kept.keep(key, answers.found)
        return answers

    async def _part(
        self, part: Places, candidates: Sequence[Shown], answers: _Answers, *, attempts: int, ends: float
    ) -> Places:
        left = part
        failed: AnswerError | None = AnswerGarbageError()
        for attempt in range(attempts):
            if attempt and not await _waited(attempt, ends):
                break
            try:
                await self._asked(left, candidates, answers, ends)
            except AnswerError as error:
                failed = error
                if isinstance(error, _FINAL):
                    break
                continue
            failed = None
            left = [place for place in left if self.hits[place].chunk_id not in answers.found]
            if not left:
                break
        if failed is None:
            return ()
        answers.failed = JudgingError(str(failed))
        if not isinstance(failed, AnswerRejectedError | AnswerGarbageError):
            raise answers.failed
        return left

    async def _asked(self, places: Places, candidates: Sequence[Shown], answers: _Answers, ends: float) -> None:
        seconds = ends - asyncio.get_running_loop().time()
        if seconds <= 0:
            raise self._too_late()
        answers.prompts += 1
        try:
            text = await generate_text(
                replace(self.provider, record_usage=_noting(self.provider.record_usage, self.took)),
                messages(self.question, [candidates[place] for place in places]),
                seconds=seconds,
                max_length=_MAX_AROUND_LENGTH + len(places) * _MAX_RESULT_LENGTH,
                response_format=response_format() if self.config.strict_json else None,
            )
        except TimeoutError:
            raise self._too_late() from None
        reading = read_answer(text, candidates=len(places))
        if not reading.is_whole or len(reading.judged) < len(places):
            numbers = (self.provider.name, reading.is_whole, len(reading.judged), len(places), reading.left_out)
            logger.info("relevance.incomplete model=%s whole=%s judged=%d of=%d left_out=%d", *numbers)
        if not reading.is_whole:
            raise AnswerGarbageError(f"The answer of {self.provider.name} has no scores.")
        answers.found |= {self.hits[places[number - 1]].chunk_id: it for number, it in reading.judged.items()}

    def _too_late(self) -> JudgingTimeoutError:
        return JudgingTimeoutError(f"{self.provider.name} did not score the candidates in time.")

    def _key(self, run: Places) -> Hashable:
        """Return the cache key of a prompt's scores, without any text."""
        service = self.provider.client.service
        question = hashlib.sha256(self.question.encode()).digest()
        hits = [self.hits[place] for place in run]
        chunks = tuple((hit.chunk_id, hit.chunk.content_hash, hit.chunk.title, hit.chunk.heading_path) for hit in hits)
        shown_as = hashlib.sha256(repr(chunks).encode()).digest()
        model = (self.provider.id, service.base_url, service.model)
        return (self.owner, model, PROMPT_VERSION, self.config.characters, question, shown_as)


@lru_cache(maxsize=64)
def _breaker(name: str, base_url: str, model: str) -> CircuitBreaker:  # noqa: ARG001 -- they name the service
    text = f"{name} timed out several times in a row and is paused."
    return CircuitBreaker(refusal=lambda: JudgingError(text))


async def _waited(attempt: int, ends: float) -> bool:
    """Wait before a further attempt with exponential backoff; return whether there is time for one."""
    wait = _FIRST_WAIT_SECONDS * 2 ** (attempt - 1) * _RANDOM.uniform(0.5, 1.5)
    if asyncio.get_running_loop().time() + wait >= ends:
        return False
    await asyncio.sleep(wait)
    return True


def _noting(record: RecordUsage, took: list[TokenUsage]) -> RecordUsage:
    async def noted(usage: TokenUsage, seconds: float) -> None:
        took.append(usage)
        await record(usage, seconds)

    return noted
