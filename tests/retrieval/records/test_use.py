"""What users do with the passages of real searches and answers."""

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from corecube.access import Principal
from corecube.models import Connection
from retrieval.answers.conversations.asking import ask, rate_citation, start
from retrieval.answers.conversations.writing import begin, claimed, finished
from retrieval.errors import UnknownPassageError
from retrieval.index.writer import delete_documents
from retrieval.models import Impression, Message, SearchRecord
from retrieval.records.retention import forget_old_searches
from retrieval.records.stored_trace import ranking_of
from retrieval.records.use import note_copied, note_opened
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.race import race
from tests.use import passage

QUERY = " How to  ROLL back the staging database?"

pytestmark = pytest.mark.usefixtures("unhurried")


@pytest.fixture
def searched(world):
    """Return a function that searches as one of the cast and returns the record."""

    def record(name, **how):
        principal = Principal(getattr(world, name), **how)
        outcome = search(SearchRequest(text=QUERY, preset="corecube", surface="explorer"), principal=principal)
        return SearchRecord.objects.get(pk=outcome.id)

    return record


@pytest.fixture
def answer(world):
    """An answer in Bob's chat."""
    asked = ask(start(world.bob), QUERY)
    assert claimed(asked)
    finished(begin(asked))
    return Message.objects.select_related("conversation__user", "record").get(pk=asked.pk)


def rows(**which):
    found = Impression.objects.filter(**which).order_by("position")
    return list(found.values_list("position", "opened", "copied", "rating"))


def test_the_first_use_stores_what_the_search_showed(searched):
    record = searched("bob")
    hits = ranking_of(record.trace)
    assert not Impression.objects.exists()
    note_opened(record, 2)
    note_opened(record, 2)
    assert rows() == [(rank, rank == 2, False, None) for rank in range(1, len(hits) + 1)]
    used = Impression.objects.get(opened=True)
    assert (used.document_id, used.content_hash) == (hits[1][0].document_id, hits[1][1])
    assert used.query == "how to roll back the staging database?"
    note_opened(record, 1)
    assert [it[1] for it in rows()][:2] == [True, True]


def test_an_answer_shows_its_citations_and_copying_it_uses_them_all(answer):
    cited = [it["number"] for it in answer.passages if it["cited"]]
    other = next(it["number"] for it in answer.passages if not it["cited"])
    note_copied(answer.record)
    assert rows() == [(it, False, True, None) for it in cited]
    note_opened(answer.record, other)
    assert rows(position=other) == [(other, True, False, None)]
    assert rows(copied=True) == [(it, False, True, None) for it in cited]


def test_a_thumb_is_use_too_and_is_withdrawn(answer):
    for rating in (1, -1, None):
        rate_citation(answer, 1, rating)
        assert rows(position=1) == [(1, False, False, rating)]


def test_what_was_not_shown_is_not_used(searched, answer):
    for record in (searched("bob"), answer.record):
        for number in (0, 99):
            with pytest.raises(UnknownPassageError):
                note_opened(record, number)
    note_copied(searched("bob"))  # It has no answer.
    assert not Impression.objects.exists()


def test_nothing_is_stored_without_query_texts_or_for_another_user(searched, world, settings):
    another = searched("bob", actor=world.alice)
    stored = searched("bob")
    note_opened(another, 1)
    settings.CORECUBE_KEEP_QUERY_TEXT = False
    note_opened(searched("bob"), 1)
    note_opened(stored, 1)
    assert not Impression.objects.exists()


def test_passages_outside_the_scope_are_left_out(searched, world):
    record = searched("alice")
    assert passage("tangerine").document_id in {chunk.document_id for chunk, _ in ranking_of(record.trace)}
    Connection.objects.filter(pk=world.ledger.pk).update(enabled=False)
    note_opened(record, 1)
    assert Impression.objects.exists()
    assert not Impression.objects.filter(document_id=passage("tangerine").document_id).exists()


@pytest.mark.django_db(transaction=True)
def test_a_deletion_beside_it_waits_and_deletes_it_too(searched):
    record, gone = searched("bob"), passage("deployctl").document_id
    assert race(partial(note_opened, record, 1), partial(delete_documents, [gone])) is None
    assert Impression.objects.exists()
    assert not Impression.objects.filter(document_id=gone).exists()


def test_it_goes_with_its_document_and_with_its_search(searched, settings):
    record = searched("bob")
    note_opened(record, 1)
    gone = passage("deployctl").document_id
    assert Impression.objects.filter(document_id=gone).exists()
    delete_documents([gone])
    assert Impression.objects.exists()
    assert not Impression.objects.filter(document_id=gone).exists()
    settings.CORECUBE_KEEP_SEARCHES_DAYS = 1
    SearchRecord.objects.update(at=timezone.now() - timedelta(days=2))
    assert forget_old_searches() == 1
    assert not Impression.objects.exists()
