"""Starting prompts: admins set them, and each is offered to those who can see all its sources."""

import pytest

from corecube.access import Principal, scope_for
from corecube.models import AuditEvent, Connection
from explorer.pages.chat.suggestions import suggestions_for
from retrieval.models import Message, StartingPrompt

TEXT = "How do I roll back the staging database?"


def offered(client):
    return client.get("/chat/").context["examples"]


def test_an_admin_adds_changes_and_deletes_a_prompt(browse):
    alice = browse("alice")
    alice.post("/prompts/", {"title": "Roll back", "text": TEXT, "sources": ["runbooks"]})
    prompt = StartingPrompt.objects.get()
    assert (prompt.title, prompt.text, prompt.sources) == ("Roll back", TEXT, ["runbooks"])
    alice.post(f"/prompts/{prompt.pk}/", {"title": "Back", "text": TEXT})
    prompt.refresh_from_db()
    assert (prompt.title, prompt.sources) == ("Back", [])
    alice.post(f"/prompts/{prompt.pk}/delete/")
    assert not StartingPrompt.objects.exists()
    actions = AuditEvent.objects.filter(action__startswith="starting_prompt.").order_by("pk")
    assert list(actions.values_list("action", flat=True)) == [
        "starting_prompt.saved",
        "starting_prompt.saved",
        "starting_prompt.deleted",
    ]


@pytest.mark.parametrize("wrong", [{"title": ""}, {"text": ""}, {"text": "x" * 100_000}, {"sources": ["unknown"]}])
def test_a_wrong_prompt_is_not_stored(browse, wrong):
    response = browse("alice").post("/prompts/", {"title": "Roll back", "text": TEXT, **wrong})
    assert response.status_code == 422
    assert not StartingPrompt.objects.exists()


@pytest.mark.parametrize("who", ["bob", "charlie"])
def test_nobody_else_reads_or_changes_prompts(browse, who):
    prompt = StartingPrompt.objects.create(title="Secret", text=TEXT)
    client = browse(who)
    for path in ("/prompts/", f"/prompts/{prompt.pk}/"):
        assert client.get(path).status_code == 404
        assert client.post(path, {"title": "x", "text": "y"}).status_code == 404
    assert client.post(f"/prompts/{prompt.pk}/delete/").status_code == 404
    assert StartingPrompt.objects.get().title == "Secret"


def test_a_prompt_is_offered_only_to_those_who_see_all_its_sources(browse, world):
    StartingPrompt.objects.create(title="Everybody", text="one")
    StartingPrompt.objects.create(title="Engineers", text="two", sources=["runbooks"])
    StartingPrompt.objects.create(title="Both", text="three", sources=["runbooks", "ledger"])
    StartingPrompt.objects.create(title="Deleted source", text="four", sources=["gone"])
    assert [it.title for it in offered(browse("alice"))] == ["Everybody", "Engineers", "Both"]
    assert [it.title for it in offered(browse("bob"))] == ["Everybody", "Engineers"]
    assert "three" not in browse("bob").get("/chat/").content.decode()


def test_a_prompt_that_was_not_answered_lately_is_not_offered_again(browse):
    StartingPrompt.objects.create(title="Answered", text=TEXT)
    StartingPrompt.objects.create(title="Refused", text="quokka bandicoot")
    bob = browse("bob")
    for text in (TEXT, "quokka bandicoot"):
        bob.post("/chat/", {"example": text})
    assert list(Message.objects.filter(role="assistant").order_by("at").values_list("is_refused", flat=True)) == [
        False,
        True,
    ]
    assert [it.title for it in offered(bob)] == ["Answered"]
    assert [it.title for it in offered(browse("alice"))] == ["Answered", "Refused"]


def test_saving_a_prompt_keeps_a_deleted_source_so_that_it_is_not_shown_to_more_people(browse):
    prompt = StartingPrompt.objects.create(title="Old", text=TEXT, sources=["gone"])
    alice = browse("alice")
    assert 'value="gone"' in alice.get(f"/prompts/{prompt.pk}/").content.decode()
    assert alice.post(f"/prompts/{prompt.pk}/", {"title": "Old", "text": TEXT, "sources": ["gone"]}).status_code == 302
    prompt.refresh_from_db()
    assert prompt.sources == ["gone"]


def test_prompts_come_before_the_samples_questions_and_no_question_twice(world, settings):
    path = str(settings.CORECUBE_SAMPLES_DIR / "handbook")
    Connection.objects.filter(pk=world.runbooks.pk).update(slug="handbook", config={"path": path})
    scope = scope_for(Principal(world.bob))
    first, *others = suggestions_for(world.bob, scope)
    StartingPrompt.objects.create(title="Last", text=others[-1].text)
    found = suggestions_for(world.bob, scope)
    assert (found[0].title, found[1]) == ("Last", first)
    assert len({it.text for it in found}) == len(found)
