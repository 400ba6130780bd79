"""What is to be written for a connection's chunks: what it asks for, as far as there is a model that can write it."""

from dataclasses import dataclass
from typing import Final

from django.conf import settings

from corecube.models import Connection

_CONTEXT: Final = frozenset({"context", "both", "all"})
_QUESTIONS: Final = frozenset({"questions", "both", "all"})
_TRIPLES: Final = frozenset({"triples", "all"})


@dataclass(frozen=True, slots=True)
class Wants:
    """Kinds of words that are to be written, or that can be."""

    context: bool = True
    questions: bool = True
    triples: bool = True

    def __bool__(self) -> bool:
        return self.context or self.questions or self.triples

    def __and__(self, other: "Wants") -> "Wants":
        return Wants(self.context and other.context, self.questions and other.questions, self.triples and other.triples)


def asked_for(connection: Connection) -> Wants:
    """Return what a connection asks for."""
    asked = connection.enrichment
    return Wants(asked in _CONTEXT, asked in _QUESTIONS, asked in _TRIPLES)


def writable() -> Wants:
    """Return what the installation's models can write: a language model all, a local one questions."""
    has_chat = bool(settings.CORECUBE_ENRICH_URL)
    return Wants(has_chat, has_chat or bool(settings.CORECUBE_ENRICH_QUESTIONS_MODEL), has_chat)
