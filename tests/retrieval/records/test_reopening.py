"""Logged searches taken up again."""

import numpy as np
import pytest

from corecube.access import ScopeRequest
from corecube.models import Grant
from corecube.scope import Sensitivity
from retrieval.engine.types import Correction
from retrieval.errors import EmptyQueryError
from retrieval.models import Document, SearchRecord
from retrieval.records.stored_outcome import reopened
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fakes import HashEncoder

QUESTION = "how to roll back staging"


@pytest.fixture
def searched(world):
    """Return what Alice found, and its record."""
    outcome = search(SearchRequest(text=QUESTION, top_k=5), principal=world.principal("alice"))
    return outcome, SearchRecord.objects.get()


def told(outcome):
    return [(it.number, it.hit.chunk, it.header, it.token_count) for it in outcome.passages]


def test_it_has_the_searchs_own_question_terms_and_passages(searched, world):
    outcome, record = searched
    again = reopened(record, world.principal("alice"), text=QUESTION)
    assert again.id == outcome.id
    assert again.state.query == outcome.state.query
    assert again.state.terms == outcome.state.terms
    assert np.array_equal(again.state.vector, outcome.state.vector)
    assert told(again) == told(outcome)
    assert len(told(again)) > 1
    assert SearchRecord.objects.count() == 1


def test_a_query_that_was_not_embedded_is_not_embedded_later(searched, world):
    _, record = searched
    (embed,) = (span for span in record.trace["spans"] if span["stage"] == "embed")
    embed["notes"] = [{"code": "embed_remote", "text": "A remote service.", "degraded": True}]
    record.save()
    assert reopened(record, world.principal("alice"), text=QUESTION).state.vector is None
    record.trace["spans"].remove(embed)
    assert reopened(record, world.principal("alice"), text=QUESTION).state.vector is None


def test_words_are_corrected_as_the_search_corrected_them(world, monkeypatch):
    # Longer words are more tokens, so that "zanzibar" is simpler than "zanzibaar".
    monkeypatch.setattr(HashEncoder, "count_tokens", lambda _, texts: [len(text) for text in texts])
    typed = "rollback zanzibaar"
    outcome = search(SearchRequest(text=typed), principal=world.principal("alice"))
    record = SearchRecord.objects.get()
    again = reopened(record, world.principal("alice"), text=typed)
    assert again.state.terms == outcome.state.terms
    assert again.state.terms.corrections == (Correction("zanzibaar", "zanzibar"),)
    (analyze,) = (span for span in record.trace["spans"] if span["stage"] == "analyze")
    analyze["notes"] = []
    assert reopened(record, world.principal("alice"), text=typed).state.terms.corrections == ()


def test_terms_are_weighed_in_what_the_search_was_narrowed_to(world):
    request = SearchRequest(text=QUESTION, narrowing=ScopeRequest(exclude=("vault", "ledger")))
    outcome = search(request, principal=world.principal("alice"))
    again = reopened(SearchRecord.objects.get(), world.principal("alice"), text=QUESTION)
    assert again.state.terms == outcome.state.terms
    assert again.state.scope.connection_ids == outcome.state.scope.connection_ids


def test_what_is_out_of_scope_now_is_left_out_and_the_rest_numbered_anew(searched, world):
    _, record = searched
    Grant.objects.filter(user=world.alice).update(clearance=Sensitivity.INTERNAL)
    again = reopened(record, world.principal("alice"), text=QUESTION)
    assert world.vault.pk not in {it.hit.chunk.connection_id for it in again.passages}
    assert [it.number for it in again.passages] == list(range(1, len(again.passages) + 1))
    assert again.passages


def test_what_is_gone_is_left_out(searched, world):
    _, record = searched
    Document.objects.all().delete()
    assert reopened(record, world.principal("alice"), text=QUESTION).passages == ()


def test_without_its_text_it_cannot_be_taken_up(searched, world):
    with pytest.raises(EmptyQueryError):
        reopened(searched[1], world.principal("alice"), text=" ")
