"""Write the answer to a finished search, for the chat page, the API, the explorer and agents."""

import logging
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Final

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import Error as DatabaseFault
from django.db import transaction

from corecube.access import Principal
from corecube.database import in_thread, release_connection
from corecube.errors import CoreCubeError
from retrieval.answers.events import AnswerEvent, Done, Failed, Outcome
from retrieval.answers.json_quotes import JsonShape, shape_for
from retrieval.answers.providers import route_for
from retrieval.answers.writing import NoAnswerError, Writing
from retrieval.encoders import Encoder
from retrieval.encoders.model_table import knows_language
from retrieval.encoders.vector_cache import SentenceEncoder
from retrieval.engine.state import Query
from retrieval.engine.types import QueryTerms, RunCosines, Verdict
from retrieval.errors import AnswerFormatError, SearchTimeoutError
from retrieval.llm.model_provider import ModelProvider
from retrieval.llm.types import NO_OPTIONS, Notice, Options, Provider, Route, Task, Turn
from retrieval.models import SearchRecord
from retrieval.ranking.answerability.verdict import Reason
from retrieval.records.accesses import note_accesses
from retrieval.search import runtime
from retrieval.search.outcome import SearchOutcome
from retrieval.stages.analyze import corrected_text
from retrieval.stages.resources import Resources
from retrieval.text.language import question_language

logger = logging.getLogger(__name__)

DOUBTFUL: Final = "doubtful"  #: About the question only: does not count as degraded.
CONFLICTING: Final = "conflicting"  #: The passages contradict each other: the answer may tell only one side.
OVERLOOKED: Final = "overlooked"  #: A refusal although the passages probably answer the question.
UNKNOWN_LANGUAGE: Final = "unknown_language"
CUT: Final = "question_cut"
CORRECTED: Final = "question_corrected"
_READ_SECONDS: Final = 1.0  #: Time limit for reading the sentences' vectors.
_ANY: Final = "simple"  #: The text search configuration without stemming, which suits every language.


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """A finished search and everything that its answer needs."""

    outcome: SearchOutcome
    principal: Principal
    route: Route
    encoder: Encoder  #: Counts tokens if a service does not report them.
    sentences: SentenceEncoder | None  #: Compares sentences of a model's answer; None to compare only words.
    question: str
    history: tuple[Turn, ...] = ()
    options: Options = NO_OPTIONS
    cosines: RunCosines = field(default_factory=dict)

    @property
    def json_shape(self) -> JsonShape | None:
        """The JSON that quotes become; None for text, for JSON of a language model, and without passages."""
        is_quoted = self.options.is_json and self.outcome.passages and self.route.providers[0].is_extractive
        return shape_for(self.options.response_format or {}) if is_quoted else None

    @property
    def task(self) -> Task:
        """The task of a provider, before it is cut to the provider's window."""
        return Task(
            question=self.question,
            passages=self.outcome.passages,
            terms=self.outcome.state.terms,
            history=self.history,
            is_follow_up=bool(self.history) and self.question != self.outcome.state.query.text,
            asks_nothing=self.outcome.asks_nothing,
            answerability=self.outcome.state.answerability,
            options=self.options,
            trust=self.outcome.state.scope.trust,
            cosines=self.cosines,
        )


