import pytest

from corecube.access import Principal, scope_for
from corecube.errors import InvalidRequestError, NotFoundError
from corecube.models import AuditEvent
from retrieval.errors import UnknownPassageError, UnknownPresetError
from retrieval.evaluation.judging import agreement, decide, judged_by, passages_to_judge, pool, rated_passages
from retrieval.evaluation.question_sets import save_case, set_named
from retrieval.models import Chunk, Judgment, SearchRecord
from retrieval.ranking.agreement import Agreement
from retrieval.records.judgments import PassageId, grades_of, judge

QUERY = "rolling back"


@pytest.fixture
def questions(world):
    made = set_named("Release questions", actor=world.alice)
    save_case(made, QUERY, actor=world.alice)
    return made


def passage(word):
    chunk = Chunk.objects.get(text__contains=word)
    return PassageId(chunk.document_id, chunk.content_hash)


def scope_of(person):
    return scope_for(Principal(person))


def pooled(person, *presets, depth=10):
    return pool(QUERY, presets or ("corecube", "helix"), depth=depth, principal=Principal(person))


def test_a_pool_holds_each_passage_of_the_presets_once_and_leaves_no_record(world):
    found = pooled(world.alice)
    assert {passage("deployctl"), passage("zanzibar"), passage("tangerine")} <= set(found)
    assert len(found) == len(set(found))
    assert set(found) == set(pooled(world.alice, "corecube")) | set(pooled(world.alice, "helix"))
    assert SearchRecord.objects.count() == 0


def test_a_pool_is_only_what_its_rater_may_see(world):
    assert passage("tangerine") not in pooled(world.bob)
    assert pooled(world.charlie) == ()


def test_the_order_tells_nothing_of_ranks_and_presets(world):
    assert pooled(world.alice) == pooled(world.alice, "helix", "corecube")
    queries = ("rolling back", "rollback", "roll back", "rollback staging", "rollback release", "the rollback")
    firsts = {pool(query, ("corecube",), depth=10, principal=Principal(world.alice))[0] for query in queries}
    assert len(firsts) > 1


def test_depth_and_presets_are_checked(world):
    for depth in (0, 51):
        with pytest.raises(InvalidRequestError):
            pooled(world.alice, depth=depth)
    with pytest.raises(UnknownPresetError):
        pooled(world.alice, "nothing")


def test_texts_come_with_grade_and_explanation_within_the_scope(questions, world):
    scope = scope_of(world.alice)
    judge(QUERY, passage("deployctl"), grade=3, by=world.alice, scope=scope, explanation=" names the command ")
    asked = [passage("tangerine"), passage("deployctl")]
    costs, rollback = passages_to_judge(QUERY, asked, rater=world.alice, scope=scope)
    assert (costs.graded, costs.chunk.document.title) == (None, "Costs")
    assert (rollback.graded.own, rollback.explanation) == (3, "names the command")
    (seen,) = passages_to_judge(QUERY, asked, rater=world.bob, scope=scope_of(world.bob))
    assert (seen.passage, seen.graded.own, seen.explanation) == (passage("deployctl"), None, "")


def test_a_grade_without_an_explanation_leaves_the_earlier_one(questions, world):
    scope = scope_of(world.alice)
    for explanation in ("because", ""):
        judge(QUERY, passage("deployctl"), grade=2, by=world.alice, scope=scope, explanation=explanation)
    assert Judgment.objects.get().explanation == "because"
    assert judged_by(world.alice, questions.cases.all(), scope) == {QUERY: 1}
    assert judged_by(world.bob, questions.cases.all(), scope) == {}


def rate(person, grade, word="deployctl"):
    judge(QUERY, passage(word), grade=grade, by=person, scope=scope_of(person))


def test_raters_agree_beyond_chance_on_what_both_judged(questions, world):
    for person, grades in ((world.alice, (3, 0)), (world.bob, (3, 2))):
        for word, grade in zip(("deployctl", "Q-4711"), grades, strict=True):
            rate(person, grade, word)
    rate(world.alice, 1, "tangerine")
    found = agreement(rated_passages(questions, scope_of(world.alice)))
    ((pair),) = found.pairs
    # Squared distances 0 and 4: mean 2. Expected over 4 pairs: 0 + 1 + 9 + 4, mean 3.5.
    assert (pair.first, pair.second, pair.agreement) == ("alice", "bob", Agreement(2, pytest.approx(1 - 2 / 3.5)))
    assert (found.overall.passages, found.disputed, found.decided) == (2, 1, 0)
    # Bob does not see what lies in finance.
    seen = {it.passage for it in rated_passages(questions, scope_of(world.bob))}
    assert seen == {passage("deployctl"), passage("Q-4711")}


def test_a_final_grade_counts_before_all_others_until_it_is_withdrawn(questions, world):
    rate(world.alice, 3)
    rate(world.bob, 0)
    where, scope = passage("deployctl"), scope_of(world.alice)

    def grades():
        return [grades_of(QUERY, viewer=it, scope=scope)[where].grade for it in (world.alice, world.bob, world.charlie)]

    assert grades() == [3, 0, 0]
    decide(questions, "Rolling  Back", where, grade=1, by=world.alice, scope=scope)
    decide(questions, QUERY, where, grade=2, by=world.bob, scope=scope)
    assert grades() == [2, 2, 2]
    (rated,) = rated_passages(questions, scope)
    assert (rated.final.rater, rated.final.grade, [it.grade for it in rated.ratings]) == ("bob", 2, [3, 0])
    assert agreement([rated]).decided == 1
    decide(questions, QUERY, where, grade=None, by=world.alice, scope=scope)
    assert grades() == [3, 0, 0]
    assert AuditEvent.objects.filter(action="judgment.decided").count() == 3


def test_only_passages_in_scope_of_questions_of_the_set_are_decided(questions, world):
    with pytest.raises(NotFoundError):
        decide(questions, "another", passage("deployctl"), grade=1, by=world.alice, scope=scope_of(world.alice))
    with pytest.raises(UnknownPassageError):
        decide(questions, QUERY, passage("tangerine"), grade=1, by=world.bob, scope=scope_of(world.bob))
    assert Judgment.objects.count() == 0
