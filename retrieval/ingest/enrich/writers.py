"""The models of a pass: a language model writes everything, except questions if a local model writes those."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import BoundedSemaphore
from typing import Final

from django.conf import settings

from corecube.errors import ConfigError
from corecube.process import cores
from retrieval.encoders.admission import ingest_slot
from retrieval.encoders.seq2seq import Seq2Seq, load_seq2seq
from retrieval.errors import EncoderError, EnrichError
from retrieval.ingest.enrich import triples
from retrieval.ingest.enrich.chat import ChatModel, configured_service
from retrieval.ingest.enrich.pending import Pending
from retrieval.ingest.enrich.prompts import (
    CONTEXT_TASK,
    MAX_ANSWER_TOKENS,
    MAX_QUESTIONS,
    QUESTIONS_TASK,
    Place,
    context_in,
    expansions_in,
    messages,
    questions_in,
)
from retrieval.ingest.enrich.triples import Triple, triples_in
from retrieval.ingest.enrich.wants import Wants
from retrieval.text.context_line import in_context

#: Concurrent runs of the local model: more would wait for the same cores.
_LOCAL_RUNS: Final = BoundedSemaphore(cores())


@dataclass(frozen=True, slots=True)
class Answer:
    """A chunk with what was written for it, or why nothing was."""

    pending: Pending
    context_line: str
    questions: tuple[str, ...]
    triples: tuple[Triple, ...] | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Writers:
    """The models of one pass. Safe to use from several threads."""

    chat: ChatModel | None
    local: Seq2Seq | None

    def answer(self, pending: Pending) -> Answer:
        """Write what one chunk lacks; if one answer fails, the others are dropped and requested again later."""
        try:
            context, questions, found = pending.context_line, pending.questions, pending.triples
            if pending.wants.context:
                context = context_in(self._chat(CONTEXT_TASK, pending))
            if pending.wants.questions and self.local:
                questions = local_questions(self.local, pending.place)
            elif pending.wants.questions:
                questions = questions_in(self._chat(QUESTIONS_TASK, pending))
            if pending.wants.triples:
                answer = self._chat(triples.TASK, pending, max_tokens=triples.MAX_ANSWER_TOKENS)
                found = triples_in(answer, pending.place)
        except EnrichError as error:
            return Answer(pending, "", (), message=str(error))
        return Answer(pending, context, questions, found)

    def _chat(self, task: str, pending: Pending, *, max_tokens: int = MAX_ANSWER_TOKENS) -> str:
        if self.chat is None:
            raise EnrichError("No language model is configured.")
        return self.chat.answer(messages(task, pending.place), max_tokens=max_tokens)


def local_questions(model: Seq2Seq, place: Place) -> tuple[str, ...]:
    """Return the questions that a local model (doc2query) writes for a chunk; raise EnrichError.

    The model reads the chunk under its title and headings, on this machine and at no cost.
    """
    text = in_context(place.title, place.heading_path, place.text)
    try:
        with _LOCAL_RUNS, ingest_slot():
            return expansions_in(model.write(text, count=MAX_QUESTIONS))
    except EncoderError as error:
        raise EnrichError(str(error)) from error


@cache
def _loaded(directory: Path) -> Seq2Seq:
    return load_seq2seq(directory)


@contextmanager
def writers(wants: Wants, *, may_be_sent: bool = True) -> Iterator[Writers]:
    """Yield the models for a pass; raise ConfigError if there is none, and what loading one raises.

    A language model service is left out when the chunks may not be sent to it.
    """
    service = configured_service() if may_be_sent else None
    name = settings.CORECUBE_ENRICH_QUESTIONS_MODEL if wants.questions else ""
    local = _loaded(settings.CORECUBE_MODELS_DIR / name) if name else None
    if service is None and local is None:
        raise ConfigError(
            "No model is configured: set CORECUBE_ENRICH_URL and CORECUBE_ENRICH_MODEL"
            " or, for questions, CORECUBE_ENRICH_QUESTIONS_MODEL."
        )
    chat = ChatModel(service) if service else None
    try:
        yield Writers(chat, local)
    finally:
        if chat:
            chat.close()
