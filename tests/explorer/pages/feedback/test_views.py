"""The page of feedback: for admins only, with the search of each rating."""

from datetime import timedelta

import pytest

from retrieval.models import Message, SearchRecord

QUESTION = "How do I roll back the staging database?"


@pytest.fixture
def rated(browse):
    """Return Bob's answer with a thumb down, and one up for its first passage."""
    bob = browse("bob")
    bob.post("/chat/", {"q": QUESTION})
    answer = Message.objects.get(role="assistant")
    path = f"/chat/{answer.conversation_id}/rate/{answer.pk}/"
    bob.post(path, {"rating": "-1"})
    bob.post(path, {"rating": "1", "number": next(str(it["number"]) for it in answer.passages if it["cited"])})
    return answer


def test_ratings_are_shown_by_preset_and_source_and_lead_to_their_search(browse, rated):
    response = browse("alice").get("/feedback/")
    shown = response.content.decode()
    assert [it.value for it in response.context["figures"]] == ["1", "0%", "1", "\N{EN DASH}"]
    assert response.context["presets"] == [("corecube", {"up": 0, "down": 1, "total": 1, "share": "0%"})]
    (source,) = response.context["sources"]
    assert source["connection"].slug == "runbooks"
    assert (source["answers"]["down"], source["passages"]["up"]) == (1, 1)
    assert f"/log/{rated.record_id}/" in shown
    assert QUESTION in shown


@pytest.mark.parametrize(("rating", "count"), [("1", 0), ("-1", 1), ("", 1), ("nonsense", 1)])
def test_ratings_are_filtered(browse, rated, rating, count):
    assert len(browse("alice").get("/feedback/", {"rating": rating}).context["rows"]) == count


def test_the_change_is_that_from_the_period_before(browse, rated):
    earlier = SearchRecord.objects.create(preset="corecube", milliseconds=1, hit_count=1, feedback=1)
    SearchRecord.objects.filter(pk=earlier.pk).update(at=earlier.at - timedelta(days=45))
    figures = browse("alice").get("/feedback/", {"days": "30"}).context["figures"]
    assert figures[-1].value == "-100 points"


@pytest.mark.parametrize("who", ["bob", "charlie"])
def test_nobody_else_sees_it(browse, rated, who):
    assert browse(who).get("/feedback/").status_code == 404


def test_without_ratings_the_page_says_what_would_be_there(browse):
    assert "No ratings in this period" in browse("alice").get("/feedback/").content.decode()
