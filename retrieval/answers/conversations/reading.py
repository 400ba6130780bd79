"""Read a stored conversation with the access that its reader has now."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from corecube.access import Principal, scope_for
from corecube.scope import AccessScope
from retrieval.answers.rewrite import Said
from retrieval.engine.types import ChunkId
from retrieval.llm.types import Turn
from retrieval.models import Chunk, Conversation, Document, Message

_LOST_AFTER: Final = timedelta(minutes=30)  #: An answer that takes longer was lost with its process.
_FIRST_ANSWER: Final = 2  #: Ordinal of the first answer of a conversation.


class ReferenceState(StrEnum):
    """The current state of a passage."""

    CURRENT = "current"
    STALE = "stale"  #: The text or its document no longer exists.
    HIDDEN = "hidden"  #: Its connection is outside the user's scope.


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A passage behind an answer. A hidden one has no title, position or text."""

    number: int
    cited: bool
    state: ReferenceState
    score: float | None = None
    chunk: ChunkId | None = None  #: The chunk with the text; None for a stale or hidden one.
    title: str = ""  #: The current title of its document; empty if the document no longer exists.
    heading_path: tuple[str, ...] = ()
    connection: str = ""
    text: str = ""
    pages: tuple[int, int] | None = None
    rating: int | None = None  #: The user's rating, 1 or -1.

    @property
    def is_visible(self) -> bool:
        """Whether the user may see it."""
        return self.state is not ReferenceState.HIDDEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A question and its answer, as far as the reader may read them now."""

    question: str
    standalone: str  #: The search text; empty if it equals the question or may contain words of hidden passages.
    answer: Message
    text: str
    withheld: bool  #: Whether the answer depends on passages that the user can no longer see.
    state: Message.State
    problem: str
    references: tuple[Reference, ...] = ()
    unsupported: tuple[Mapping[str, Any], ...] = ()
    notices: tuple[Mapping[str, Any], ...] = ()

    @property
    def cited(self) -> tuple[Reference, ...]:
        """The cited passages."""
        return tuple(it for it in self.references if it.cited)

    @property
    def considered(self) -> tuple[Reference, ...]:
        """The passages that are not cited."""
        return tuple(it for it in self.references if not it.cited)

    @property
    def is_stale(self) -> bool:
        """Whether a cited text has changed or no longer exists."""
        return any(it.state is ReferenceState.STALE for it in self.cited)

    @property
    def is_refused(self) -> bool:
        """Whether the answer reports that the documents do not answer the question."""
        return self.answer.is_refused


@dataclass(frozen=True, slots=True)
class _Visible:
    scope: AccessScope
    titles: Mapping[UUID, str] = field(default_factory=dict)
    chunks: Mapping[tuple[UUID, str], Chunk] = field(default_factory=dict)


def exchanges_of(conversation: Conversation, reader: Principal) -> tuple[Exchange, ...]:
    """Return a conversation's questions and answers in order, with three queries and the two of a scope."""
    messages = list(conversation.messages.order_by("ordinal"))
    return tuple(_exchanges(messages, reader))


def exchange_of(answer: Message, reader: Principal) -> Exchange:
    """Return an answer with its question."""
    return next(it for it in exchanges_of(answer.conversation, reader) if it.answer.pk == answer.pk)


def earlier_questions(exchanges: Iterable[Exchange]) -> tuple[Said, ...]:
    """Return the context of a follow-up question, without titles of hidden documents and withheld answers."""
    return tuple(
        Said(it.question, tuple(dict.fromkeys(ref.title for ref in it.cited if ref.title)), it.text) for it in exchanges
    )


def turns_of(exchanges: Iterable[Exchange]) -> tuple[Turn, ...]:
    """Return the turns that a language model may read: those with complete answers that are not withheld."""
    return tuple(
        Turn(it.question, it.text, _origin(it.answer)) for it in exchanges if it.text and it.state is Message.State.DONE
    )


def _origin(answer: Message) -> frozenset[int] | None:
    """Return the connections of all that an answer's provider was given, earlier answers included; None if unknown."""
    own = frozenset(passage["connection"] for passage in answer.passages)
    if answer.is_extractive or answer.ordinal <= _FIRST_ANSWER:
        return own
    return None if answer.connections is None else own.union(answer.connections)


def _exchanges(messages: Sequence[Message], reader: Principal) -> Iterator[Exchange]:
    wanted = {UUID(passage["document"]) for it in messages for passage in it.passages}
    scope = scope_for(reader)
    titles = dict(Document.objects.in_scope(scope).filter(pk__in=wanted).values_list("pk", "title"))
    chunks = Chunk.objects.filter(document_id__in=titles, connection_id__in=scope.connection_ids)
    # Of equal texts in one document the first is used.
    stored = chunks.defer("search", "minhash").order_by("-ordinal")
    visible = _Visible(scope, titles, {(it.document_id, it.content_hash): it for it in stored})
    hides = False
    questions = {it.ordinal: it for it in messages if it.role == Message.Role.USER}
    for answer in messages:
        question = questions.get(answer.ordinal - 1)
        if answer.role != Message.Role.ASSISTANT or question is None:
            continue
        references = tuple(_reference(passage, answer, visible) for passage in answer.passages)
        withheld = _is_withheld(answer, references, scope)
        # The search text can contain words of earlier answers and titles.
        yield _exchange(question, answer, references, withheld=withheld, hides=hides)
        hides = hides or withheld or any(not it.is_visible for it in references)


def _is_withheld(answer: Message, references: Iterable[Reference], scope: AccessScope) -> bool:
    """Return whether an answer depends on passages outside the scope.

    Quotes depend on the cited passages; an answer of a language model on everything that the model was given, including
    earlier answers, and on anything if that is not stored.
    """
    if answer.is_extractive:
        return any(it.cited and not it.is_visible for it in references)
    origin = _origin(answer)
    return bool(answer.text) if origin is None else not all(map(scope.allows, origin))


def _exchange(
    question: Message, answer: Message, references: tuple[Reference, ...], *, withheld: bool, hides: bool
) -> Exchange:
    state, problem = Message.State(answer.state), answer.problem
    if state is Message.State.WRITING and answer.at < timezone.now() - _LOST_AFTER:
        state, problem = Message.State.FAILED, "interrupted"
    return Exchange(
        question=question.text,
        standalone="" if hides else question.standalone,
        answer=answer,
        text="" if withheld else answer.text,
        withheld=withheld,
        state=state,
        problem=problem,
        references=references,
        unsupported=() if withheld else tuple(answer.unsupported),
        notices=() if withheld else tuple(answer.notices),
    )


def _reference(passage: Mapping[str, Any], answer: Message, visible: _Visible) -> Reference:
    number, cited = passage["number"], passage["cited"]
    if not visible.scope.allows(passage["connection"]):
        return Reference(number=number, cited=cited, state=ReferenceState.HIDDEN)
    document = UUID(passage["document"])
    stale = Reference(
        number=number,
        cited=cited,
        state=ReferenceState.STALE,
        score=passage["score"],
        title=visible.titles.get(document, ""),
        connection=visible.scope.inclusion(passage["connection"]).connection.name,
        rating=answer.citation_feedback.get(str(number)),
    )
    chunk = visible.chunks.get((document, passage["content_hash"]))
    if chunk is None:
        return stale
    return replace(
        stale,
        state=ReferenceState.CURRENT,
        chunk=ChunkId(chunk.document_id, chunk.ordinal),
        heading_path=tuple(chunk.heading_path),
        text=chunk.text,
        pages=None if chunk.page_start is None else (chunk.page_start, chunk.page_end or chunk.page_start),
    )
