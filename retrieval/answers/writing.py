"""Write an answer with one provider: fit the task to its window, stream, count and check."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import ClassVar, Final, TypeVar

from django.conf import settings

from corecube.errors import UnavailableError
from retrieval.answers.citing import Citer
from retrieval.answers.claims import Claim
from retrieval.answers.events import AnswerEvent, Cited, Done, Outcome, Text, Unsupported
from retrieval.answers.faithfulness import Checker, unsupported
from retrieval.answers.json_answers import JsonDraft, prose_of, strings_of
from retrieval.answers.providers import answer_threads, ending_threads
from retrieval.encoders import Encoder
from retrieval.encoders.vector_cache import SentenceEncoder
from retrieval.engine.types import Verdict
from retrieval.engine.words import stemmer
from retrieval.errors import EncoderError
from retrieval.llm.citations import Draft
from retrieval.llm.options import ignored, names_of
from retrieval.llm.prompt import fitted
from retrieval.llm.types import Citation, Cut, EncodeTexts, Notice, Provider, Task, TokenUsage

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_CUT: Final = {
    Cut.LENGTH: Notice("cut_short", "The answer is incomplete: it reached the language model's maximum length."),
    Cut.CONTENT_FILTER: Notice("content_filtered", "The language model's content filter stopped the answer."),
}
_UNCITED: Final = Notice("uncited", "The answer cites no passage of your documents. Check it before you rely on it.")


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
        self._provider = provider
        self._encoder = encoder
        self._sentences = sentences
        self._notices = notices
        self._begin(task)
        self._usage: TokenUsage | None = None
        self._cut: Cut | None = None
        self._has_begun = False  #: Whether a word was written; the draft may still hold it back.
        self._started = perf_counter()

    def _begin(self, task: Task) -> None:
        self._task = task
        count, self._is_json = len(task.passages), task.options.is_json and not self._provider.is_extractive
        self._draft: Draft | JsonDraft = JsonDraft(count) if self._is_json else Draft(count)
        #: The answer with the added citations; a quoting provider cites everything itself, and JSON stays as it is.
        self._answer: Draft | JsonDraft = JsonDraft(count) if self._is_json else Draft(count)
        self._citer = None if self._provider.is_extractive or self._is_json else Citer(count)
        self._checker: Checker | None = None

    async def events(self) -> AsyncGenerator[AnswerEvent, None]:
        """Yield text and citations as soon as they are final, then Done."""
        for notice in (*self._ignored(), *await self._fit()):
            yield notice
        async with aclosing(self._provider.stream(self._task)) as pieces:
            async for piece in pieces:
                self._usage = piece.usage or self._usage
                self._cut = piece.cut or self._cut
                if piece.notice:
                    self._notices += (piece.notice,)
                    yield piece.notice
                text = piece.text if self._has_begun else piece.text.lstrip()
                self._has_begun = self._has_begun or bool(text)
                for event in await self._cited(self._draft.add(text)[0]):
                    yield event
        for event in await self._cited(self._draft.finish()[0], is_last=True):
            yield event
        for event in (*await self._cited_code(), *self._events(*self._answer.finish())):
            yield event
        if not self._answer.text.strip():
            raise NoAnswerError
        if isinstance(self._answer, JsonDraft) and self._cut is None:
            self._answer.require_complete()
        cut = [_CUT[self._cut]] if self._cut else []
        for notice in (*cut, *([_UNCITED] if self._is_uncited else ())):
            self._notices += (notice,)
            yield notice
        yield await self.so_far(is_finished=True)

    async def _cited(self, text: str, *, is_last: bool = False) -> Sequence[AnswerEvent]:
        """Return the events of a text, with citations for the sentences that have none and that a passage supports."""
        if self._citer is None:
            return list(self._events(*self._answer.add(text)))
        parts, numbers, texts = self._citer.add(text, is_last=is_last), None, list[str]()
        with contextlib.suppress(StopIteration):
            while True:
                part = parts.send(numbers)
                numbers = await self._match(part) if isinstance(part, Claim) else None
                texts += [part] if isinstance(part, str) else []
        return list(self._events(*self._answer.add("".join(texts))))

    async def _cited_code(self) -> Sequence[AnswerEvent]:
        """Return the events of a citation after an answer that is only code."""
        text = self._draft.text
        if self._citer is None or self._citer.has_cited or not text.rstrip().endswith(("```", "~~~")):
            return ()
        numbers = await _run(answer_threads(), lambda: self._ready_checker().match_code(text))
        return list(self._events(*self._answer.add("".join(f"\n\n[{it}]" for it in numbers))))

    async def _match(self, claim: Claim) -> tuple[int, ...]:
        if self._provider.refuses(self._draft.text):
            return ()
        return await _run(answer_threads(), partial(self._matched, claim))

    @property
    def _is_uncited(self) -> bool:
        return not self._provider.is_extractive and not self._refuses() and not self._answer.citations

    def _refuses(self) -> bool:
        texts = strings_of(self._answer.text) if self._is_json else [self._answer.text]
        return any(map(self._provider.refuses, texts))

    def _ignored(self) -> tuple[Notice, ...]:
        options = self._task.options
        if options.is_json:  # Quotes become JSON where they are sent.
            options = replace(options, response_format=None)
        names = names_of(options) if self._provider.is_extractive else ()
        notices = (ignored(names, "They apply to language models, not to quotes."),) if names else ()
        self._notices += notices
        return notices

    async def _fit(self) -> tuple[Notice, ...]:
        if (window := self._provider.window) is None:
            return ()
        count = window.counter.count if window.counter else self._encoder.count_tokens
        cut = await _run(answer_threads(), partial(fitted, self._task, window, count))
        self._begin(cut.task)
        notices, used = [], len(cut.task.passages)
        if cut.left_out_passages:
            text = f"{used} of {used + cut.left_out_passages} passages fit into the language model's context."
            notices.append(Notice("context_shortened", text))
        if cut.left_out_turns:
            turns = "1 earlier turn" if cut.left_out_turns == 1 else f"{cut.left_out_turns} earlier turns"
            text = f"{turns} did not fit into its context."
            notices.append(Notice("history_shortened", text))
        self._notices += tuple(notices)
        return tuple(notices)

    async def so_far(self, *, is_finished: bool = False) -> Done:
        """Return the answer so far; a finished one is checked."""
        text = self._answer.text
        refused = self._refuses()
        if self._usage is None:
            self._usage = await _run(ending_threads(), partial(self._estimate, text))
        is_checked = is_finished and not self._provider.is_extractive
        return Done(
            text=text,
            citations=self._answer.citations,
            usage=self._usage,
            provider=self._provider.name,
            extractive=self._provider.is_extractive,
            outcome=self._outcome(refused=refused),
            unsupported=await _run(ending_threads(), partial(self._check, is_refusal=refused)) if is_checked else (),
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

    def _outcome(self, *, refused: bool) -> Outcome:
        if refused:
            return Outcome.REFUSED
        is_sure = not self._provider.is_extractive or self._task.verdict is Verdict.ANSWERABLE
        return Outcome.ASSERTED if is_sure and not self._is_uncited else Outcome.HEDGED

    def _check(self, *, is_refusal: bool) -> tuple[Unsupported, ...]:
        text = prose_of(self._answer.text) if self._is_json else self._answer.text
        check = partial(unsupported, text, self._answer.citations, self._ready_checker(), is_refusal=is_refusal)
        try:
            return check(encode=self._encode)
        except EncoderError:
            logger.exception("answer.checked_without_vectors provider=%s", self._provider.name)
            return check()

    def _matched(self, claim: Claim) -> tuple[int, ...]:
        checker = self._ready_checker()
        # A busy server compares words only.
        if self._encode is None or answer_threads().is_crowded:
            return checker.match(claim)
        try:
            return checker.match(claim, encode=self._encode)
        except EncoderError:
            logger.exception("answer.matched_without_vectors provider=%s", self._provider.name)
            return checker.match(claim)

    def _ready_checker(self) -> Checker:
        if self._checker is None:
            stem = stemmer(settings.CORECUBE_TEXT_SEARCH_CONFIG)
            self._checker = Checker.of(self._task.passages, stem=stem, question=self._task.question)
        return self._checker

    @property
    def _encode(self) -> EncodeTexts | None:
        return self._sentences.encode_documents if self._sentences else None

    def _estimate(self, text: str) -> TokenUsage:
        question, answer = self._encoder.count_tokens([self._task.question, text])
        prompt = question + sum(passage.token_count for passage in self._task.passages)
        return TokenUsage(prompt=prompt, completion=answer, is_estimated=True)


async def _run(threads: Executor, work: Callable[[], _T]) -> _T:
    """Run CPU-intensive work in threads that block neither other answers nor searches."""
    return await asyncio.get_running_loop().run_in_executor(threads, work)
