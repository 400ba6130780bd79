"""Who writes what for a chunk: a language model all, or all but the questions where a local model writes those."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from corecube.errors import ConfigError
from retrieval.encoders.seq2seq import Seq2Seq
from retrieval.errors import EnrichError
from retrieval.ingest.enrich import triples
from retrieval.ingest.enrich.chat import ChatModel, configured_service
from retrieval.ingest.enrich.local import configured_model, local_questions
from retrieval.ingest.enrich.pending import Wanted
from retrieval.ingest.enrich.prompts import (
    CONTEXT_TASK,
    MAX_ANSWER_TOKENS,
    QUESTIONS_TASK,
    context_in,
    messages,
    questions_in,
)
from retrieval.ingest.enrich.triples import Triple, triples_in
from retrieval.ingest.enrich.wants import Wants


@dataclass(frozen=True, slots=True)
class Answered:
    """A chunk with what was written for it, or why nothing was."""

    wanted: Wanted
    context_line: str
    questions: tuple[str, ...]
    triples: tuple[Triple, ...] | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Writers:
    """The models of one pass. Safe to use from several threads."""

    chat: ChatModel | None
    local: Seq2Seq | None

    def answer(self, wanted: Wanted) -> Answered:
        """Write what one chunk lacks; an answer that fails spoils the others, which are asked for again."""
        try:
            context = self._context(wanted) if wanted.wants_context else wanted.context_line
            questions = self._questions(wanted) if wanted.wants_questions else wanted.questions
            found = self._triples(wanted) if wanted.wants_triples else wanted.triples
        except EnrichError as error:
            return Answered(wanted, "", (), message=str(error))
        return Answered(wanted, context, questions, found)

    def _context(self, wanted: Wanted) -> str:
        return context_in(self._asked(CONTEXT_TASK, wanted))

    def _questions(self, wanted: Wanted) -> tuple[str, ...]:
        if self.local:
            return local_questions(self.local, wanted.place)
        return questions_in(self._asked(QUESTIONS_TASK, wanted))

    def _triples(self, wanted: Wanted) -> tuple[Triple, ...]:
        return triples_in(self._asked(triples.TASK, wanted, max_tokens=triples.MAX_ANSWER_TOKENS), wanted.place)

    def _asked(self, task: str, wanted: Wanted, *, max_tokens: int = MAX_ANSWER_TOKENS) -> str:
        if self.chat is None:
            raise EnrichError("No language model is configured.")
        return self.chat.answer(messages(task, wanted.place), max_tokens=max_tokens)


@contextmanager
def writers(wants: Wants, *, may_be_sent: bool = True) -> Iterator[Writers]:
    """Give the models that a pass needs; raise ConfigError where there is none, and what loading one raises.

    None of them is a language model elsewhere where the chunks may not be sent to it.
    """
    service = configured_service() if may_be_sent else None
    local = configured_model() if wants.questions else None
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
