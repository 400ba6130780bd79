"""What may be written for a connection, and what is written for a new one unless it says otherwise.

A compartment's rule binds its passages to one language model, or to none. The model that enriches is another one unless
it has the same address and name, so such a compartment's chunks are not sent to it. A model on this machine sends
nothing anywhere.
"""

from typing import Final

from django.conf import settings

from corecube.models import Connection
from retrieval.ingest.enrich.wants import Wants, writable
from retrieval.models import LanguageModel, Memory, RoutingRule

#: What new connections ask for.
_BY_DEFAULT: Final = "questions"


def writable_for(connection: Connection) -> Wants:
    """Return what the installation's models may write for a connection's chunks, by the rules as they are now."""
    can = writable()
    if not settings.CORECUBE_ENRICH_URL or may_be_sent(connection):
        return can
    return Wants(context=False, questions=bool(settings.CORECUBE_ENRICH_QUESTIONS_MODEL), triples=False)


def may_be_sent(connection: Connection) -> bool:
    """Return whether a connection's chunks may go to the language model that enriches.

    What agents remember may come from any compartment, so any compartment's rule concerns it.
    """
    rules = RoutingRule.objects.filter(compartment__isnull=False).select_related("language_model")
    if not Memory.objects.filter(connection_id=connection.pk).exists():
        rules = rules.filter(compartment_id=connection.compartment_id)
    return all(_is_enricher(rule.language_model) for rule in rules)


def default_enrichment(connection: Connection) -> str:
    """Return what a new connection asks for where nobody says: questions, where something may write them."""
    if not settings.CORECUBE_ENRICH_BY_DEFAULT or not (settings.CORECUBE_ENRICH_URL or _has_local()):
        return ""
    if _has_local() or connection.compartment_id is None or may_be_sent(connection):
        return _BY_DEFAULT
    return ""


def _has_local() -> bool:
    return bool(settings.CORECUBE_ENRICH_QUESTIONS_MODEL)


def _is_enricher(model: LanguageModel | None) -> bool:
    """Return whether a language model is the one that enriches: the same name at the same address."""
    if model is None or not model.is_enabled or model.api != LanguageModel.Api.OPENAI:
        return False
    address = f"{model.base_url.rstrip('/')}/chat/completions"
    return (address, model.model) == (settings.CORECUBE_ENRICH_URL.rstrip("/"), settings.CORECUBE_ENRICH_MODEL)
