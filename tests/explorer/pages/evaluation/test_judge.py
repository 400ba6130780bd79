"""Judging in place: the grades at each hit, the measures, saving a question as a case."""

import uuid

import pytest

from corecube.models import AuditEvent, Connection
from retrieval.models import Case, Judgment, QuestionSet, SearchRecord

QUERY = "how to roll back"


def page(response):
    return response.content.decode()


@pytest.fixture
def open_explorer(browse):
    """Return a function that asks in the Explorer as one of the cast, and returns the client and its answer."""

    def ask(name, **more):
        client = browse(name)
        return client, client.get("/", {"q": QUERY, **more})

    return ask


def grade(client, response, rank, value, **more):
    judging = response.context["judging"]
    sent = {"trace": judging["trace_id"], "q": judging["query"], "next": f"/?q={QUERY}", **more.pop("data", {})}
    return client.post("/judge/", {**sent, "grade": f"{judging['strips'][rank].passage}={value}"}, **more)


def measures(response):
    return {cell["name"]: cell["value"] for cell in response.context["judging"]["measures"]}


def test_without_judgments_the_page_says_how_to_begin(open_explorer):
    _, response = open_explorer("bob")
    assert "No judgments for this query yet" in page(response)
    assert response.context["judging"]["judged"] == 0
    assert list(response.context["judging"]["strips"]) == list(range(1, len(response.context["panels"]["hits"]) + 1))


def test_a_grade_is_kept_and_the_ranking_measured(open_explorer, htmx, world):
    client, response = open_explorer("bob")
    swapped = grade(client, response, 2, 3, headers=htmx)
    assert swapped.status_code == 200
    judgment = Judgment.objects.get()
    assert (judgment.query, judgment.grade, judgment.by) == (QUERY, 3, world.bob)
    assert "<html" not in page(swapped)
    assert 'id="measures" hx-swap-oob="true"' in page(swapped)
    assert "Hit 2 graded 3, answers." in page(swapped)
    assert measures(swapped)["MRR"] == "0.500"
    again = client.get("/", {"q": f"  {QUERY.upper()} "})
    assert measures(again) == measures(swapped)
    assert again.context["judging"]["strips"][2].own == 3


def test_the_measures_of_the_swap_are_those_of_the_page(open_explorer, htmx):
    client, response = open_explorer("alice")
    for rank, value in ((1, 1), (2, 3), (3, 0)):
        swapped = grade(client, response, rank, value, headers=htmx)
    _, again = open_explorer("alice")
    assert measures(swapped) == measures(again)
    # Gains 1 and 7 at ranks 1 and 2; the ideal has them the other way round. (1 + 7 / log2 3) / (7 + 1 / log2 3).
    assert measures(again)["nDCG@10"] == "0.710"
    assert measures(again)["recall@20"] == "1.000"


def test_a_grade_is_taken_back(open_explorer, htmx):
    client, response = open_explorer("bob")
    grade(client, response, 1, 2, headers=htmx)
    swapped = grade(client, response, 1, "", headers=htmx)
    assert "Hit 1 no longer has a grade" in page(swapped)
    assert not Judgment.objects.exists()


def test_without_scripts_the_form_comes_back_to_the_page(open_explorer):
    client, response = open_explorer("bob")
    assert grade(client, response, 1, 2).url == "/?q=how%20to%20roll%20back"
    assert grade(client, response, 1, 2, data={"next": "https://elsewhere.example/"}).url == "/explorer/"
    assert grade(client, response, 1, 2, data={"next": "//elsewhere.example/"}).url == "/explorer/"
    assert Judgment.objects.count() == 1


def test_a_passage_outside_the_scope_does_not_exist(open_explorer, browse):
    _, of_alice = open_explorer("alice")
    client, of_bob = open_explorer("bob")
    own = {strip.passage for strip in of_bob.context["judging"]["strips"].values()}
    hidden = [rank for rank, strip in of_alice.context["judging"]["strips"].items() if strip.passage not in own]
    assert hidden
    trace = of_bob.context["judging"]["trace_id"]
    for rank in hidden:
        assert grade(client, of_alice, rank, 3, data={"trace": trace}).status_code == 404
    assert not Judgment.objects.exists()


def test_anothers_search_does_not_exist(open_explorer):
    _, of_alice = open_explorer("alice")
    client, of_bob = open_explorer("bob")
    for trace in (of_alice.context["judging"]["trace_id"], uuid.uuid4(), "x", ""):
        assert grade(client, of_bob, 1, 3, data={"trace": trace}).status_code == 404
    assert not Judgment.objects.exists()


