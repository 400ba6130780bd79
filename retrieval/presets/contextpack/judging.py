"""Scoring the candidates of one search by a language model, in prompts that it can read and answer completely."""

import asyncio
import hashlib
import logging
import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from retrieval import errors
from retrieval.encoders.breaker import CircuitBreaker
from retrieval.engine.types import ChunkId, Ranking
from retrieval.llm.model_provider import ModelProvider, generate_text
from retrieval.llm.routing import is_model
from retrieval.llm.types import TokenUsage, Window
from retrieval.presets.contextpack import prompt
from retrieval.presets.contextpack.judge import Judged, Relevance, RelevanceCache, RelevanceConfig, Spent

logger = logging.getLogger(__name__)

_RESULT_TOKENS: Final = 80  #: Tokens of one result in an answer: its fields, and 25 words of evidence.
_AROUND_TOKENS: Final = 16  #: Tokens of the JSON around the results.
#: Unused share of a context window, since the model's tokenizer may count more tokens than ours.
_SLACK: Final = 0.15
_SIDE_BY_SIDE: Final = 8
_MAX_PROMPTS: Final = 16
#: Seconds before the second attempt, doubled for each further one, with a jitter of 50 %.
_FIRST_WAIT_SECONDS: Final = 0.25
#: A timeout below this says nothing about the model: a request may set an impossible time limit.
_TELLING_SECONDS: Final = 5.0
_MAX_RESULT_LENGTH: Final = 600
_MAX_AROUND_LENGTH: Final = 1000
_RANDOM: Final = random.SystemRandom()
_FINAL: Final = (errors.AnswerRefusedError, errors.AnswerBreakerOpenError)  #: Errors that a retry would repeat.
Places = Sequence[int]  #: Candidates by their indexes in the ranking.


