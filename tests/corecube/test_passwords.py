"""Changing one's own password."""

from django.test import Client

from corecube.models import AuditEvent

NEW = "correct horse battery"


def fields(old):
    return {"old_password": old, "new_password1": NEW, "new_password2": NEW}


def test_a_stranger_is_asked_to_sign_in(db, client):
    assert client.get("/password/").headers["Location"].startswith("/login/")


def test_a_new_password_signs_out_every_other_browser(people):
    here, there = Client(), Client()
    for browser in (here, there):
        browser.force_login(people["bob"])
    assert here.get("/password/").status_code == 200
    assert here.post("/password/", fields("b")).status_code == 302
    assert here.get("/explorer/").status_code == 200
    assert there.get("/explorer/").status_code == 302
    event = AuditEvent.objects.get(action="user.password_changed")
    assert (event.actor, event.details) == (people["bob"], {})


def test_the_old_password_is_needed(people):
    browser = Client()
    browser.force_login(people["bob"])
    page = browser.post("/password/", fields("wrong"))
    assert "old password" in page.content.decode()
    people["bob"].refresh_from_db()
    assert people["bob"].check_password("b")
