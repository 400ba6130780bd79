from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.errors import InvalidRequestError
from retrieval.evaluation.drawing import draw
from retrieval.evaluation.question_sets import save_case, set_named
from retrieval.models import Case, SearchRecord


@pytest.fixture
def questions(people):
    return set_named("Of the log", actor=people["alice"])


def log(user, query, *, days=0, number=1, milliseconds=10.0, **fields):
    for _ in range(number):
        record = SearchRecord.objects.create(
            user=user, query=query, preset="corecube", milliseconds=milliseconds, hit_count=1, **fields
        )
        SearchRecord.objects.filter(pk=record.pk).update(at=timezone.now() - timedelta(days=days))
    return record


def drawn(questions, sample, people, *, number=500, seed=1):
    draw(questions, sample, number, actor=people["alice"], seed=seed)
    return {case.query for case in questions.cases.all()}


def test_a_question_is_drawn_once_with_its_newest_search_and_that_users_access(questions, people):
    log(people["alice"], "what is new", days=3)
    newest = log(people["bob"], "What is  NEW")
    assert draw(questions, "random", 10, actor=people["alice"]) == 1
    (case,) = questions.cases.all()
    assert (case.query, case.user, case.record, case.tags) == ("What is  NEW", people["bob"], newest, ["log"])
    assert draw(questions, "random", 10, actor=people["alice"]) == 0


def test_each_sample_has_its_searches(questions, people):
    bob = people["bob"]
    log(bob, "usual", number=40)
    log(bob, "refused", is_refused=True)
    log(bob, "disliked", feedback=-1)
    log(bob, "unsure", verdict="partial")
    log(bob, "slow", milliseconds=900.0)
    for sample in ("refused", "disliked", "unsure", "slow"):
        assert drawn(set_named(sample, actor=people["alice"]), sample, people) == {sample}
    assert len(drawn(questions, "random", people)) == 5


def test_what_is_old_as_another_user_or_of_nobody_is_not_drawn(questions, people):
    log(people["bob"], "old", days=91)
    log(people["bob"], "as another", actor=people["alice"], for_another=True)
    log(None, "deleted user")
    log(people["bob"], "")
    people["charlie"].is_active = False
    people["charlie"].save()
    log(people["charlie"], "deactivated")
    assert drawn(questions, "random", people) == set()


def test_only_what_people_asked_or_searched_for_is_drawn(questions, people):
    for surface in SearchRecord.Surface:
        log(people["bob"], surface.value, surface=surface)
    assert drawn(questions, "random", people) == {"explorer", "chat", "api", "agent"}


def test_frequent_questions_are_drawn_in_proportion_to_their_searches(questions, people):
    log(people["bob"], "often", number=9)
    log(people["bob"], "rarely")
    firsts = Counter()
    for seed in range(200):
        Case.objects.all().delete()
        firsts.update(drawn(questions, "frequent", people, number=1, seed=seed))
    # Binomial with p = 0.9: six standard deviations are 25.
    assert 155 <= firsts["often"] <= 199
    Case.objects.all().delete()
    assert (
        Counter(
            query
            for seed in range(60)
            if Case.objects.all().delete()
            for query in drawn(questions, "random", people, number=1, seed=seed)
        )["often"]
        < 50
    )


def test_the_questions_of_the_set_are_not_drawn_again(questions, people):
    save_case(questions, "known", actor=people["alice"])
    log(people["bob"], "Known")
    log(people["bob"], "unknown")
    assert drawn(questions, "frequent", people) == {"known", "unknown"}


@pytest.mark.parametrize(("sample", "number"), [("nothing", 5), ("random", 0), ("random", 501)])
def test_unknown_samples_and_numbers_are_refused(questions, people, sample, number):
    with pytest.raises(InvalidRequestError):
        draw(questions, sample, number, actor=people["alice"])
