"""The search by name: everything that a page would show, and nothing else."""

import pytest
from django.test import Client

from corecube.env import readings
from explorer.navigation import visible_entries
from explorer.pages.find.finders import asking, find
from explorer.wording import preset_title
from retrieval.evaluation.question_sets import set_named
from retrieval.models import Document
from retrieval.presets.catalog import PRESETS


def titles(user, text):
    return {row.title for kind in find(user, text) for row in kind.rows}


def headings(user, text):
    return [kind.heading for kind in find(user, text)]


@pytest.mark.parametrize(
    ("text", "heading", "title"),
    [
        ("clear", "Pages", "Clearances"),
        ("BACK roll", "Documents", "Rolling back"),
        ("vault", "Connections", "Vault"),
        ("charl", "Users", "charlie"),
        ("helix", "Presets", "Agent search"),
        ("agent", "Presets", "Agent search"),
        ("weekly", "Question sets", "Weekly questions"),
        ("rank_constant", "Settings", "fusion.rank_constant"),
        ("corecube_port", "Settings", "CORECUBE_PORT"),
        ("upload", "Pages", "Add a source"),
        ("ollama", "Pages", "Language models"),
    ],
)
def test_an_admin_finds_each_kind_by_its_name(world, text, heading, title):
    set_named("Weekly questions", actor=world.alice)
    assert title in {row.title for kind in find(world.alice, text) if kind.heading == heading for row in kind.rows}


def test_names_that_begin_with_the_text_come_first(world):
    (pages,) = [kind for kind in find(world.alice, "c") if kind.heading == "Pages"]
    firsts = [row.title[0].lower() == "c" for row in pages.rows]
    assert firsts == sorted(firsts, reverse=True)


def test_without_a_text_only_pages_are_offered(world):
    assert headings(world.alice, "") == ["Pages"]


def test_nobody_finds_what_they_may_not_see(world):
    """Every name of the installation, in whole and letter by letter, asked for by those who may not see it."""
    set_named("Weekly questions", actor=world.alice)
    hidden_pages = {it.entry.label for it in visible_entries(is_admin=True)}
    for user, visible in ((world.bob, {"Runbooks"}), (world.charlie, set())):
        shown = {row.title for row in Document.objects.filter(connection__name__in=visible)}
        own_pages = {it.entry.label for it in visible_entries(is_admin=False)}
        allowed = visible | shown | own_pages | set(map(preset_title, PRESETS))
        names = {
            *(row.title for row in Document.objects.all()),
            *("Runbooks", "Vault", "Ledger", "alice", "bob", "charlie", "Weekly questions", "fusion.rank_constant"),
            *(it.name for it in readings()),
            *hidden_pages,
        }
        letters = [f"{a}{b}" for a in "aeioust" for b in "abcdefghijklmnopqrstuvwxyz"]
        for text in ("", *"abcdefghijklmnopqrstuvwxyz._", *letters, *names):
            assert titles(user, text) <= allowed, text


def test_what_is_found_can_be_opened(browse, world):
    for name in ("alice", "bob", "charlie"):
        for text in ("", "a", "ro", "vault", "run", "bob", "helix", "rank"):
            for kind in find(getattr(world, name), text):
                for row in kind.rows:
                    assert browse(name).get(row.address.partition("#")[0]).status_code == 200, row


def test_the_dialog_gets_the_results_and_the_page_has_the_form(browse, htmx):
    fragment = browse("bob").get("/find/", {"name": "roll"}, headers=htmx)
    assert b"<html" not in fragment.content
    assert b"Rolling back" in fragment.content
    whole = browse("bob").get("/find/", {"name": "roll"})
    assert b"<html" in whole.content
    assert b"Rolling back" in whole.content
    assert browse("bob").get("/find/", {"name": "x\0\ud800".encode("utf-8", "replace")}).status_code == 200


def test_a_text_can_be_asked_about_the_documents_as_the_last_entry(browse):
    kinds = browse("bob").get("/find/", {"name": "roll"}).context["kinds"]
    assert [kind.heading for kind in kinds] == ["Documents", "In the text of documents"]
    assert asking("a") == ()
    (kind,) = browse("charlie").get("/find/", {"name": "why & how?"}).context["kinds"]
    assert [(row.title, row.address) for row in kind.rows] == [
        ("Ask in chat", "/chat/?q=why+%26+how%3F"),
        ("Search in Explorer", "/explorer/?q=why+%26+how%3F"),
    ]
    assert "why &amp; how?</textarea>" in browse("charlie").get(kind.rows[0].address).content.decode()


def test_strangers_sign_in_first(world):
    assert Client().get("/find/?name=vault").headers["Location"].startswith("/login/")
