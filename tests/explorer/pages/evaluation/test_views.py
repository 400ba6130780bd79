import codecs
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from corecube.access import scope_for
from corecube.models import AuditEvent
from retrieval.evaluation.question_sets import CaseFacts, save_case, set_named
from retrieval.models import Case, Chunk, Judgment, QuestionSet
from retrieval.records.judgments import PassageId, judge

QUERY = "Run deployctl rollback before touching the staging database"


def page(response):
    return response.content.decode()


@pytest.fixture
def questions(world):
    """Return a set with a question that is judged in all three connections, and one that nothing answers."""
    made = set_named("Release questions", actor=world.alice)
    save_case(made, QUERY, actor=world.alice)
    save_case(made, "who won the football cup", actor=world.alice, facts=CaseFacts(is_answerable=False))
    scope = scope_for(world.principal("alice"))
    for word in ("deployctl", "zanzibar", "tangerine"):
        chunk = Chunk.objects.get(text__contains=word)
        judge(QUERY, PassageId(chunk.document_id, chunk.content_hash), grade=3, by=world.alice, scope=scope)
    return made


@pytest.fixture
def limited_admin(browse, world):
    """Return the browser of an admin who may see the runbooks alone."""
    world.bob.is_staff = True
    world.bob.save()
    return browse("bob")


@pytest.mark.parametrize(
    "address",
    [
        *("", "release-questions/", "release-questions/export.csv", "release-questions/export.qrels"),
        *("release-questions/judge/", "release-questions/disputed/"),
    ],
)
def test_question_sets_are_for_admins(browse, questions, address):
    assert browse("alice").get(f"/judgments/{address}").status_code == 200
    assert browse("bob").get(f"/judgments/{address}").status_code == 404


@pytest.mark.parametrize(
    "address",
    ["", *(f"release-questions/{it}" for it in ("", "runs/", "import/", "draw/", "disputed/decide/", "delete/"))],
)
def test_only_admins_change_them(browse, questions, address):
    assert browse("bob").post(f"/judgments/{address}", {"name": "x", "query": "x"}).status_code == 404
    assert (QuestionSet.objects.count(), Case.objects.count()) == (1, 2)


def test_the_list_counts_cases_and_judged_ones(browse, questions):
    row, judged = browse("alice").get("/judgments/").context["rows"][0]
    assert (row.name, row.size, judged, row.open) == ("Release questions", 2, 1, 1)


def test_judgments_are_counted_within_the_admins_scope(browse, questions, limited_admin):
    def counted(client):
        return {case.query: number for case, number, *_ in client.get("/judgments/release-questions/").context["cases"]}

    assert counted(browse("alice"))[QUERY] == 3
    assert counted(limited_admin)[QUERY] == 1
    assert page(limited_admin.get("/judgments/release-questions/export.csv")).count("\n") == 3
    assert page(limited_admin.get("/judgments/release-questions/export.qrels")).count("\n") == 1


def test_many_cases_have_pages_and_are_found_by_their_text(browse, questions, world):
    for number in range(25):
        save_case(questions, f"question {number:02} about lamps", actor=world.alice)
    client, address = browse("alice"), "/judgments/release-questions/"
    pages = [client.get(address, {"page": number}) for number in (1, 2)]
    listed = [case.query for it in pages for case, *_ in it.context["cases"]]
    assert (len(pages[0].context["cases"]), len(listed), len(set(listed))) == (20, 27, 27)
    assert "27 cases" in page(pages[1])
    found = client.get(address, {"find": "07 ABOUT"})
    (case,) = (case for case, *_ in found.context["cases"])
    assert case.query == "question 07 about lamps"
    sent = {"action": "unanswerable", "next": f"{address}?find=07#cases"}
    assert client.post(f"/judgments/cases/{case.pk}/", sent).url == sent["next"]
    assert "No question contains" in page(client.get(address, {"find": "<b>\0"}))


def test_a_set_is_made_and_a_case_added_marked_and_deleted(browse, world):
    client = browse("alice")
    assert "No question sets yet" in page(client.get("/judgments/"))
    assert client.post("/judgments/", {"name": "My set"}).url == "/judgments/my-set/"
    assert "needs a letter" in page(client.post("/judgments/", {"name": "…"}, follow=True))
    assert "No cases yet" in page(client.get("/judgments/my-set/"))
    client.post("/judgments/my-set/", {"query": "who?"})
    case = Case.objects.get()
    for action, is_answerable in (("unanswerable", False), ("answerable", True)):
        client.post(f"/judgments/cases/{case.pk}/", {"action": action})
        case.refresh_from_db()
        assert case.is_answerable is is_answerable
    assert client.post(f"/judgments/cases/{case.pk}/", {"action": "x"}).status_code == 404
    client.post(f"/judgments/cases/{case.pk}/", {"action": "delete"})
    assert not Case.objects.exists()
    client.post("/judgments/my-set/delete/")
    assert QuestionSet.objects.exists()
    client.post("/judgments/my-set/delete/", {"sure": "yes"})
    assert not QuestionSet.objects.exists()


