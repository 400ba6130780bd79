"""Searches while an experiment runs: which are interleaved, from which sides, and with whose access."""

from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.access import Principal, ScopeRequest
from corecube.errors import OverloadedError
from corecube.models import ApiKey
from retrieval.answers.conversations.asking import ask, start
from retrieval.answers.conversations.writing import begin, claimed, finished
from retrieval.errors import StageError
from retrieval.evaluation.experiments import stop
from retrieval.evaluation.question_sets import unrecorded_search
from retrieval.models import Message, PresetVersion, SearchRecord
from retrieval.ranking.interleaving import Team, coin, team_draft
from retrieval.search import live
from retrieval.search.draft import Draft
from retrieval.search.live import live_search
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.stages.dense import Dense
from tests.experiments import begun

pytestmark = pytest.mark.usefixtures("unhurried")
QUESTION = "how to roll back the staging database"


@pytest.fixture
def experiment(world):
    return begun(world)


def asked(world, name="alice", *, through_api=False, **request):
    principal = world.principal(name)
    return live_search(SearchRequest(text=QUESTION, **request), principal=principal, through_api=through_api)


def draft(outcome):
    return outcome.state.part(Draft)


def ids(outcome):
    return [hit.chunk_id for hit in outcome.state.hits]


def side(world, number):
    """Search with one side alone."""
    values = PresetVersion.objects.get(preset="corecube", number=number).values
    return unrecorded_search(SearchRequest(text=QUESTION, values=values), principal=world.principal("alice"))


def test_without_an_experiment_a_search_is_as_it_was(world):
    outcome = asked(world)
    assert ids(outcome) == ids(search(SearchRequest(text=QUESTION), principal=world.principal("alice")))
    assert draft(outcome) is None
    assert "interleaving" not in SearchRecord.objects.get(pk=outcome.id).trace


def test_the_hits_are_the_team_draft_of_both_sides(world, experiment):
    outcome = asked(world)
    sides = [side(world, 1), side(world, 2)]
    assert ids(sides[0]) != ids(sides[1])
    found = draft(outcome)
    assert found.labels == ("corecube 1", "corecube 2")
    expected = team_draft(*(ids(it)[:20] for it in sides), begins=coin(found.seed), length=20)
    assert {chunk: team for chunk, (_, team) in found.teams.items()} == expected
    assert ids(outcome) == list(expected)
    assert {*expected.values()} >= {Team.A, Team.B}
    # Passages are hits that their own side packed, numbered from 1.
    packed = [{it.hit.chunk_id for it in side.passages} for side in sides]
    passages = [it.hit.chunk_id for it in outcome.passages]
    assert passages == [it for it in ids(outcome)[:10] if it in packed[expected[it] is Team.B]]
    assert [it.header.split(" ")[1] for it in outcome.passages] == [f"[{it.number}]" for it in outcome.passages]
    assert [it.number for it in outcome.passages] == list(range(1, len(passages) + 1))
    assert outcome.state.answerability.confidence == max(it.state.answerability.confidence for it in sides)
    assert outcome.seconds > outcome.trace[-1].seconds > 0


def test_the_record_says_from_which_side_each_hit_is(world, experiment):
    outcome = asked(world)
    record = SearchRecord.objects.get()
    assert (record.id, record.experiment, record.is_ordinary) == (outcome.id, experiment, False)
    stored = record.trace["interleaving"]
    assert stored == draft(outcome).as_json()
    assert [chunk for chunk, _, _ in stored["teams"]] == [str(it) for it in ids(outcome)]
    assert [hash_ for _, hash_, _ in stored["teams"]] == [hit.chunk.content_hash for hit in outcome.state.hits]
    note = record.trace["spans"][-1]["notes"][0]
    assert note["code"] == "interleaved"
    assert f"seed {stored['seed']}" in note["text"]
    experiment.refresh_from_db()
    assert experiment.questions == 1


def test_an_answer_of_the_chat_is_from_passages_of_both_sides(world, experiment):
    answer = ask(start(world.bob), QUESTION)
    assert claimed(answer)
    finished(begin(answer))
    stored = Message.objects.select_related("record").get(pk=answer.pk)
    assert stored.state == Message.State.DONE
    teams = {chunk.rpartition(":")[0] for chunk, _, team in stored.record.trace["interleaving"]["teams"] if team}
    assert {it["document"] for it in stored.passages} <= teams


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_nobody_sees_more_through_an_experiment(world, experiment, name):
    outcome = asked(world, name, narrowing=ScopeRequest())
    assert draft(outcome) is not None
    may_see = set(search(SearchRequest(text=QUESTION), principal=world.principal(name)).state.scope.connection_ids)
    assert {hit.chunk.connection_id for hit in outcome.state.hits} <= may_see
    assert {it.hit.chunk.connection_id for it in outcome.passages} <= may_see
    assert "tangerine" not in str([hit.chunk.text for hit in outcome.state.hits])


