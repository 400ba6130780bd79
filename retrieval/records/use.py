"""What users do with the passages that a search showed them: open one, copy the answer that cites it, rate it."""

from contextlib import suppress
from uuid import UUID

from django.conf import settings
from django.db import transaction

from corecube.access import Principal, scope_for
from retrieval.errors import UnknownPassageError
from retrieval.models import Impression, Message, SearchRecord
from retrieval.records.judgments import PassageId, hold, normalised_query
from retrieval.records.stored_trace import ranking_of


def note_opened(record: SearchRecord, number: int) -> None:
    """Store that the user of a search opened a passage, by its rank, or by its number behind an answer.

    Nothing is stored without query texts, or for a search as another user; passages that were deleted or that the user
    can no longer see are left out. Raises UnknownPassageError for a number that was not shown.
    """
    _note(record, number, opened=True)


def note_copied(record: SearchRecord) -> None:
    """Store that the user of a search copied its answer, with all that it cites, as `note_opened` does."""
    _note(record, None, copied=True)


def note_rating(record: SearchRecord, number: int, rating: int | None) -> None:
    """Store the rating of a passage behind an answer, 1 or -1, or clear it, as `note_opened` does."""
    _note(record, number, rating=rating)


def note_rated_citation(record: SearchRecord, number: int, passage: PassageId, rating: int) -> None:
    """Store a rating through the API of a passage of an experiment's question; of others nothing is stored.

    What a program showed, and where, is unknown: so such a use is credit of a side, and gives no grade. Raises
    UnknownPassageError for a passage that the user can no longer see.
    """
    if record.experiment_id is None or record.user is None or not settings.CORECUBE_KEEP_QUERY_TEXT:
        return
    with transaction.atomic():
        hold(passage, scope_for(Principal(record.user)))
        stored = {"query": normalised_query(record.query), "position": number, "rating": rating}
        Impression.objects.update_or_create(record=record, **passage._asdict(), defaults=stored)


def _note(record: SearchRecord, number: int | None, **use: bool | int | None) -> None:
    if not settings.CORECUBE_KEEP_QUERY_TEXT or not record.query or record.user is None or record.for_another:
        return
    shown = _shown(record, number)
    if number is not None and number not in shown:
        raise UnknownPassageError
    scope, query, rows = scope_for(Principal(record.user)), normalised_query(record.query), []
    with transaction.atomic():
        # In the same order everywhere, so that no two wait for each other.
        for passage, position in sorted((passage, position) for position, passage in shown.items()):
            with suppress(UnknownPassageError):
                hold(passage, scope)
                rows.append(Impression(record=record, query=query, position=position, **passage._asdict()))
        Impression.objects.bulk_create(rows, ignore_conflicts=True)
        used = [it for it, passage in shown.items() if number is None or passage == shown[number]]
        record.impressions.filter(position__in=used).update(**use)


def _shown(record: SearchRecord, number: int | None) -> dict[int, PassageId]:
    """Return the passages that a search showed: its hits by rank, or the citations of its answer by number.

    The passage with `number` is one of them even if the answer does not cite it.
    """
    answer = Message.objects.filter(record=record, conversation__user=record.user_id).first()
    if answer is not None:
        return {
            it["number"]: PassageId(UUID(it["document"]), it["content_hash"])
            for it in answer.passages
            if it["cited"] or it["number"] == number
        }
    hits = ranking_of(record.trace)[: record.top_k] if number is not None else ()
    return {rank: PassageId(chunk.document_id, text) for rank, (chunk, text) in enumerate(hits, start=1)}
