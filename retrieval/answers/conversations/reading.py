"""Reading a conversation again: with the access that its user has now, not the one of then."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from corecube.access import Principal, scope_for
from corecube.models import User
from corecube.scope import AccessScope
from retrieval.answers.rewrite import Said
from retrieval.engine.types import ChunkId
from retrieval.llm.types import Turn
from retrieval.models import Chunk, Conversation, Document, Message

#: No answer takes longer; whoever wrote it is gone.
_LOST_AFTER: Final = timedelta(minutes=30)
_INTERRUPTED: Final = "interrupted"
#: Where the first answer of a conversation stands.
_FIRST_ANSWER: Final = 2


class Standing(StrEnum):
    """How a passage stands today."""

    CURRENT = "current"
    #: The text is gone from its document, or the document from its source.
    STALE = "stale"
    #: Its connection is outside the user's scope.
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A passage that an answer was written from. A hidden one has no title, place or text."""

    number: int
    cited: bool
    standing: Standing
    score: float | None = None
    #: Where the text stands now; None for a stale or hidden one.
    chunk: ChunkId | None = None
    #: Its document's title today; empty where the document is gone.
    title: str = ""
    heading_path: tuple[str, ...] = ()
    connection: str = ""
    text: str = ""
    pages: tuple[int, int] | None = None
    #: The reader's thumb, 1 or -1.
    rating: int | None = None

    @property
    def is_visible(self) -> bool:
        """Whether its reader may know what it is."""
        return self.standing is not Standing.HIDDEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A question and its answer, as far as its user may read them now."""

    question: str
    #: What was searched for; empty where that is the question, or where it may name what is hidden now.
    standalone: str
    answer: Message
    #: The answer's text; empty while it is withheld.
    text: str
    #: Whether the answer rests on what its user may not see any more.
    withheld: bool
    state: Message.State
    problem: str
    references: tuple[Reference, ...] = ()
    unsupported: tuple[Mapping[str, Any], ...] = ()
    notices: tuple[Mapping[str, Any], ...] = ()

    @property
    def cited(self) -> tuple[Reference, ...]:
        """The passages that the answer cites."""
        return tuple(it for it in self.references if it.cited)

    @property
    def considered(self) -> tuple[Reference, ...]:
        """The passages that were found and not cited."""
        return tuple(it for it in self.references if not it.cited)

    @property
    def is_stale(self) -> bool:
        """Whether a text that the answer cites has changed or gone since."""
        return any(it.standing is Standing.STALE for it in self.cited)

    @property
    def is_refused(self) -> bool:
        """Whether the answer says that the sources do not answer the question."""
        return self.answer.is_refused


@dataclass(frozen=True, slots=True)
class _Known:
    """What the scope lets its user see of the documents at hand: their titles now, and their chunks by their text."""

    scope: AccessScope
    titles: Mapping[UUID, str] = field(default_factory=dict)
    chunks: Mapping[tuple[UUID, str], Chunk] = field(default_factory=dict)


def reopened(conversation: Conversation, user: User) -> tuple[Exchange, ...]:
    """Return what was said, in order, in three queries and the two that a scope takes."""
    messages = list(conversation.messages.order_by("ordinal"))
    return tuple(_exchanges(messages, user))


def exchange_of(answer: Message, user: User) -> Exchange:
    """Return one question and its answer."""
    everything = reopened(answer.conversation, user)
    return next(it for it in everything if it.answer.pk == answer.pk)


def said_before(exchanges: Iterable[Exchange]) -> tuple[Said, ...]:
    """Return what a follow-up question can be understood from; nothing of it names what is hidden."""
    return tuple(Said(it.question, _titles(it)) for it in exchanges)


def turns_before(exchanges: Iterable[Exchange]) -> tuple[Turn, ...]:
    """Return what a language model may be shown of the conversation: answers that are whole and not withheld."""
    return tuple(
        Turn(it.question, it.text, _origin(it.answer)) for it in exchanges if it.text and it.state is Message.State.DONE
    )


def _origin(answer: Message) -> frozenset[int] | None:
    """Return the connections of all that an answer's writer was shown; None where that was not kept.

    A quotation reads no earlier answer, and before the first answer there is none.
    """
    own = frozenset(passage["connection"] for passage in answer.passages)
    if answer.is_extractive or answer.ordinal <= _FIRST_ANSWER:
        return own
    return None if answer.connections is None else own.union(answer.connections)


def _titles(exchange: Exchange) -> tuple[str, ...]:
    return tuple(dict.fromkeys(it.title for it in exchange.cited if it.title))


def _exchanges(messages: Sequence[Message], user: User) -> Iterator[Exchange]:
    known = _known(messages, user)
    hides = False
    questions = {it.ordinal: it for it in messages if it.role == Message.Role.USER}
    for answer in messages:
        question = questions.get(answer.ordinal - 1)
        if answer.role != Message.Role.ASSISTANT or question is None:
            continue
        references = tuple(_reference(passage, answer, known) for passage in answer.passages)
        withheld = _is_withheld(answer, references, known.scope)
        # What was searched for can hold words of what was said and cited before.
        yield _exchange(question, answer, references, withheld=withheld, hides=hides)
        hides = hides or withheld or any(not it.is_visible for it in references)


def _is_withheld(answer: Message, references: Iterable[Reference], scope: AccessScope) -> bool:
    """Return whether an answer rests on what the scope hides.

    A quotation rests on what it cites; what a language model wrote on all that it was shown, also by earlier answers,
    and where that was not kept it may be anything.
    """
    if answer.is_extractive:
        return any(it.cited and not it.is_visible for it in references)
    origin = _origin(answer)
    if origin is None:
        return bool(answer.text)
    return not all(map(scope.allows, origin))


def _exchange(
    question: Message, answer: Message, references: tuple[Reference, ...], *, withheld: bool, hides: bool
) -> Exchange:
    state, problem = _state(answer)
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


def _state(answer: Message) -> tuple[Message.State, str]:
    if answer.state == Message.State.WRITING and answer.at < timezone.now() - _LOST_AFTER:
        return Message.State.FAILED, _INTERRUPTED
    return Message.State(answer.state), answer.problem


def _known(messages: Iterable[Message], user: User) -> _Known:
    wanted = {UUID(passage["document"]) for it in messages for passage in it.passages}
    scope = scope_for(Principal(user))
    titles = dict(Document.objects.in_scope(scope).filter(pk__in=wanted).values_list("pk", "title"))
    chunks = Chunk.objects.filter(document_id__in=titles, connection_id__in=scope.connection_ids)
    # Of equal texts in one document the first counts.
    found = chunks.defer("search", "minhash").order_by("-ordinal")
    return _Known(scope, titles, {(it.document_id, it.content_hash): it for it in found})


def _reference(passage: Mapping[str, Any], answer: Message, known: _Known) -> Reference:
    number, cited = passage["number"], passage["cited"]
    if not known.scope.allows(passage["connection"]):
        return Reference(number=number, cited=cited, standing=Standing.HIDDEN)
    document = UUID(passage["document"])
    seen = Reference(
        number=number,
        cited=cited,
        standing=Standing.STALE,
        score=passage["score"],
        title=known.titles.get(document, ""),
        connection=known.scope.inclusion(passage["connection"]).connection.name,
        rating=answer.citation_feedback.get(str(number)),
    )
    chunk = known.chunks.get((document, passage["content_hash"]))
    return seen if chunk is None else _current(seen, chunk)


def _current(reference: Reference, chunk: Chunk) -> Reference:
    """Return a passage whose text its document still has, with where it stands now."""
    return replace(
        reference,
        standing=Standing.CURRENT,
        chunk=ChunkId(chunk.document_id, chunk.ordinal),
        heading_path=tuple(chunk.heading_path),
        text=chunk.text,
        pages=None if chunk.page_start is None else (chunk.page_start, chunk.page_end or chunk.page_start),
    )
