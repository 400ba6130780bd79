"""The use of passages, as the browser reports it, and what the pages of evaluation show of it."""

import uuid

import pytest

from retrieval.evaluation import runs
from retrieval.models import EvaluationRun, Impression
from tests.questions import ROLLBACK
from tests.use import shown

pytestmark = pytest.mark.usefixtures("unhurried")


@pytest.fixture
def bobs(browse):
    """A client, and the id of a search of Bob."""
    client = browse("bob")
    return client, client.get("/explorer/", {"q": ROLLBACK}).context["panels"]["trace_id"]


def test_an_opened_hit_is_reported(bobs):
    client, record = bobs
    assert client.post(f"/use/{record}/", {"number": 2}).status_code == 204
    assert list(Impression.objects.filter(opened=True).values_list("position", "record_id")) == [(2, record)]


def test_only_an_own_search_and_a_shown_passage_are_reported(bobs, browse):
    client, record = bobs
    for number in ("", "0", "x", "-1", "99", "9" * 40):
        assert client.post(f"/use/{record}/", {"number": number}).status_code == 404
    assert client.post(f"/use/{uuid.uuid4()}/", {"number": 1}).status_code == 404
    # Not even an admin reports for another user.
    assert browse("alice").post(f"/use/{record}/", {"number": 1}).status_code == 404
    assert client.get(f"/use/{record}/").status_code == 405
    assert not Impression.objects.exists()


def test_a_search_as_another_user_is_not_reported(browse):
    client = browse("alice")
    page = client.get("/explorer/", {"q": ROLLBACK, "as": "bob"})
    record = page.context["panels"]["trace_id"]
    assert "data-use-address" not in page.content.decode()
    assert client.post(f"/use/{record}/", {"number": 1}).status_code == 404


def test_the_pages_mark_a_run_with_grades_from_use(browse, questions, world):
    for number in range(5):
        shown(f"reader {number}", ROLLBACK.casefold(), "Q-4711", "deployctl", opened=True, copied=True)
    client = browse("alice")
    page = client.get("/judgments/release-questions/").content.decode()
    assert "People and use" in page.partition('id="agreement"')[2]
    assert '<option value="use">People and use</option>' in page
    assert "People and a language model</option>" not in page
    response = client.post("/judgments/release-questions/runs/", {"configuration": "corecube", "counts": "use"})
    runs.run_waiting()
    page = client.get(response.url).content.decode()
    assert "1 of 4 grades from use" in page
    assert ", with grades from use" in page
    client.post("/judgments/release-questions/runs/", {"configuration": "corecube", "counts": "nobody"})
    assert EvaluationRun.objects.first().counts == "people"
