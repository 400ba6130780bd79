"""Writing the answer to a finished search: the one way for the chat page, the API, the explorer and agents."""

import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from asgiref.sync import async_to_sync, sync_to_async
from django.db import Error as DatabaseFault
from django.db import transaction

from corecube.access import Principal
from corecube.database import release_connection
from corecube.errors import CoreCubeError
from retrieval.answers.events import AnswerEvent, Done, Failed
from retrieval.answers.providers import route_for
from retrieval.answers.writing import NoAnswerError, Writing
from retrieval.encoders import Encoder
from retrieval.encoders.kept_vectors import SentenceEncoder
from retrieval.engine.types import Verdict
from retrieval.llm.model_provider import ModelProvider
from retrieval.llm.types import Notice, Provider, Route, Task, Turn
from retrieval.models import SearchRecord
from retrieval.records.accesses import note_accesses
from retrieval.search import runtime
from retrieval.search.outcome import SearchOutcome
from retrieval.stages.resources import Resources

logger = logging.getLogger(__name__)

_FELL_BACK: Final = "fell_back"
#: Says nothing of how well the installation works.
DOUBTFUL: Final = "doubtful"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """A finished search whose answer is about to be written, and what it is written with."""

    outcome: SearchOutcome
    principal: Principal
    route: Route
    #: Counts tokens where a service does not say.
    encoder: Encoder
    #: Compares sentences; None where words alone must do.
    sentences: SentenceEncoder | None
    #: What was asked, in its asker's words; the search may have read less, or more where it was made to stand alone.
    question: str
    history: tuple[Turn, ...] = ()

    @property
    def task(self) -> Task:
        """What a provider without limits answers from."""
        return Task(
            question=self.question,
            passages=self.outcome.passages,
            terms=self.outcome.state.terms,
            vector=self.outcome.state.vector,
            history=self.history,
            skipped=self.outcome.skipped,
        )


def prepare(
    outcome: SearchOutcome, principal: Principal, history: tuple[Turn, ...] = (), *, question: str = ""
) -> Answering:
    """Return what the answer to a search is written with.

    `question` is what was asked, where that is not the query: what was carried into a query may come from passages that
    a language model must not read. Reads the database, so it belongs before the first event. Raises ModelMissingError.
    """
    tools = outcome.resources or runtime.resources()
    return Answering(
        outcome=outcome,
        principal=principal,
        route=_route(outcome, principal, tools),
        encoder=tools.encoder,
        sentences=tools.answer_sentences,
        question=question or outcome.state.query.text,
        history=history,
    )


def _route(outcome: SearchOutcome, principal: Principal, tools: Resources) -> Route:
    """Return who may answer; where nothing was found no language model is asked, which could only guess."""
    route = route_for(principal, outcome.passages, outcome.record_id, sentences=tools.answer_sentences)
    return route if outcome.passages else Route(route.providers[-1:])


def origin(answering: Answering, done: Done | None) -> frozenset[int] | None:
    """Return the connections of all that the answer's writer was shown; None where nobody knows.

    That is its passages, and what the earlier turns that it may read were made from. Without `done` any provider of the
    route may have written.
    """
    writers = [it for it in answering.route.providers if done is None or it.name == done.provider]
    shown = [turn.connections for turn in answering.history if any(_is_shown(turn, it) for it in writers)]
    known = [it for it in shown if it is not None]
    if len(known) < len(shown):
        return None
    return frozenset(it.hit.chunk.connection_id for it in answering.outcome.passages).union(*known)


def _is_shown(turn: Turn, provider: Provider) -> bool:
    """Return whether a provider is shown an earlier turn; one that quotes reads none."""
    return provider.may_read(turn) if isinstance(provider, ModelProvider) else not provider.is_extractive


def note(answering: Answering, done: Done) -> None:
    """Keep with the search's record how its answer ended, and that what it cites was read.

    Where the database does not answer, the answer stands.
    """
    if not done.refused:
        cited = {passage.number: passage.hit.chunk_id.document_id for passage in answering.outcome.passages}
        note_accesses(cited[number] for number in done.cited if number in cited)
        return
    try:
        # In a transaction of its own: a failure must not end one around it.
        with transaction.atomic():
            SearchRecord.objects.mark_refused(answering.outcome.id)
    except DatabaseFault:
        logger.exception("answer.refusal_lost id=%s", answering.outcome.id)


async def note_later(answering: Answering, done: Done) -> None:
    """Do the same from a stream: in the request's own thread, which keeps no database connection afterwards."""
    await sync_to_async(_note_and_let_go)(answering, done)


def _note_and_let_go(answering: Answering, done: Done) -> None:
    note(answering, done)
    release_connection()


def answered(answering: Answering) -> Done:
    """Return the finished answer, for who does not stream; raise CoreCubeError where no provider finishes one.

    Meanwhile no database connection is kept.
    """
    release_connection()
    return async_to_sync(_answered)(answering)


async def _answered(answering: Answering) -> Done:
    async with aclosing(answer_events(answering, is_streamed=False)) as events:
        async for event in events:
            if isinstance(event, Done):
                return event
            if isinstance(event, Failed):
                raise event.error
    raise NoAnswerError


async def answer_events(answering: Answering, *, is_streamed: bool = True) -> AsyncGenerator[AnswerEvent, None]:
    """Yield what happens while the answer is written; the last event is Done, or Failed.

    A provider that fails before its first words is followed by the next one of the route; where nothing is streamed,
    whoever reads the last event alone has seen none of them, also one that fails later. Raises CoreCubeError when
    the last one does. Needs no database. Closing it stops the provider's work at once.
    """
    for notice in answering.route.notices:
        yield notice
    notices = list(answering.route.notices)
    for provider, following in _in_turn(answering.route.providers):
        writing = Writing(answering.task, provider, answering.encoder, answering.sentences, tuple(notices))
        try:
            async with aclosing(writing.events()) as events:
                async for event in events:
                    if isinstance(event, Done) and (doubt := _doubt(answering, event)):
                        yield doubt
                        yield replace(event, notices=(*event.notices, doubt))
                    else:
                        yield event
        except Exception as error:
            known = _known(error, answering, provider)
            if writing.has_sent and (is_streamed or following is None):
                yield Failed(known, await writing.so_far())
                return
            if following is None:
                raise
            notices.append(_fell_back(provider, following))
            yield notices[-1]
        else:
            return


def _doubt(answering: Answering, done: Done) -> Notice | None:
    """Return what the reader should know of an answer to a question that the sources do not seem to answer."""
    judged = answering.outcome.state.answerability
    if judged is None or judged.verdict is not Verdict.NOT_ANSWERABLE or done.refused:
        return None
    return Notice(DOUBTFUL, "The sources may not answer this question: read what is cited before you rely on it.")


def _known(error: Exception, answering: Answering, provider: Provider) -> CoreCubeError:
    """Return a provider's failure as one that can be told, and log it."""
    names = (answering.outcome.id, provider.name)
    if isinstance(error, CoreCubeError):
        logger.warning("answer.failed id=%s provider=%s code=%s", *names, error.code)
        return error
    logger.error("answer.failed id=%s provider=%s", *names, exc_info=error)
    return CoreCubeError()


def _in_turn(providers: tuple[Provider, ...]) -> Iterator[tuple[Provider, Provider | None]]:
    """Yield each provider with the one that is tried after it."""
    yield from zip(providers, (*providers[1:], None), strict=True)


def _fell_back(failed: Provider, following: Provider) -> Notice:
    return Notice(_FELL_BACK, f"{failed.name} could not answer, so {following.name} did.")
