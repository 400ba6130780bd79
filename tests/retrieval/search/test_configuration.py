"""The numbers that a search runs with: live version, draft, overrides."""

import logging
import threading

import pytest
from django.db import connection

from corecube.access import Principal
from corecube.errors import NotPermittedError
from corecube.models import ApiKey
from retrieval.admin.preset_versions import promote, save_draft
from retrieval.errors import OverridesError, UnknownVersionError
from retrieval.models import PresetVersion, SearchRecord
from retrieval.presets.catalog import PRESETS
from retrieval.search.configuration import configuration_of
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

PRESET = PRESETS["corecube"]
#: Nothing counts but full text.
FULLTEXT_ONLY = {"blend.dense": 0.0, "blend.fulltext": 1.0, "blend.freshness": 0.0}


def find(world, name="bob", text="rollback staging database", **fields):
    return search(SearchRequest(text=text, **fields), principal=world.principal(name))


def store(values, status="live"):
    """Store a version past the services' checks, as an older release may have left it."""
    return PresetVersion.objects.create(preset="corecube", number=1, status=status, values=values)


def scores(outcome):
    return [round(hit.score, 6) for hit in outcome.hits]


def test_a_search_runs_with_the_live_version(world):
    before = find(world)
    store(FULLTEXT_ONLY)
    after = find(world)
    assert (before.version_number, after.version_number) == (0, 1)
    assert (before.config, after.config.blend.fulltext) == (PRESET.defaults, 1.0)
    assert scores(before) != scores(after)
    assert all(hit.contributions["dense"] == 0.0 for hit in after.hits)
    assert before.preset_version != after.preset_version


def test_the_order_of_the_hits_follows_the_live_version(world):
    # With nothing but full text the hits are in the order of its scores; with nothing but vectors in that of cosines.
    store(FULLTEXT_ONLY | {"ties.tolerance": 0.0})
    by_text = [hit.signals["fulltext"] for hit in find(world, "alice").hits]
    PresetVersion.objects.update(values={"blend.fulltext": 0.0, "blend.freshness": 0.0, "ties.tolerance": 0.0})
    by_vector = [hit.signals["cosine"] for hit in find(world, "alice").hits]
    assert by_text == sorted(by_text, reverse=True)
    assert by_vector == sorted(by_vector, reverse=True)


def test_the_fingerprint_is_that_of_the_numbers(world):
    shipped = find(world).preset_version
    store({})
    assert find(world).preset_version == shipped
    assert find(world, overrides={"blend.dense": 0.6}).preset_version == shipped
    assert find(world, overrides={"blend.dense": 0.5}).preset_version != shipped


@pytest.mark.django_db(transaction=True)
def test_a_promotion_on_another_connection_holds_for_the_next_search(world):
    def elsewhere():
        save_draft(preset=PRESET, values=FULLTEXT_ONLY, note="", actor=world.alice)
        promote(preset=PRESET, number=1, actor=world.alice)
        connection.close()

    before = find(world)
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    after = find(world)
    assert (before.version_number, after.version_number) == (0, 1)
    assert scores(before) != scores(after)


def test_overrides_hold_for_one_search_and_are_told(world):
    outcome = find(world, overrides={"blend.dense": 0.5, "fusion.pool": 10})
    assert (outcome.config.blend.dense, outcome.config.fusion.pool) == (0.5, 10)
    notes = {note.code: note for note in outcome.trace[0].notes}
    assert outcome.trace[0].stage == "configure"
    assert "blend.dense to 0.5 instead of 0.6" in notes["overridden"].text
    assert outcome.state.degraded == ()
    record = SearchRecord.objects.get(pk=outcome.id)
    assert (record.trace["version"], record.trace["overrides"]) == (0, {"blend.dense": 0.5, "fusion.pool": 10})
    assert find(world).config == PRESET.defaults


def test_overrides_under_former_names_hold_and_are_stored_under_the_present_ones(world):
    outcome = find(world, overrides={"quality.least": 0.1, "blend.dense": 0.5})
    assert (outcome.config.quality.minimum, outcome.config.blend.dense) == (0.1, 0.5)
    assert outcome.configuration.overridden == {"quality.minimum": 0.3, "blend.dense": 0.6}
    record = SearchRecord.objects.get(pk=outcome.id)
    assert record.trace["overrides"] == {"quality.minimum": 0.1, "blend.dense": 0.5}
    with pytest.raises(OverridesError, match=r"fulltext\.max_matches is costly"):
        find(world, overrides={"fulltext.most_matches": 20_000})


