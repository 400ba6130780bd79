import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.models import Group
from django.core.management import call_command

from corecube.access import Principal, scope_for
from corecube.errors import InvalidRequestError
from corecube.models import Compartment, Connection, Grant, User
from corecube.people import ensure_first_admin
from retrieval.evaluation.sample_questions import add_sample_questions, remove_sample_questions
from retrieval.ingest.parse import parse
from retrieval.ingest.samples import Company, add_samples, is_in_use, remove_samples
from retrieval.models import Case, Document, Judgment, QuestionSet, Sync
from retrieval.records.judgments import normalised_query
from retrieval.text.document import RawDocument

COMPANY = """
[[compartment]]
slug = "house"
name = "House"
description = "For all."

[[group]]
slug = "everyone"
name = "Everyone"

[[user]]
username = "jun"
name = "Jun Petrakis"
title = "Guest"
groups = ["everyone"]
admin = false

[[grant]]
group = "everyone"
compartment = "house"
clearance = "public"

[[grant]]
user = "jun"
compartment = "house"
clearance = "internal"

[[connection]]
slug = "rules"
name = "Rules"
path = "rules"
compartment = "house"
sensitivity = "internal"
trust = "authoritative"
source_type = ""
half_life_days = 30
freshness_basis = "modified"

[[question]]
user = "jun"
kind = "paraphrase"
text = "What about doors?"
answers = [["close"]]
expected = [{ path = "rules/doors.md", grade = 2 }]

[[question]]
user = "jun"
kind = "unanswerable"
text = "What about windows?"
answerable = false
expected = []
"""


@pytest.fixture
def company(tmp_path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "doors.md").write_text("# Doors\n\nClose every door.\n")
    (tmp_path / "company.toml").write_text(COMPANY)
    return Company.read(tmp_path)


def visible(username):
    scope = scope_for(Principal(User.objects.get(username=username)))
    return [inclusion.connection.slug for inclusion in scope.included]


@pytest.mark.django_db
def test_the_samples_are_taken_in_and_open_to_those_they_are_granted_to(company):
    add_samples(company)
    assert [document.title for document in Document.objects.all()] == ["Doors"]
    assert visible("jun") == ["rules"]


@pytest.mark.django_db
def test_the_first_admin_sees_every_sample(company):
    account = ensure_first_admin()
    add_samples(company)
    assert visible(account.username) == ["rules"]


@pytest.mark.django_db
def test_the_sample_users_can_sign_in_with_the_drawn_passwords(company):
    (account,) = add_samples(company)
    assert authenticate(username="jun", password=account.password).get_full_name() == "Jun Petrakis"


@pytest.mark.django_db
def test_adding_them_again_changes_nothing(company):
    (account,) = add_samples(company)
    assert add_samples(company) == []
    assert Sync.objects.latest("started_at").unchanged == 1
    assert Grant.objects.count() == 3
    assert authenticate(username="jun", password=account.password) is not None


@pytest.mark.django_db
def test_the_samples_have_a_question_set_with_grades_once(company):
    add_samples(company)
    for _ in range(2):
        add_sample_questions(company)
    assert [*Case.objects.values_list("query", "is_answerable", "user__username", "tags", "answers")] == [
        ("What about doors?", True, "jun", ["paraphrase"], [["close"]]),
        ("What about windows?", False, "jun", ["unanswerable"], []),
    ]
    assert [*Judgment.objects.values_list("query", "grade", "by__username")] == [("what about doors?", 3, "jun")]


@pytest.mark.django_db
def test_a_set_with_other_questions_survives_the_samples(company):
    add_samples(company)
    add_sample_questions(company)
    QuestionSet.objects.get().cases.create(query="What about roofs?")
    remove_samples(company)
    remove_sample_questions()
    assert Case.objects.get().query == "What about roofs?"


@pytest.mark.django_db
def test_an_interrupted_first_time_goes_on_where_it_stopped(company):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        add_samples(company, interrupt)
    assert not is_in_use(company)
    assert [account.username for account in add_samples(company)] == ["jun"]
    assert Document.objects.count() == 1


@pytest.mark.django_db
def test_they_are_offered_once(company):
    assert not is_in_use(company)
    add_samples(company)
    assert is_in_use(company)
    remove_samples(company)
    assert is_in_use(company)


