import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.access import Principal, scope_for
from corecube.models import Grant
from retrieval.errors import UnknownPassageError
from retrieval.index.writer import delete_documents
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Judgment
from retrieval.records.judgments import MAX_QUERY_LENGTH, PassageId, grades_of, judge, normalised_query


def passage(slug, word):
    chunk = Chunk.objects.get(document__connection__slug=slug, text__contains=word)
    return PassageId(chunk.document_id, chunk.content_hash)


@pytest.fixture
def say(world):
    """Return a function by which one of the cast judges a passage for "How to roll back"."""

    def judged(name, where, grade, query="How to roll back"):
        person = getattr(world, name)
        judge(query, where, grade=grade, by=person, scope=scope_for(Principal(person)))

    return judged


@pytest.fixture
def heard(world):
    """Return a function that gives what one of the cast learns of the judgments of a query."""

    def grades(name, query="how to roll back"):
        person = getattr(world, name)
        return grades_of(query, viewer=person, scope=scope_for(Principal(person)))

    return grades


def test_case_and_white_space_make_no_other_question():
    assert normalised_query("  How\tto\u00a0ROLL  back\n") == "how to roll back"
    assert normalised_query("STRASSE") == normalised_query("straße")
    assert normalised_query("cafe\u0301") == normalised_query("CAF\u00c9") == "caf\u00e9"
    assert normalised_query("a\0b") == "a b"


@given(st.text(max_size=600))
def test_evening_out_is_done_once(text):
    once = normalised_query(text)
    assert len(once) <= MAX_QUERY_LENGTH
    assert once == once.strip()
    assert normalised_query(once) == once


def test_a_persons_grade_takes_the_place_of_their_earlier_one(say, heard):
    where = passage("runbooks", "deployctl")
    say("bob", where, 1)
    say("bob", where, 3, query="  how to ROLL back ")
    assert Judgment.objects.count() == 1
    assert heard("bob")[where].grade == 3
    say("bob", where, None)
    assert heard("bob") == {}


def test_the_viewers_own_grade_counts_else_the_lower_median_of_the_others(say, heard, world):
    where = passage("runbooks", "deployctl")
    Grant.objects.create(user=world.charlie, compartment=world.runbooks.compartment, clearance=3)
    say("alice", where, 3)
    say("bob", where, 0)
    assert (heard("charlie")[where].grade, heard("charlie")[where].own, heard("charlie")[where].others) == (0, None, 2)
    assert (heard("bob")[where].grade, heard("bob")[where].own, heard("bob")[where].others) == (0, 0, 1)
    assert heard("alice")[where].grade == 3


def test_a_passage_outside_the_scope_cannot_be_judged(say):
    with pytest.raises(UnknownPassageError):
        say("bob", passage("vault", "zanzibar"), 3)
    assert not Judgment.objects.exists()


def test_a_text_that_is_not_there_cannot_be_judged(say):
    with pytest.raises(UnknownPassageError):
        say("bob", passage("runbooks", "deployctl")._replace(content_hash="0" * 64), 3)


def test_judgments_outside_the_viewers_scope_are_not_heard_of(say, heard):
    say("alice", passage("vault", "zanzibar"), 3)
    assert len(heard("alice")) == 1
    assert heard("bob") == {}
    assert heard("charlie") == {}


def section(name, words):
    return f"## {name}\n\n{' '.join(f'{name.lower()}{number} is one word.' for number in range(words))}\n\n"


def test_a_judgment_stands_as_long_as_the_text_does(say, heard, world):
    path = world.root / "runbooks" / "manual.md"
    path.write_text("# Manual\n\n" + section("First", 150) + section("Second", 150))
    sync_connection(world.runbooks)
    where = passage("runbooks", "second149")
    say("bob", where, 3)
    path.write_text("# Manual\n\n" + section("New", 150) + section("First", 150) + section("Second", 150))
    sync_connection(world.runbooks)
    assert heard("bob")[where].grade == 3
    path.write_text("# Manual\n\n" + section("New", 150))
    sync_connection(world.runbooks)
    assert heard("bob") == {}
    assert Judgment.objects.count() == 1


def test_judgments_go_with_their_document(say):
    where, other = passage("runbooks", "deployctl"), passage("runbooks", "Q-4711")
    say("bob", where, 3)
    say("bob", other, 1)
    delete_documents([where.document_id])
    assert list(Judgment.objects.values_list("document_id", flat=True)) == [other.document_id]


def test_judgments_go_with_a_document_that_its_source_lost(say, world, settings):
    settings.CORECUBE_DELETE_GUARD_PERCENT = 100
    say("bob", passage("runbooks", "Q-4711"), 3)
    (world.root / "runbooks" / "queues.txt").unlink()
    sync_connection(world.runbooks)
    assert not Judgment.objects.exists()


def test_judgments_go_with_their_connection(say, world):
    say("bob", passage("runbooks", "deployctl"), 3)
    world.runbooks.delete()
    assert not Judgment.objects.exists()
