"""What is to be written for a connection's chunks: what it asks for, as far as there is a model that can write it."""

from dataclasses import dataclass
from typing import Final

from django.conf import settings

from corecube.models import Connection

_CONTEXT: Final = frozenset({"context", "both"})
_QUESTIONS: Final = frozenset({"questions", "both"})


@dataclass(frozen=True, slots=True)
class Wants:
    """Kinds of words that are to be written, or that can be."""

    context: bool = True
    questions: bool = True

    def __bool__(self) -> bool:
        return self.context or self.questions

    def __and__(self, other: "Wants") -> "Wants":
        return Wants(self.context and other.context, self.questions and other.questions)


def asked_for(connection: Connection) -> Wants:
    """Return what a connection asks for."""
    return Wants(connection.enrichment in _CONTEXT, connection.enrichment in _QUESTIONS)


def writable() -> Wants:
    """Return what the installation's models can write: a language model both, a local one questions."""
    has_chat = bool(settings.CORECUBE_ENRICH_URL)
    return Wants(has_chat, has_chat or bool(settings.CORECUBE_ENRICH_QUESTIONS_MODEL))