@pytest.mark.django_db
def test_they_are_not_offered_among_sources_that_somebody_works_with(company, world):
    assert world.runbooks.pk
    assert is_in_use(company)


@pytest.mark.django_db
def test_removing_them_leaves_nothing_of_theirs(company):
    add_samples(company)
    add_sample_questions(company)
    remove_samples(company)
    remove_sample_questions()
    left = (Document, Connection, Compartment, Grant, User, QuestionSet, Judgment)
    assert [model.objects.count() for model in left] == [0] * len(left)
    assert list(Group.objects.values_list("name", flat=True)) == ["Administrators"]


@pytest.mark.django_db
def test_removing_them_spares_what_has_found_other_use(company):
    add_samples(company)
    house = Compartment.objects.get(slug="house")
    Connection.objects.create(slug="mine", name="Mine", kind="upload", compartment=house)
    User.objects.create_user("dora").groups.add(Group.objects.get(name="Everyone"))
    remove_samples(company)
    assert Connection.objects.get().slug == "mine"
    assert Compartment.objects.filter(slug="house").exists()
    assert Group.objects.filter(name="Everyone").exists()


@pytest.mark.django_db
def test_a_connection_of_the_same_name_is_not_taken_over(company, tmp_path):
    house = Compartment.objects.create(slug="mine", name="Mine")
    Connection.objects.create(slug="rules", name="Mine", kind="folder", config={"path": "/else"}, compartment=house)
    with pytest.raises(InvalidRequestError, match="rules"):
        add_samples(company)
    assert not User.objects.exists()
    remove_samples(replace(company, folder=tmp_path))
    assert Connection.objects.get().config == {"path": "/else"}


@pytest.mark.django_db
def test_the_company_that_comes_with_corecube_has_no_bad_file(capsys):
    call_command("samples")
    assert Connection.objects.count() >= 3
    assert Compartment.objects.count() >= 3
    assert Document.objects.count() >= 50
    assert not Sync.objects.exclude(status=Sync.Status.DONE).exists()
    assert not Sync.objects.exclude(failed=0).exists()
    assert Case.objects.count() == 82
    answerable = Case.objects.filter(is_answerable=True).values_list("query", flat=True)
    graded = Judgment.objects.filter(grade__gte=2).values_list("query", flat=True)
    assert {normalised_query(it) for it in answerable} <= {*graded}
    printed = capsys.readouterr().out
    assert all(user.username in printed for user in User.objects.all())


def test_every_row_of_the_company_refers_to_one_that_is_there():
    company = Company.read(Path(settings.CORECUBE_SAMPLES_DIR))
    compartments = {row["slug"] for row in company.compartments}
    groups = {row["slug"] for row in company.groups}
    users = {row["username"] for row in company.users}
    assert {row["compartment"] for row in (*company.grants, *company.connections)} <= compartments
    assert {row["group"] for row in company.grants if "group" in row} <= groups
    assert {row["user"] for row in company.grants if "user" in row} <= users
    assert all(set(row["groups"]) <= groups for row in company.users)
    assert all(Path(company.path(row)).is_dir() for row in company.connections)


def test_every_question_that_can_be_answered_has_answers_in_its_documents():
    folder = Path(settings.CORECUBE_SAMPLES_DIR)
    questions = tomllib.loads((folder / "company.toml").read_text(encoding="utf-8"))["question"]
    wrong = []
    for question in questions:
        answers, asked = question.get("answers", []), normalized(question["text"])
        if bool(answers) != question.get("answerable", True):
            wrong.append((question["id"], "answers"))
        passages = [
            text for it in question["expected"] if it["grade"] == 2 for text in passages_of(folder / it["path"])
        ]
        for alternatives in answers:
            found = [normalized(it) for it in alternatives]
            if not any(it in text for it in found for text in passages):
                wrong.append((question["id"], "not in its documents", alternatives))
            if not all(found) or any(it in asked for it in found):
                wrong.append((question["id"], "in the question", alternatives))
    assert not wrong


def passages_of(path):
    """Return the text of each block of a document, without its title."""
    return [normalized(block.text) for block in parse(RawDocument(path.name, path.read_bytes())).blocks]


def normalized(text):
    return " ".join(re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text).split()).casefold()
