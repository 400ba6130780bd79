"""Write an answer with one provider: fit the task to its window, stream, count and check."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Executor
from contextlib import aclosing
from functools import partial
from time import perf_counter
from typing import ClassVar, Final, TypeVar

from django.conf import settings

from corecube.errors import UnavailableError
from retrieval.answers.events import AnswerEvent, Cited, Done, Outcome, Text, Unsupported
from retrieval.answers.faithfulness import Checker, unsupported
from retrieval.answers.providers import answer_threads, ending_threads
from retrieval.encoders import Encoder
from retrieval.encoders.vector_cache import SentenceEncoder
from retrieval.engine.words import stemmer
from retrieval.errors import EncoderError
from retrieval.llm.citations import Draft
from retrieval.llm.prompt import fitted
from retrieval.llm.types import Citation, Cut, Notice, Provider, Task, TokenUsage

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_CUT: Final = {
    Cut.LENGTH: Notice("cut_short", "The answer is incomplete: it reached the language model's maximum length."),
    Cut.CONTENT_FILTER: Notice("content_filtered", "The language model's content filter stopped the answer."),
}


class NoAnswerError(UnavailableError):
    """The language model returned no answer."""

    code: ClassVar[str] = "no_answer"


class Writing:
    """An answer that one provider writes."""

    def __init__(
        self,
        task: Task,
        provider: Provider,
        encoder: Encoder,
        sentences: SentenceEncoder | None,
        notices: tuple[Notice, ...] = (),
    ) -> None:
        self.has_sent = False
        self._task = task
        self._provider = provider
        self._encoder = encoder
        self._sentences = sentences
        self._notices = notices
        self._draft = Draft(len(task.passages))
        self._usage: TokenUsage | None = None
        self._cut: Cut | None = None
        self._started = perf_counter()

    async def events(self) -> AsyncGenerator[AnswerEvent, None]:
        """Yield text and citations as soon as they are final, then Done."""
        for notice in await self._fit():
            yield notice
        async with aclosing(self._provider.stream(self._task)) as pieces:
            async for piece in pieces:
                self._usage = piece.usage or self._usage
                self._cut = piece.cut or self._cut
                if piece.notice:
                    self._notices += (piece.notice,)
                    yield piece.notice
                text = piece.text if self._draft.text else piece.text.lstrip()
                for event in self._events(*self._draft.add(text)):
                    yield event
        for event in self._events(*self._draft.finish()):
            yield event
        if not self._draft.text.strip():
            raise NoAnswerError
        if self._cut:
            self._notices += (_CUT[self._cut],)
            yield _CUT[self._cut]
        yield await self.so_far(is_finished=True)

    async def _fit(self) -> tuple[Notice, ...]:
        if (window := self._provider.window) is None:
            return ()
        count = window.counter.count if window.counter else self._encoder.count_tokens
        cut = await _run(answer_threads(), partial(fitted, self._task, window, count))
        self._task = cut.task
        self._draft = Draft(len(cut.task.passages))
        notices, used = [], len(cut.task.passages)
        if cut.left_out_passages:
            text = f"{used} of {used + cut.left_out_passages} passages fit into the language model's context."
            notices.append(Notice("context_shortened", text))
        if cut.left_out_turns:
            text = f"{cut.left_out_turns} earlier turns did not fit into its context."
            notices.append(Notice("history_shortened", text))
        self._notices += tuple(notices)
        return tuple(notices)

    async def so_far(self, *, is_finished: bool = False) -> Done:
        """Return the answer so far; a finished one is checked."""
        text = self._draft.text
        refused = self._provider.refuses(text)
        if self._usage is None:
            self._usage = await _run(ending_threads(), partial(self._estimate, text))
        is_checked = is_finished and not refused and not self._provider.is_extractive
        return Done(
            text=text,
            citations=self._draft.citations,
            usage=self._usage,
            provider=self._provider.name,
            extractive=self._provider.is_extractive,
            outcome=Outcome.REFUSED if refused else Outcome.ASSERTED,
            unsupported=await _run(ending_threads(), self._check) if is_checked else (),
            notices=self._notices,
            cut=self._cut,
            removed=self._draft.removed,
            seconds=perf_counter() - self._started,
        )

    def _events(self, text: str, citations: tuple[Citation, ...]) -> Iterator[AnswerEvent]:
        if text:
            self.has_sent = True
            yield Text(text)
        if citations:
            yield Cited(citations)

    def _check(self) -> tuple[Unsupported, ...]:
        stem = stemmer(settings.CORECUBE_TEXT_SEARCH_CONFIG)
        checker = Checker.of(self._task.passages, stem=stem, question=self._task.question)
        check = partial(unsupported, self._draft.text, self._draft.citations, checker)
        try:
            return check(encode=self._sentences.encode_documents if self._sentences else None)
        except EncoderError:
            logger.exception("answer.checked_without_vectors provider=%s", self._provider.name)
            return check()

    def _estimate(self, text: str) -> TokenUsage:
        question, answer = self._encoder.count_tokens([self._task.question, text])
        prompt = question + sum(passage.token_count for passage in self._task.passages)
        return TokenUsage(prompt=prompt, completion=answer, is_estimated=True)


async def _run(threads: Executor, work: Callable[[], _T]) -> _T:
    """Run CPU-intensive work in threads that block neither other answers nor searches."""
    return await asyncio.get_running_loop().run_in_executor(threads, work)
