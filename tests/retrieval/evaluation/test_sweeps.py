"""Sweeps: the best configuration of one half of the queries, its gain on the other half, and who may read it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.errors import ConflictError, InvalidRequestError, NotFoundError
from retrieval.admin.preset_versions import draft_of_best
from retrieval.errors import TunablesError
from retrieval.evaluation import comparing, gates, runs, sweeps
from retrieval.evaluation.sweeps import SweepRequest
from retrieval.models import EvaluationRun, PresetVersion, RunCase, SearchRecord, Sweep
from retrieval.presets.catalog import preset_named
from retrieval.ranking.measures import Objective
from retrieval.ranking.tuning import Range, in_tuning_half
from tests.questions import tuning_questions

pytestmark = pytest.mark.usefixtures("unhurried")

GRID = (Range("blend.dense", (0.0, 0.6)), Range("blend.fulltext", (0.0, 0.3)))


@pytest.fixture
def alice(world):
    return world.principal("alice")


@pytest.fixture
def questions(world):
    return tuning_questions(world)


@pytest.fixture
def by_age(unhurried):
    """Let the live version order hits by their age alone, which no query asks for."""
    version = PresetVersion.objects.get(preset="corecube")
    version.values |= {"blend.dense": 0.0, "blend.fulltext": 0.0, "blend.freshness": 1.0}
    version.save()


def queued(questions, principal, **asked):
    return sweeps.queue_sweep(
        questions, SweepRequest(**{"preset": "corecube", "ranges": GRID} | asked), principal=principal
    )


def swept(questions, principal, **asked):
    sweep = queued(questions, principal, **asked)
    assert sweeps.run_waiting() == 1
    sweep.refresh_from_db()
    return sweep


def halves(run):
    queries = list(run.results.values_list("query", flat=True))
    return sum(map(in_tuning_half, queries)), sum(not in_tuning_half(it) for it in queries)


def test_the_best_of_the_tuning_half_is_measured_on_the_other_half(by_age, questions, alice):
    sweep = swept(questions, alice)
    assert (sweep.status, sweep.message) == ("done", "")
    trials = list(sweep.trials.select_related("run"))
    assert [it.values for it in trials] == [
        {},
        {"blend.dense": 0.0, "blend.fulltext": 0.3},
        {"blend.dense": 0.6, "blend.fulltext": 0.0},
        {"blend.dense": 0.6, "blend.fulltext": 0.3},
    ]
    best = sweeps.best_of(sweep)
    assert best.mean == max(it.mean for it in trials) > trials[0].mean
    assert {halves(it.run) for it in trials if it.number not in {0, best.number}} == {(4, 0)}
    assert halves(trials[0].run) == halves(best.run) == (4, 4)
    gain = sweeps.gain_of(sweep)
    held_out = [
        [
            comparing.objective_value(case, Objective())
            for case in runs.result_of(it.run).cases
            if not in_tuning_half(case.query)
        ]
        for it in (trials[0], best)
    ]
    assert gain.queries == 4
    assert gain.mean == pytest.approx((sum(held_out[1]) - sum(held_out[0])) / 4)
    assert gain.low <= gain.mean <= gain.high
    # Four trials on four queries, two of them on four more.
    assert (sweep.measured, sweep.total) == (4 * 4 + 2 * 4, 4 * 4 + 2 * 4)
    assert {it.run.status for it in trials} == {"done"}
    assert not SearchRecord.objects.exists()


def test_where_nothing_is_better_the_start_wins_and_gives_no_draft(questions, alice):
    sweep = swept(questions, alice, ranges=[Range("floor.blend", (1.0,))])
    assert sweeps.best_of(sweep).number == 0
    assert sweeps.gain_of(sweep).mean == 0
    with pytest.raises(ConflictError, match="no better"):
        draft_of_best(sweep, actor=alice.user)


def test_a_configuration_that_is_too_slow_is_not_chosen(by_age, questions, alice):
    assert sweeps.best_of(swept(questions, alice, max_p95_ms=1e-3)).number == 0
    assert sweeps.best_of(swept(questions, alice, max_p95_ms=600_000)).number > 0


def test_random_configurations_are_halved(by_age, questions, alice, monkeypatch):
    monkeypatch.setattr("retrieval.ranking.tuning._MIN_QUERIES", 1)
    ranges = [Range("blend.dense", low=0.1, high=0.9), Range("blend.fulltext", low=0.1, high=0.9)]
    sweep = swept(questions, alice, method=Sweep.Method.RANDOM, ranges=ranges, trials=4)
    # Rounds: 4 on 1 query, 2 on 2, 1 on 4; the start is measured on all.
    assert sorted(it.queries for it in sweep.trials.all()) == [1, 1, 2, 4, 4]
    assert sweep.measured == 4 * 1 + 2 * 1 + 1 * 2 + 4 + 2 * 4


def test_a_sweep_whose_worker_was_killed_goes_on_where_it_was(by_age, questions, alice, monkeypatch):
    whole = swept(questions, alice)
    measured, limit = runs.measured_case, 7

    class KilledError(BaseException):
        """Ends the process."""

    def dying(*args, **kwargs):
        nonlocal limit
        limit -= 1
        if limit < 0:
            raise KilledError
        return measured(*args, **kwargs)

    sweep = queued(questions, alice)
    with monkeypatch.context() as patched:
        patched.setattr(runs, "measured_case", dying)
        with pytest.raises(KilledError):
            sweeps.run_waiting()
    kept = set(RunCase.objects.filter(run__trial__sweep=sweep).values_list("pk", flat=True))
    assert len(kept) == 7
    sweeps.take_up_lost()
    assert not sweeps.are_waiting()
    Sweep.objects.update(active_at=timezone.now() - timedelta(hours=1))
    sweeps.take_up_lost()
    assert sweeps.run_waiting() == 1
    sweep.refresh_from_db()
    assert sweep.status == "done"
    results = RunCase.objects.filter(run__trial__sweep=sweep)
    assert kept < set(results.values_list("pk", flat=True))
    assert results.count() == whole.measured == sweep.measured
    assert sweep.held_out == whole.held_out


def test_a_cancelled_sweep_measures_nothing_more(questions, alice):
    sweep = queued(questions, alice)
    sweeps.cancel(sweep, actor=alice)
    assert sweeps.run_waiting() == 0
    sweep.refresh_from_db()
    assert (sweep.status, RunCase.objects.count()) == ("cancelled", 0)
    assert {it.run.status for it in sweep.trials.select_related("run")} == {"cancelled"}
    Sweep.objects.update(status="running")
    sweep.refresh_from_db()
    sweeps.cancel(sweep, actor=alice)
    sweep.status = "running"
    sweeps.run_sweep(sweep)
    sweep.refresh_from_db()
    assert (sweep.status, RunCase.objects.count()) == ("cancelled", 0)


def test_trials_are_no_runs_of_their_own(questions, alice):
    sweep = queued(questions, alice)
    EvaluationRun.objects.update(active_at=None)
    runs.take_up_lost()
    assert runs.run_waiting() == 0
    trial = sweep.trials.first().run
    for change in (runs.cancel, runs.delete):
        with pytest.raises(ConflictError):
            change(trial, actor=alice)
    sweeps.run_waiting()
    gates.set_gate(questions, objective=Objective(), max_loss=0.0, actor=alice)
    assert gates.checked(preset_named("corecube"), None, alice)[0].live is None
    sweeps.delete(sweep, actor=alice)
    assert not EvaluationRun.objects.exists()


def test_the_best_becomes_the_draft_with_the_gain_in_its_note(by_age, questions, alice):
    sweep = swept(questions, alice)
    draft = draft_of_best(sweep, actor=alice.user)
    assert (draft.status, draft.values) == ("draft", sweeps.best_of(sweep).run.values)
    assert draft.note.startswith("Sweep on Tuning questions: +")
    assert draft.note.endswith("on 4 held-out queries")


def test_a_sweep_is_read_only_where_its_whole_scope_may_be_seen(questions, alice, world):
    world.bob.is_staff = True
    world.bob.save()
    bob = world.principal("bob")
    wide, narrow = swept(questions, alice), swept(questions, bob)
    assert set(sweeps.sweeps_for(alice)) == {wide, narrow}
    assert set(sweeps.sweeps_for(bob)) == {narrow}
    with pytest.raises(NotFoundError):
        sweeps.sweep_for(wide.pk, bob)
    for trial in wide.trials.all():
        with pytest.raises(NotFoundError):
            runs.run_for(trial.run_id, bob)
    hidden = {str(world.vault.pk), str(world.ledger.pk)} & set(map(str, narrow.connection_ids))
    assert not hidden


def test_a_sweep_of_an_admin_who_lost_their_rights_fails(questions, alice, world):
    sweep = queued(questions, alice)
    world.alice.is_staff = world.alice.is_superuser = False
    world.alice.save()
    sweeps.run_waiting()
    sweep.refresh_from_db()
    assert (sweep.status, RunCase.objects.count()) == ("failed", 0)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"preset": "corecube@reference"}, InvalidRequestError),
        ({"ranges": []}, InvalidRequestError),
        (
            {"ranges": [Range(f"blend.{it}", (0.1,)) for it in ("dense", "fulltext", "freshness", "x")]},
            InvalidRequestError,
        ),
        ({"ranges": [GRID[0], GRID[0]]}, InvalidRequestError),
        ({"ranges": [Range("no.such", (1.0,))]}, TunablesError),
        ({"ranges": [Range("blend.dense", (0.5, 2.0))]}, TunablesError),
        ({"ranges": [Range("blend.dense", (float("nan"),))]}, TunablesError),
        ({"ranges": [Range("blend.dense", ())]}, TunablesError),
        ({"ranges": [Range("blend.dense", (0.6,))]}, InvalidRequestError),
        ({"ranges": [Range("fusion.pool", tuple(range(1, 300)))]}, InvalidRequestError),
        ({"method": Sweep.Method.RANDOM, "ranges": [Range("blend.dense", low=0.5, high=0.5)]}, TunablesError),
        (
            {"method": Sweep.Method.RANDOM, "ranges": [Range("blend.dense", low=0.1, high=0.5)], "trials": 0},
            InvalidRequestError,
        ),
        ({"objective": Objective("judged")}, InvalidRequestError),
        ({"max_p95_ms": 0.0}, InvalidRequestError),
    ],
    ids=str,
)
def test_what_cannot_be_tried_is_refused(questions, alice, asked, error):
    with pytest.raises(error):
        queued(questions, alice, **asked)
    assert not Sweep.objects.exists()
    assert not EvaluationRun.objects.exists()


def test_a_set_with_one_half_alone_is_refused(questions, alice):
    for case in questions.cases.all():
        if in_tuning_half(case.query):
            case.delete()
    with pytest.raises(InvalidRequestError, match="too few"):
        queued(questions, alice)


def test_few_sweeps_may_wait(questions, alice, monkeypatch):
    monkeypatch.setattr(sweeps, "_MAX_OPEN", 1)
    queued(questions, alice)
    with pytest.raises(ConflictError):
        queued(questions, alice)