def batches(sizes: Sequence[int], window: Window, *, around: int) -> tuple[tuple[int, ...], ...]:
    """Return the fewest runs of candidates that fit, as indexes in order; candidates that fit no prompt are left out.

    `sizes` are the candidates' tokens, `around` those of the rest of a prompt.
    """
    room = int((window.context_tokens - window.answer_tokens) * (1 - _SLACK)) - around
    limit = max(1, (window.answer_tokens - _AROUND_TOKENS) // _RESULT_TOKENS)
    places = [place for place, size in enumerate(sizes) if size <= room]
    fitting = [sizes[place] for place in places]
    minimum = list(_filled(fitting, room, limit))
    # Balanced by count where only the answer length split them, since they run in parallel.
    even = -(-len(fitting) // max(1, len(minimum)))
    balanced = list(_filled(fitting, room, min(limit, even)))
    runs = balanced if len(balanced) == len(minimum) else minimum
    return tuple(tuple(places[it] for it in run) for run in runs)


def _filled(sizes: Sequence[int], room: int, limit: int) -> Iterator[range]:
    start = used = 0
    for place, size in enumerate(sizes):
        if place > start and (used + size > room or place - start == limit):
            yield range(start, place)
            start, used = place, 0
        used += size
    if sizes:
        yield range(start, len(sizes))


@dataclass(slots=True)
class _Answers:
    found: dict[ChunkId, Relevance] = field(default_factory=dict)
    prompts: int = 0
    is_known: bool = False
    failed: errors.JudgingError | None = None


@dataclass(frozen=True, slots=True)
class Judging:
    """A language model and the candidates to score."""

    provider: ModelProvider
    question: str
    hits: Ranking
    config: RelevanceConfig
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
            with _breaker(self.provider.name, service.base_url, service.model).guarding(excused=(errors.JudgingError,)):
                try:
                    return await self._judged(ends)
                except errors.JudgingTimeoutError:
                    if is_telling:
                        raise TimeoutError from None
                    raise
        except TimeoutError:
            raise self._too_late() from None

    async def _judged(self, ends: float) -> Judged:
        candidates = [prompt.shown(hit, characters=self.config.characters) for hit in self.hits]
        room = asyncio.Semaphore(_SIDE_BY_SIDE)

        async def one(run: Places) -> _Answers:
            async with room:
                return await self._run(run, candidates, ends)

        texts = (
            "\n".join(message["content"] for message in prompt.messages(self.question, (), fence="0" * 16)),
            *(prompt.fenced(number, it) for number, it in enumerate(candidates, start=1)),
        )
        around, *sizes = await asyncio.to_thread(self.provider.count, texts)
        runs = batches(sizes, self.provider.window, around=around)
        if not runs:
            raise errors.JudgingError(f"{self.provider.name} can read no candidate: its context window is too small.")
        answers = await asyncio.gather(*(one(run) for run in runs))
        by_chunk = {chunk_id: relevance for it in answers for chunk_id, relevance in it.found.items()}
        if not by_chunk:
            raise next((it.failed for it in answers if it.failed), errors.JudgingError())
        spent = Spent(
            calls=len(self.took),
            prompt_tokens=sum(usage.prompt for usage in self.took),
            completion_tokens=sum(usage.completion for usage in self.took),
            is_estimated=any(usage.is_estimated for usage in self.took),
        )
        return Judged(
            self.provider.name,
            by_chunk,
            prompts=sum(it.prompts for it in answers),
            known=sum(it.is_known for it in answers),
            spent=spent,
            is_preferred=is_model(self.provider.client.service.model, self.config.model),
        )

    async def _run(self, run: Places, candidates: Sequence[prompt.Shown], ends: float) -> _Answers:
        """Return the scores of the candidates of one prompt.

        A refused or unreadable prompt is split in halves, so that one problematic document costs only its own score.
        """
        service = self.provider.client.service
        question = hashlib.sha256(self.question.encode()).digest()
        hits = [self.hits[place] for place in run]
        chunks = tuple((hit.chunk_id, hit.chunk.content_hash, hit.chunk.title, hit.chunk.heading_path) for hit in hits)
        shown_as = hashlib.sha256(repr(chunks).encode()).digest()
        model = (self.provider.id, service.base_url, service.model)
        # Without any text.
        key = (self.owner, model, prompt.PROMPT_VERSION, self.config.characters, question, shown_as)
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
        except errors.JudgingError as error:
            answers.failed = error
        if len(answers.found) == len(run):
            self.kept.put(key, dict(answers.found))
        return answers

    async def _part(
        self, part: Places, candidates: Sequence[prompt.Shown], answers: _Answers, *, attempts: int, ends: float
    ) -> Places:
        left = part
        failed: errors.AnswerError | None = errors.AnswerGarbageError()
        for attempt in range(attempts):
            if attempt:
                wait = _FIRST_WAIT_SECONDS * 2 ** (attempt - 1) * _RANDOM.uniform(0.5, 1.5)
                if asyncio.get_running_loop().time() + wait >= ends:
                    break
                await asyncio.sleep(wait)
            try:
                await self._asked(left, candidates, answers, ends)
            except errors.AnswerError as error:
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
        answers.failed = errors.JudgingError(str(failed))
        if not isinstance(failed, errors.AnswerRejectedError | errors.AnswerGarbageError):
            raise answers.failed
        return left

    async def _asked(self, places: Places, candidates: Sequence[prompt.Shown], answers: _Answers, ends: float) -> None:
        seconds = ends - asyncio.get_running_loop().time()
        if seconds <= 0:
            raise self._too_late()
        answers.prompts += 1

        async def record_usage(usage: TokenUsage, took_seconds: float) -> None:
            self.took.append(usage)
            await self.provider.record_usage(usage, took_seconds)

        try:
            text = await generate_text(
                replace(self.provider, record_usage=record_usage),
                prompt.messages(self.question, [candidates[place] for place in places]),
                seconds=seconds,
                max_length=_MAX_AROUND_LENGTH + len(places) * _MAX_RESULT_LENGTH,
                response_format=prompt.response_format() if self.config.strict_json else None,
            )
        except TimeoutError:
            raise self._too_late() from None
        reading = prompt.read_answer(text, candidates=len(places))
        if not reading.is_whole or len(reading.judged) < len(places):
            numbers = (self.provider.name, reading.is_whole, len(reading.judged), len(places), reading.left_out)
            logger.info("relevance.incomplete model=%s whole=%s judged=%d of=%d left_out=%d", *numbers)
        if not reading.is_whole:
            raise errors.AnswerGarbageError(f"The answer of {self.provider.name} has no scores.")
        answers.found |= {self.hits[places[number - 1]].chunk_id: it for number, it in reading.judged.items()}

    def _too_late(self) -> errors.JudgingTimeoutError:
        return errors.JudgingTimeoutError(f"{self.provider.name} did not score the candidates in time.")


@lru_cache(maxsize=64)
def _breaker(name: str, base_url: str, model: str) -> CircuitBreaker:
    text = f"{name} timed out several times in a row and is paused."
    return CircuitBreaker(f"judging {base_url} {model}", refusal=lambda: errors.JudgingError(text))
