"""The models of a pass: a language model writes everything, except questions if a local model writes those."""

import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from threading import BoundedSemaphore
from typing import Any, Final

from django.conf import settings

from corecube.errors import ConfigError
from corecube.process import cores
from retrieval.encoders.admission import ingest_slot
from retrieval.encoders.bounded_http import BoundedClient, ServiceFaultError
from retrieval.encoders.seq2seq import Seq2Seq, load_seq2seq
from retrieval.errors import EncoderError, EnrichError
from retrieval.ingest.enrich import triples
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
from retrieval.ingest.enrich.triples import Triple, triples_in, triples_of
from retrieval.ingest.enrich.wants import Wants
from retrieval.text.document import in_context

_ATTEMPTS: Final = 3
#: Seconds before the second attempt, doubled before the third; each times a random factor from 0.5 to 1.5.
_FIRST_WAIT_SECONDS: Final = 1.0
_MAX_WAIT_SECONDS: Final = 30.0
_RANDOM: Final = random.SystemRandom()
_loaded = cache(load_seq2seq)
#: Concurrent runs of the local model: more would wait for the same cores.
_LOCAL_RUNS: Final = BoundedSemaphore(cores())


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatService:
    """The address and name of a model."""

    url: str
    model: str
    api_key: str = field(default="", repr=False)
    timeout_seconds: float = 60.0
    first_wait_seconds: float = _FIRST_WAIT_SECONDS


def _configured_service() -> ChatService | None:
    """Return the installation's model, None if none is configured; raise ConfigError for half a configuration."""
    url, model = settings.CORECUBE_ENRICH_URL, settings.CORECUBE_ENRICH_MODEL
    if bool(url) != bool(model):
        raise ConfigError("Set both CORECUBE_ENRICH_URL and CORECUBE_ENRICH_MODEL, or neither.")
    return ChatService(url=url, model=model, api_key=settings.CORECUBE_ENRICH_API_KEY) if url else None


class ChatModel:
    """Answers messages. Safe to call from several threads."""

    def __init__(self, service: ChatService) -> None:
        self._service = service
        self._client = BoundedClient(service.api_key)

    def answer(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int = MAX_ANSWER_TOKENS) -> str:
        """Return the model's answer, of at most `max_tokens` tokens.

        A transient failure (timeout, 429, 5xx) is tried three times, with the waits that the service requests. Raises
        EnrichError, whose message has nothing that was sent or received.
        """
        body = json.dumps(
            {"model": self._service.model, "messages": list(messages), "max_tokens": max_tokens, "temperature": 0}
        ).encode()
        for attempt in range(_ATTEMPTS):
            try:
                return _text(self._client.post(self._service.url, body, timeout_seconds=self._service.timeout_seconds))
            except ServiceFaultError as fault:
                if not fault.is_retryable or attempt == _ATTEMPTS - 1:
                    raise EnrichError(f"The language model {fault}.") from fault
                backoff = self._service.first_wait_seconds * 2**attempt * _RANDOM.uniform(0.5, 1.5)
                wait = backoff if fault.retry_after_seconds is None else fault.retry_after_seconds
                time.sleep(min(wait, _MAX_WAIT_SECONDS))
        raise EnrichError

    def close(self) -> None:
        """Close its connections."""
        self._client.close()


def _text(content: bytes) -> str:
    try:
        answer: Any = json.loads(content)
        text = answer["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError) as error:
        raise EnrichError("The language model's answer has no text.") from error
    if not isinstance(text, str):
        raise EnrichError("The language model's answer has no text.")
    return text


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
            row = pending.row
            context, questions, found = row.context_line, tuple(row.questions), triples_of(row.triples)
            if "context" in pending.wants:
                context = context_in(self._chat(CONTEXT_TASK, pending))
            if "questions" in pending.wants and self.local:
                questions = local_questions(self.local, pending.place)
            elif "questions" in pending.wants:
                questions = questions_in(self._chat(QUESTIONS_TASK, pending))
            if "triples" in pending.wants:
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
    """Return the questions that a local model (doc2query) writes for a chunk, at no cost; raise EnrichError."""
    text = in_context(place.title, place.heading_path, place.text)
    try:
        with _LOCAL_RUNS, ingest_slot():
            return expansions_in(model.write(text, count=MAX_QUESTIONS))
    except EncoderError as error:
        raise EnrichError(str(error)) from error


@contextmanager
def writers(wants: Wants, *, may_be_sent: bool = True) -> Iterator[Writers]:
    """Yield the models for a pass, without a service unless `may_be_sent`; raise ConfigError if there is none."""
    service = _configured_service() if may_be_sent else None
    name = settings.CORECUBE_ENRICH_QUESTIONS_MODEL if "questions" in wants else ""
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
