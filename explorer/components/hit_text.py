"""The title and snippet of a hit, with the words that match the query marked."""

from django.conf import settings

from corecube.scope import ConnectionFacts
from explorer.components.snippets import SNIPPET_CHARACTERS, Segment, highlight, snippet
from retrieval.engine.types import Hit
from retrieval.engine.words import stemmer


def hit_text(
    hit: Hit, connection: ConnectionFacts, *, characters: int = SNIPPET_CHARACTERS
) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
    """Return a hit's title and snippet in segments; words match by the stemmer of the connection's language."""
    stem = stemmer(connection.language or settings.CORECUBE_TEXT_SEARCH_CONFIG)
    title = highlight(hit.chunk.title, [match.lexeme for match in hit.matches], stem=stem)
    return title, snippet(hit.chunk.text, hit.matches, stem=stem, characters=characters)