def test_judgments_are_imported_from_a_file_or_pasted(browse, questions):
    client = browse("alice")
    exported = client.get("/judgments/release-questions/export.csv")
    assert exported.headers["Content-Disposition"] == 'attachment; filename="release-questions.csv"'
    assert exported.content.startswith(codecs.BOM_UTF8)
    Judgment.objects.all().delete()
    file = SimpleUploadedFile("judgments.csv", exported.content)
    said = page(client.post("/judgments/release-questions/import/", {"file": file}, follow=True))
    assert "0 new cases and 3 judgments." in said
    assert Judgment.objects.count() == 3
    said = page(client.post("/judgments/release-questions/import/", {"text": "query\nsomething new\n"}, follow=True))
    assert "1 new case and 0 judgments." in said


def test_a_preview_shows_what_an_import_would_do_and_stores_nothing(browse, questions):
    client, address = browse("alice"), "/judgments/release-questions/import/"
    before = Case.objects.count(), Judgment.objects.count(), AuditEvent.objects.count()
    sent = "query,document,grade,answerable,answer\nnew question,rollback,2,yes,=1; two | 2\nother,nowhere,1,no,\n"
    shown = client.post(address, {"text": sent, "action": "preview"})
    text = page(shown)
    assert "2 lines would add 2 new cases and 1 judgment." in text
    assert "Not found among the documents that you can see: nowhere." in text
    assert (Case.objects.count(), Judgment.objects.count(), AuditEvent.objects.count()) == before
    assert "2 new cases and 1 judgment." in page(client.post(address, {"text": shown.context["text"]}, follow=True))
    case = Case.objects.get(query="new question")
    assert (case.answers, Judgment.objects.get(query=case.query).grade) == ([["=1"], ["two", "2"]], 2)
    assert not Case.objects.get(query="other").is_answerable


def test_an_import_is_undone_without_what_was_there_before(browse, questions):
    client, address = browse("alice"), "/judgments/release-questions/import/"
    before = set(Case.objects.values_list("pk", flat=True))
    version = QuestionSet.objects.get().version
    assert "Undo the import" not in page(client.get("/judgments/release-questions/"))
    client.post(address, {"text": f"query\nfirst new\n{Case.objects.first().query}\nsecond new\n"})
    shown = page(client.get("/judgments/release-questions/"))
    assert "2 cases imported just now by alice" in shown
    at = re.search(r'name="at" value="([^"]+)"', shown).group(1)
    for wrong in ("", "x", "2026-01-01T00:00:00", "2026-99-99T00:00:00Z", "2026-01-01T00:00:00Z"):
        said = page(client.post(address, {"action": "undo", "at": wrong}, follow=True))
        assert "were deleted before" in said
        assert Case.objects.count() == len(before) + 2
    assert "Deleted 2 cases of the import." in page(client.post(address, {"action": "undo", "at": at}, follow=True))
    assert set(Case.objects.values_list("pk", flat=True)) == before
    assert QuestionSet.objects.get().version == version + 3
    assert AuditEvent.objects.get(action="case.import_undone").details == {"cases": 2}
    assert "were deleted before" in page(client.post(address, {"action": "undo", "at": at}, follow=True))


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"text": ""}, "contains no questions"),
        ({"file": SimpleUploadedFile("x.csv", b"\xff\xfe\x00")}, "not UTF-8 text"),
        ({"file": SimpleUploadedFile("x.csv", b"q" * 2_000_001)}, "exceed 2,000,000 bytes"),
    ],
)
def test_what_cannot_be_imported_is_said(browse, questions, sent, said):
    assert said in page(browse("alice").post("/judgments/release-questions/import/", sent, follow=True))


def test_judgments_of_changed_texts_are_marked(browse, questions):
    client, address = browse("alice"), "/judgments/release-questions/"
    assert "outdated" not in page(client.get(address))
    changed = Judgment.objects.filter(query=QUERY.casefold())[0]
    Judgment.objects.filter(pk=changed.pk).update(content_hash="f" * 64)
    shown = client.get(address)
    assert {case.query: (number, outdated) for case, number, outdated, _ in shown.context["cases"]}[QUERY] == (2, 1)
    assert "1 outdated" in page(shown)
