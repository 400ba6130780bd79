"""Searches whose passages were used, as the browser reports them."""

from corecube.models import User
from retrieval.models import Chunk, Impression, SearchRecord
from retrieval.records.judgments import PassageId


def passage(word):
    """Return the passage with a word."""
    chunk = Chunk.objects.get(text__contains=word)
    return PassageId(chunk.document_id, chunk.content_hash)


def shown(name, query, *words, surface="explorer", **use):
    """Let a search of a person show the passages with these words, the first of them used."""
    person, _ = User.objects.get_or_create(username=name)
    record = SearchRecord.objects.create(
        user=person, query=query, surface=surface, preset="corecube", milliseconds=1, hit_count=len(words)
    )
    for position, word in enumerate(words, start=1):
        where = {"record": record, "query": query, "position": position, **passage(word)._asdict()}
        Impression.objects.create(**where, **(use if position == 1 else {}))
    return record