@pytest.mark.parametrize(
    "given", ["", "x", "=1", "6f0c1f52-0c5b-5a54-9a0e-1d9a1a0c7b11:h=4", "6f0c1f52-0c5b-5a54-9a0e-1d9a1a0c7b11:h=-1"]
)
def test_what_is_no_grade_is_refused(open_explorer, given):
    client, response = open_explorer("bob")
    trace = response.context["judging"]["trace_id"]
    assert client.post("/judge/", {"trace": trace, "q": QUERY, "grade": given}).status_code in {400, 404}
    assert not Judgment.objects.exists()


def test_hidden_judgments_move_nothing_that_a_user_sees(open_explorer, htmx):
    client, alone = open_explorer("bob")
    grade(client, alone, 1, 1, headers=htmx)
    _, before = open_explorer("bob")
    alice, of_alice = open_explorer("alice")
    own = {strip.passage for strip in before.context["judging"]["strips"].values()}
    for rank, strip in of_alice.context["judging"]["strips"].items():
        if strip.passage not in own:
            assert grade(alice, of_alice, rank, 3, headers=htmx).status_code == 200
    _, after = open_explorer("bob")
    assert measures(after) == measures(before) != {}
    assert (after.context["judging"]["judged"], after.context["judging"]["own"]) == (1, 1)
    swapped = grade(client, after, 1, 1, headers=htmx)
    assert measures(swapped) == measures(before)
    assert swapped.context["judging"]["judged"] == 1


def test_judgments_of_what_left_the_scope_count_no_more(open_explorer, htmx, world):
    client, response = open_explorer("bob")
    grade(client, response, 1, 3, headers=htmx)
    Connection.objects.filter(pk=world.runbooks.pk).update(sensitivity=3)
    assert grade(client, response, 2, 3, headers=htmx).status_code == 404
    _, after = open_explorer("bob")
    assert after.context["judging"]["judged"] == 0


def test_others_grades_stand_beside_the_buttons(open_explorer, htmx):
    client, response = open_explorer("bob")
    grade(client, response, 1, 2, headers=htmx)
    own = {strip.passage: rank for rank, strip in response.context["judging"]["strips"].items()}
    _, of_alice = open_explorer("alice")
    strips = {strip.passage: strip for strip in of_alice.context["judging"]["strips"].values()}
    assert strips[next(passage for passage, rank in own.items() if rank == 1)].others == "2 by another user"


def test_an_admin_judges_as_themself_what_the_other_may_see(open_explorer, htmx, world):
    client, response = open_explorer("alice", **{"as": "bob"})
    assert grade(client, response, 1, 3, headers=htmx).status_code == 200
    assert Judgment.objects.get().by == world.alice
    assert AuditEvent.objects.filter(action="search.run_as", subject="bob").exists()


def test_nobody_signed_in_judges(client, open_explorer):
    _, response = open_explorer("bob")
    assert grade(client, response, 1, 3).status_code == 302
    assert not Judgment.objects.exists()


def test_a_judgment_needs_the_forms_token(world):
    from django.test import Client

    strict = Client(enforce_csrf_checks=True)
    strict.force_login(world.bob)
    assert strict.post("/judge/", {}).status_code == 403


# Saving a case.


def save(client, trace, **more):
    return client.post("/judge/case/", {"trace": trace, "next": "/log/", **more}, follow=True)


def test_an_admin_saves_a_question_as_a_case(open_explorer, world):
    client, response = open_explorer("alice")
    assert "Save as case" in page(response)
    trace = response.context["case_trace"]
    assert "Saved in Release." in page(save(client, trace, name="Release", answerable="no"))
    case = Case.objects.get()
    assert (case.query, case.is_answerable, case.created_by) == (QUERY, False, world.alice)
    assert case.record == SearchRecord.objects.get()
    assert "Already in Release." in page(save(client, trace, set="release"))
    assert save(client, trace, set="no-such").status_code == 404
    assert "needs a letter" in page(save(client, trace, name="…"))
    assert QuestionSet.objects.count() == 1


def test_a_text_that_is_not_kept_comes_from_the_page(open_explorer, settings):
    settings.CORECUBE_KEEP_QUERY_TEXT = False
    client, response = open_explorer("alice")
    save(client, response.context["case_trace"], q=response.context["case_query"])
    assert Case.objects.get().query == QUERY


def test_only_an_admin_saves_cases(open_explorer):
    client, response = open_explorer("bob")
    QuestionSet.objects.create(slug="secret-plans", name="Secret plans")
    _, again = open_explorer("bob")
    assert "Save as case" not in page(again)
    assert "Secret plans" not in page(again)
    assert save(client, response.context["case_trace"], set="secret-plans").status_code == 404
    assert not Case.objects.exists()
