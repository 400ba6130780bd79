"""The language that a connection's documents are in, and the one in which full-text search reads them."""

from collections import Counter
from typing import Final

from django.conf import settings

from corecube.models import Connection
from corecube.models.access import LANGUAGE_CHOICES
from retrieval.models import Chunk

_SAMPLE: Final = 500  #: Chunks that are looked at.
ANY: Final = "simple"  #: The text search configuration that reads words of any language, without stems.
LANGUAGES: Final = frozenset(language for language, _ in LANGUAGE_CHOICES) - {"", ANY}


def read_language(connection: Connection) -> str:
    """Return the text search configuration of a connection."""
    return connection.language or settings.CORECUBE_TEXT_SEARCH_CONFIG


def misread_language(connection: Connection) -> str:
    """Return the language, such as "german", of more than half of a connection's texts if they are read in another.

    Returns an empty text if they are not, and where full text reads any language or cannot read this one.
    """
    sample = Chunk.objects.filter(connection_id=connection.pk).values_list("language", flat=True)[:_SAMPLE]
    counts = Counter(filter(None, sample))
    language, most = max(counts.items(), key=lambda it: it[1], default=("", 0))
    is_misread = read_language(connection) not in {language, ANY} and language in LANGUAGES
    return language if is_misread and 2 * most > counts.total() else ""