def prepare(
    outcome: SearchOutcome,
    principal: Principal,
    history: tuple[Turn, ...] = (),
    *,
    question: str = "",
    options: Options = NO_OPTIONS,
    route: Route | None = None,
) -> Answering:
    """Return everything that the answer to a search needs.

    `question` is the user's question if the query differs: words added to a query may come from passages that a
    language model must not read. `options` are those of the request. `route` replaces the providers that users get.
    Reads the database, so call it before the first event. Raises ModelMissingError, and AnswerFormatError if no
    language model can answer in the required format.
    """
    resources = outcome.resources or runtime.resources()
    route = route or route_for(principal, outcome.passages, outcome.record_id)
    if options.is_json and outcome.passages:
        route = _able(route, options)
    asked = question or outcome.state.query.text
    read = {it.connection.language or settings.CORECUBE_TEXT_SEARCH_CONFIG for it in outcome.state.scope.included}
    can_be_written = bool(outcome.passages) and not outcome.asks_nothing
    names_settings, model = principal.is_admin, resources.encoder.name
    is_noted = question_language(asked) in {question_language(turn.question) for turn in history}
    unknown = None
    if not outcome.asks_nothing and not is_noted:
        unknown = language_notice(asked, model, read, names_settings=names_settings)
    searched = (_cut_notice(outcome.state.query), _corrected_notice(outcome.state.terms))
    return Answering(
        outcome=outcome,
        principal=principal,
        # Without passages a language model could only guess.
        route=Route(
            route.providers if can_be_written else route.providers[-1:],
            (*(route.notices if can_be_written else ()), *filter(None, [unknown, *searched])),
        ),
        encoder=resources.encoder,
        sentences=resources.sentence_encoder,
        cosines=run_cosines(outcome, resources),
        question=asked,
        history=history,
        options=options,
    )


def _cut_notice(query: Query) -> Notice | None:
    """Return a notice if retrieval does not read all of a query."""
    read, sent = len(query.retrieval_text), len(query.text)
    text = f"Only the first {read:,} of {sent:,} characters of the question were searched."
    return Notice(CUT, text) if read < sent else None


def _corrected_notice(terms: QueryTerms) -> Notice | None:
    return Notice(CORRECTED, corrected_text(terms.corrections)) if terms.corrections else None


def run_cosines(outcome: SearchOutcome, resources: Resources) -> RunCosines:
    """Return the cosines with what can be quoted of the passages; none where the search had no vector.

    None either where they are not read in time, or where the model does not know the question's language: then words
    select quotes.
    """
    state, stored, hits = outcome.state, resources.sentence_vectors, tuple(it.hit for it in outcome.passages)
    if state.vector is None or stored is None or not hits:
        return {}
    if not knows_language(resources.encoder.name, question_language(state.query.text) or state.terms.language):
        return {}
    try:
        return stored.cosines(hits, state.vector, scope=state.scope, timeout_seconds=_READ_SECONDS)
    except SearchTimeoutError:
        return {}


def _able(route: Route, options: Options) -> Route:
    """Return the providers that can answer in the required format: quotes, without a model, if its schema allows."""
    models = [it for it in route.providers if not it.is_extractive]
    able = tuple(it for it in models if not isinstance(it, ModelProvider) or it.can_answer_in(options))
    if able:
        return replace(route, providers=able)
    if models:
        raise AnswerFormatError
    shape_for(options.response_format or {})
    return route


def origin(answering: Answering, done: Done | None) -> frozenset[int] | None:
    """Return the connections of everything that the answer's provider was given; None if unknown.

    These are the connections of the passages and of the earlier turns that the provider may read. Without `done` any
    provider of the route may have written the answer.
    """
    providers = [it for it in answering.route.providers if done is None or it.name == done.provider]

    def reads(provider: Provider, turn: Turn) -> bool:
        # A quoting provider quotes nothing of earlier turns.
        return provider.may_read(turn) if isinstance(provider, ModelProvider) else not provider.is_extractive

    given = [turn.connections for turn in answering.history if any(reads(it, turn) for it in providers)]
    known = [it for it in given if it is not None]
    if len(known) < len(given):
        return None
    return frozenset(it.hit.chunk.connection_id for it in answering.outcome.passages).union(*known)


def note(answering: Answering, done: Done) -> None:
    """Store the refusal of an answer, or the accesses to its cited documents; a database failure is only logged.

    A greeting is no question without an answer.
    """
    if answering.outcome.asks_nothing:
        return
    if not done.refused:
        cited = {passage.number: passage.hit.chunk_id.document_id for passage in answering.outcome.passages}
        note_accesses(cited[number] for number in done.cited if number in cited)
        return
    try:
        # In a separate transaction: a failure must not abort an outer one.
        with transaction.atomic():
            SearchRecord.objects.mark_refused(answering.outcome.id)
    except DatabaseFault:
        logger.exception("answer.refusal_lost id=%s", answering.outcome.id)