def test_a_search_without_anything_special_has_no_span_for_it(world):
    outcome = find(world)
    assert outcome.trace[0].stage == "embed"
    trace = SearchRecord.objects.get(pk=outcome.id).trace
    assert (trace["version"], trace["is_draft"], trace["overrides"]) == (0, False, {})


def test_overrides_stand_on_the_live_version(world):
    store({"fusion.pool": 50, "blend.dense": 0.2})
    outcome = find(world, overrides={"blend.fulltext": 0.9})
    assert (outcome.config.fusion.pool, outcome.config.blend.dense, outcome.config.blend.fulltext) == (50, 0.2, 0.9)
    with pytest.raises(OverridesError, match=r"fusion\.pool is costly: a request can only lower it from 50"):
        find(world, overrides={"fusion.pool": 51})


@pytest.mark.parametrize("overrides", [{"nope": 1}, {"blend.dense": 1.1}, {"deadline_ms": 60_000}, {"blend": 0.5}])
def test_overrides_out_of_limits_end_the_search_before_it_begins(world, overrides):
    with pytest.raises(OverridesError) as caught:
        find(world, overrides=overrides)
    assert set(caught.value.problems) == set(overrides)
    assert not SearchRecord.objects.exists()


def test_no_override_and_no_draft_widens_the_scope(world):
    store({"quality.minimum": 0.0, "floor.blend": 0.0}, status="draft")
    mine = {hit.chunk.connection_id for hit in find(world, overrides={"quality.minimum": 0.0}).hits}
    assert mine == {world.runbooks.pk}
    as_bob = search(SearchRequest(text="rollback", draft=True), principal=Principal(world.bob, actor=world.alice))
    assert {hit.chunk.connection_id for hit in as_bob.hits} == {world.runbooks.pk}


def test_an_admin_searches_with_the_draft(world):
    store(FULLTEXT_ONLY, status="draft")
    drafted, live = find(world, "alice", draft=True), find(world, "alice")
    assert (drafted.version_number, live.version_number) == (1, 0)
    assert drafted.config.blend.fulltext == 1.0
    assert [note.code for note in drafted.trace[0].notes] == ["draft"]
    assert SearchRecord.objects.get(pk=drafted.id).trace["is_draft"] is True


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_nobody_else_searches_with_the_draft(world, name):
    store({}, status="draft")
    with pytest.raises(NotPermittedError, match="Only an admin"):
        find(world, name, draft=True)
    key = ApiKey.issue(user=getattr(world, name), name="k")[0]
    with pytest.raises(NotPermittedError, match="Only an admin"):
        search(SearchRequest(text="rollback", draft=True), principal=Principal(key.user, key))
    assert not SearchRecord.objects.exists()


def test_without_a_draft_there_is_none_to_search_with(world):
    with pytest.raises(UnknownVersionError, match="no draft"):
        find(world, "alice", draft=True)


def test_stored_numbers_that_do_not_fit_leave_the_search_their_defaults(world, caplog):
    store({"blend.dense": 7.0, "gone.since": 1, "fusion.pool": 40, "deadline_ms": "soon"})
    with caplog.at_level(logging.WARNING, "retrieval.search.configuration"):
        outcome = find(world)
        find(world)
    assert (outcome.config.blend.dense, outcome.config.fusion.pool) == (0.6, 40)
    assert outcome.config.deadline_ms == PRESET.defaults.deadline_ms
    assert outcome.hits
    assert outcome.state.degraded == ("config_unfit",)
    assert "gone.since is not a setting" in outcome.trace[0].notes[0].text
    assert set(outcome.configuration.unfit) == {"blend.dense", "gone.since", "deadline_ms"}
    # Once for each process and version, not once for each search.
    assert [record.getMessage() for record in caplog.records] == [
        "preset.unfit preset=corecube version=1 tunables=blend.dense,deadline_ms,gone.since"
    ]


def test_reading_it_takes_one_statement(db, django_assert_num_queries):
    store({"blend.dense": 0.5})
    with django_assert_num_queries(1):
        configuration_of(PRESET, overrides={"blend.dense": 0.4})
