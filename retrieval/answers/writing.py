"""One provider at work on an answer: cut to what it can hold, streamed, counted and checked."""

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
from retrieval.answers.events import AnswerEvent, Cited, Done, Text, Unsupported
from retrieval.answers.faithfulness import Checker, unsupported
from retrieval.answers.providers import answer_threads, ending_threads
from retrieval.encoders import Encoder
from retrieval.encoders.kept_vectors import SentenceEncoder
from retrieval.engine.words import stemmer
from retrieval.errors import EncoderError
from retrieval.llm.draft import Draft
from retrieval.llm.prompt import Fitted, fitted
from retrieval.llm.types import Citation, Cut, Notice, Provider, Task, TokenUsage

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_CUT: Final = {
    Cut.LENGTH: Notice("cut_short", "The language model reached the most that it may write: the answer breaks off."),
    Cut.CONTENT_FILTER: Notice("content_filtered", "The language model's content filter broke the answer off."),
}


class NoAnswerError(UnavailableError):
    """The language model gave no answer."""

    code: ClassVar[str] = "no_answer"


class Writing:
    """One provider at work on an answer."""

    def __init__(
        self,
        task: Task,
        provider: Provider,
        encoder: Encoder,
        sentences: SentenceEncoder | None,
        notices: tuple[Notice, ...] = (),
    ) -> None:
        #: Whether anybody has seen a word of it.
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
        """Yield text and citations as they settle, then Done."""
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
        """Cut the task to what the provider can hold; return what its reader should know of that."""
        if (window := self._provider.window) is None:
            return ()
        count = window.counter.count if window.counter else self._encoder.count_tokens
        cut = await _in(answer_threads(), partial(fitted, self._task, window, count))
        self._task = cut.task
        self._draft = Draft(len(cut.task.passages))
        notices = tuple(_shortened(cut))
        self._notices += notices
        return notices

    async def so_far(self, *, is_finished: bool = False) -> Done:
        """Return what is written until now as an answer; a finished one is checked."""
        text = self._draft.text
        refused = self._provider.refuses(text)
        if self._usage is None:
            self._usage = await _in(ending_threads(), partial(self._estimate, text))
        is_checked = is_finished and not refused and not self._provider.is_extractive
        return Done(
            text=text,
            citations=self._draft.citations,
            usage=self._usage,
            provider=self._provider.name,
            extractive=self._provider.is_extractive,
            refused=refused,
            unsupported=await _in(ending_threads(), self._check) if is_checked else (),
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
        """Return the sentences that their passages do not support; without vectors where they cannot be had."""
        stem = stemmer(settings.CORECUBE_TEXT_SEARCH_CONFIG)
        checker = Checker.of(self._task.passages, stem=stem, question=self._task.question)
        check = partial(unsupported, self._draft.text, self._draft.citations, checker)
        try:
            return check(encode=self._sentences.encode_documents if self._sentences else None)
        except EncoderError:
            logger.exception("answer.checked_without_vectors provider=%s", self._provider.name)
            return check()

    def _estimate(self, text: str) -> TokenUsage:
        """Return token counts by the embedding model's tokenizer: question and context read, answer written."""
        question, answer = self._encoder.count_tokens([self._task.question, text])
        read = question + sum(passage.token_count for passage in self._task.passages)
        return TokenUsage(prompt=read, completion=answer, is_estimated=True)


def _shortened(cut: Fitted) -> Iterator[Notice]:
    shown = len(cut.task.passages)
    if cut.left_out_passages:
        whole = shown + cut.left_out_passages
        yield Notice("context_shortened", f"The language model could hold {shown} of the {whole} passages.")
    if cut.left_out_turns:
        yield Notice("history_shortened", f"{cut.left_out_turns} earlier turns were more than it could hold.")


async def _in(threads: Executor, work: Callable[[], _T]) -> _T:
    """Run what takes the processor for a while where it holds up neither other answers nor searches."""
    return await asyncio.get_running_loop().run_in_executor(threads, work)