async def note_later(answering: Answering, done: Done) -> None:
    """Call `note` from a stream."""
    await in_thread(note, answering, done)


def answered(answering: Answering) -> Done:
    """Return the answer without streaming, without a database connection meanwhile; raise CoreCubeError without one."""

    async def last_event() -> Done:
        async with aclosing(answer_events(answering, is_streamed=False)) as events:
            async for event in events:
                if isinstance(event, Done):
                    return event
                if isinstance(event, Failed):
                    raise event.error
        raise NoAnswerError

    release_connection()
    return async_to_sync(last_event)()


async def answer_events(answering: Answering, *, is_streamed: bool = True) -> AsyncGenerator[AnswerEvent, None]:
    """Yield the events of an answer; the last one is Done or Failed.

    If a provider fails before its first words, the next one of the route takes over; without streaming also if it fails
    later, as the reader has seen nothing. Raises CoreCubeError if the last provider does. Needs no database. Closing
    the generator stops the provider at once.
    """
    for notice in answering.route.notices:
        yield notice
    notices = list(answering.route.notices)
    providers = answering.route.providers
    for provider, following in zip(providers, (*providers[1:], None), strict=True):
        writing = Writing(answering.task, provider, answering.encoder, answering.sentences, tuple(notices))
        try:
            async with aclosing(writing.events()) as events:
                async for event in events:
                    if isinstance(event, Done) and (doubt := _doubt(answering, event)):
                        outcome = Outcome.HEDGED if doubt.code == DOUBTFUL else event.outcome
                        yield doubt
                        yield replace(event, outcome=outcome, notices=(*event.notices, doubt))
                    else:
                        yield event
        except Exception as error:
            known = _known(error, answering, provider)
            if writing.has_sent and (is_streamed or following is None):
                yield Failed(known, await writing.so_far())
                return
            if following is None:
                raise
            shown = "Showing quotes" if following.is_extractive else f"{following.name} answers"
            notices.append(Notice("fell_back", f"{provider.name} is unavailable. {shown} instead."))
            yield notices[-1]
        else:
            return


def _doubt(answering: Answering, done: Done) -> Notice | None:
    verdict, judged = answering.task.verdict, answering.task.answerability
    if done.extractive:  # Quotes follow the verdict.
        return None
    if verdict is Verdict.NOT_ANSWERABLE and not done.refused:
        return Notice(DOUBTFUL, "Your documents may not answer this question. Check the cited passages.")
    if verdict is Verdict.ANSWERABLE and done.refused:
        return Notice(
            OVERLOOKED, "The language model found no answer, but the passages probably contain one. Check the sources."
        )
    if judged and judged.reason == Reason.CONFLICTING and not done.refused:
        return Notice(CONFLICTING, judged.explanation)
    return None


def _known(error: Exception, answering: Answering, provider: Provider) -> CoreCubeError:
    names = (answering.outcome.id, provider.name)
    if isinstance(error, CoreCubeError):
        logger.warning("answer.failed id=%s provider=%s code=%s", *names, error.code)
        return error
    logger.error("answer.failed id=%s provider=%s", *names, exc_info=error)
    return CoreCubeError()


def language_notice(question: str, model: str, text_search: Collection[str], *, names_settings: bool) -> Notice | None:
    """Return a notice if a question's language is not covered, for admins with the settings to change; None in doubt.

    `text_search` are the text search configurations of the sources searched. An unlisted model may know any language.
    """
    language = question_language(question)
    gaps = []
    if not knows_language(model, language):
        gaps.append(
            f"the embedding model {model} supports only English (page Models, or CORECUBE_MODEL for the first index)"
        )
    if text_search and not {language, _ANY} & {*text_search}:
        read = " and ".join(sorted(it.capitalize() for it in text_search))
        gaps.append(f"full-text search is set to {read} (CORECUBE_TEXT_SEARCH_CONFIG, or the language of a connection)")
    if not language or not gaps:
        return None
    why = f", but {', and '.join(gaps)}" if names_settings else ", which this search is not set up for"
    return Notice(UNKNOWN_LANGUAGE, f"The question seems to be in {language.capitalize()}{why}. Answers may be worse.")
