"""Writing the answer to a finished search: the one way for the chat page, the API, the explorer and agents."""

import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from asgiref.sync import async_to_sync, sync_to_async
from django.db import close_old_connections, transaction

from corecube.access import Principal
from corecube.errors import CoreCubeError
from retrieval import runtime
from retrieval.encoders import Encoder
from retrieval.encoders.kept_vectors import SentenceEncoder
from retrieval.generate.events import AnswerEvent, Done, Failed
from retrieval.generate.providers import route_for
from retrieval.generate.types import Notice, Provider, Route, Task, Turn
from retrieval.generate.writing import NoAnswerError, Writing
from retrieval.models import SearchRecord
from retrieval.services import SearchOutcome

logger = logging.getLogger(__name__)

_FELL_BACK: Final = "fell_back"


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
    #: All of what was asked; the search may have read less, or more where it was made to stand alone.
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
        )


def prepare(
    outcome: SearchOutcome, principal: Principal, history: tuple[Turn, ...] = (), *, question: str = ""
) -> Answering:
    """Return what the answer to a search is written with; `question` where it is not just the query.

    Reads the database, so it belongs before the first event. Raises ModelMissingError.
    """
    return Answering(
        outcome=outcome,
        principal=principal,
        route=_route(outcome, principal),
        encoder=runtime.encoder(),
        sentences=runtime.sentence_encoder(),
        question=question or outcome.state.query.text,
        history=history,
    )


def _route(outcome: SearchOutcome, principal: Principal) -> Route:
    """Return who may answer; where nothing was found no language model is asked, which could only guess."""
    route = route_for(principal, outcome.passages, outcome.id)
    return route if outcome.passages else Route(route.providers[-1:])


def note(answering: Answering, done: Done) -> None:
    """Keep with the search's record how its answer ended."""
    if done.refused:
        SearchRecord.objects.mark_refused(answering.outcome.id)


async def note_later(answering: Answering, done: Done) -> None:
    """Do the same from a stream: in the request's own thread, which keeps no database connection afterwards."""
    await sync_to_async(_note_and_let_go)(answering, done)


def _note_and_let_go(answering: Answering, done: Done) -> None:
    note(answering, done)
    if not transaction.get_connection().in_atomic_block:
        close_old_connections()


def answered(answering: Answering) -> Done:
    """Return the finished answer, for who does not stream; raise CoreCubeError where no provider finishes one."""
    return async_to_sync(_answered)(answering)


async def _answered(answering: Answering) -> Done:
    async with aclosing(answer_events(answering)) as events:
        async for event in events:
            if isinstance(event, Done):
                return event
            if isinstance(event, Failed):
                raise event.error
    raise NoAnswerError


async def answer_events(answering: Answering) -> AsyncGenerator[AnswerEvent, None]:
    """Yield what happens while the answer is written; the last event is Done, or Failed.

    A provider that fails before its first words is followed by the next one of the route. Raises CoreCubeError when
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
                    yield event
        except Exception as error:
            known = _known(error, answering, provider)
            if writing.has_sent:
                yield Failed(known, await writing.so_far())
                return
            if following is None:
                raise
            notices.append(_fell_back(provider, following))
            yield notices[-1]
        else:
            return


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
