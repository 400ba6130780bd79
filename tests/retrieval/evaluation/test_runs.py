"""Runs of question sets: queued, measured case by case, compared, exported, and read within the reader's scope."""

import json
from collections import defaultdict
from dataclasses import asdict
from datetime import timedelta
from io import StringIO

import ir_measures
import pytest
from django.core.management import call_command
from django.utils import timezone
from ir_measures import RR, Judged, R, nDCG

from corecube.access import ScopeRequest, scope_for
from corecube.errors import ConflictError, CoreCubeError, InvalidRequestError, NotFoundError
from corecube.version import VERSION
from retrieval.admin.preset_versions import promote, save_draft
from retrieval.answers.conversations.files import attach
from retrieval.answers.memory.items import Item, remember
from retrieval.evaluation import comparing, run_files, runs
from retrieval.evaluation.question_sets import (
    CaseFacts,
    CaseResult,
    SetResult,
    delete_case,
    mark_case,
    save_case,
    set_named,
)
from retrieval.evaluation.runs import RunRequest
from retrieval.models import Chunk, Conversation, EvaluationRun, SearchRecord
from retrieval.presets.catalog import preset_named
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.questions import TANGERINE

pytestmark = pytest.mark.usefixtures("unhurried")


@pytest.fixture
def limited(world):
    """An admin who may see the runbooks alone."""
    world.bob.is_staff = True
    world.bob.save()
    return world.principal("bob")


def measured(questions, principal, **asked):
    run = runs.queue_run(questions, RunRequest(**{"preset": "corecube"} | asked), principal=principal)
    assert runs.run_waiting() == 1
    run.refresh_from_db()
    return run


def drafted(world):
    return save_draft(preset=preset_named("corecube"), values={"blend.dense": 0.0}, note="", actor=world.alice)


def test_a_run_stores_each_case_and_says_what_it_measured(questions, world):
    run = measured(questions, world.principal("alice"))
    assert (run.status, run.message) == ("done", "")
    assert run.version is not None
    assert (len(run.fingerprint), run.release, run.index) == (12, VERSION, runtime.resources().encoder.name)
    result = runs.result_of(run)
    assert (len(result.cases), result.measured, result.refusals) == (3, 2, (1, 1))
    assert result.means.ndcg is not None
    assert result.milliseconds["p95"] >= result.milliseconds["p50"] > 0
    assert not SearchRecord.objects.exists()


def test_the_measures_are_those_of_ir_measures_on_the_exported_files(questions, world, tmp_path):
    run = measured(questions, world.principal("alice"))
    result = runs.result_of(run)
    for name, written in (("run", run_files.trec_run(result)), ("qrels", run_files.trec_qrels(result))):
        (tmp_path / name).write_text(written)
    named = {
        nDCG(dcg="exp-log2") @ 10: "ndcg",
        RR(rel=2): "reciprocal_rank",
        R(rel=2) @ 20: "recall",
        Judged @ 10: "judged",
    }
    outside = defaultdict(dict)
    qrels = ir_measures.read_trec_qrels(str(tmp_path / "qrels"))
    for metric in ir_measures.iter_calc(named, qrels, ir_measures.read_trec_run(str(tmp_path / "run"))):
        outside[metric.query_id][named[metric.measure]] = metric.value
    own = {str(number): asdict(it.measures) for number, it in enumerate(result.cases, start=1) if it.measures}
    assert own.keys() == outside.keys()
    for query, measures in own.items():
        assert measures == pytest.approx(outside[query], abs=1e-9)


def test_a_run_whose_worker_was_lost_goes_on_where_it_was(questions, world):
    run = measured(questions, world.principal("alice"))
    kept = run.results.first()
    run.results.exclude(pk=kept.pk).delete()
    silent = timezone.now() - timedelta(hours=1)
    EvaluationRun.objects.update(status="running", active_at=silent)
    runs.take_up_lost()
    assert runs.are_waiting()
    runs.run_waiting()
    assert (run.results.count(), run.results.filter(pk=kept.pk).exists()) == (3, True)


def test_a_run_that_still_works_is_left_alone(questions, world):
    runs.queue_run(questions, RunRequest("corecube"), principal=world.principal("alice"))
    EvaluationRun.objects.update(status="running", active_at=timezone.now())
    runs.take_up_lost()
    assert not runs.are_waiting()


