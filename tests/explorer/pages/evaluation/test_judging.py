"""The queue of a question set, and the passages with different grades."""

import pytest
from lxml import html

from corecube.access import scope_for
from corecube.models import AuditEvent
from retrieval.evaluation.question_sets import CaseFacts, save_case, set_named
from retrieval.models import Case, Chunk, Judgment
from retrieval.records.judgments import PassageId, judge

QUERY, OTHER = "rolling back", "draining the queue"
QUEUE = "/judgments/release-questions/judge/"


@pytest.fixture
def questions(world):
    made = set_named("Release questions", actor=world.alice)
    save_case(made, QUERY, actor=world.alice)
    save_case(made, OTHER, actor=world.alice)
    save_case(made, "who won the football cup", actor=world.alice, facts=CaseFacts(is_answerable=False))
    return made


@pytest.fixture
def limited_admin(browse, world):
    """Return the browser of an admin who may see the runbooks alone."""
    world.bob.is_staff = True
    world.bob.save()
    return browse("bob")


def passage(word):
    chunk = Chunk.objects.get(text__contains=word)
    return PassageId(chunk.document_id, chunk.content_hash)


def queue_of(client, **query):
    """Return the queue with its passages, as a browser without JavaScript gets it."""
    return client.get(QUEUE, {**query, "whole": "1"})


def text_of(response):
    return response.content.decode()


def test_the_queue_begins_with_the_first_question_without_own_grades(browse, questions, world):
    client = browse("alice")
    page = client.get(QUEUE)
    assert (page.context["case"].query, page.context["number"], page.context["total"]) == (OTHER, 1, 2)
    judge(OTHER, passage("Q-4711"), grade=3, by=world.bob, scope=scope_for(world.principal("bob")))
    assert client.get(QUEUE).context["case"].query == OTHER
    judge(OTHER, passage("Q-4711"), grade=3, by=world.alice, scope=scope_for(world.principal("alice")))
    page = client.get(QUEUE)
    assert (page.context["case"].query, page.context["begun"], page.context["next"]) == (QUERY, 1, "")
    assert client.get(page.context["previous"]).context["case"].query == OTHER


def test_neither_rank_nor_preset_nor_the_grades_of_others_are_shown(browse, questions, world):
    judge(QUERY, passage("deployctl"), grade=3, by=world.bob, scope=scope_for(world.principal("bob")))
    case = Case.objects.get(query=QUERY)
    page = html.fromstring(text_of(queue_of(browse("alice"), case=case.pk, preset=["corecube", "helix"])))
    (rollback,) = page.xpath("//li[contains(@class, 'pooled')][contains(., 'deployctl')]")
    assert rollback.xpath(".//*[@aria-pressed='true']") == []
    assert not {"data-rank", "data-preset"} & {name for it in rollback.iter() for name in it.attrib}
    assert "bob" not in rollback.text_content()


def test_the_queue_shows_nothing_outside_the_raters_scope(browse, questions, world, limited_admin):
    case = Case.objects.get(query=QUERY)
    assert "tangerine" in text_of(queue_of(browse("alice"), case=case.pk))
    shown = text_of(queue_of(limited_admin, case=case.pk))
    assert "deployctl" in shown
    assert "tangerine" not in shown
    costs = passage("tangerine")
    sent = {"grade": f"{costs.document_id}:{costs.content_hash}=3"}
    assert limited_admin.post(f"/judgments/cases/{case.pk}/grade/", sent).status_code == 404
    assert Judgment.objects.count() == 0


def test_the_passages_are_those_that_the_cases_user_can_get(browse, questions, world):
    case = save_case(questions, "rollback crowns", actor=world.alice, facts=CaseFacts(user=world.bob))[0]
    shown = text_of(queue_of(browse("alice"), case=case.pk))
    assert "measured with the access of bob" in shown
    assert "deployctl" in shown
    assert "tangerine" not in shown
    assert AuditEvent.objects.filter(action="search.run_as", subject="bob").count() == 1
    world.bob.is_active = False
    world.bob.save()
    assert "tangerine" in text_of(queue_of(browse("alice"), case=case.pk))


def test_the_page_loads_its_passages_after_it(browse, questions, world):
    client, case = browse("alice"), Case.objects.get(query=QUERY)
    page = client.get(QUEUE, {"case": case.pk})
    assert "deployctl" not in text_of(page)
    (address,) = html.fromstring(text_of(page)).xpath("//*[@id='passages']//@hx-get")
    later = client.get(f"{QUEUE}{address}", headers={"HX-Request": "true"})
    assert "deployctl" in text_of(later)
    assert "<h1" not in text_of(later)


def test_a_grade_is_stored_with_its_explanation_and_shown(browse, questions, world):
    case, where = Case.objects.get(query=QUERY), passage("deployctl")
    sent = {"grade": f"{where.document_id}:{where.content_hash}=2", "explanation": "names the <command>"}
    client = browse("alice")
    fragment = text_of(client.post(f"/judgments/cases/{case.pk}/grade/", sent, headers={"HX-Request": "true"}))
    assert "names the &lt;command&gt;" in fragment
    stored = Judgment.objects.get()
    assert (stored.by, stored.grade, stored.explanation) == (world.alice, 2, "names the <command>")
    back = client.post(f"/judgments/cases/{case.pk}/grade/", {**sent, "next": QUEUE})
    assert (back.status_code, back.url) == (302, QUEUE)


def test_a_set_without_answerable_cases_has_no_queue(browse, world):
    save_case(set_named("Empty", actor=world.alice), "none", actor=world.alice, facts=CaseFacts(is_answerable=False))
    assert "no answerable cases" in text_of(browse("alice").get("/judgments/empty/judge/", follow=True))


def test_different_grades_are_decided(browse, questions, world, limited_admin):
    for person, grade in ((world.alice, 3), (world.bob, 0)):
        for word in ("deployctl", "tangerine") if person == world.alice else ("deployctl",):
            judge(QUERY, passage(word), grade=grade, by=person, scope=scope_for(world.principal(person.username)))
    client = browse("alice")
    assert "1 passage with different grades" in text_of(client.get("/judgments/release-questions/"))
    page = text_of(client.get("/judgments/release-questions/disputed/"))
    assert "alice: 3" in page
    assert "bob: 0" in page
    where = passage("deployctl")
    sent = {"query": QUERY, "grade": f"{where.document_id}:{where.content_hash}=2"}
    assert client.post("/judgments/release-questions/disputed/decide/", sent, follow=True).status_code == 200
    assert Judgment.objects.get(source="final").grade == 2
    assert "Final grade by alice: 2" in text_of(limited_admin.get("/judgments/release-questions/disputed/"))
    assert client.post("/judgments/release-questions/disputed/decide/", {**sent, "query": "x"}).status_code == 404


def test_questions_of_the_log_are_drawn(browse, questions, world):
    client = browse("alice")
    browse("bob").get("/explorer/", {"q": "who is the release captain"})
    sent = {"sample": "random", "number": "5"}
    assert "Added 1 question of the log" in text_of(
        client.post("/judgments/release-questions/draw/", sent, follow=True)
    )
    assert Case.objects.get(tags=["log"]).user == world.bob
    assert "no other such question" in text_of(client.post("/judgments/release-questions/draw/", sent, follow=True))
    assert "at once" in text_of(client.post("/judgments/release-questions/draw/", {"sample": "random"}, follow=True))
