import pytest

from corecube.models import AuditEvent
from retrieval.models import RouteExample
from retrieval.presets.helix.route_examples import MAX_CHARACTERS


@pytest.fixture
def admin(browse, world):
    return browse("alice")


def page(client, **query):
    return client.get("/routes/", query).content.decode()


@pytest.mark.parametrize(
    ("method", "address"), [("get", "/routes/"), ("post", "/routes/"), ("post", "/routes/1/delete/")]
)
def test_routes_are_for_admins(browse, world, method, address):
    RouteExample.objects.create(pk=1, route="skip", text="sing a song")
    assert getattr(browse("bob"), method)(address, {"route": "skip", "text": "x"}).status_code == 404
    assert RouteExample.objects.count() == 1


def test_every_route_is_listed_with_its_examples(admin):
    text = page(admin)
    assert "Good morning" in text
    assert "Other (no search)" in text
    assert "none yet" in text


def test_an_example_is_added_and_deleted_and_audited_without_its_words(admin):
    assert admin.post("/routes/", {"route": "skip", "text": "  sing  a song "}).status_code == 302
    example = RouteExample.objects.get()
    assert (example.route, example.text) == ("skip", "sing a song")
    assert "sing a song" in page(admin)
    admin.post("/routes/", {"route": "skip", "text": "sing a song"})
    assert RouteExample.objects.count() == 1
    assert admin.post(f"/routes/{example.pk}/delete/").status_code == 302
    assert not RouteExample.objects.exists()
    events = AuditEvent.objects.filter(action__startswith="route_example.")
    assert [it.action for it in events.order_by("pk")] == ["route_example.added", "route_example.deleted"]
    assert "sing" not in str(list(events.values()))


@pytest.mark.parametrize(
    ("route", "text"),
    [("skip", " "), ("skip", "x" * (MAX_CHARACTERS + 1)), ("elsewhere", "x"), ("greeting", "Good morning")],
)
def test_what_is_no_example_is_refused_in_words(admin, route, text):
    answer = admin.post("/routes/", {"route": route, "text": text}, follow=True)
    assert answer.status_code == 200
    assert len(list(answer.context["messages"])) == 1
    assert not RouteExample.objects.exists()


def test_an_example_changes_what_a_question_is_like(admin):
    def first():
        return admin.get("/routes/", {"q": "sing me a song about pumps"}).context["trial"].similarities[0][0]

    assert first() != "Other (no search)"
    admin.post("/routes/", {"route": "skip", "text": "sing me a song about pumps"})
    assert first() == "Other (no search)"


def test_a_question_is_shown_with_all_likenesses(admin):
    tried = admin.get("/routes/", {"q": "Good morning"}).context["trial"]
    assert tried.similarities[0][0] == "Greeting"
    assert "Search with" in tried.verdict
    assert "<script>" not in page(admin, q="<script>alert(1)</script>").split("<main")[1]
