"""Questions to start with."""

import pytest

from corecube.access import Principal, scope_for
from corecube.models import Connection
from explorer.pages.explorer.examples import Example, answerable_examples, choose, examples_for

OWN = Example("Mine?", "paraphrase", "bob", frozenset({"handbook"}))
OTHER = Example("Theirs?", "table", "alice", frozenset({"handbook", "runbooks"}))
REFUSED = Example("Nobody knows?", "unanswerable", "alice", frozenset())


@pytest.mark.parametrize(
    ("slugs", "username", "expected"),
    [
        ({"handbook", "runbooks"}, "bob", [OWN, OTHER]),
        ({"handbook"}, "charlie", [OWN]),
        ({"handbook"}, "alice", [OTHER, REFUSED, OWN]),
        ({"website"}, "charlie", []),
    ],
)
def test_a_question_is_shown_where_its_answer_is_in_scope_or_to_whom_it_was_written_for(slugs, username, expected):
    assert list(choose([OTHER, REFUSED, OWN], slugs=slugs, username=username)) == expected


def test_no_text_is_shown_twice():
    twin = Example("Mine?", "access", "alice", frozenset({"handbook"}))
    assert choose([twin, OWN], slugs={"handbook"}, username="bob") == (OWN,)


def test_without_the_samples_there_are_none(world):
    assert examples_for(scope_for(Principal(world.alice)), "alice") == ()


def test_the_samples_own_questions_are_shown(world, settings):
    path = str(settings.CORECUBE_SAMPLES_DIR / "handbook")
    Connection.objects.filter(pk=world.runbooks.pk).update(slug="handbook", config={"path": path})
    shown = examples_for(scope_for(Principal(world.bob)), "bob")
    assert shown
    assert all(example.connections <= {"handbook"} for example in shown)


def test_the_answerable_ones_need_all_their_sources_whomever_they_were_written_for(world, settings):
    path = str(settings.CORECUBE_SAMPLES_DIR / "handbook")
    Connection.objects.filter(pk=world.runbooks.pk).update(slug="handbook", config={"path": path})
    scope = scope_for(Principal(world.bob))
    for username in ("bob", "jun", "yusuf", "wilhelmina"):
        shown = answerable_examples(scope, username)
        assert shown
        assert all(example.connections and example.connections <= {"handbook"} for example in shown)
    assert any(not example.connections <= {"handbook"} for example in examples_for(scope, "yusuf"))
