import uuid

import pytest
from django.http import Http404

from corecube.access import ScopeRequest, scope_for
from explorer.components.sides import Side, narrowing_of, now_of, opposite, read_side, run
from retrieval.models import SearchRecord
from retrieval.search.request import SearchRequest
from retrieval.search.service import search


@pytest.fixture
def logged(world):
    """Return a function that makes a search and returns its record."""

    def make(name="bob", text="rollback", **fields):
        outcome = search(SearchRequest(text=text, **fields), principal=world.principal(name))
        return SearchRecord.objects.get(pk=outcome.id)

    return make


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("corecube:live:hybrid", Side("corecube")),
        ("corecube:draft:dense", Side("corecube", draft=True, mode="dense")),
        ("corecube", Side("corecube")),
        ("other:live:", Side("other")),
        ("", Side("corecube")),
    ],
)
def test_an_address_names_a_side(people, text, side):
    assert read_side(text, people["bob"]) == side


def test_a_side_has_its_address_and_its_words(people):
    side = Side("corecube", draft=True, mode="fulltext")
    assert side.value == "corecube:draft:fulltext"
    assert side.label == "General search draft: Full text only"
    assert read_side(side.value, people["bob"]) == side


def test_a_logged_search_is_read_by_its_asker_and_by_admins(logged, world):
    record = logged("bob")
    for viewer in (world.bob, world.alice):
        side = read_side(f"log:{record.pk}", viewer)
        assert side.record == record
        assert side.value == f"log:{record.pk}"
        assert side.label.startswith("Logged ")


@pytest.mark.parametrize("text", ["log:", "log:x", f"log:{uuid.UUID(int=7)}"])
def test_a_search_that_was_not_logged_does_not_exist(people, text):
    with pytest.raises(Http404):
        read_side(text, people["alice"])


def test_somebody_elses_logged_search_does_not_exist(logged, world):
    from corecube.access import Principal

    with pytest.raises(Http404):
        read_side(f"log:{logged('alice').pk}", world.bob)
    search(SearchRequest(text="rollback"), principal=Principal(world.bob, actor=world.alice))
    with pytest.raises(Http404):
        read_side(f"log:{SearchRecord.objects.first().pk}", world.bob)


def test_a_logged_run_has_the_ids_scores_and_numbers_of_then(logged, world):
    record = logged("bob", overrides={"blend.dense": 0.5}, mode="dense")
    then = run(
        read_side(f"log:{record.pk}", world.bob), SearchRequest(text="not asked", top_k=10), world.principal("bob")
    )
    assert [str(hit.chunk_id) for hit in then.hits] == [hit["chunk"] for hit in record.trace["hits"]]
    assert all(hit.facts is None for hit in then.hits)
    assert then.config.blend.dense == 0.5
    assert (then.mode, then.query, then.fingerprint) == ("dense", "rollback", record.preset_version)
    assert then.seconds == pytest.approx(record.milliseconds / 1000)
    assert (then.connections, then.at) == (1, record.at)
    assert SearchRecord.objects.count() == 1


def test_numbers_that_are_not_known_any_more_are_none(logged, world):
    record = logged("bob")
    for change in ({"preset": "gone"}, {"trace": {"hits": []}}):
        SearchRecord.objects.filter(pk=record.pk).update(**change)
        then = run(read_side(f"log:{record.pk}", world.bob), SearchRequest(text="", top_k=10), world.principal("bob"))
        assert then.config is None


def test_a_run_now_is_a_search_of_the_explorer(world):
    now = run(Side("corecube", mode="fulltext"), SearchRequest(text="rollback", top_k=2), world.principal("bob"))
    record = SearchRecord.objects.get(pk=now.trace_id)
    assert (record.surface, record.top_k, record.trace["mode"]) == ("explorer", 2, "fulltext")
    assert len(now.hits) <= 2
    assert (now.connections, now.at) == (1, None)


def test_the_same_search_now_is_the_live_preset_in_the_mode_of_then(logged):
    assert now_of(logged(mode="fulltext")) == Side("corecube", mode="fulltext")


def test_a_side_alone_stands_against_what_tells_most(logged):
    record = logged(mode="fulltext")
    assert opposite(Side("corecube")) == Side("corecube", mode="dense")
    assert opposite(Side("corecube", mode="dense")) == Side("corecube")
    assert opposite(Side("corecube", draft=True, mode="dense")) == Side("corecube", mode="dense")
    assert opposite(Side("corecube", record=record)) == Side("corecube", mode="fulltext")


@pytest.mark.parametrize(
    ("narrowing", "left_out"),
    [
        (ScopeRequest(), ()),
        (ScopeRequest(exclude=("vault",)), ("vault",)),
        (ScopeRequest(include=("vault",)), ("ledger", "runbooks")),
        (ScopeRequest(include=("vault", "ledger"), exclude=("ledger",)), ("ledger", "runbooks")),
    ],
)
def test_a_logged_narrowing_is_told_as_what_is_left_out(logged, world, narrowing, left_out):
    record = logged("alice", narrowing=narrowing)
    assert set(narrowing_of(record, scope_for(world.principal("alice")))) == set(left_out)


def test_a_logged_narrowing_never_names_what_is_hidden(logged, world):
    record = logged("alice", narrowing=ScopeRequest(include=("vault",), exclude=("ledger",)))
    assert narrowing_of(record, scope_for(world.principal("bob"))) == ("runbooks",)
