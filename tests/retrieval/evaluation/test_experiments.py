"""Experiments: what starts and stops, and the report from what people used."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from corecube.errors import ConflictError, InvalidRequestError, NotFoundError
from corecube.models import AuditEvent
from retrieval.answers.conversations.asking import ask, rate_citation, start
from retrieval.answers.conversations.writing import begin, claimed, finished
from retrieval.errors import UnknownPresetError, UnknownVersionError
from retrieval.evaluation.experiments import experiment_named, newest, report_of, stop
from retrieval.models import Message, PresetVersion, SearchRecord
from retrieval.ranking.interleaving import Preference
from retrieval.records.use import note_copied, note_opened
from retrieval.search.live import live_search
from retrieval.search.request import SearchRequest
from tests.experiments import begun

pytestmark = pytest.mark.usefixtures("unhurried")
QUESTION = "how to roll back the staging database"


def searched(world, name="alice"):
    """Return the record of an interleaved search, and the ranks of the hits of both sides."""
    outcome = live_search(SearchRequest(text=QUESTION), principal=world.principal(name))
    record = SearchRecord.objects.get(pk=outcome.id)
    teams = [team for _, _, team in record.trace["interleaving"]["teams"]]
    return record, {side: [rank for rank, team in enumerate(teams, start=1) if team == side] for side in "AB"}


def preference(experiment):
    return report_of(experiment).preference


def test_opened_passages_are_credit_of_their_side(world):
    experiment = begun(world)
    for side in "AAB":
        record, ranks = searched(world)
        note_opened(record, ranks[side][0])
    searched(world)
    both, ranks = searched(world)
    for side in "AB":
        note_opened(both, ranks[side][0])
    report = report_of(experiment_named(experiment.pk))
    assert report.preference == Preference(wins_a=2, wins_b=1, ties=1)
    assert (report.experiment.questions, report.logged, report.not_counted) == (5, 5, 0)
    assert report.as_json() | {"low": None, "high": None} == {
        "id": experiment.pk,
        "name": "Age or blend",
        "a": {"preset": "corecube", "version": 1},
        "b": {"preset": "corecube", "version": 2},
        "share": 100,
        "includes_api": False,
        "ends_at": experiment.ends_at,
        "max_questions": None,
        "started_at": experiment.started_at,
        "ended_at": None,
        "is_running": True,
        "questions": 5,
        "logged": 5,
        "not_counted": 0,
        "with_credit": 4,
        "wins_a": 2,
        "wins_b": 1,
        "ties": 1,
        "delta": 0.125,
        "low": None,
        "high": None,
        "p_value": 1.0,
        "winner": None,
    }


def test_copies_and_thumbs_of_citations_are_credit_too(world):
    experiment = begun(world)
    answer = ask(start(world.bob), QUESTION)
    assert claimed(answer)
    finished(begin(answer))
    answer = Message.objects.select_related("conversation__user", "record").get(pk=answer.pk)
    note_copied(answer.record)
    teams = {
        (chunk.rpartition(":")[0], text): team for chunk, text, team in answer.record.trace["interleaving"]["teams"]
    }
    cited = {it["number"]: teams[it["document"], it["content_hash"]] for it in answer.passages if it["cited"]}
    copied = {side: 2 * list(cited.values()).count(side) for side in "AB"}
    assert preference(experiment) == Preference.of([(copied["A"], copied["B"])])
    # A thumb down is worth 3 and takes the place of the copy.
    number, side = next(iter(cited.items()))
    rate_citation(answer, number, -1)
    rated = copied | {side: copied[side] - 5}
    assert preference(experiment) == Preference.of([(rated["A"], rated["B"])])


def test_questions_that_one_side_answered_do_not_count(world):
    # There is no BM25 index here, so that helix uses a fallback.
    experiment = begun(world, second=("helix", None))
    record, _ = searched(world)
    note_opened(record, 1)
    report = report_of(experiment)
    assert (report.logged, report.not_counted, report.preference) == (1, 1, Preference())


def test_a_report_is_of_its_own_experiment_and_of_the_log(world):
    first = begun(world)
    record, ranks = searched(world)
    note_opened(record, ranks["A"][0])
    stop(first, actor=world.principal("alice"))
    second = begun(world, name="Again")
    assert preference(second) == Preference()
    assert preference(first) == Preference(wins_a=1)
    record.delete()
    assert report_of(first).logged == 0
    assert preference(first) == Preference()


def test_one_runs_at_a_time_and_both_ends_are_audited(world):
    experiment = begun(world, name="  Age\n or blend ", includes_api=True)
    with pytest.raises(ConflictError):
        begun(world)
    for _ in range(2):
        stop(experiment, actor=world.principal("alice"))
    again = begun(world)
    assert [it.pk for it in newest()] == [again.pk, experiment.pk]
    started, stopped, _ = AuditEvent.objects.filter(action__startswith="experiment").order_by("pk")
    assert (started.action, started.subject, started.actor) == ("experiment.started", "Age or blend", world.alice)
    assert started.details.items() >= {"a": "corecube 1", "b": "corecube 2", "share": 100, "includes_api": True}.items()
    assert (stopped.action, stopped.details) == ("experiment.stopped", {"experiment": str(experiment.pk)})


def test_one_that_is_over_makes_room(world):
    over = begun(world, max_questions=1)
    searched(world)
    begun(world)
    over.refresh_from_db()
    assert over.ended_at is not None


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"name": " "}, InvalidRequestError),
        ({"share": 0}, InvalidRequestError),
        ({"share": 101}, InvalidRequestError),
        ({"ends_at": None}, InvalidRequestError),
        ({"ends_at": timezone.now() - timedelta(minutes=1)}, InvalidRequestError),
        ({"ends_at": timezone.now() + timedelta(days=91)}, InvalidRequestError),
        ({"max_questions": 0}, InvalidRequestError),
        ({"max_questions": 100_001}, InvalidRequestError),
        ({"second": ("corecube", None)}, InvalidRequestError),
        ({"second": ("corecube", 9)}, UnknownVersionError),
        ({"second": ("no-such", None)}, UnknownPresetError),
    ],
)
def test_an_invalid_experiment_is_not_started(world, changes, error):
    with pytest.raises(error):
        begun(world, **changes)
    assert not newest()


def test_without_query_texts_there_is_nothing_to_compare(world, settings):
    settings.CORECUBE_KEEP_QUERY_TEXT = False
    with pytest.raises(InvalidRequestError, match="query texts"):
        begun(world)


def test_an_unknown_experiment_is_not_found(db):
    with pytest.raises(NotFoundError):
        experiment_named(uuid4())


def test_the_same_numbers_of_two_versions_are_refused(world):
    live = PresetVersion.objects.get(preset="corecube", number=1)
    PresetVersion.objects.create(preset="corecube", number=3, status="retired", values=live.values)
    with pytest.raises(InvalidRequestError, match="same configuration"):
        begun(world, second=("corecube", 3))
