"""Attaching files on the chat page, with and without scripts; nobody else reaches them."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from retrieval.models import Conversation

QUESTION = "How long does the walrus sleep?"


def walrus(name="walrus.md", content=b"The walrus sleeps nineteen hours in deep water."):
    return SimpleUploadedFile(name, content)


@pytest.fixture
def bob(browse):
    return browse("bob")


def test_a_first_file_starts_a_conversation_that_is_listed_with_its_first_question(bob, htmx):
    answer = bob.post("/chat/files/", {"files": [walrus(), walrus("seal.txt", b"It sleeps.")]}, headers=htmx)
    made = Conversation.objects.get()
    assert (answer.status_code, answer.headers["HX-Push-Url"]) == (200, f"/chat/{made.pk}/")
    assert "walrus.md" in answer.content.decode()
    assert "seal.txt" in answer.content.decode()
    assert "hx-trigger" not in answer.content.decode()
    assert "chat-link" not in bob.get("/chat/history/", headers=htmx).content.decode()
    bob.post(f"/chat/{made.pk}/", {"q": QUESTION})
    shown = bob.get(f"/chat/{made.pk}/").content.decode()
    assert "nineteen hours" in shown
    assert "Remove walrus.md" in shown
    assert 'value="attached-' not in shown  # The choice of sources has the other sources only.


def test_without_scripts_the_page_is_shown_again(bob):
    assert (
        bob.post("/chat/files/", {"files": walrus()}).headers["Location"] == f"/chat/{Conversation.objects.get().pk}/"
    )


def test_a_file_that_is_being_read_is_asked_for_again(bob, htmx):
    answer = bob.post("/chat/files/", {"files": walrus("a.pdf", b"%PDF-1.4")}, headers=htmx).content.decode()
    assert "reading" in answer
    assert f'hx-get="/chat/{Conversation.objects.get().pk}/files/" hx-trigger="load delay:2s"' in answer


def test_a_refused_file_says_why(bob, htmx):
    for files, said in ((walrus(content=b""), "walrus.md is empty."), ([], "Select a file.")):
        answer = bob.post("/chat/files/", {"files": files}, headers=htmx)
        assert (answer.status_code, answer.content.decode()) == (422, said)
        assert answer.headers["Content-Type"].startswith("text/plain")


def test_a_file_is_removed(bob, htmx):
    bob.post("/chat/files/", {"files": walrus()})
    own = f"/chat/{Conversation.objects.get().pk}/files/"
    assert "walrus.md" in bob.get(own, headers=htmx).content.decode()
    assert "walrus.md" not in bob.post(f"{own}remove/", {"name": "walrus.md"}, headers=htmx).content.decode()
    assert bob.post(f"{own}remove/", {"name": "none"}, headers=htmx).status_code == 200


def test_files_of_another_users_conversation_do_not_exist(bob, browse, htmx):
    bob.post("/chat/files/", {"files": walrus()})
    own, alice = f"/chat/{Conversation.objects.get().pk}/files/", browse("alice")
    assert alice.get(own, headers=htmx).status_code == 404
    assert alice.post(own, {"files": walrus()}, headers=htmx).status_code == 404
    assert alice.post(f"{own}remove/", {"name": "walrus.md"}, headers=htmx).status_code == 404
    assert "walrus.md" in bob.get(own, headers=htmx).content.decode()
