"""The stemmers that mark a query's words, by the language of a connection."""

from django.conf import settings

from explorer.components.snippets import Stem
from retrieval.engine.words import stemmer


def stem_in(language: str) -> Stem:
    """Return the stemmer of a connection's language; of the installation's where it names none."""
    return stemmer(language or settings.CORECUBE_TEXT_SEARCH_CONFIG)