def test_a_cancelled_run_measures_nothing_more(questions, world):
    alice = world.principal("alice")
    run = runs.queue_run(questions, RunRequest("corecube"), principal=alice)
    EvaluationRun.objects.update(status="running", active_at=timezone.now())
    runs.cancel(run, actor=alice)
    runs.measure_run(run)
    run.refresh_from_db()
    assert (run.status, run.results.count()) == ("cancelled", 0)


def test_a_draft_and_changed_numbers_are_measured(questions, world):
    drafted(world)
    draft = measured(questions, world.principal("alice"), is_draft=True)
    live = measured(questions, world.principal("alice"))
    changed = measured(questions, world.principal("alice"), overrides={"blend.dense": 0.0})
    assert {it.status for it in (draft, live, changed)} == {"done"}
    assert len({draft.fingerprint, live.fingerprint}) == 2


def test_a_promotion_amid_a_run_ends_it(questions, world):
    run = measured(questions, world.principal("alice"))
    run.results.first().delete()
    EvaluationRun.objects.update(status="queued")
    promote(preset=preset_named("corecube"), number=drafted(world).number, actor=world.alice)
    runs.run_waiting()
    run.refresh_from_db()
    assert run.status == "failed"
    assert "changed while the run measured it" in run.message


def test_what_cannot_be_measured_is_refused(questions, world, monkeypatch):
    alice = world.principal("alice")
    with pytest.raises(InvalidRequestError, match="no cases"):
        runs.queue_run(set_named("Empty", actor=world.alice), RunRequest("corecube"), principal=alice)
    for asked in (
        RunRequest("no-such"),
        RunRequest("corecube", is_draft=True),
        RunRequest("corecube", overrides={"no.such": 1}),
    ):
        with pytest.raises(CoreCubeError):
            runs.queue_run(questions, asked, principal=alice)
    monkeypatch.setattr(runs, "_MAX_OPEN", 1)
    runs.queue_run(questions, RunRequest("corecube"), principal=alice)
    with pytest.raises(ConflictError):
        runs.queue_run(questions, RunRequest("corecube"), principal=alice)


def test_a_run_of_an_admin_who_lost_their_rights_fails(questions, world):
    run = runs.queue_run(questions, RunRequest("corecube"), principal=world.principal("alice"))
    world.alice.is_staff = world.alice.is_superuser = False
    world.alice.save()
    runs.run_waiting()
    run.refresh_from_db()
    assert (run.status, run.results.count()) == ("failed", 0)


def test_a_run_is_read_only_where_its_whole_scope_may_be_seen(questions, world, limited):
    wide = measured(questions, world.principal("alice"))
    narrow = measured(questions, limited)
    assert set(runs.runs_for(world.principal("alice"))) == {wide, narrow}
    assert set(runs.runs_for(limited)) == {narrow}
    with pytest.raises(NotFoundError):
        runs.run_for(wide.pk, limited)
    assert runs.run_for(narrow.pk, limited) == narrow


def test_judgments_outside_the_scope_of_a_run_are_not_in_it(questions, world, limited):
    result = runs.result_of(measured(questions, limited))
    hidden = {Chunk.objects.get(text__contains=word).document_id for word in ("zanzibar", TANGERINE)}
    stored = {passage.document_id for it in result.cases for passage in (*it.ranking, *it.grades)}
    assert stored
    assert not stored & hidden


def test_two_runs_are_compared_by_their_queries(questions, world):
    alice = world.principal("alice")
    first, second = (runs.result_of(measured(questions, alice, preset=preset)) for preset in ("corecube", "helix"))
    pairs = comparing.compared(first, SetResult("helix", second.cases[:2]))
    assert [pair.first.query for pair in pairs] == [it.query for it in second.cases[:2]]
    found = comparing.differences(comparing.compared(first, second))
    assert found["ndcg"].queries == 2
    both = [(a.measures.ndcg, b.measures.ndcg) for a, b in zip(first.cases, second.cases, strict=True) if a.measures]
    assert found["ndcg"].mean == pytest.approx(sum(after - before for before, after in both) / 2)