def test_both_sides_keep_to_the_scope_of_the_request(world, experiment):
    outcome = asked(world, narrowing=ScopeRequest(include=("runbooks",)))
    assert {hit.chunk.connection_id for hit in outcome.state.hits} == {world.runbooks.pk}


@pytest.mark.parametrize(
    "request_",
    [
        {"preset": "helix"},
        {"overrides": {"blend.dense": 0.5}},
        {"mode": "dense"},
        {"values": {}},
        {"variants": ("how to go back",)},
        {"is_queued": True},
    ],
)
def test_only_plain_searches_with_the_default_preset_take_part(world, experiment, request_):
    assert draft(asked(world, **request_)) is None


def test_the_api_takes_part_only_where_it_was_included(world):
    experiment = begun(world)
    assert draft(asked(world, through_api=True)) is None
    stop(experiment, actor=world.principal("alice"))
    begun(world, includes_api=True)
    assert draft(asked(world, through_api=True)) is not None


def test_searches_as_another_user_and_of_keys_for_one_preset_do_not(world, experiment):
    def of(principal):
        return draft(live_search(SearchRequest(text=QUESTION), principal=principal))

    assert of(Principal(world.bob, actor=world.alice)) is None
    stop(experiment, actor=world.principal("alice"))
    begun(world, second=("helix", None))
    key, _ = ApiKey.issue(user=world.alice, name="test")
    key.presets = ["corecube"]
    assert of(Principal(world.alice, key)) is None
    key.presets = ["corecube", "helix"]
    assert of(Principal(world.alice, key)) is not None


def test_nothing_is_interleaved_without_query_texts(world, experiment, settings):
    settings.CORECUBE_KEEP_QUERY_TEXT = False
    assert draft(asked(world)) is None


def test_an_experiment_takes_its_share(world, monkeypatch):
    begun(world, share=30)
    drawn = iter([29, 30, 99, 0])
    monkeypatch.setattr(live.secrets, "randbelow", lambda limit: next(drawn) if limit == 100 else 7)
    assert [draft(asked(world)) is not None for _ in range(4)] == [True, False, False, True]


def test_it_ends_with_its_number_of_questions_its_time_and_when_it_is_stopped(world):
    counted = begun(world, max_questions=2)
    assert [draft(asked(world)) is not None for _ in range(3)] == [True, True, False]
    counted.refresh_from_db()
    assert (counted.is_running, counted.questions) == (False, 2)
    timed = begun(world)
    type(timed).objects.filter(pk=timed.pk).update(ends_at=timezone.now() - timedelta(seconds=1))
    assert draft(asked(world)) is None
    timed.refresh_from_db()
    assert not timed.is_running
    stopped = begun(world)
    stop(stopped, actor=world.principal("alice"))
    assert draft(asked(world)) is None


def test_a_side_has_the_numbers_of_its_version_at_the_start(world):
    begun(world)
    expected = ids(side(world, 2))
    PresetVersion.objects.filter(preset="corecube", number=2).update(values={"deadline_ms": 50})
    found = draft(asked(world))
    of_b = [chunk for chunk, (_, team) in found.teams.items() if team is Team.B]
    assert of_b == [it for it in expected if it in of_b]


def broken(monkeypatch, *numbers):
    """Let searches of these sides fail in their vector leg."""
    whole = live.unrecorded

    def fails(request, **how):
        with monkeypatch.context() as broken:
            if request.contender.number in numbers:
                broken.setattr(Dense, "__call__", lambda *_: 1 / 0)
            return whole(request, **how)

    monkeypatch.setattr(live, "unrecorded", fails)


@pytest.mark.parametrize(("failing", "other"), [(1, 2), (2, 1)])
def test_the_other_side_answers_if_one_fails(world, experiment, monkeypatch, failing, other):
    broken(monkeypatch, failing)
    outcome = asked(world)
    assert outcome.version_number == other
    assert ids(outcome) == ids(side(world, other))
    record = SearchRecord.objects.get(pk=outcome.id)
    assert (record.experiment, record.trace["interleaving"]["teams"]) == (experiment, [])
    assert record.trace["spans"][-1]["notes"][0]["code"] == "not_interleaved"


def test_a_search_fails_if_both_sides_do(world, experiment, monkeypatch):
    broken(monkeypatch, 1, 2)
    with pytest.raises(StageError):
        asked(world)


@pytest.mark.parametrize("sides", [(("helix", None), ("corecube", None)), (("corecube", None), ("helix", None))])
def test_a_side_with_a_fallback_is_not_merged(world, sides):
    # There is no BM25 index here, so that full text takes the place of a leg of helix.
    begun(world, first=sides[0], second=sides[1])
    outcome = asked(world)
    assert (outcome.preset.name, draft(outcome).teams) == ("corecube", {})


def test_an_overloaded_installation_refuses_once(world, experiment, monkeypatch):
    calls = []

    def refuses(request, **_):
        calls.append(request.preset)
        raise OverloadedError(retry_after_seconds=1, reason="queue_full")

    monkeypatch.setattr(live, "unrecorded", refuses)
    with pytest.raises(OverloadedError):
        asked(world)
    assert calls == ["corecube"]