def test_the_command_stores_a_run(questions, world):
    out = StringIO()
    call_command("evaluate", "--set", questions.slug, "--save", "before the change", "--json", stdout=out)
    run = EvaluationRun.objects.get()
    assert (run.name, run.status, run.user) == ("before the change", "done", world.alice)
    assert json.loads(out.getvalue())["measures"] == asdict(runs.result_of(run).means)


def test_a_case_is_searched_with_the_access_of_its_user(questions, world, limited):
    save_case(questions, "codeword", actor=world.alice, facts=CaseFacts(user=world.alice))
    save_case(questions, "draining", actor=world.alice, facts=CaseFacts(user=world.charlie))
    run = measured(questions, limited)
    found = {it.query: {passage.document_id for passage in it.ranking} for it in runs.result_of(run).cases}
    assert Chunk.objects.get(text__contains="tangerine").document_id in found["codeword"]
    assert found["draining"] == set()
    # What Alice's case found, an admin who sees less than Alice may not read.
    assert runs.run_for(run.pk, world.principal("alice")) == run
    with pytest.raises(NotFoundError):
        runs.run_for(run.pk, limited)


def test_what_is_private_to_the_user_of_a_case_is_not_searched(questions, world):
    """Neither the files of a conversation nor a memory: nobody else could read the run."""
    charlie, alice = world.principal("charlie"), world.principal("alice")
    attach(Conversation.objects.create(user=world.charlie), "walrus.md", b"The walrus sleeps nineteen hours.")
    remember(Item(text="The walrus is called Griselda."), principal=charlie)
    save_case(questions, "walrus", actor=world.alice, facts=CaseFacts(user=world.charlie))
    run = measured(questions, alice)
    assert next(it for it in runs.result_of(run).cases if it.query == "walrus").ranking == ()
    assert runs.run_for(run.pk, alice) == run
    assert search(SearchRequest(text="walrus"), principal=charlie).hits
    # The runner's own files are not searched either, so that others can read the run.
    attach(Conversation.objects.create(user=world.alice), "seal.md", b"The seal sleeps two hours.")
    run = measured(questions, alice)
    assert run.connection_ids == scope_for(alice, ScopeRequest()).connection_ids != scope_for(alice).connection_ids


def test_a_case_of_a_deactivated_user_fails_the_run(questions, world):
    save_case(questions, "draining", actor=world.alice, facts=CaseFacts(user=world.charlie))
    world.charlie.is_active = False
    world.charlie.save()
    run = measured(questions, world.principal("alice"))
    assert (run.status, run.message) == ("failed", "The user charlie of a case is deactivated.")


def test_a_run_knows_the_version_of_its_set(questions, world):
    questions.refresh_from_db()
    before = questions.version
    case, _ = save_case(questions, "draining", actor=world.alice)
    assert measured(questions, world.principal("alice")).set_version == before + 1
    mark_case(case, is_answerable=False, actor=world.alice)
    delete_case(case, actor=world.alice)
    assert measured(questions, world.principal("alice")).set_version == before + 3


def test_a_set_that_changes_while_a_run_waits_to_go_on_leaves_it_without_a_version(questions, world):
    run = measured(questions, world.principal("alice"))
    save_case(questions, "draining", actor=world.alice)
    EvaluationRun.objects.filter(pk=run.pk).update(status="queued")
    assert runs.run_waiting() == 1
    run.refresh_from_db()
    assert (run.status, run.set_version) == ("done", None)


def test_confidences_are_measured_where_the_set_has_questions_of_both_kinds(questions, world):
    cases = [
        CaseResult(None, str(place), is_answerable, None, None, confidence, has_expected=True)
        for place, (is_answerable, confidence) in enumerate([(True, 0.9), (True, 0.4), (False, 0.6), (False, None)])
    ]
    # One of two pairs is in order. Errors by bin: |0.9 - 1|, |0.4 - 1|, |0.6 - 0|.
    found = SetResult("corecube", tuple(cases)).answerability
    assert (found.auroc, found.calibration_error) == (0.5, pytest.approx(1.3 / 3))
    assert SetResult("corecube", tuple(cases[:2])).answerability is None
    run = measured(questions, world.principal("alice"))
    figures = run_files.figures_json(run, runs.result_of(run))["answerability"]
    assert 0 <= figures["auroc"] <= 1
    assert sum(it["count"] for it in figures["bins"]) == 3
